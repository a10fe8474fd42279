"""Finds the documents with lines that match, one after another: a search that has printed enough reads no more."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from arag.retrieval.corpus.grep import MatchingChunk, find_matching_lines
from arag.retrieval.corpus.lines import Line
from arag.retrieval.corpus.patterns import Pattern
from arag.retrieval.corpus.shell.documents import Documents
from arag.retrieval.corpus.titles import find_titles
from arag.retrieval.storage.contract import View
from arag.retrieval.storage.records import ChunkText
from arag.text.normalise import collapse_whitespace, is_title

# What a pattern has that may match the `# ` in front of a title.
_MARKUP = re.compile(r"[#^]|\\[^\w]|\[")
_HEADINGS = ("", "# ", "## ")


@dataclass(frozen=True, slots=True)
class MatchingDocument:
    """A document with lines that match."""

    path: str
    count: int
    """How many lines match."""
    read: Callable[[], list[Line]]
    """Returns these lines: to count needs none."""


@dataclass(slots=True)
class _Found:
    """What a document has that matches."""

    chunks: list[MatchingChunk] = field(default_factory=list)
    title: Line | None = None

    def add(self, found: MatchingChunk, title: Line | None) -> None:
        if title is not None:
            self.title = title
            if title.position in found.positions:
                others = [position for position in found.positions if position != title.position]
                found = MatchingChunk(found.chunk, others)
        if found.positions:
            self.chunks.append(found)

    def count(self) -> int:
        return sum(len(found.positions) for found in self.chunks) + (self.title is not None)

    def read(self) -> list[Line]:
        lines = [self.title] if self.title is not None else []
        for found in self.chunks:
            lines += found.lines
        lines.sort(key=_place)
        return lines


def _place(line: Line) -> tuple[int, int]:
    return line.chunk.ordinal, -1 if line.position is None else line.position


def find_matching_documents(
    view: View, patterns: Sequence[Pattern], documents: Documents
) -> Iterator[MatchingDocument]:
    """Yield the documents of a view that have lines that match one of some patterns, in the order of their paths.

    Args:
        view: What is searched.
        patterns: The patterns.
        documents: The documents' paths.
    """
    titled: set[str] = set()
    for pattern in patterns:
        titled.update(_find_titled(view, pattern))
    chunks = find_matching_lines(
        view,
        patterns,
        places=documents.places_by_id,
        others=view.first_row_ids(titled),
    )
    for document_id, group in groupby(chunks, lambda found: found.chunk.document_id):
        matching = _Found()
        for found in group:
            title = _find_title(found.chunk, patterns) if document_id in titled else None
            matching.add(found, title)
        count = matching.count()
        if count:
            yield MatchingDocument(documents.path(document_id), count, matching.read)


def _find_title(chunk: ChunkText, patterns: Iterable[Pattern]) -> Line | None:
    """Return the line of a document's title, if it is in this chunk and matches as it is printed."""
    if chunk.ordinal > 0:
        return None
    line = _make_title(chunk)
    if line is not None and any(pattern.matches(line.text) for pattern in patterns):
        return line
    return None


def _make_title(chunk: ChunkText) -> Line | None:
    """Return the line of a document's title, given the document's first chunk; see `list_lines`."""
    for position in range(len(chunk.starts)):
        text = collapse_whitespace(chunk.sentence_text(position))
        if text and is_title(text, chunk.title):
            return Line(chunk, position, text, names_document=True)
        if text:
            break
    title = collapse_whitespace(chunk.title)
    return Line(chunk, None, f"# {title}", names_document=True) if title else None


def _find_titled(view: View, pattern: Pattern) -> list[str]:
    """Return the ids of documents whose title may match as it is printed, with what may stand in front."""
    if not _MARKUP.search(pattern.text):
        return [document_id for document_id, _ in find_titles(view, pattern)]
    found: list[str] = []
    for document_id, title in view.titles():
        text = collapse_whitespace(title)
        if any(pattern.matches(f"{marks}{text}") for marks in _HEADINGS):
            found.append(document_id)
    return found
