"""What the functions over a whole corpus return. All are immutable and hold plain values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from arag.retrieval.types import Chunk


@dataclass(frozen=True, slots=True)
class GrepLine:
    """A line that matches a pattern: a sentence, a heading, or a row of a table, with white space collapsed."""

    chunk: Chunk
    position: int
    """Its place among the chunk's sentences."""
    text: str
    spans: tuple[tuple[int, int], ...]
    """Where the matches in it start and end, at most 100."""
    groups: tuple[tuple[str, ...], ...]
    """For each of these, what its capture groups matched."""

    @property
    def chunk_id(self) -> str:
        """The id of its chunk."""
        return self.chunk.id

    @property
    def document_id(self) -> str:
        """The id of its document."""
        return self.chunk.document_id

    @property
    def matches(self) -> list[str]:
        """The texts that matched."""
        return [self.text[start:end] for start, end in self.spans]


@dataclass(frozen=True, slots=True)
class GrepResults:
    """All lines that match a pattern, in the order of documents' ids and of the text; a part of them is listed."""

    pattern: str
    lines: tuple[GrepLine, ...]
    """The lines that were asked for."""
    total: int
    """How many lines match."""
    chunks: int
    """How many chunks have such a line."""
    documents: int
    """How many documents have such a line."""
    titles: Mapping[str, str]
    """The titles that match, by the documents' ids. They do not count as lines."""
