"""The built-in model: a fixed policy that searches, reads and quotes. It is not a language model.

It runs everything end to end without a key or a network, and is the baseline that a language model must beat. It keeps
no state between calls.

The policy: search for the question by its meaning, then for its names and words. Then, hop by hop, take the sentences
that cover most of the question's open words and are nearest to it, and look up a new name of theirs with the words that
are left open. When all words are covered, nothing new turns up or the searches are used up, read the chunks of the
chosen sentences, and quote these.
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

from arag.models.words import content_words, cut_sentences, find_names, list_words, stem

_MAX_CALLS = 8
_MAX_SEARCHES = 5
_MAX_QUOTES = 3
_MAX_KEYWORDS = 8
_MIN_BYTES = 12  # of a sentence
_MAX_TITLE = 100  # characters
_UNRELATED, _EQUAL = 0.2, 0.8  # similarities of a search by meaning
_TITLE_SHARE = 0.6  # a word in the title counts less than one in the sentence
_REPEAT = 0.2  # a word that an earlier quote has counts little, but settles what else is worth quoting
_NEW_NAME_BONUS = 0.5
_ASIDE = 0.7  # for a sentence that has no name of the question's and none from the quotes before
_EXPECTED = 2.0  # for a sentence that holds what the question asks for, such as a number

_NOTICE = "(Quoted by the built-in extractive model, which is not a language model.)"

_NUMBER_WORD = r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|forty|fifty|hundred|dozen)\b"
_YEAR = r"\b1[0-9]{3}\b|\b20[0-9]{2}\b"
_KINDS = {  # what an answer has, by what the question asks
    re.compile(r"\b(?:which|what) year\b"): re.compile(_YEAR),
    re.compile(r"\b(?:when|(?:which|what) version)\b"): re.compile(r"\d"),
    re.compile(r"\bhow (?:many|much|long|old|often|far)\b"): re.compile(rf"(?!{_YEAR})\b\d|{_NUMBER_WORD}"),
}
_ASKS_NAME = re.compile(r"\b(?:who|whom|whose|where)\b")
# What `arag.graph.prompts` and `arag.retrieval.render` write.
_FORCED = re.compile(r"(.*?)\n\nWhat was found:\n\n<(passages-\d+)>\n(.*)\n</\2>", re.DOTALL)
_BLOCK = re.compile(r"^\[(.+?)\](?: \((-?\d\.\d\d)\))?(?: (.*)|$)((?:\n(?!\[.+?\](?: |$)).*)*)", re.MULTILINE)
_PLACE = re.compile(r"(?:^|, )(?:part \d+ of \d+|pages? \d+)\b.*$")
_REPORT = re.compile(r"(?m)^.*: (?:none|[\d,]+ chunks?)\b.*$")
_FILE_ENDING = re.compile(r"(?:\.\w+)?:\d+$")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s")
_ALONE = re.compile(r"\s{0,3}#{1,6}\s|\s*(?:\||```|~~~)|.* \| |[\s=\-*_~#|:+]{3,}$")  # a heading, row, fence or rule


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
    findings = _read_conversation(messages)
    chain = _choose_sentences(findings)
    tools = {tool["function"]["name"] for tool in options.get("tools") or ()}
    reply = _choose_call(findings, chain, tools) or AIMessage(_answer(findings, chain))
    return reply.model_copy(update={"response_metadata": {"model_name": "extractive"}})


# --- what the conversation holds ---


@dataclass(frozen=True)
class _Sentence:
    """A sentence that a tool has shown, its words and names, and the words of its document's title and id."""

    chunk_id: str
    title: str
    text: str
    nearness: float  # to a query: from 0 to about 1
    words: frozenset[str]
    subject: frozenset[str]
    names: tuple[str, ...]


@dataclass
class _Findings:
    """What a conversation holds, and what was looked for since its last question."""

    question: str
    sentences: dict[tuple[str, str], _Sentence] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)  # chunks that hold a keyword, by its stem
    read: set[str] = field(default_factory=set)
    searches: list[str] = field(default_factory=list)  # queries and joined keywords, in lower case
    calls: int = 0

    def add_sentence(self, chunk_id: str, title: str, text: str, similarity: float = 0.0) -> None:
        text = text.strip(" …")
        if len(text.encode()) < _MIN_BYTES or text.startswith(("#", "(")) or text == title:
            return
        nearness = max(0.0, (similarity - _UNRELATED) / (_EQUAL - _UNRELATED))
        known = self.sentences.get((chunk_id, text))
        self.sentences[chunk_id, text] = _Sentence(
            chunk_id,
            title,
            text,
            max(nearness, known.nearness if known else 0.0),
            frozenset(content_words(text)),
            frozenset(content_words(f"{title} {_FILE_ENDING.sub('', chunk_id)}")),
            tuple(dict.fromkeys([*find_names(text), *filter(None, [title])])),
        )

    def add_texts(self, text: str) -> None:
        """Add the sentences of chunks and excerpts as the tools write them."""
        for chunk_id, similarity, head, body in _BLOCK.findall(_REPORT.sub("", text)):
            title, lines = _PLACE.sub("", head), body.split("\n")[1:]
            if not lines or not lines[0].strip():  # an excerpt on one line, not a chunk below its title
                title, colon, rest = head.partition(": ")
                title, lines = (title, [rest]) if colon and len(title) <= _MAX_TITLE else ("", [head])
            for line in _join_lines(lines):
                for start, end in cut_sentences(line):
                    self.add_sentence(chunk_id, title, line[start:end], float(similarity or 0))


def _join_lines(lines: Sequence[str]) -> Iterator[str]:
    """Yield paragraphs and items on one line each, and lines that stand alone."""
    paragraph: list[str] = []
    for line in [*lines, ""]:
        is_alone = not line.strip() or _ALONE.match(line) is not None
        if is_alone or _ITEM.match(line):
            yield " ".join(" ".join(paragraph).split())
            paragraph = []
        if is_alone:
            yield line.strip()
        else:
            paragraph.append(line)


def _read_conversation(messages: Sequence[BaseMessage]) -> _Findings:
    """Read the last question, and the results of tools: those of searches from their artifacts."""
    place = max((place for place, message in enumerate(messages) if isinstance(message, HumanMessage)), default=None)
    question, evidence = ("", "") if place is None else read_forced_question(messages[place].text)
    findings = _Findings(question.strip())
    findings.add_texts(evidence)
    calls = {c["id"]: c for m in messages[place or 0 :] if isinstance(m, AIMessage) for c in m.tool_calls}
    for message in messages:
        if not isinstance(message, ToolMessage):
            continue
        artifact = message.artifact if isinstance(message.artifact, dict) else {}
        results = artifact.get("results") or {}
        for hit in results.get("hits", ()):
            for sentence in hit["excerpt"]["sentences"]:
                if not sentence["cut"]:
                    similarity = hit["score"] if "query" in results else 0.0
                    findings.add_sentence(hit["chunk_id"], hit["excerpt"]["title"], sentence["text"], similarity)
        for report in results.get("keywords", ()):
            findings.counts[stem(report["keyword"].lower())] = report["chunks"]
        if "hits" not in results:
            findings.add_texts(message.text)
        findings.read.update(artifact.get("new_chunks", ()))
        if call := calls.get(message.tool_call_id):
            findings.calls += 1
            if call["name"] == "chunk_read":
                findings.read.update(_list(call["args"].get("chunk_ids")))
            else:
                terms = (call["args"].get(name) for name in ("keywords", "queries", "query"))
                findings.searches.append(" ".join(each for term in terms for each in _list(term)).lower())
    return findings


def read_forced_question(message: str) -> tuple[str, str]:
    """Return the question and the evidence in a request for a forced answer; of other messages the text and ""."""
    forced = _FORCED.fullmatch(message)
    return (forced[1], forced[3]) if forced else (message, "")


def _list(value: Any) -> list[str]:
    """Read an argument that another model may have given as a single item."""
    return [str(item) for item in (value if isinstance(value, list) else [value]) if item is not None]


# --- what to do next ---


def _choose_call(findings: _Findings, chain: Sequence[_Sentence], tools: set[str]) -> AIMessage | None:
    """Return the next tool call, or None when it is time to answer."""
    question = findings.question
    # First by meaning: a search shows only what the conversation does not hold yet, and here with its similarity.
    if "semantic_search" in tools and question.lower() not in findings.searches:
        return _call("semantic_search", query=question)
    keywords = question_keywords(question)
    # The words say little of where to look, but their reports tell how rare they are.
    keywords += [w for w in list_words(question) if not any(w in keyword.lower() for keyword in keywords)]
    keywords = keywords[:_MAX_KEYWORDS]
    if "keyword_search" in tools and keywords and " ".join(keywords).lower() not in findings.searches:
        return _call("keyword_search", keywords=keywords)
    if len(findings.searches) < _MAX_SEARCHES and (hop := _follow_name(findings, chain, tools)):
        return hop
    unread = [chunk_id for chunk_id in dict.fromkeys(s.chunk_id for s in chain) if chunk_id not in findings.read]
    if "chunk_read" in tools and unread and findings.calls < _MAX_CALLS:
        return _call("chunk_read", chunk_ids=unread)
    return None


def _follow_name(findings: _Findings, chain: Sequence[_Sentence], tools: set[str]) -> AIMessage | None:
    """Look up a new name of the first sentences, together with the words that are still open."""
    covered: set[str] = set()
    for sentence in chain:
        covered |= sentence.words
        open_words = [word for word in list_words(findings.question) if stem(word) not in covered]
        names = [
            name
            for name in _new_names(sentence, findings.question)
            if name[0].isalpha()
            and not name[-1].isdigit()
            and not any(name.lower() in search for search in findings.searches)
        ]
        if names and open_words and "semantic_search" in tools:
            return _call("semantic_search", query=" ".join([names[0], *open_words]))
        if names and open_words and "keyword_search" in tools:
            return _call("keyword_search", keywords=[*names[:3], *open_words[:3]])
    return None


def _call(name: str, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": str(uuid4()), "type": "tool_call"}])


def question_keywords(question: str) -> list[str]:
    """Return what to look up for a question: its names and quotations, or else its words; at most eight.

    Common words would drown out the names: they are frequent, and the score counts every occurrence.
    """
    return (find_names(question) or list_words(question))[:_MAX_KEYWORDS]


# --- which sentences matter ---


def _choose_sentences(findings: _Findings) -> list[_Sentence]:
    """Choose sentences one by one: each covers the most open words, and preferably names from the ones before."""
    question = findings.question
    weights = {word: _weight(word, findings) for word in content_words(question)}
    # What the question is about: its names, or else its rarest words.
    subjects = [content_words(name) for name in find_names(question)] or [
        {word} for word, weight in weights.items() if weight == max(weights.values())
    ]
    chain: list[_Sentence] = []
    covered: set[str] = set()
    bridges: dict[str, str] = {}  # new names, and the chunks that they are from

    def gain(s: _Sentence) -> float:
        shared = {w: x * (1 if w in s.words else _TITLE_SHARE) for w, x in weights.items() if w in s.words | s.subject}
        fresh = sum(weight for word, weight in shared.items() if word not in covered)
        linked = sum(
            bridge in s.text.lower() or (chunk_id != s.chunk_id and bridge in s.title.lower())
            for bridge, chunk_id in bridges.items()
        )
        share = fresh + _REPEAT * (sum(shared.values()) - fresh)
        if linked and (fresh or s.nearness):
            share += _NEW_NAME_BONUS * (1 + linked)
        related = linked or any(subject <= s.words | s.subject for subject in subjects)
        share *= (1 + s.nearness) * (1 if related else _ASIDE)
        if chain and _is_expected(s, question):  # the first sentence says what the question is about
            share *= _EXPECTED
        return share - len(s.text) / 5_000  # of two that cover the same words, the shorter one

    pool = list(findings.sentences.values())
    while pool and len(chain) < _MAX_QUOTES:
        best = max(pool, key=gain)
        if gain(best) <= 0:
            break
        chain.append(best)
        # An excerpt shows on one line what a chunk has on several: the same sentence may be there twice.
        pool = [s for s in pool if s.chunk_id != best.chunk_id or not (s.text in best.text or best.text in s.text)]
        covered |= best.words & weights.keys()
        bridges |= {name.lower(): best.chunk_id for name in _new_names(best, question)}
    return chain


def _weight(word: str, findings: _Findings) -> float:
    """Rare words weigh more, as far as the keyword reports say how rare they are."""
    count = findings.counts.get(word, 10)
    return 1.0 / (1.0 + 0.15 * count) + 0.3 if count else 0.3


def _is_expected(sentence: _Sentence, question: str) -> bool:
    """Return whether a sentence holds the kind of thing that a question asks for."""
    asked = question.lower()
    for kind, answer in _KINDS.items():
        if kind.search(asked):
            return bool(answer.search(sentence.text))
    return bool(_ASKS_NAME.search(asked)) and any(
        name[0].isalpha() and name.lower() not in asked for name in find_names(sentence.text)
    )


def _new_names(sentence: _Sentence, question: str) -> list[str]:
    return [name for name in sentence.names if name.lower() not in question.lower()]


def _answer(findings: _Findings, chain: Sequence[_Sentence]) -> str:
    """Quote the sentences, starting with the one that best covers the question's first words."""
    if not chain:
        return f"Nothing was found in the corpus. {_NOTICE}"
    stems = [stem(word) for word in list_words(findings.question)]

    def aim(s: _Sentence) -> float:
        shares = ((word in s.words) or _TITLE_SHARE * (word in s.subject) for word in stems)
        covered = sum(share / (1 + place) for place, share in enumerate(shares))
        return covered * (_EXPECTED if _is_expected(s, findings.question) else 1)

    first = max(chain, key=aim)
    quotes = []
    for s in [first, *(s for s in chain if s is not first)]:
        about = "" if s.title in s.text else f"{s.title}: "
        quotes.append(f"{about}{s.text} [{s.chunk_id}]")
    return "\n".join([*quotes, _NOTICE])
