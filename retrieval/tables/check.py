"""Reads the rows of documents and chunks, and finds what is wrong with them.

Documents, chunks, contents and vectors are original data; each row has a checksum. Everything else is derived from
them.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from arag.retrieval.backend import DocumentRecord, Manifest, Vectors
from arag.retrieval.tables.rows import (
    CONTENT_COLUMNS,
    DOCUMENT_COLUMNS,
    ENTRY_COLUMNS,
    FOR_EVER,
    checksum,
    parse_chunk,
    parse_document,
    parse_vectors,
)
from arag.retrieval.types import Chunk

_LENGTH_TOLERANCE = 1e-3  # vectors have length one, within this, or zero
_MAX_NAMED = 10  # documents in one message

_Parsed = TypeVar("_Parsed", Chunk, DocumentRecord)


class Rows(Protocol):
    """The rows of an index's tables, as far as they can be read."""

    def row(self, table: str, columns: str, number: int) -> tuple[Any, ...] | None:
        """Return a row; None if it is missing or cannot be read."""

    def rows(self, table: str, columns: str, where: str = "TRUE") -> Iterator[tuple[Any, ...]]:
        """Yield number and columns of every readable row that meets a condition, by number."""


@dataclass(frozen=True, slots=True)
class CheckedChunk:
    """The values of a chunk's rows that are usable.

    Attributes:
        number: Its number.
        entry: The values of ENTRY_COLUMNS.
        contents: The values of CONTENT_COLUMNS.
        vectors: Its sentences' vectors, shape (sentences, dimension); None if they are missing or damaged.
        documents: The documents that it holds a part of.
        added: The generation that added it.
        removed: The one that removed it.
        is_sound: Whether its checksum is right.
    """

    number: int
    entry: Sequence[Any]
    contents: Sequence[Any]
    vectors: Vectors | None
    documents: Collection[str]
    added: int
    removed: int
    is_sound: bool


class RowCheck:
    """A check of all rows. A subclass may keep what is usable, and drop the rest.

    Args:
        rows: The rows.
        manifest: The index's manifest.

    Attributes:
        faults: What is wrong, in words.
        to_ingest_again: The documents that an earlier repair left incomplete.
        unnamed: How many documents are lost together with their ids.
        parts: How many chunks hold a part of each document.
        counts: How many documents, chunks and sentences readers see.
    """

    def __init__(self, rows: Rows, manifest: Manifest) -> None:
        self.to_ingest_again: list[str] = []
        self.parts: Counter[str] = Counter()
        self.counts = Counter(documents=0, chunks=0, sentences=0)
        self._rows = rows
        self._generation = manifest.generation
        self._not_gone = f"removed > {manifest.generation}"
        self._dimension = manifest.dimension
        self._found: Counter[str] = Counter()  # what is wrong, and how often
        self._entries: dict[str, int] = {}  # the documents, and how many chunks they should have
        self._changed_entries: dict[str, DocumentRecord] = {}
        self._lost: set[str] = set()  # documents that have lost something
        self._read_documents()
        self._read_chunks()
        self._lost |= {i for i, chunks in self._entries.items() if chunks != self.parts[i]}
        nameless = self.parts.keys() - self._entries.keys()
        self.unnamed = max(0, manifest.documents - self.counts["documents"] - len(nameless))
        self.faults = [f"{count:,} {what}" for what, count in self._found.items()]
        if self._lost:
            self.faults.append(f"incomplete or changed documents ({len(self._lost):,}): {list_ids(self._lost)}")
        if nameless:
            self.faults.append(f"documents without an entry ({len(nameless):,}): {list_ids(nameless)}")
        for document_id in self._lost | nameless:
            known = self._changed_entries.get(document_id) or DocumentRecord(document_id, "", "", "{}", "", 0)
            self._mark(known, is_missing=document_id not in self._entries)

    def _read_documents(self) -> None:
        columns = f"{DOCUMENT_COLUMNS}, checksum, added, removed"
        for number, *row, told, added, removed in self._rows.rows("documents", columns, self._not_gone):
            record, is_sound = _parse(parse_document, row, told)
            if record is None or not is_sound or not self._is_of_now(added, removed):
                self._found["document entries have changed since they were written"] += 1
                if record is not None:
                    self._changed_entries[record.id] = record
                self._drop_document(number)
                continue
            self.counts["documents"] += added <= self._generation
            self._keep_document(number, *row, told, added, removed)
            if removed == FOR_EVER:
                self._entries[record.id] = record.chunks
                if not record.fingerprint:
                    self.to_ingest_again.append(record.id)

    def _read_chunks(self) -> None:
        changed = []
        for row in self._rows.rows("chunks", f"{ENTRY_COLUMNS}, pending, added, removed", self._not_gone):
            number, *entry, _, added, removed = row
            *contents, told = self._rows.row("contents", f"{CONTENT_COLUMNS}, checksum", number) or (None,) * 4
            chunk, is_sound = _parse(parse_chunk, [*entry, *contents], told)
            if chunk is None or not self._is_of_now(added, removed):
                self._found["chunks cannot be read"] += 1
                self._drop_chunk(number)
            elif is_sound:
                self._take(row, contents, chunk, is_sound=True)
            else:
                changed.append((row, contents, chunk))
        for row, contents, chunk in changed:  # last: one may have the id of an intact one
            self._found["chunks have changed since they were written"] += 1
            documents = {section.document_id for section in chunk.sections}
            if documents <= self._entries.keys():
                self._lost |= documents
                self._take(row, contents, chunk, is_sound=False)
            else:
                self._drop_chunk(row[0])

    def _take(self, row: tuple[Any, ...], contents: Sequence[Any], chunk: Chunk, *, is_sound: bool) -> None:
        """Count a chunk, and keep it."""
        number, *entry, pending, added, removed = row
        vectors = self._vectors(number, entry[-1])
        if added <= self._generation:
            self.counts.update(chunks=1, sentences=entry[-1])
            if pending or vectors is None:
                self._found["chunks have no vectors yet" if pending else "chunks have missing or damaged vectors"] += 1
        documents = {section.document_id for section in chunk.sections}
        checked = CheckedChunk(number, entry, contents, vectors, documents, added, removed, is_sound)
        if self._keep_chunk(checked) and removed == FOR_EVER:
            self.parts.update(documents)

    def _vectors(self, number: int, sentences: int) -> Vectors | None:
        """Return a chunk's vectors; None if they are missing or not what was written."""
        blob, told = self._rows.row("vectors", "vectors, checksum", number) or (None, None)
        if not isinstance(blob, bytes) or zlib.crc32(blob) != told:
            return None
        try:
            vectors = parse_vectors(blob, sentences)
        except ValueError:
            return None
        lengths = np.linalg.norm(vectors, axis=1)
        # A vector that is not finite is neither.
        is_sound = np.isclose(lengths, 1, rtol=0, atol=_LENGTH_TOLERANCE) | (lengths == 0)
        return vectors if is_sound.all() and vectors.shape[1] == (self._dimension if sentences else 0) else None

    def _keep_document(self, *row: Any) -> None:
        """Keep a document's row."""

    def _drop_document(self, number: int) -> None:
        """Drop a document's row."""

    def _drop_chunk(self, number: int) -> None:
        """Drop a chunk's rows."""

    def _keep_chunk(self, chunk: CheckedChunk) -> bool:  # noqa: ARG002 - for subclasses
        """Keep a chunk; return whether no other one is in its way."""
        return True

    def _mark(self, record: DocumentRecord, *, is_missing: bool) -> None:
        """Mark a document as incomplete, so that it is ingested again; one that is missing has no entry."""

    def _is_of_now(self, added: Any, removed: Any) -> bool:
        """Return whether a row may have these generations: the one that readers see, or the one being written."""
        next_one = self._generation + 1
        return isinstance(added, int) and 0 <= added <= next_one and removed in (next_one, FOR_EVER)


def list_ids(document_ids: Collection[str]) -> str:
    """Return the first ids of some documents."""
    names = ", ".join(map(repr, sorted(document_ids)[:_MAX_NAMED]))
    more = len(document_ids) - _MAX_NAMED
    return f"{names} and {more:,} more" if more > 0 else names


def _parse(parse: Callable[[Sequence[Any]], _Parsed], row: Sequence[Any], told: Any) -> tuple[_Parsed | None, bool]:
    """Return the parsed row, None if it cannot be read, and whether it is what was written."""
    try:
        return parse(row), checksum(row) == told
    except ValueError:
        return None, False
