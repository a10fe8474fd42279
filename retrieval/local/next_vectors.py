"""The sentence vectors of an index's next generation: most are written while others are still being embedded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import chain, takewhile
from pathlib import Path

from arag.errors import IndexFormatError
from arag.retrieval.backend import Vectors
from arag.retrieval.local.chunk_store import ChunkStore
from arag.retrieval.local.manifest import LocalManifest, check_files, vectors_folder
from arag.retrieval.local.seal import is_sealed
from arag.retrieval.local.sentence_store import SentenceRecord
from arag.retrieval.local.sentence_writer import SentenceWriter
from arag.retrieval.shift import vector_id
from arag.retrieval.types import Chunk

_ENOUGH = 1_000  # sentences, after which the thread looks for new ones


class NextVectors:
    """Writes the Chroma folder of the next generation: in a thread until `stop`, and the rest in `finish`.

    Args:
        folder: The index's folder.
        manifest: The manifest that was published last.
        from_scratch: Whether to start with an empty folder, rather than with a copy of the last generation's.
    """

    def __init__(self, folder: Path, manifest: LocalManifest, *, from_scratch: bool = False) -> None:
        self._folder = folder
        self._manifest = manifest
        self._from_scratch = from_scratch
        self._since = -1 if from_scratch else manifest.generation
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="publish")
        self._ahead: Future[None] | None = None
        self._waiting = 0  # sentences
        self._last = -1  # number of the chunk that was written last
        self._is_stopped = False
        self._writer: SentenceWriter | None = None
        self._written: dict[int, tuple[int, ...]] = {}  # numbers of chunks, and the positions of their sentences

    def close(self) -> None:
        """Stop, and delete what was written, unless it was published."""
        self._is_stopped = True
        try:
            self._pool.shutdown(cancel_futures=True)
        finally:  # a second Ctrl-C must not let the thread go on while the next run writes
            self._pool.shutdown()
            self._discard()

    def go_on(self, sentences: int) -> None:
        """So many more sentences have their vectors in the chunk store: write them, in the thread."""
        self._waiting += sentences
        is_free = self._ahead is None or (self._ahead.done() and self._ahead.exception() is None)
        if is_free and self._waiting >= _ENOUGH:
            self._waiting = 0
            self._ahead = self._pool.submit(self._write_ahead)

    def stop(self, chunks: ChunkStore) -> list[str]:
        """Stop the thread.

        Args:
            chunks: The chunks of the next generation.

        Returns:
            Ids of vectors that were written, and whose chunks the run that added them has removed again.

        Raises:
            IndexFormatError: The last generation's folder cannot be used.
            StorageError: The thread could not write.
        """
        self._is_stopped = True
        if self._ahead is not None:
            self._ahead.result()
        kept = chunks.ids(list(self._written))
        return [vector_id(number, i) for number in self._written.keys() - kept.keys() for i in self._written[number]]

    def finish(
        self, chunks: ChunkStore, removed: Sequence[str], total: int, on_written: Callable[[int], None] | None
    ) -> None:
        """Write the rest, here, and let the folder appear.

        Args:
            chunks: The chunks of the next generation.
            removed: Ids of vectors that the folder has so far, and the next generation has not.
            total: How many sentences that has.
            on_written: Called with the number of sentences written, each time some are.

        Raises:
            IndexFormatError: The last generation's folder cannot be used.
            StorageError: It cannot be written.
        """
        written = sum(map(len, self._written.values()))
        if written and on_written is not None:
            on_written(written)
        writer = self._open()
        self._add(chunks.embedded_chunks(self._since, after=self._last), on_written)
        writer.remove(removed)
        writer.publish(read_sentences(chunks, self._since), total)

    def _write_ahead(self) -> None:
        try:
            with closing(ChunkStore(self._folder)) as chunks:
                rows = chunks.embedded_chunks(self._since, after=self._last)
                self._add(takewhile(lambda _: not self._is_stopped, rows))
        except BaseException:
            self._discard()  # on a full disk, the chunk store may need the room
            raise

    def _add(self, rows: Iterable[tuple[int, Chunk, Vectors]], on_written: Callable[[int], None] | None = None) -> None:
        self._open().add(chain.from_iterable(map(self._note, rows)), on_written)

    def _note(self, row: tuple[int, Chunk, Vectors]) -> list[SentenceRecord]:
        """Return a chunk's sentences, and note that they are about to be written."""
        self._last, chunk, _ = row
        self._written[self._last] = _positions(chunk)
        return list(_sentences(*row))

    def _open(self) -> SentenceWriter:
        if self._writer is None:
            target = vectors_folder(self._folder, self._manifest.generation + 1)
            self._writer = SentenceWriter(target, self._previous())
        return self._writer

    def _discard(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _previous(self) -> Path | None:
        """Return the folder to start from, if it is this user's and intact."""
        if self._from_scratch or not self._manifest.sentences:
            return None
        previous = vectors_folder(self._folder, self._manifest.generation)
        if not is_sealed(self._manifest):
            raise IndexFormatError(f"{previous} was written by somebody else")
        check_files(self._folder, self._manifest, previous, contents=True)
        return previous


def read_sentences(chunks: ChunkStore, since: int) -> Iterator[SentenceRecord]:
    """Yield the sentences of chunks that were added after a generation."""
    for row in chunks.embedded_chunks(since):
        yield from _sentences(*row)


def _sentences(number: int, chunk: Chunk, vectors: Vectors) -> Iterator[SentenceRecord]:
    for position, vector in zip(_positions(chunk), vectors, strict=True):
        yield SentenceRecord(vector_id(number, position), chunk.id, chunk.sentence_text(position), vector)


def _positions(chunk: Chunk) -> tuple[int, ...]:
    return tuple(position for position, sentence in enumerate(chunk.sentences) if sentence.embedded)
