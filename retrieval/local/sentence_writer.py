"""Writes the folder in which Chroma keeps a generation's sentences.

Chroma overwrites its graph in pieces, and even the first search does so in a folder with enough changes. A process
that is killed while it writes, or two that have the same folder open, damage the graph, often unnoticed. So every
generation of an index has its own folder. It is written under another name, read back and compared, renamed when it
is complete, and never written to again.
"""

from __future__ import annotations

import sqlite3
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from arag.errors import IndexFormatError, StorageError
from arag.files import delete, publish_path, sync_tree
from arag.retrieval.local.chroma_check import DATABASE, check_database
from arag.retrieval.local.chroma_folder import batches, copy_vectors, is_chroma_error, open_collection
from arag.retrieval.local.sentence_store import SentenceRecord, SentenceStore
from arag.retrieval.shift import shifts_of

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

_SYNC = 5_000  # changes after which Chroma writes its graph: each time most of it


class SentenceWriter:
    """Writes a new folder, which appears when it is complete. Its methods raise a StorageError if they cannot.

    Args:
        folder: The folder.
        previous: The folder to start from, or None to start with an empty one.

    Raises:
        StorageError: The previous folder is damaged, or the new one cannot be written.
    """

    def __init__(self, folder: Path, previous: Path | None) -> None:
        self._folder = folder
        self._working = folder.with_name(f"{folder.name}.new")
        self._is_empty = previous is None
        self._stack = ExitStack()
        delete(self._working)  # a killed run's folder may be damaged
        try:
            with self._name_failures():
                if previous is None:
                    self._working.mkdir()
                else:
                    check_database(previous, pages=True)
                    copy_vectors(previous, self._working)
                self._collection = self._stack.enter_context(open_collection(self._working, create=True))
                _write_graph_after(_SYNC, self._collection)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the folder; it is deleted if it was not published."""
        self._stack.close()
        delete(self._working)

    def add(self, sentences: Iterable[SentenceRecord], on_written: Callable[[int], None] | None = None) -> None:
        """Add sentences.

        Args:
            sentences: The sentences.
            on_written: Called with the number of sentences written, each time some are.
        """
        for batch in batches(sentences):
            ids = [s.id for s in batch]
            vectors = np.stack([s.vector for s in batch])
            with self._name_failures():
                _retry_while_locked(
                    self._collection.add,
                    ids=ids,
                    embeddings=vectors + shifts_of(ids, vectors.shape[1]),
                    # Not as documents: Chroma always makes a full-text table of these, which is four times as large.
                    metadatas=[{"chunk_id": s.chunk_id, "sentence": s.text} for s in batch],
                )
            if on_written is not None:
                on_written(len(batch))

    def remove(self, ids: Sequence[str]) -> None:
        """Remove the vectors with these ids."""
        for batch in batches(ids):
            with self._name_failures():
                _retry_while_locked(self._collection.delete, ids=batch)

    def publish(self, added: Iterable[SentenceRecord], total: int) -> None:
        """Read back what was written, and give the folder its name.

        Args:
            added: The sentences that were added and not removed.
            total: How many sentences the folder should hold.
        """
        with self._name_failures():
            # The next to open the folder then writes the graph, so readers find nothing left to write.
            _write_graph_after(2, self._collection)
            self._stack.close()
            with open_collection(self._working) as collection:
                collection.count()
            with closing(SentenceStore(self._working)) as store:
                fault = store.fault(added, total)
            if fault:  # on a full disk, Chroma silently writes half of its graph
                raise IndexFormatError(f"{fault}; is the disk full?")
            if self._is_empty:
                _vacuum(self._working)
            sync_tree(self._working)
        delete(self._folder)  # from a run that was killed before publishing it
        publish_path(self._working, self._folder)

    @contextmanager
    def _name_failures(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            if isinstance(error, IndexFormatError | OSError | sqlite3.Error) or is_chroma_error(error):
                raise StorageError(f"the sentence vectors cannot be written to {self._working}: {error}") from error
            raise


def _vacuum(folder: Path) -> None:
    """Give back what Chroma's queue of writes took, as `chroma vacuum` does, but silently."""
    with closing(sqlite3.connect(folder / DATABASE)) as connection:
        connection.execute("VACUUM")


def _write_graph_after(changes: int, collection: Collection) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Chroma's own, of a collection without an embedder
        _retry_while_locked(collection.modify, configuration={"hnsw": {"sync_threshold": changes}})


def _retry_while_locked(write: Callable[..., Any], **arguments: Any) -> None:
    """Write to Chroma; retry while its own connections block each other, such as one that is still opening."""
    from chromadb.errors import InternalError

    for wait in (0.01, 0.1, 1.0, 5.0):
        try:
            write(**arguments)
        except InternalError as error:
            if "database is locked" not in str(error):
                raise
            time.sleep(wait)
        else:
            return
    write(**arguments)
