r"""What the functions over a whole corpus return. All are immutable and hold plain values only.

Example:
    >>> found = index.grep(r"between (\d{4}) and (\d{4})")
    >>> found.total, found.documents, found.lines[0].chunk_id, found.lines[0].groups
    (1, 1, 'people/orlath-tamsin.md:0', (('1791', '1803'),))
    >>> listed = index.list_documents(where={"year": {"$lt": 1800}}, sort="-year")
    >>> listed.total, [document.id for document in listed.documents]
    (2, ['notice-1775-relief', 'notice-1763-ropewalk'])
    >>> listed.fields[0].name, listed.fields[0].lowest, listed.fields[0].highest
    ('year', 1763, 1775)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
    searched: int
    """How many documents were searched."""
    titles: Mapping[str, str]
    """The titles that match, by the documents' ids. They do not count as lines."""


@dataclass(frozen=True, slots=True)
class ListedDocument:
    """A document of a list."""

    id: str
    title: str
    date: str
    """Its date as its metadata have it: `date`, `published`, `created` or `year`; empty if there is none."""
    author: str
    """Who wrote or sent it: `author`, `authors`, `creator`, `from` or `sender`; empty if nobody is named."""
    kind: str
    """The extension of its file or id, in its usual spelling: `html` for `page.htm`, `txt` for a file without one."""
    chunks: int
    source: str
    """The file that it was read from, or an empty string."""
    path: str
    """Its id, or the path that its id would be made from if its file was moved or renamed."""
    metadata: Mapping[str, Any]
    """All fields, without dates and authors that only tell which library has made an office file."""
    left_out: tuple[str, ...]
    """Parts that a person sees in its file and its text lacks: `2 charts`."""
    ocr_pages: tuple[int, ...]
    """Pages that were pictures, whose text was read by OCR."""


@dataclass(frozen=True, slots=True)
class MetadataField:
    """A field of documents' metadata, and its values."""

    name: str
    documents: int
    """How many documents have it."""
    values: Mapping[str | float | bool, int]
    """The most frequent values, at most 20, and how many documents have each; a list counts with each of its items."""
    distinct: int
    """How many different values there are."""
    lowest: str | float | None
    """The lowest value, if all are numbers or dates."""
    highest: str | float | None


@dataclass(frozen=True, slots=True)
class DocumentList:
    """The documents of an index, or those that conditions choose; a part of them is listed."""

    documents: tuple[ListedDocument, ...]
    """The documents that were asked for."""
    total: int
    """How many there are."""
    fields: tuple[MetadataField, ...]
    """The fields that they have, the most frequent first."""
