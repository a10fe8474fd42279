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

_MAX_CALLS = 8
_MAX_SEARCHES = 5
_MAX_QUOTES = 3
_MAX_KEYWORDS = 8
_MAX_TITLE = 100  # characters
_TITLE_SHARE = 0.6  # a word in the title counts less than one in the sentence
_REPEAT = 0.3  # a word that an earlier quote has counts little, but settles what else is worth quoting
_NEW_NAME_BONUS = 0.5
_FAR, _NEAR = 0.2, 0.8  # similarities
_NEAR_AGAIN = 0.5
_UNRELATED = 0.7  # for a sentence that has no name of the question's and none from the quotes before
_EXPECTED = 2.0  # for a sentence that holds what the question asks for, such as a number

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
_CHINESE = re.compile(r"[\u3400-\u9fff]+")  # has no spaces between words: pairs of characters are compared
_NAME = re.compile(
    r"(?:[A-Z][\w'’.-]*\w|[A-Z])(?:\s+(?:(?:of|the|de|la|van|von|du|al|and|for|in|on)\s+){0,2}(?:[A-Z][\w'’.-]*\w|[A-Z]\.?|\d+))*"
)
_QUOTED = re.compile(r"[\"“]([^\"”]{2,60})[\"”]")
_NUMBER = re.compile(r"\b\d{3,}\b")
_HEADER = re.compile(r"\[(?P<id>.+?)\](?: +\((?P<similarity>-?\d\.\d\d)\))?(?: +(?P<rest>.*?))?\s*$")
_REPORT = re.compile(r"(?:^|; )(?P<keyword>[^;:]+): (?P<count>none|[\d,]+ chunks?)")
_PACKED = re.compile(r"\d+ documents")
_PLACE = re.compile(r"(?:^|, )(?:part \d+ of \d+|pages? \d+)\b.*$")  # after a title, or in place of one
_FULL_TEXTS = "Full texts:"
_FILE_ENDING = re.compile(r"(?:\.\w+)?:\d+$")
# What `arag.retrieval.render` writes.
_NO_CHUNK = "No chunk holds any of these keywords."
_READ_BEFORE = "This chunk has been read before."
_GAP = "…"
_HITS = re.compile(r"(?:^|\. )(?:All|The best [\d,]+ of [\d,]+ chunks):$|The nearest, by similarity:$")
_DOCUMENT = re.compile(r"^\(document .+?\) ?")  # in a chunk of several
_SCORE = re.compile(r"score [\d.e+-]+")
_ABOVE = "Shown above: "
_REMARK = re.compile(r"In brief:|\(the same text: |Nothing new was found\.")
_FORCED = re.compile(  # the request for a forced answer in `arag.graph.prompts`
    r"(?P<question>.*?)\n\nWhat was found:\n\n<(?P<tag>passages-\d+)>\n(?P<found>.*)\n</(?P=tag)>", re.DOTALL
)
_NUMERAL = r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|forty|fifty|hundred|dozen)\b"
_KINDS = [  # what a question asks for, by its words
    (re.compile(question), re.compile(answer))
    for question, answer in (
        (r"licen[cs]e", r"\b(?:MIT|BSD|Apache|[AL]?GPL|GNU|MPL|Mozilla|ISC|PSF|CC0|CC BY)"),
        (r"\b(?:when|(?:which|what) (?:year|version)|how (?:many|much|long|old|often|far))\b", _NUMERAL),
    )
]
_ASKS_NAME = re.compile(r"\b(?:who|whom|whose|where)\b")
_MARKUP = re.compile(r"\]?[(<]?https?://\S+|[^\w\s.,;'’“”\"()-]|_")
_KEPT_STOP = re.compile(r"\b(Dr|Mr|Mrs|Ms|Prof|St|Capt|Gen|Col|Lt|Sgt|Rev|Gov|Sen|Rep|No|vs|Mt|[A-Z])\.(?= )")
_SENTENCE_END = re.compile(
    r"(?:(?<=[.!?])|(?<=[.!?][\"”’)]))\s+(?=[\"“(]*[A-Z0-9])"
    r"|(?<=[。！？])(?![”’」』）])\s*|(?<=[。！？][”’」』）])\s*| … |^… |\s+(?=#{2,6} )"
)
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
    subject: frozenset[str]
    """Words of the document's title and id: what its sentences speak of without saying so."""
    names: tuple[str, ...]


@dataclass
class _Found:
    """What the conversation has found so far."""

    sentences: list[_Sentence] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    """Number of chunks that contain a keyword, by keyword in lower case."""
    nearness: dict[str, float] = field(default_factory=dict)
    """How near a sentence was to a query, by its text: from 0 to about 1."""
    read: set[str] = field(default_factory=set)
    searched: set[str] = field(default_factory=set)
    """Keywords, joined, and queries that were tried, in lower case."""
    searches: int = 0
    reads: int = 0


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
    # First by meaning: a search shows only what the conversation does not hold yet, and here with its similarity.
    if "semantic_search" in tools and question.lower() not in found.searched:
        return _call("semantic_search", query=question)
    keywords = question_keywords(question)
    # The words say little of where to look, but their reports tell how rare they are.
    keywords += [w for w in _ordered_words(question) if not any(w in keyword.lower() for keyword in keywords)]
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


def _hop(question: str, chain: Sequence[_Sentence], tools: set[str], found: _Found) -> AIMessage | None:
    """Look up a new name of the first sentences, together with the words that are still open."""
    covered: set[str] = set()
    for sentence in chain:
        covered |= sentence.words
        open_words = [word for word in _ordered_words(question) if _stem(word) not in covered]
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
    question = _question(messages)
    chain = _chain(question, _gather(messages))
    if not chain:
        return f"Nothing was found in the corpus. {_NOTICE}"
    asked_for = [_stem(word) for word in _ordered_words(question)]
    is_expected = _expected(question)

    def aim(s: _Sentence) -> float:
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


def _chain(question: str, found: _Found) -> list[_Sentence]:
    """Choose sentences one by one: each covers the most open words, and preferably names from the ones before."""
    weights = {word: _weight(word, found) for word in _content_words(question)}
    # What the question is about: its names, or else its rarest words.
    subjects = [_content_words(name) for name in _names(question)] or [
        {word} for word, weight in weights.items() if weight == max(weights.values())
    ]
    is_expected = _expected(question)
    chain: list[_Sentence] = []
    covered: set[str] = set()
    bridges: dict[str, str] = {}  # new names, and the chunks that they are from

    def gain(s: _Sentence) -> float:
        held = {w: x * (1 if w in s.words else _TITLE_SHARE) for w, x in weights.items() if w in s.words | s.subject}
        fresh = sum(weight for word, weight in held.items() if word not in covered)
        nearness = found.nearness.get(s.text, 0)
        linked = sum(
            bridge in s.text.lower() or (chunk_id != s.chunk_id and bridge in s.title.lower())
            for bridge, chunk_id in bridges.items()
        )
        share = fresh + _REPEAT * (sum(held.values()) - fresh)
        if linked:
            share += _NEW_NAME_BONUS * (1 + linked) * (1 if fresh else nearness)
        related = linked or any(subject <= s.words | s.subject for subject in subjects)
        share *= (1 + nearness) * (1 if related else _UNRELATED) * (_EXPECTED if is_expected(s) else 1)
        # Prose before code, badges and links; of two sentences that cover the same words, the shorter one.
        return share * len(_MARKUP.sub("", s.text)) / len(s.text) - len(s.text) / 5_000

    # A sentence that a search has cut is not needed when its chunk has been read.
    uncut = [s for s in found.sentences if not (s.text.endswith(_GAP) and s.chunk_id in found.read)]
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


def _weight(word: str, found: _Found) -> float:
    """Rare words weigh more, as far as the keyword reports say how rare they are."""
    count = found.counts.get(word, 10)
    return 1.0 / (1.0 + 0.15 * count) + 0.3 if count else 0.3


def _expected(question: str) -> Callable[[_Sentence], bool]:
    """Return a function that tells whether a sentence holds the kind of thing that a question asks for."""
    asked = question.lower()
    for kind, answer in _KINDS:
        if kind.search(asked):
            return lambda s: bool(answer.search(s.text))
    if not _ASKS_NAME.search(asked):
        return lambda _: False
    return lambda s: any(name[0].isalpha() and name.lower() not in asked for name in _names(s.text))


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
            call = calls.get(message.tool_call_id)
            _gather_result(message.text, found)
            if call is None or place < last_question:
                continue
            if call["name"] == "chunk_read":
                found.read.update(_listed(call["args"].get("chunk_ids", [])))
                found.reads += 1
            else:
                found.searches += 1
                terms = call["args"].get("keywords") or call["args"].get("query", "")
                found.searched.add(" ".join(_listed(terms)).lower())
    if messages and isinstance(messages[-1], HumanMessage):
        _, evidence = asked_and_found(messages[-1].text)
        _gather_result(evidence, found)
    return found


def _listed(value: Any) -> list[str]:
    """Read an argument that another model may have given as a single item."""
    return [str(item) for item in (value if isinstance(value, list) else [value])]


def _gather_result(text: str, found: _Found) -> None:
    chunk_id = title = ""
    in_hits = is_hit = untitled = False
    nearness = 0.0  # of a hit
    begins = True  # a paragraph, or a chunk
    paragraph: list[str] = []

    def end_paragraph() -> None:
        about, rest = title, " ".join(" ".join(paragraph).split())
        if is_hit and 0 < rest.find(": ") <= _MAX_TITLE:
            about, _, rest = rest.partition(": ")
            about = _DOCUMENT.sub("", about)
        for sentence in _sentences(rest, chunk_id, about):
            found.sentences.append(sentence)
            found.nearness[sentence.text] = max(nearness, found.nearness.get(sentence.text, 0))
        paragraph.clear()

    lines = text.splitlines()
    for line, following in zip(lines, [*lines, ""][1:], strict=True):
        header = _HEADER.match(line) if begins or in_hits else None
        if begins or is_hit or _ALONE.match(line) or _LIST_ITEM.match(line):
            end_paragraph()
        if _HITS.search(line) or following == _NO_CHUNK:  # a forced answer's evidence joins many results
            chunk_id, in_hits = "", True
        elif line == _FULL_TEXTS:
            chunk_id, in_hits = "", False
        if header:
            chunk_id, rest, similarity = header["id"], header["rest"] or "", header["similarity"]
            is_hit = in_hits or bool(rest and not following.strip())
            nearness = max(0.0, (float(similarity) - _FAR) / (_NEAR - _FAR)) if similarity else 0.0
            title, untitled = "", False
            if is_hit:
                paragraph.append(rest)
            elif not _SCORE.fullmatch(rest):
                title = "" if _PACKED.fullmatch(rest) else _PLACE.sub("", rest)
                untitled = not title
            if _GAP not in rest if is_hit else _READ_BEFORE in rest:
                found.read.add(chunk_id)
        elif not chunk_id:
            for report in _REPORT.finditer(line):
                count = 0 if report["count"] == "none" else int(report["count"].split()[0].replace(",", ""))
                found.counts[_stem(report["keyword"].strip().lower())] = count
        elif untitled and begins and _is_title(line, following):
            title = line.strip()
        elif in_hits and line.startswith(_ABOVE):  # near again
            for sentence in found.sentences:
                if found.nearness[sentence.text] and f"[{sentence.chunk_id}]" in line:
                    found.nearness[sentence.text] = max(_NEAR_AGAIN, found.nearness[sentence.text])
        elif not (in_hits and _REMARK.match(line)):
            paragraph.append(line)
        begins = bool(header or not line.strip() or _ALONE.match(line))
    end_paragraph()


def _is_title(line: str, following: str) -> bool:
    """Return whether a line is the title of the text below it, not the first line of a paragraph.

    A paragraph's line breaks only where the next word no longer fits.
    """
    line, following = line.strip(), following.strip()
    word, *_ = following.split() or [""]
    return 0 < len(line) <= _MAX_TITLE and len(line) + 1 + len(word) <= len(following)


def _sentences(text: str, chunk_id: str, title: str) -> Iterator[_Sentence]:
    """Yield the sentences of a paragraph."""
    subject = frozenset(_content_words(f"{title} {_FILE_ENDING.sub('', chunk_id)}"))
    for piece in _SENTENCE_END.split(_KEPT_STOP.sub("\\1\u2024", text)):
        sentence = piece.strip().removeprefix(_GAP).removesuffix(" …").strip().replace("\u2024", ".")
        if len(sentence.encode()) < 12 or sentence.startswith(("#", "(")):
            continue
        yield _Sentence(
            chunk_id=chunk_id,
            title=title,
            text=sentence,
            words=frozenset(_content_words(sentence)),
            subject=subject,
            names=tuple(dict.fromkeys([*_names(sentence), *([title] if title else [])])),
        )


def question_keywords(question: str) -> list[str]:
    """Return what to look up for a question: its names and quotations, or else its words; at most eight.

    Common words would drown out the names: they are frequent, and the score counts every occurrence.
    """
    return (_names(question) or _ordered_words(question))[:_MAX_KEYWORDS]


def _names(text: str) -> list[str]:
    """Return runs of capitalised words, quotations and long numbers, the first word of a sentence only if in a run."""
    found: dict[str, None] = {
        quoted: None for match in _QUOTED.finditer(text) if (quoted := match.group(1).strip(" ,."))
    }
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
    pairs = (run[i : i + 2] for run in _CHINESE.findall(text) for i in range(len(run) - 1))
    return {_stem(word) for word in _ordered_words(text)} | set(pairs)


def _stem(word: str) -> str:
    """Strip common English endings, so that "wrecked" matches "wreck" and "licensed" matches "license"."""
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word.removesuffix(ending)
    return word


def _new_names(sentence: _Sentence, question: str) -> list[str]:
    return [name for name in sentence.names if name.lower() not in question.lower()]
