"""Chroma's folder for the next snapshot: most of it is written while other sentences are still being embedded."""

from __future__ import annotations

import secrets
import shlex
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from arag.errors import StorageError
from arag.retrieval.storage.batches import batches
from arag.retrieval.storage.folder.chroma import MIN_SENTENCES, ChromaWriter, SentenceRecord
from arag.retrieval.storage.folder.derived import (
    VECTOR_INDEX_DRAFT,
    count_removed,
    is_trusted,
    vector_index_folder,
    write_receipt,
)
from arag.retrieval.storage.folder.sqlite import Database
from arag.retrieval.storage.records import Settings, Vectors
from arag.retrieval.types import Chunk
from arag.system.worker_process import WorkerError
from arag.text.visible import visible_line

# A part of the sentences. The graph keeps the points of removed ones, so if more were removed, it is built again.
_MAX_REMOVED = 0.3
_CHUNKS_PER_BATCH = 200  # read at once: more take more memory, fewer more queries

EmbeddedChunk = tuple[int, Chunk, Vectors]  # a chunk's row id, the chunk, the vectors of its embedded sentences


class NextVectorIndex:
    """Makes Chroma's folder for the next snapshot from that of the last one, or from scratch."""

    def __init__(self, folder: Path, published: Database | None) -> None:
        self._folder = folder
        self._published = published
        self._writer: ChromaWriter | None = None
        self._before: set[int] = set()  # row ids of the chunks in the copied folder
        self._removed = 0  # sentences that were removed since the copied folder's graph was built
        self._written: dict[int, list[int]] = {}  # row ids of the added chunks, and the positions of their sentences
        self._is_from_scratch = False
        self._has_failed = False

    def close(self) -> None:
        """Delete the folder unless it was published."""
        writer = self._writer
        self._writer = None
        if writer is not None:
            writer.close()

    def add(self, rows: Iterable[EmbeddedChunk]) -> None:
        """Add new chunks. If that fails, `publish` adds them."""
        if self._has_failed:
            return
        try:
            self._open().add(self._sentences(rows))
        except (WorkerError, StorageError):
            self._has_failed = True
            self._start_again()  # which frees the room: on a full disk, the index's file needs it

    def publish(self, draft: Database, settings: Settings, *, rebuild: bool) -> None:
        """Write the remaining chunks and give the folder its name. If Chroma crashes or hangs, there is no folder.

        Args:
            draft: The documents of the next snapshot.
            settings: Its settings.
            rebuild: Whether to write all chunks from scratch.

        Raises:
            StorageError: The folder cannot be written.
        """
        try:
            if rebuild:
                self._start_again()
            if settings.sentences >= MIN_SENTENCES:
                self._write(draft, settings)
        except (WorkerError, StorageError) as error:
            if not self._is_from_scratch:
                self.publish(draft, settings, rebuild=True)
            elif isinstance(error, WorkerError):
                command = f"arag verify --repair --index {shlex.quote(str(self._folder))}"
                message = (
                    f"the index in {self._folder} has no vector index now, and large ones are searched more slowly: "
                    f"Chroma failed ({error}). To make it, run `{command}`"
                )
                warnings.warn(visible_line(message), stacklevel=2)
            else:
                raise
        finally:
            self.close()

    def _start_again(self) -> None:
        """Start with an empty folder."""
        self.close()
        self._before = set()
        self._removed = 0
        self._written = {}
        self._is_from_scratch = True

    def _open(self) -> ChromaWriter:
        if self._writer is None:
            previous = self._find_previous()
            self._is_from_scratch = previous is None
            # The name is random: the process of a killed run may still be writing to that run's folder.
            working = self._folder / f"{VECTOR_INDEX_DRAFT}.{secrets.token_hex(8)}"
            self._writer = ChromaWriter(working, previous)
        return self._writer

    def _find_previous(self) -> Path | None:
        """Return the folder to start from, if this user has written it."""
        if self._is_from_scratch or self._published is None:
            return None
        previous = vector_index_folder(self._folder, self._published.settings.token)
        if not is_trusted(previous):
            return None
        self._before = set(self._published.ordered_row_ids())
        self._removed = count_removed(previous)
        return previous

    def _write(self, draft: Database, settings: Settings) -> None:
        self._open()
        row_ids = set(draft.ordered_row_ids())
        gone = self._find_gone(row_ids)
        if self._removed + len(gone) > _MAX_REMOVED * settings.sentences:
            self._start_again()
            gone = []
        missing = sorted(row_ids - self._before - self._written.keys())
        writer = self._open()
        writer.remove(gone)
        writer.add(self._sentences(_read_chunks(draft, missing)))
        folder = vector_index_folder(self._folder, settings.token)
        added = sorted(row_ids & self._written.keys())
        writer.publish(folder, settings.sentences, self._sentences(_read_chunks(draft, added)))
        write_receipt(folder, self._removed + len(gone))

    def _find_gone(self, row_ids: set[int]) -> list[str]:
        """Return the ids of the sentences that the folder has, except those of some chunks."""
        gone: list[str] = []
        for row_id, positions in self._written.items():
            if row_id not in row_ids:
                gone += _sentence_ids(row_id, positions)
        if self._published is not None:
            removed_chunks = sorted(self._before - row_ids)
            for row_id, positions, _ in self._published.vectors(removed_chunks):
                gone += _sentence_ids(row_id, positions)
        return gone

    def _sentences(self, rows: Iterable[EmbeddedChunk]) -> Iterator[SentenceRecord]:
        """Yield the sentences of chunks, and note that they are written."""
        for row_id, chunk, vectors in rows:
            positions = chunk.embedded_positions()
            self._written[row_id] = positions
            ids = _sentence_ids(row_id, positions)
            for sentence_id, position, vector in zip(ids, positions, vectors, strict=True):
                yield SentenceRecord(sentence_id, chunk.id, chunk.sentence_text(position), vector)


def _sentence_ids(row_id: int, positions: Sequence[int]) -> list[str]:
    return [f"{row_id}#{position}" for position in positions]


def _read_chunks(draft: Database, row_ids: Sequence[int]) -> Iterator[EmbeddedChunk]:
    for batch in batches(row_ids, _CHUNKS_PER_BATCH):
        chunks = draft.chunks_by_row_id(batch)
        for row_id, _, vectors in draft.vectors(batch):
            yield row_id, chunks[row_id], vectors
