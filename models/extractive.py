"""The built-in model: a fixed policy that searches, reads and quotes. It is not a language model.

It runs everything end to end without a key or a network, and is the baseline that a language model must beat. It sees
what a language model sees, messages and tool results as text, and keeps no state between calls.

The policy: search for the question by its meaning, then for its names and words. Then, hop by hop, take the sentences
that cover most of the question's open words and are nearest to it, and look up a new name of theirs with the words that
are left open. When all words are covered, nothing new turns up or the searches are used up, read the chunks of the
chosen sentences, and quote these.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from arag.models.findings import (
    GAP,
    Found,
    Sentence,
    content_words,
    find_names,
    find_question,
    gather,
    list_words,
    stem,
)

_MAX_CALLS = 8
_MAX_SEARCHES = 5
_MAX_QUOTES = 3
_MAX_KEYWORDS = 8
_TITLE_SHARE = 0.6  # a word in the title counts less than one in the sentence
_REPEAT = 0.2  # a word that an earlier quote has counts little, but settles what else is worth quoting
_NEW_NAME_BONUS = 0.5
_LINKED = 0.5  # the least nearness of a found sentence with a name that an earlier quote brought up
_UNRELATED = 0.7  # for a sentence that has no name of the question's and none from the quotes before
_EXPECTED = 2.0  # for a sentence that holds what the question asks for, such as a number

_NOTICE = "(Quoted by the built-in extractive model, which is not a language model.)"

_NUMBER_WORD = r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|forty|fifty|hundred|dozen)\b"
_YEAR = r"\b1[0-9]{3}\b|\b20[0-9]{2}\b"
_KINDS = [  # what a question asks for, by its words
    (re.compile(question), re.compile(answer))
    for question, answer in (
        (r"licen[cs]e", r"\b(?:MIT|BSD|Apache|[AL]?GPL|GNU|MPL|Mozilla|ISC|PSF|CC0|CC BY)"),
        (r"\b(?:which|what) year\b", _YEAR),
        (r"\b(?:when|(?:which|what) version)\b", r"\d"),
        (r"\bhow (?:many|much|long|old|often|far)\b", rf"(?!{_YEAR})\b\d|{_NUMBER_WORD}"),
    )
]
_ASKS_NAME = re.compile(r"\b(?:who|whom|whose|where)\b")
_MARKUP = re.compile(r"\]?[(<]?https?://\S+|[^\w\s.,;'’“”\"()-]|_")


class ExtractiveModel(BaseChatModel):
    """A chat model that searches and quotes by fixed rules: deterministic, offline, and not a language model."""

    @property
    def _llm_type(self) -> str:
        return "arag-extractive"

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,  # noqa: ARG002
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind any of the three retrieval tools; others are ignored."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=_reply(messages, kwargs))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        reply = _reply(messages, kwargs)
        calls = [
            tool_call_chunk(name=call["name"], args=json.dumps(call["args"]), id=call["id"], index=place)
            for place, call in enumerate(reply.tool_calls)
        ]
        for word in re.findall(r"\s*\S+", reply.text):
            yield ChatGenerationChunk(message=AIMessageChunk(content=word))
        last = AIMessageChunk(content="", tool_call_chunks=calls, response_metadata=reply.response_metadata)
        yield ChatGenerationChunk(message=last)


def _reply(messages: Sequence[BaseMessage], options: Mapping[str, Any]) -> AIMessage:
    names = {tool["function"]["name"] for tool in options.get("tools") or ()}
    reply = _next_call(messages, names) or AIMessage(_answer(messages))
    return reply.model_copy(update={"response_metadata": {"model_name": "extractive"}})


# --- what to do next ---


def _next_call(messages: Sequence[BaseMessage], tools: set[str]) -> AIMessage | None:
    """Return the next tool call, or None when it is time to answer."""
    question = find_question(messages)
    found = gather(messages)
    # First by meaning: a search shows only what the conversation does not hold yet, and here with its similarity.
    if "semantic_search" in tools and question.lower() not in found.searched:
        return _call("semantic_search", query=question)
    keywords = question_keywords(question)
    # The words say little of where to look, but their reports tell how rare they are.
    keywords += [w for w in list_words(question) if not any(w in keyword.lower() for keyword in keywords)]
    keywords = keywords[:_MAX_KEYWORDS]
    if "keyword_search" in tools and keywords and " ".join(keywords).lower() not in found.searched:
        return _call("keyword_search", keywords=keywords)
    chain = _chain(question, found)
    if found.searches < _MAX_SEARCHES and (hop := _hop(question, chain, tools, found)):
        return hop
    unread = [chunk_id for chunk_id in dict.fromkeys(s.chunk_id for s in chain) if chunk_id not in found.read]
    if "chunk_read" in tools and unread and found.searches + found.reads < _MAX_CALLS:
        return _call("chunk_read", chunk_ids=unread)
    return None


def _hop(question: str, chain: Sequence[Sentence], tools: set[str], found: Found) -> AIMessage | None:
    """Look up a new name of the first sentences, together with the words that are still open."""
    covered: set[str] = set()
    for sentence in chain:
        covered |= sentence.words
        open_words = [word for word in list_words(question) if stem(word) not in covered]
        fresh = [
            name
            for name in _new_names(sentence, question)
            if name[0].isalpha() and not name[-1].isdigit() and not any(name.lower() in q for q in found.searched)
        ]
        if fresh and open_words:
            if "semantic_search" in tools:
                return _call("semantic_search", query=" ".join([fresh[0], *open_words]))
            if "keyword_search" in tools:
                return _call("keyword_search", keywords=[*fresh[:3], *open_words[:3]])
    return None


def _call(name: str, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": str(uuid4()), "type": "tool_call"}])


def _answer(messages: Sequence[BaseMessage]) -> str:
    """Quote the chain of sentences, starting with the one that best covers the question's first words."""
    question = find_question(messages)
    chain = _chain(question, gather(messages))
    if not chain:
        return f"Nothing was found in the corpus. {_NOTICE}"
    asked_for = [stem(word) for word in list_words(question)]
    is_expected = _expected(question)

    def aim(s: Sentence) -> float:
        shares = ((word in s.words) or _TITLE_SHARE * (word in s.subject) for word in asked_for)
        covered = sum(share / (1 + place) for place, share in enumerate(shares))
        return covered * (_EXPECTED if is_expected(s) else 1)

    first = max(chain, key=aim)
    quotes = []
    for s in [first, *(s for s in chain if s is not first)]:
        about = "" if s.title in s.text else f"{s.title}: "
        quotes.append(f"{about}{s.text} [{s.chunk_id}]")
    return "\n".join([*quotes, _NOTICE])


# --- which sentences matter ---


def _chain(question: str, found: Found) -> list[Sentence]:
    """Choose sentences one by one: each covers the most open words, and preferably names from the ones before."""
    weights = {word: _weight(word, found) for word in content_words(question)}
    # What the question is about: its names, or else its rarest words.
    subjects = [content_words(name) for name in find_names(question)] or [
        {word} for word, weight in weights.items() if weight == max(weights.values())
    ]
    is_expected = _expected(question)
    chain: list[Sentence] = []
    covered: set[str] = set()
    bridges: dict[str, str] = {}  # new names, and the chunks that they are from

    def gain(s: Sentence) -> float:
        held = {w: x * (1 if w in s.words else _TITLE_SHARE) for w, x in weights.items() if w in s.words | s.subject}
        fresh = sum(weight for word, weight in held.items() if word not in covered)
        nearness = found.nearness.get(s.text, 0)
        linked = sum(
            bridge in s.text.lower() or (chunk_id != s.chunk_id and bridge in s.title.lower())
            for bridge, chunk_id in bridges.items()
        )
        share = fresh + _REPEAT * (sum(held.values()) - fresh)
        if linked:
            share += _NEW_NAME_BONUS * (1 + linked) * (1 if fresh else nearness and max(nearness, _LINKED))
        related = linked or any(subject <= s.words | s.subject for subject in subjects)
        share *= (1 + nearness) * (1 if related else _UNRELATED)
        if chain and is_expected(s):  # the first sentence says what the question is about
            share *= _EXPECTED
        # Prose before code, badges and links; of two sentences that cover the same words, the shorter one.
        return share * len(_MARKUP.sub("", s.text)) / len(s.text) - len(s.text) / 5_000

    # A sentence that a search has cut is not needed when its chunk has been read.
    uncut = [s for s in found.sentences if not (s.text.endswith(GAP) and s.chunk_id in found.read)]
    pool = list({(s.chunk_id, s.text): s for s in uncut}.values())
    while pool and len(chain) < _MAX_QUOTES:
        best = max(pool, key=gain)
        if gain(best) <= 0:
            break
        chain.append(best)
        # A search result shows on one line what a chunk has on several: the same sentence may be there twice.
        pool = [s for s in pool if s.chunk_id != best.chunk_id or not (s.text in best.text or best.text in s.text)]
        covered |= best.words & weights.keys()
        bridges |= {name.lower(): best.chunk_id for name in _new_names(best, question)}
    return chain


def _weight(word: str, found: Found) -> float:
    """Rare words weigh more, as far as the keyword reports say how rare they are."""
    count = found.counts.get(word, 10)
    return 1.0 / (1.0 + 0.15 * count) + 0.3 if count else 0.3


def _expected(question: str) -> Callable[[Sentence], bool]:
    """Return a function that tells whether a sentence holds the kind of thing that a question asks for."""
    asked = question.lower()
    for kind, answer in _KINDS:
        if kind.search(asked):
            return lambda s: bool(answer.search(s.text))
    if not _ASKS_NAME.search(asked):
        return lambda _: False
    return lambda s: any(name[0].isalpha() and name.lower() not in asked for name in find_names(s.text))


def question_keywords(question: str) -> list[str]:
    """Return what to look up for a question: its names and quotations, or else its words; at most eight.

    Common words would drown out the names: they are frequent, and the score counts every occurrence.
    """
    return (find_names(question) or list_words(question))[:_MAX_KEYWORDS]


def _new_names(sentence: Sentence, question: str) -> list[str]:
    return [name for name in sentence.names if name.lower() not in question.lower()]
