"""Checks documents, chunks and vectors, which everything else in an index is derived from."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from arag.errors import IndexFormatError
from arag.retrieval.storage.batches import batches
from arag.retrieval.storage.records import ChunkText, DocumentRecord, ShowShare
from arag.retrieval.storage.sql import TableReader, shown
from arag.text.normalise import count

_CHUNKS_PER_QUERY = 200  # larger batches take more memory, and smaller ones more queries
_MAX_LISTED = 10  # documents in a message


class Passes:
    """Shows how far some passes over all chunks are.

    Args:
        passes: How often all chunks are read.
        chunks: How many there are.
        show: Called with the part that is finished; None if nobody asks.
    """

    def __init__(self, passes: int, chunks: int, show: ShowShare | None = None) -> None:
        self._total = passes * chunks
        self._show = show
        self._read = 0

    def add(self, chunks: int) -> None:
        """Count chunks that were read."""
        self._read += chunks
        if self._show is not None and self._total:
            self._show(min(self._read / self._total, 1.0))

    def counting(self, read: Callable[[Sequence[int]], list[ChunkText]]) -> Callable[[Sequence[int]], list[ChunkText]]:
        """Return a function that reads chunks as another one does, and counts them."""

        def read_and_count(row_ids: Sequence[int]) -> list[ChunkText]:
            texts = read(row_ids)
            self.add(len(row_ids))
            return texts

        return read_and_count


def check_documents(reader: TableReader, passes: Passes) -> None:
    """Read all documents, chunks and vectors.

    Raises:
        IndexFormatError: Some are damaged, or documents lack a part.
    """
    lost = _find_incomplete_documents(reader)
    lost |= _find_documents_without_vectors(reader, passes)
    if lost:
        listed = ", ".join(shown(document_id) for document_id in sorted(lost)[:_MAX_LISTED])
        raise reader.damage(f"{count(len(lost), 'document')} lost a part: {listed}")


def _find_incomplete_documents(reader: TableReader) -> set[str]:
    """Return the ids of documents that lack chunks or metadata, and of chunks that lack their document."""
    select = f"SELECT document_id, count(*) FROM {reader.chunks_table} GROUP BY document_id"
    chunk_counts = dict(reader.query(select))
    incomplete: set[str] = set()
    for record in reader.documents():
        chunks = chunk_counts.pop(record.id, 0)
        if chunks != record.chunks or not _has_metadata(reader, record):
            incomplete.add(record.id)
    without_document = chunk_counts.keys()
    return incomplete | without_document


def _has_metadata(reader: TableReader, record: DocumentRecord) -> bool:
    try:
        reader.metadata(record)
        reader.reading(record)
    except IndexFormatError:
        return False
    return True


def _find_documents_without_vectors(reader: TableReader, passes: Passes) -> set[str]:
    """Return the ids of documents whose sentences do not all have a finite vector."""
    document_ids = dict(reader.query(f"SELECT number, document_id FROM {reader.chunks_table}"))
    found: set[str] = set()
    for row_ids in batches(document_ids, _CHUNKS_PER_QUERY):
        for row_id in _find_damaged_chunks(reader, row_ids):
            found.add(document_ids[row_id])
        passes.add(len(row_ids))
    return found


def _find_damaged_chunks(reader: TableReader, row_ids: Sequence[int]) -> list[int]:
    """Return the row ids of chunks that cannot be read, or whose sentences do not all have a finite vector."""
    stored: dict[int, list[int]] = {}
    try:
        chunks = reader.chunks_by_row_id(row_ids)
        for row_id, positions, vectors in reader.vectors(row_ids):
            if np.isfinite(vectors).all():
                stored[row_id] = positions
    except IndexFormatError:
        if len(row_ids) == 1:
            return list(row_ids)
        damaged: list[int] = []
        for row_id in row_ids:
            damaged += _find_damaged_chunks(reader, [row_id])
        return damaged
    return [row_id for row_id in row_ids if chunks[row_id].embedded_positions() != stored.get(row_id)]
