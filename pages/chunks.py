"""The chunks of a run as plain values for a page: those that the answer cites, and those that were read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from langchain_core.messages import AnyMessage, ToolMessage

from arag.pages.results import Reads, SnippetView, ids_in, pattern_of, results_in, snippet_view
from arag.retrieval.types import Hit, KeywordResults, SemanticResults, Snippet

_FULL_TEXTS = "\n\nFull texts:\n\n"


@dataclass(frozen=True)
class SourceView:
    """A chunk that the answer cites."""

    number: int
    chunk_id: str
    titles: list[str]
    status: str
    """read, seen, unseen or unknown."""


@dataclass(frozen=True)
class ChunkView:
    """A chunk that was read or is cited, with what the run saw of it."""

    chunk_id: str
    heading: str
    text: str
    joint: bool
    """Whether the text is that of several chunks, which cannot be told apart."""
    snippets: list[SnippetView]
    source: SourceView | None
    read: bool
    """Whether it was shown in full in this conversation."""
    steps: list[int]
    """The steps for the last question that did so."""
    tokens: int | None


@dataclass
class _Seen:
    """What a conversation's results show of a chunk."""

    heading: str = ""
    text: str = ""
    joint: bool = False
    tokens: int | None = None
    hits: list[Hit] = field(default_factory=list)


def chunks_of(
    messages: Iterable[AnyMessage],
    read_chunks: Iterable[str],
    sources: Sequence[SourceView],
    steps: Mapping[str, list[int]],
) -> list[ChunkView]:
    """Return the chunks that are cited or were read.

    Args:
        messages: The conversation, whose results hold the texts.
        read_chunks: Chunks that were read, as the state has them; a conversation may hold their texts no more.
        sources: The citations.
        steps: For chunks read for the last question, the steps that did so.

    Returns:
        The chunks: first those that the answer cites, in its order.
    """
    seen: dict[str, _Seen] = {}
    read = list(read_chunks)
    for message in messages:
        if isinstance(message, ToolMessage) and isinstance(message.artifact, dict):
            _look(message, seen)
            read += ids_in(message, "new_chunks")
    by_id = {source.chunk_id: source for source in sources}
    return [
        _chunk(chunk_id, seen.get(chunk_id, _Seen()), by_id.get(chunk_id), chunk_id in read, steps.get(chunk_id, []))
        for chunk_id in dict.fromkeys([*by_id, *read])
    ]


def _look(message: ToolMessage, seen: dict[str, _Seen]) -> None:
    results = results_in(message.artifact)
    texts: str = message.text
    if isinstance(results, KeywordResults | SemanticResults):
        for hit in results.hits:
            seen.setdefault(hit.chunk_id, _Seen()).hits.append(hit)
        _, _, texts = message.text.partition(_FULL_TEXTS)
    elif results is not None:
        for chunk in results.chunks:
            seen.setdefault(chunk.chunk_id, _Seen()).tokens = chunk.tokens
    new = ids_in(message, "new_chunks")
    if not texts or not new:
        return
    unknown = [unknown.chunk_id for unknown in results.unknown] if isinstance(results, Reads) else []
    blocks = _blocks(texts, [*ids_in(message, "chunk_ids"), *unknown])
    for chunk_id in new:
        known = seen.setdefault(chunk_id, _Seen())
        heading, _, text = blocks.get(chunk_id, "").partition("\n")
        if text:
            known.heading, known.text, known.joint = heading.strip(), text, False
        elif not known.text:
            known.text, known.joint = texts, True


def _blocks(text: str, chunk_ids: Sequence[str]) -> dict[str, str]:
    """Cut the text of several chunks, each of which begins with its id in brackets.

    A document may hold such a beginning itself: then nobody can tell which is the real one, and nothing is returned.
    """
    text = f"\n\n{text}"
    marks = [f"\n\n[{chunk_id}]" for chunk_id in dict.fromkeys(chunk_ids)]
    starts = [text.find(mark) for mark in marks]
    if any(text.count(mark) != 1 for mark in marks) or starts != sorted(starts):
        return {}
    ends = [*starts[1:], len(text)]
    return {mark[3:-1]: text[a + len(mark) : b] for mark, a, b in zip(marks, starts, ends, strict=True)}


def _chunk(chunk_id: str, seen: _Seen, source: SourceView | None, read: bool, steps: list[int]) -> ChunkView:
    return ChunkView(
        chunk_id=chunk_id,
        heading=seen.heading or next((s.title for hit in seen.hits for s in hit.snippets if s.title), ""),
        text=seen.text,
        joint=seen.joint,
        snippets=[] if seen.text else _joined(seen.hits),
        source=source,
        read=read,
        steps=steps,
        tokens=next((hit.tokens for hit in seen.hits), seen.tokens),
    )


def _joined(hits: Sequence[Hit]) -> list[SnippetView]:
    """Put together what several searches showed of a chunk: each sentence once, in the order of the text."""
    marked = pattern_of(keyword for hit in hits for keyword in hit.keyword_counts)
    joined: dict[str, Snippet] = {}
    for snippet in (snippet for hit in hits for snippet in hit.snippets):
        known = joined.get(snippet.document_id)
        sentences = {s.position: s for s in [*(known.sentences if known else ()), *snippet.sentences]}
        joined[snippet.document_id] = Snippet(
            document_id=snippet.document_id,
            title=snippet.title,
            sentences=tuple(sentences[position] for position in sorted(sentences)),
            begins=snippet.begins or bool(known and known.begins),
            ends=snippet.ends or bool(known and known.ends),
            whole=snippet.whole or bool(known and known.whole),
        )
    return [snippet_view(snippet, marked) for snippet in joined.values()]
