"""The built-in model: a fixed policy that searches, reads and quotes. It is not a language model.

It runs everything end to end without a key or a network, and is the baseline that a language model must beat. It sees
what a language model sees, messages and tool results as text, and keeps no state between calls.

The policy: look up the question's names and rarest words. Then, hop by hop, take the sentence that covers most of the
question's open words, look up its new names together with the open words, and read the chunk. When all words are
covered, nothing new turns up or the hops are used up, quote the chain of sentences.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from arag.models.messages import is_question

_MAX_HOPS = 3
_MAX_QUOTES = 4
_MAX_KEYWORDS = 8
_NEW_NAME_BONUS = 0.5
_MAX_TITLE = 100  # characters
_TITLE_SHARE = 0.6  # a word in the title counts less than one in the sentence

_NOTICE = "(Quoted by the built-in extractive model, which is not a language model.)"

_STOP_WORDS = frozenset(
    (
        "a about after all also an and any are as at be because been before being between both but by can could did "
        "do does doing during each for from had has have having he her here hers him his how i if in into is it its "
        "just many me more most much my no nor not of off on once one only or other our out over own same she should "
        "so some such than that the their them then there these they this those through to too under until up very "
        "was we were what when where which while who whom whose why will with would you your name year "
        "located called known"
    ).split()
)
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_NAME = re.compile(
    r"(?:[A-Z][\w'’.-]*\w|[A-Z])(?:\s+(?:(?:of|the|de|la|van|von|du|al|and|for|in|on)\s+){0,2}(?:[A-Z][\w'’.-]*\w|[A-Z]\.?|\d+))*"
)
_QUOTED = re.compile(r"[\"“]([^\"”]{2,60})[\"”]")
_NUMBER = re.compile(r"\b\d{3,}\b")
_HEADER = re.compile(r"^\[(?P<id>.+?)\](?P<rest> .*)?$")
_REPORT = re.compile(r"(?:^|; )(?P<keyword>[^;:]+): (?P<count>none|[\d,]+ chunks?)")
_PACKED = re.compile(r"\d+ documents")
_PLACE = re.compile(r"(?:^|, )(?:part \d+ of \d+|pages? \d+)\b.*$")  # after a title, or in place of one
_IN_ALL = re.compile(r"[\d,]+ chunks? in all, .*:|No chunk holds any of these keywords\.")  # after a report
_FORCED = re.compile(  # the request for a forced answer in `arag.graph.prompts`
    r"(?P<question>.*?)\n\nWhat was found:\n\n<(?P<tag>passages-\d+)>\n(?P<found>.*)\n</(?P=tag)>", re.DOTALL
)
_NEAREST = re.compile(r"The nearest [\d,]+ chunks?, best first:")
_KEPT_STOP = re.compile(r"\b(Dr|Mr|Mrs|Ms|Prof|St|Capt|Gen|Col|Lt|Sgt|Rev|Gov|Sen|Rep|No|vs|Mt|[A-Z])\.(?= )")
_SENTENCE_END = re.compile(r"(?:(?<=[.!?。！？])|(?<=[.!?。！？][\"”’)]))\s+(?=[\"“(]*[A-Z0-9])| … |^… ")
_ALONE = re.compile(
    r"\s{0,3}#{1,6}\s|\s*(?:\||```|~~~)|.* \| |[\s=\-*_~#|:+]{3,}$"
)  # a heading, table row, fence or rule
_LIST_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s")


@dataclass(frozen=True)
class _Sentence:
    chunk_id: str
    title: str
    text: str
    words: frozenset[str]
    names: tuple[str, ...]


@dataclass
class _Found:
    """What the conversation has found so far."""

    sentences: list[_Sentence] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    """Number of chunks that contain a keyword, by keyword in lower case."""
    read: set[str] = field(default_factory=set)
    searched: set[str] = field(default_factory=set)
    """Keywords and queries that were tried, lower case."""
    searches: int = 0


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
    question = _question(messages)
    found = _gather(messages)
    wanted = question_keywords(question)
    if found.searches == 0:
        return _search(question, wanted, tools, found)
    if "semantic_search" in tools and question.lower() not in found.searched:
        return _call("semantic_search", query=question)
    chain = _chain(question, found)
    if "chunk_read" in tools:
        for sentence in chain:
            if sentence.chunk_id not in found.read:
                return _call("chunk_read", chunk_ids=[sentence.chunk_id])
    if found.searches > _MAX_HOPS + 1:
        return None
    covered = {word for sentence in chain for word in sentence.words}
    open_words = [word for word in _ordered_words(question) if _stem(word) not in covered]
    for sentence in chain:
        fresh = [name for name in _new_names(sentence, question) if name.lower() not in found.searched]
        if fresh:
            return _search(" ".join([*fresh[:1], *open_words]), [*fresh[:3], *open_words[:3]], tools, found)
    return None


def _search(query: str, keywords: Sequence[str], tools: set[str], found: _Found) -> AIMessage | None:
    if "keyword_search" in tools and keywords:
        return _call("keyword_search", keywords=list(dict.fromkeys(keywords))[:_MAX_KEYWORDS])
    if "semantic_search" in tools and query.lower() not in found.searched:
        return _call("semantic_search", query=query)
    return None


def _call(name: str, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": str(uuid4()), "type": "tool_call"}])


def _answer(messages: Sequence[BaseMessage]) -> str:
    """Quote the chain of sentences, starting with the one that best covers the question's first words."""
    question = _question(messages)
    chain = _chain(question, _gather(messages))
    if not chain:
        return f"Nothing was found in the corpus. {_NOTICE}"
    asked_for = [_stem(word) for word in _ordered_words(question)]

    def aim(sentence: _Sentence) -> float:
        return sum(1 / (1 + place) for place, word in enumerate(asked_for) if word in sentence.words)

    first = max(chain, key=aim)
    quotes = []
    for s in [first, *(s for s in chain if s is not first)]:
        about = "" if s.title in s.text else f"{s.title}: "
        quotes.append(f"{about}{s.text} [{s.chunk_id}]")
    return "\n".join([*quotes, _NOTICE])


# --- which sentences matter ---


def _chain(question: str, found: _Found) -> list[_Sentence]:
    """Choose sentences one by one: each covers the most open words, and preferably names from the ones before."""
    wanted = _content_words(question)
    chain: list[_Sentence] = []
    covered: set[str] = set()
    bridges: set[str] = set()
    pool = list({(s.chunk_id, s.text): s for s in found.sentences}.values())
    while pool and len(chain) < _MAX_QUOTES:
        gains = [_gain(sentence, wanted - covered, bridges, found) for sentence in pool]
        if max(gains) <= 0:
            break
        best = pool.pop(gains.index(max(gains)))
        chain.append(best)
        covered |= best.words & wanted
        bridges |= {name.lower() for name in _new_names(best, question)}
    return chain


def _gain(sentence: _Sentence, open_words: set[str], bridges: set[str], found: _Found) -> float:
    said = open_words & sentence.words
    titled = open_words & _content_words(sentence.title) - said
    gain = sum(_weight(word, found) for word in said) + _TITLE_SHARE * sum(_weight(word, found) for word in titled)
    if not gain:
        return 0.0
    text = f"{sentence.title} {sentence.text}".lower()
    linked = sum(bridge in text for bridge in bridges)
    if linked:
        gain += _NEW_NAME_BONUS * (1 + linked)
    # Of two sentences that cover the same words, the shorter one is more direct.
    return gain - len(sentence.text) / 5_000


def _weight(word: str, found: _Found) -> float:
    """Rare words weigh more, as far as the keyword reports say how rare they are."""
    count = found.counts.get(word)
    if count is None:
        return 0.7
    return 1.0 / (1.0 + 0.15 * count) + 0.3 if count else 0.3


# --- reading the conversation ---


def _question(messages: Sequence[BaseMessage]) -> str:
    for message in reversed(messages):
        if is_question(message):
            return asked_and_found(message.text)[0].strip()
    return ""


def asked_and_found(message: str) -> tuple[str, str]:
    """Return the question and the evidence in a request for a forced answer; for other messages, the message and ""."""
    forced = _FORCED.fullmatch(message)
    return (forced["question"], forced["found"]) if forced else (message, "")


def _gather(messages: Sequence[BaseMessage]) -> _Found:
    """Read tool results, or the evidence in a forced answer's prompt."""
    found = _Found()
    calls = {call["id"]: call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls}
    last_question = max((i for i, m in enumerate(messages) if is_question(m)), default=0)
    for place, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            _gather_result(message.text, found)
            call = calls.get(message.tool_call_id)
            if call is None or place < last_question:
                continue
            if call["name"] == "chunk_read":
                found.read.update(_listed(call["args"].get("chunk_ids", [])))
            else:
                found.searches += 1
                terms = call["args"].get("keywords") or call["args"].get("query", "")
                found.searched.update(term.lower() for term in _listed(terms))
    if messages and isinstance(messages[-1], HumanMessage):
        _, evidence = asked_and_found(messages[-1].text)
        _gather_result(evidence, found)
    return found


def _listed(value: Any) -> list[str]:
    """Read an argument that another model may have given as a single item."""
    return [str(item) for item in (value if isinstance(value, list) else [value])]


def _gather_result(text: str, found: _Found) -> None:
    chunk_id = title = ""
    is_hit = untitled = False
    begins = True  # a paragraph, or a chunk
    paragraph: list[str] = []
    lines = text.splitlines()
    for line, following in zip(lines, [*lines, ""][1:], strict=True):
        header = _HEADER.match(line) if begins else None
        if begins or _ALONE.match(line) or _LIST_ITEM.match(line):
            found.sentences += _sentences(paragraph, chunk_id, title)
            paragraph = []
        if _IN_ALL.fullmatch(following) or _NEAREST.fullmatch(line):  # a forced answer's evidence joins many results
            chunk_id = ""
        if header:
            chunk_id = header["id"]
            rest = (header["rest"] or "").strip()
            if "whole chunk shown" in rest or "read before" in rest:
                found.read.add(chunk_id)
            is_hit = rest.startswith(("score ", "similarity "))
            title = "" if is_hit or _PACKED.fullmatch(rest) else _PLACE.sub("", rest)
            untitled = not title
        elif not chunk_id:
            for report in _REPORT.finditer(line):
                count = 0 if report["count"] == "none" else int(report["count"].split()[0].replace(",", ""))
                found.counts[_stem(report["keyword"].strip().lower())] = count
        elif is_hit:
            named, colon, rest = line.partition(": ")
            has_title = colon and len(named) <= 80 and named[:1].isupper()
            found.sentences += _sentences([rest], chunk_id, named) if has_title else _sentences([line], chunk_id, "")
        elif untitled and begins and _is_title(line, following):
            title = line.strip()
        else:
            paragraph.append(line)
        begins = bool(header or not line.strip() or _ALONE.match(line))
    found.sentences += _sentences(paragraph, chunk_id, title)


def _is_title(line: str, following: str) -> bool:
    """Return whether a line is the title of the text below it, not the first line of a paragraph.

    A paragraph's line breaks only where the next word no longer fits.
    """
    line, following = line.strip(), following.strip()
    word, *_ = following.split() or [""]
    return 0 < len(line) <= _MAX_TITLE and len(line) + 1 + len(word) <= len(following)


def _sentences(lines: Sequence[str], chunk_id: str, title: str) -> Iterator[_Sentence]:
    """Yield the sentences of a paragraph; its lines may break anywhere."""
    text = " ".join(" ".join(lines).split())
    for piece in _SENTENCE_END.split(_KEPT_STOP.sub("\\1\u2024", text)):
        sentence = piece.strip(" …").replace("\u2024", ".")
        if len(sentence) < 12 or sentence.startswith(("#", "(")):
            continue
        yield _Sentence(
            chunk_id=chunk_id,
            title=title,
            text=sentence,
            words=frozenset(_content_words(sentence)),
            names=tuple(dict.fromkeys([*_names(sentence), *([title] if title else [])])),
        )


def question_keywords(question: str) -> list[str]:
    """Return what to look up for a question: its names and quotations, or else its words; at most eight.

    Common words would drown out the names: they are frequent, and the score counts every occurrence.
    """
    return (_names(question) or _ordered_words(question))[:_MAX_KEYWORDS]


def _names(text: str) -> list[str]:
    """Return runs of capitalised words, quotations and long numbers, the first word of a sentence only if in a run."""
    found: dict[str, None] = {match.group(1).strip(" ,."): None for match in _QUOTED.finditer(text)}
    for match in _NAME.finditer(text):
        words = match.group(0).split()
        while words and words[0].lower().strip(".,") in _STOP_WORDS:
            words = words[1:]
        name = " ".join(words).removesuffix("'s").removesuffix("’s").strip(" .,")
        if len(name) > 2 and not (match.start() == 0 and len(words) == 1):
            found[name] = None
    found |= {match.group(0): None for match in _NUMBER.finditer(text)}
    return list(found)


def _ordered_words(text: str) -> list[str]:
    words = (m.group(0).lower().removesuffix("'s").removesuffix("’s") for m in _WORD.finditer(text))
    return [w for w in dict.fromkeys(words) if w not in _STOP_WORDS and len(w) > 1]


def _content_words(text: str) -> set[str]:
    return {_stem(word) for word in _ordered_words(text)}


def _stem(word: str) -> str:
    """Strip common English endings, so that "wrecked" matches "wreck" and "ships" matches "ship"."""
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word.removesuffix(ending)
    return word


def _new_names(sentence: _Sentence, question: str) -> list[str]:
    return [name for name in sentence.names if name.lower() not in question.lower()]
