"""What a conversation with the retrieval tools has found, read from its texts, for the built-in model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from arag.models.messages import is_question

_MAX_TITLE = 100  # characters
_FAR, _NEAR = 0.2, 0.8  # similarities
_NEAR_AGAIN = 0.5
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
# Without spaces between words (Chinese, katakana) or with endings joined to them (Korean): characters count in pairs.
_UNSPACED = re.compile(r"[\u30a1-\u30fa\u30fc\u3400-\u9fff\uac00-\ud7a3]+")
_BETWEEN_WORDS = re.compile(  # particles and question words that may stand between two words of these; all hiragana
    "什么时候|为什么|什么|怎么样|怎么|怎样|如何|多少|哪[些里个年位]?|哪|谁|几年|吗|呢|的|了|是|在|和|与|被|把|什麼時候|為什麼|什麼|誰|何|嗎"
    "|[\u3041-\u309f]+"
)
_NAME = re.compile(
    r"(?:[A-Z][\w'’.-]*\w|[A-Z])(?:\s+(?:(?:of|the|de|la|van|von|du|al|and|for|in|on)\s+){0,2}(?:[A-Z][\w'’.-]*\w|[A-Z]\.?|\d+))*"
)
_QUOTED = re.compile(r"[\"“]([^\"”]{2,60})[\"”]")
_NUMBER = re.compile(r"\b\d{3,}\b")
_FILE_ENDING = re.compile(r"(?:\.\w+)?:\d+$")
_KEPT_STOP = re.compile(r"\b(Dr|Mr|Mrs|Ms|Prof|St|Capt|Gen|Col|Lt|Sgt|Rev|Gov|Sen|Rep|No|vs|Mt|[A-Z])\.(?= )")
_SENTENCE_END = re.compile(
    r"(?:(?<=[.!?؟।])|(?<=[.!?؟][\"”’)»]))\s+(?=[\"“«(¿¡]*[A-Z0-9À-ÖØ-ÞΆ-ΫА-ЯЁ\u0530-\uffff])"
    r"|(?<=[。！？])(?![”’」』）])\s*|(?<=[。！？][”’」』）])(?!と|って)\s*| … |^… |\s+(?=#{2,6} )"
)
_ALONE = re.compile(
    r"\s{0,3}#{1,6}\s|\s*(?:\||```|~~~)|.* \| |[\s=\-*_~#|:+]{3,}$"
)  # a heading, table row, fence or rule
_LIST_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s")
# What `arag.retrieval.render` writes.
_HEADER = re.compile(r"\[(?P<id>.+?)\](?: +\((?P<similarity>-?\d\.\d\d)\))?(?: +(?P<rest>.*?))?\s*$")
_REPORT = re.compile(r"(?:^|; )(?P<keyword>[^;:]+): (?P<count>none|[\d,]+ chunks?)")
_PACKED = re.compile(r"\d+ documents")
_PLACE = re.compile(r"(?:^|, )(?:part \d+ of \d+|pages? \d+)\b.*$")  # after a title, or in place of one
_FULL_TEXTS = "Full texts:"
_NO_CHUNK = "No chunk holds any of these keywords."
_READ_BEFORE = "Shown in full above."
GAP = "…"
_HITS = re.compile(r"(?:^|\. )(?:All|The best [\d,]+ of [\d,]+ chunks):$|The nearest, by similarity:$")
_DOCUMENT = re.compile(r"^\(document .+?\) ?")  # in a chunk of several
_SCORE = re.compile(r"score [\d.e+-]+")
_ABOVE = "Shown above: "
_REMARK = re.compile(r"In brief:|\(the same text: |Nothing new was found\.")
_FORCED = re.compile(  # the request for a forced answer in `arag.graph.prompts`
    r"(?P<question>.*?)\n\nWhat was found:\n\n<(?P<tag>passages-\d+)>\n(?P<found>.*)\n</(?P=tag)>", re.DOTALL
)


@dataclass(frozen=True)
class Sentence:
    """A sentence that a tool has shown."""

    chunk_id: str
    title: str
    text: str
    words: frozenset[str]
    subject: frozenset[str]
    """Words of the document's title and id: what its sentences speak of without saying so."""
    names: tuple[str, ...]


@dataclass
class Found:
    """What the conversation has found so far."""

    sentences: list[Sentence] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    """Number of chunks that contain a keyword, by keyword in lower case."""
    nearness: dict[str, float] = field(default_factory=dict)
    """How near a sentence was to a query, by its text: from 0 to about 1."""
    read: set[str] = field(default_factory=set)
    searched: set[str] = field(default_factory=set)
    """Keywords, joined, and queries that were tried, in lower case."""
    searches: int = 0
    reads: int = 0


def find_question(messages: Sequence[BaseMessage]) -> str:
    """Return the question that was asked last, or an empty string."""
    for message in reversed(messages):
        if is_question(message):
            return asked_and_found(message.text)[0].strip()
    return ""


def asked_and_found(message: str) -> tuple[str, str]:
    """Return the question and the evidence in a request for a forced answer; for other messages, the message and ""."""
    forced = _FORCED.fullmatch(message)
    return (forced["question"], forced["found"]) if forced else (message, "")


def gather(messages: Sequence[BaseMessage]) -> Found:
    """Read tool results, or the evidence in a forced answer's prompt."""
    found = Found()
    calls = {call["id"]: call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls}
    last_question = max((i for i, m in enumerate(messages) if is_question(m)), default=0)
    for place, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            call = calls.get(message.tool_call_id)
            _read_result(message.text, found)
            if call is None or place < last_question:
                continue
            if call["name"] == "chunk_read":
                found.read.update(_listed(call["args"].get("chunk_ids", [])))
                found.reads += 1
            else:
                found.searches += 1
                terms = next((call["args"][n] for n in ("keywords", "queries", "query") if call["args"].get(n)), "")
                found.searched.add(" ".join(_listed(terms)).lower())
    if messages and isinstance(messages[-1], HumanMessage):
        _, evidence = asked_and_found(messages[-1].text)
        _read_result(evidence, found)
    return found


def _listed(value: Any) -> list[str]:
    """Read an argument that another model may have given as a single item."""
    return [str(item) for item in (value if isinstance(value, list) else [value])]


def _read_result(text: str, found: Found) -> None:
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
            if GAP not in rest if is_hit else _READ_BEFORE in rest:
                found.read.add(chunk_id)
        elif not chunk_id:
            for report in _REPORT.finditer(line):
                count = 0 if report["count"] == "none" else int(report["count"].split()[0].replace(",", ""))
                found.counts[stem(report["keyword"].strip().lower())] = count
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


def _sentences(text: str, chunk_id: str, title: str) -> Iterator[Sentence]:
    """Yield the sentences of a paragraph."""
    subject = frozenset(content_words(f"{title} {_FILE_ENDING.sub('', chunk_id)}"))
    for start, end in cut_sentences(text):
        sentence = text[start:end].strip().removeprefix(GAP).removesuffix(" …").strip()
        if len(sentence.encode()) < 12 or sentence.startswith(("#", "(")):
            continue
        yield Sentence(
            chunk_id=chunk_id,
            title=title,
            text=sentence,
            words=frozenset(content_words(sentence)),
            subject=subject,
            names=tuple(dict.fromkeys([*find_names(sentence), *([title] if title else [])])),
        )


def cut_sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the sentences of a line start and end."""
    start = 0
    for border in _SENTENCE_END.finditer(_KEPT_STOP.sub("\\1\u2024", text)):  # of the same length
        yield start, border.start()
        start = border.end()
    yield start, len(text)


def find_names(text: str) -> list[str]:
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


def list_words(text: str) -> list[str]:
    """Return the words of a text in lower case, each once, without stop words."""
    runs = (m.group(0).lower().removesuffix("'s").removesuffix("’s") for m in _WORD.finditer(text))
    words = (word for run in runs for word in (_BETWEEN_WORDS.split(run) if _UNSPACED.search(run) else [run]))
    return [w for w in dict.fromkeys(words) if w not in _STOP_WORDS and len(w) > 1]


def content_words(text: str) -> set[str]:
    """Return the stems of a text's words, and the pairs of characters of words in scripts without spaces."""
    words = list_words(text)
    runs = (run for word in words for run in _UNSPACED.findall(word))
    return {stem(word) for word in words} | {run[i : i + 2] for run in runs for i in range(len(run) - 1)}


def stem(word: str) -> str:
    """Strip common English endings, so that "wrecked" matches "wreck" and "licensed" matches "license"."""
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word.removesuffix(ending)
    return word
