"""Chroma's folder for the next publication: most of it is written while other sentences are still being embedded."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from arag.errors import StorageError
from arag.retrieval.storage.contract import Settings, Vectors, batches
from arag.retrieval.storage.folder.chroma import MIN_SENTENCES, ChromaWriter, SentenceRecord
from arag.retrieval.storage.folder.derived import GRAPH_DRAFT, count_removed, graph_folder, is_trusted, write_receipt
from arag.retrieval.storage.folder.sqlite import Database
from arag.retrieval.types import Chunk
from arag.system.worker_process import WorkerError

_MAX_REMOVED = 0.3  # of the sentences: a graph from which more were removed is built again
_CHUNKS_AT_ONCE = 200

EmbeddedChunk = tuple[int, Chunk, Vectors]  # a chunk's number, the chunk, the vectors of its embedded sentences


class NextGraph:
    """Makes Chroma's folder for the next publication from that of the last one, or from scratch."""

    def __init__(self, folder: Path, published: Database | None) -> None:
        self._folder = folder
        self._published = published
        self._writer: ChromaWriter | None = None
        self._before: set[int] = set()  # numbers of the chunks in the folder that this one was made from
        self._removed = 0  # sentences, since that folder's graph was built
        self._written: dict[int, list[int]] = {}  # numbers of further chunks, and the positions of their sentences
        self._is_from_scratch = False
        self._has_failed = False

    def close(self) -> None:
        """Delete what was not published."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    def add(self, rows: Iterable[EmbeddedChunk]) -> None:
        """Add new chunks; what cannot be added now is added by `publish`."""
        if self._has_failed:
            return
        try:
            self._open().add(self._sentences(rows))
        except (WorkerError, StorageError):  # on a full disk, the index's file needs the room
            self._has_failed = True
            self._start_again()

    def publish(self, draft: Database, settings: Settings, *, rebuild: bool) -> None:
        """Write the rest, or all of it from scratch, and let the folder appear.

        If Chroma crashes or hangs, there is none. A StorageError says that it cannot be written.
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
                warnings.warn(
                    f"the index in {self._folder} has no graph now, and large ones are searched more slowly: Chroma "
                    f"failed ({error}). To make it, run `arag verify --repair` on the index",
                    stacklevel=2,
                )
            else:
                raise
        finally:
            self.close()

    def _start_again(self) -> None:
        """Start with an empty folder."""
        self.close()
        self._before, self._removed, self._written = set(), 0, {}
        self._is_from_scratch = True

    def _open(self) -> ChromaWriter:
        if self._writer is None:
            previous = self._find_previous()
            self._is_from_scratch = previous is None
            # The process of a run that was killed may still be writing to that run's folder.
            self._writer = ChromaWriter(self._folder / f"{GRAPH_DRAFT}.{secrets.token_hex(8)}", previous)
        return self._writer

    def _find_previous(self) -> Path | None:
        """Return the folder to start from, if this user has written it."""
        if self._is_from_scratch or self._published is None:
            return None
        previous = graph_folder(self._folder, self._published.settings.token)
        if not is_trusted(previous):
            return None
        self._before = set(self._published.numbers_by_id())
        self._removed = count_removed(previous)
        return previous

    def _write(self, draft: Database, settings: Settings) -> None:
        self._open()
        numbers = sorted(draft.numbers_by_id())
        gone = self._find_gone(set(numbers))
        if self._removed + len(gone) > _MAX_REMOVED * settings.sentences:
            self._start_again()
            gone = []
        missing = [number for number in numbers if number not in self._before and number not in self._written]
        self._open().remove(gone)
        self._open().add(self._sentences(_read_chunks(draft, missing)))
        folder = graph_folder(self._folder, settings.token)
        added = sorted(self._written.keys() & set(numbers))
        self._open().publish(folder, settings.sentences, self._sentences(_read_chunks(draft, added)))
        write_receipt(folder, self._removed + len(gone))

    def _find_gone(self, numbers: set[int]) -> list[str]:
        """Return the ids of the sentences that the folder has so far, and that are not in some chunks."""
        gone = [(number, positions) for number, positions in self._written.items() if number not in numbers]
        if self._published is not None:
            before = self._published.vectors(sorted(self._before - numbers))
            gone += [(number, positions) for number, positions, _ in before]
        return [f"{number}#{position}" for number, positions in gone for position in positions]

    def _sentences(self, rows: Iterable[EmbeddedChunk]) -> Iterator[SentenceRecord]:
        for number, chunk, vectors in rows:
            positions = self._written[number] = chunk.embedded_positions()
            for position, vector in zip(positions, vectors, strict=True):
                yield SentenceRecord(f"{number}#{position}", chunk.id, chunk.sentence_text(position), vector)


def _read_chunks(draft: Database, numbers: Sequence[int]) -> Iterator[EmbeddedChunk]:
    for some in batches(numbers, _CHUNKS_AT_ONCE):
        chunks = draft.numbered(some)
        yield from ((number, chunks[number], vectors) for number, _, vectors in draft.vectors(some))
