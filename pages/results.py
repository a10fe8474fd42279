"""A tool call and its result, as plain values for a page: what was asked for, what was found, what was read.

Results of other tools than this project's are shown as the text that they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from pydantic import BaseModel, TypeAdapter, ValidationError

from arag.retrieval.snippets import is_title
from arag.retrieval.types import Hit, KeywordReport, KeywordResults, SemanticResults, Snippet


@dataclass(frozen=True)
class Piece:
    """A piece of a sentence, and whether it is a keyword."""

    text: str
    marked: bool = False


@dataclass(frozen=True)
class SentenceView:
    """A sentence that a search showed, in pieces; a gap before it is one in the document."""

    pieces: list[Piece]
    matched: bool
    similarity: float | None
    gap: bool


@dataclass(frozen=True)
class SnippetView:
    """What was shown of one document."""

    title: str
    sentences: list[SentenceView]
    goes_on: bool


@dataclass(frozen=True)
class HitView:
    """A chunk that a search found."""

    chunk_id: str
    score: str
    keywords: str
    read_before: bool
    whole: bool
    more: int
    snippets: list[SnippetView]

    @property
    def name(self) -> str:
        """The title of its first document, else its id."""
        return next((snippet.title for snippet in self.snippets if snippet.title), self.chunk_id)


@dataclass(frozen=True)
class KeywordView:
    """A keyword, and what the corpus holds of it."""

    keyword: str
    chunks: int
    note: str


@dataclass(frozen=True)
class ReadView:
    """A chunk that was to be read."""

    chunk_id: str
    new: bool
    known: bool = True
    closest: tuple[str, ...] = ()


@dataclass(frozen=True)
class CallView:
    """A tool call and its result."""

    tool: str
    arguments: list[tuple[str, str | list[str], bool]]
    """Name, value and whether the value is JSON."""
    text: str
    error: str | None
    seconds: float | None
    retrieved_tokens: int
    new_chunks: list[str]
    keywords: list[KeywordView] = field(default_factory=list)
    hits: list[HitView] | None = None
    total: int | None = None
    reads: list[ReadView] | None = None


# --- calls ---


def calls_of(
    reply: AIMessage, results: Sequence[AnyMessage], records: list[dict[str, Any]], read: set[str]
) -> Iterator[CallView]:
    """Yield the calls of a message with their results.

    Args:
        reply: The message.
        results: The messages between it and the next reply.
        records: The trace's records of its step.
        read: Ids of the chunks that were read before; those that are read are added.
    """
    by_id: dict[str, list[ToolMessage]] = {}
    for result in results:
        if isinstance(result, ToolMessage):
            by_id.setdefault(result.tool_call_id, []).append(result)
    wanted: list[tuple[str, Any, str | None]]
    wanted = [(call["name"], call["args"], call["id"]) for call in reply.tool_calls]
    wanted += [(call["name"] or "unknown", call["args"] or "", call["id"]) for call in reply.invalid_tool_calls]
    for name, arguments, call_id in wanted:
        found = by_id.get(call_id or "")
        message = found.pop(0) if found else None
        yield _call(name, arguments, message, _taken(records, name, arguments), read)
        if message is not None:
            read.update(ids_in(message, "new_chunks"))


def _taken(records: list[dict[str, Any]], name: str, arguments: Any) -> dict[str, Any]:
    """Take a call's record out of its step's; a call that was not made has none."""
    arguments = arguments if isinstance(arguments, dict) else {}
    for place, record in enumerate(records):
        if record.get("tool") == name and record.get("arguments") == arguments:
            return records.pop(place)
    return {}


def _call(
    name: str, arguments: Any, message: ToolMessage | None, record: Mapping[str, Any], read: Collection[str]
) -> CallView:
    artifact = message.artifact if message is not None and isinstance(message.artifact, dict) else {}
    text = message.text if message is not None else ""
    failed = message is not None and message.status == "error"
    results = results_in(artifact)
    keywords = list(results.keywords) if isinstance(results, KeywordResults) else []
    tokens = record.get("retrieved_tokens", artifact.get("retrieved_tokens"))
    new = ids_in(message, "new_chunks") if message is not None else []
    hits, reads = None, None
    if isinstance(results, KeywordResults | SemanticResults):
        marked = pattern_of([*(key for hit in results.hits for key in hit.keyword_counts)])
        hits = [_hit(hit, marked, read, semantic=isinstance(results, SemanticResults)) for hit in results.hits]
    elif results is not None:
        reads = [ReadView(chunk.chunk_id, new=chunk.chunk_id in new) for chunk in results.chunks]
        reads += [ReadView(u.chunk_id, new=False, known=False, closest=u.closest) for u in results.unknown]
    return CallView(
        tool=name,
        arguments=_arguments(arguments, without="keywords" if keywords else "chunk_ids" if reads else ""),
        text="" if hits or reads else text,
        error=record.get("error") or (text if failed else None) or (None if message else "The call has no result."),
        seconds=record.get("seconds"),
        retrieved_tokens=tokens if isinstance(tokens, int) else 0,
        new_chunks=new,
        keywords=[_keyword(report) for report in keywords],
        hits=hits,
        total=results.total if isinstance(results, KeywordResults) else None,
        reads=reads,
    )


def _arguments(arguments: Any, *, without: str) -> list[tuple[str, str | list[str], bool]]:
    if not isinstance(arguments, dict):
        return [("", str(arguments), True)]
    shown: list[tuple[str, str | list[str], bool]] = []
    for name, value in arguments.items():
        if name == without:
            continue
        texts = value if isinstance(value, list) and value else [value]
        is_json = not all(isinstance(text, str) for text in texts)
        shown.append((name, json.dumps(value, ensure_ascii=False, default=str) if is_json else value, is_json))
    return shown


# --- results ---


def ids_in(message: AnyMessage, key: str) -> list[str]:
    """Return the ids that a result's artifact has under a key; none where it is no retrieval tool's."""
    artifact = message.artifact if isinstance(message, ToolMessage) else None
    found = artifact.get(key) if isinstance(artifact, dict) else None
    return [item for item in found if isinstance(item, str)] if isinstance(found, list | tuple) else []


class _Read(BaseModel):
    chunk_id: str
    tokens: int | None = None


class _Unknown(BaseModel):
    chunk_id: str
    closest: tuple[str, ...] = ()


class Reads(BaseModel):
    """What `chunk_read` says of the chunks whose texts stand in its message."""

    chunks: tuple[_Read, ...]
    unknown: tuple[_Unknown, ...] = ()


_RESULTS: TypeAdapter[KeywordResults | SemanticResults | Reads] = TypeAdapter(KeywordResults | SemanticResults | Reads)


def results_in(artifact: Mapping[str, Any]) -> KeywordResults | SemanticResults | Reads | None:
    """Return the results of one of this project's tools; None for what others left."""
    if not {"chunk_ids", "new_chunks", "retrieved_tokens"} <= artifact.keys():
        return None
    try:
        return _RESULTS.validate_python(artifact.get("results"))
    except ValidationError:
        return None


def _keyword(report: KeywordReport) -> KeywordView:
    if report.searched_as is not None:
        return KeywordView(report.keyword, report.chunks, f"searched as {' '.join(report.searched_as.split())}")
    closest = ", ".join(" ".join(term.text.split()) for term in report.closest)
    return KeywordView(report.keyword, report.chunks, f"closest: {closest}" if closest and not report.chunks else "")


# --- snippets ---


def pattern_of(keywords: Iterable[str]) -> re.Pattern[str] | None:
    """Return what finds keywords in any case; of two that begin at the same place, the longer one."""
    words = [keyword.split() for keyword in dict.fromkeys(keywords)]
    alternatives = [r"\s+".join(re.escape(word) for word in parts) for parts in words if parts]
    return re.compile("|".join(sorted(alternatives, key=len, reverse=True)), re.IGNORECASE) if alternatives else None


def _hit(hit: Hit, marked: re.Pattern[str] | None, read: Collection[str], *, semantic: bool) -> HitView:
    return HitView(
        chunk_id=hit.chunk_id,
        score=f"similarity {hit.score:.2f}" if semantic else f"score {hit.score:.0f}",
        keywords=", ".join(f"{keyword} ×{count}" for keyword, count in hit.keyword_counts.items()),
        read_before=hit.chunk_id in read,
        whole=hit.whole,
        more=hit.more,
        snippets=[snippet_view(snippet, marked) for snippet in hit.snippets],
    )


def snippet_view(snippet: Snippet, marked: re.Pattern[str] | None) -> SnippetView:
    """Return a snippet's sentences with their gaps, keywords marked."""
    sentences: list[SentenceView] = []
    before: int | None = None
    for sentence in snippet.sentences:
        gap = not snippet.begins if before is None else sentence.position != before + 1
        before = sentence.position
        if is_title(sentence.text, snippet.title):  # stands in front already
            continue
        pieces = _pieces(sentence.text, marked)
        sentences.append(SentenceView(pieces, sentence.matched, sentence.similarity, gap))
    return SnippetView(snippet.title, sentences, goes_on=not snippet.ends)


def _pieces(text: str, marked: re.Pattern[str] | None) -> list[Piece]:
    pieces: list[Piece] = []
    end = 0
    for match in marked.finditer(text) if marked else ():
        pieces += [Piece(text[end : match.start()]), Piece(match.group(), marked=True)]
        end = match.end()
    return [piece for piece in [*pieces, Piece(text[end:])] if piece.text]
