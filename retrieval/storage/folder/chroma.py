"""Chroma: a record for each sentence, with its vector, and with its text and its chunk's id as metadata.

Chroma is native code that trusts the files in its folder: it may crash, or hang for ever. So it runs in a worker
process (`chroma_worker`), and opens only folders that this user wrote (`derived`). It overwrites its graph in pieces:
a process that is killed while it writes damages the graph, often unnoticed. So a snapshot's folder is made under
another name, renamed when it is complete, and never written to again: no file changes when it is opened or searched.

Its graph only proposes sentences; their similarities come from the vectors in the index's file.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from arag.errors import IndexFormatError, StorageError
from arag.retrieval.storage.batches import batches
from arag.retrieval.storage.folder.derived import TRUST_VARIABLE, is_trusted
from arag.retrieval.storage.folder.names import CHROMA_DATABASE
from arag.system.files import delete, publish_path, sync_tree
from arag.system.worker_process import RaisedInWorkerError, WorkerError, WorkerProcess

SEARCH_SECONDS = 60.0  # the first search reads the graph from the disk
WRITE_SECONDS = 600.0  # each time most of the graph is written
MIN_SENTENCES = 2  # Chroma writes no graph after a single change, but makes a new one at each start
CLOSE_SECONDS = 30.0  # normally instant; has hung

_PROCESS = "arag.retrieval.storage.folder.chroma_worker"
# Chroma turns the ids of a read into SQL variables, and SQLite limits their number.
_SENTENCES_PER_CALL = 500
_ADDED_PER_CALL = 2_000  # each call is a transaction, which takes time
_CHANGES_PER_SYNC = 5_000  # after which Chroma writes its graph
# At each start, Chroma adds a row to the table that it locks its database with. It needs only the lock. Without the
# row, the file does not change.
_KEEP_UNCHANGED = (
    "CREATE TRIGGER IF NOT EXISTS unchanged BEFORE INSERT ON acquire_write BEGIN SELECT RAISE(IGNORE); END"
)


class SentenceRecord(NamedTuple):
    """A sentence: `<row id>#<position>`, its chunk's id, its text, and its vector of length one."""

    id: str
    chunk_id: str
    text: str
    vector: NDArray[np.float32]


class ChromaWriter:
    """Writes a new folder, from scratch or starting with a copy of a previous one that this user has written.

    Every call may raise a StorageError (the previous folder is damaged, or the new one cannot be written) or a
    WorkerError (Chroma crashed or hangs).

    Args:
        working: The folder's name until it is complete; no other folder has had it.
        previous: The folder to copy, or None.
    """

    def __init__(self, working: Path, previous: Path | None) -> None:
        self._working = working
        self._has_gaps = previous is None  # whether deleted rows, of its queue or of sentences, leave free pages
        self._process = WorkerProcess(_PROCESS)
        try:
            with self._name_failures():
                if previous is None:
                    working.mkdir()
                else:
                    copy_folder(previous, working)
            self._call("write_graph_after", _CHANGES_PER_SYNC)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the process; the folder is deleted if it was not published."""
        self._process.close()
        delete(self._working)

    def add(self, sentences: Iterable[SentenceRecord]) -> None:
        """Add sentences."""
        for batch in batches(sentences, _ADDED_PER_CALL):
            ids, chunk_ids, texts, vectors = zip(*batch, strict=True)
            self._call("add", ids, chunk_ids, texts, np.stack(vectors))

    def remove(self, ids: Iterable[str]) -> None:
        """Remove the sentences with these ids."""
        for batch in batches(ids, _SENTENCES_PER_CALL):
            self._has_gaps = True
            self._call("remove", batch)

    def publish(self, folder: Path, sentences: int, added: Iterable[SentenceRecord]) -> None:
        """Write everything to disk, check it, and give the folder its name.

        Args:
            folder: The folder's name from now on.
            sentences: How many sentences it must have.
            added: The sentences that were added, to check their vectors.
        """
        with self._name_failures():
            self._write_graph()
            stored = self._call("count")
            self._process.call("close", seconds=CLOSE_SECONDS)
            lost = 0
            for batch in batches(added, _SENTENCES_PER_CALL):
                ids, _, _, vectors = zip(*batch, strict=True)
                lost += self._call("count_lost", ids, np.stack(vectors))
            self._process.close()
            if lost or stored != sentences:  # where a disk fails, Chroma may write half of it without an error
                raise OSError(f"{lost or abs(sentences - stored):,} sentences are lost; is the disk full?")
            self._finish_database()
            sync_tree(self._working)
            delete(folder)
            publish_path(self._working, folder)

    def _write_graph(self) -> None:
        """Let Chroma write its graph when it next opens the folder, so that readers find nothing left to write."""
        self._call("write_graph_after", MIN_SENTENCES)
        self._process.call("close", seconds=CLOSE_SECONDS)

    def _finish_database(self) -> None:
        with closing(sqlite3.connect(self._working / CHROMA_DATABASE)) as connection:
            connection.execute(_KEEP_UNCHANGED)
            if self._has_gaps:  # removed texts must not stay in the published file
                connection.execute("VACUUM")

    def _call(self, name: str, *arguments: Any) -> Any:
        with self._name_failures():
            return self._process.call(name, str(self._working), *arguments, seconds=WRITE_SECONDS)

    @contextmanager
    def _name_failures(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error, RaisedInWorkerError) as error:
            raise StorageError(f"the sentence vectors cannot be written to {self._working}: {error}") from error


class ReadOnlyError(IndexFormatError):
    """Chroma's folder is read-only: it may be sound, but Chroma does not open it."""


class VectorIndex:
    """A snapshot's sentences in Chroma's graph.

    Every call may raise an IndexFormatError: the folder must not be opened (a ReadOnlyError if it cannot be written
    to), has the wrong number of sentences, or cannot be searched; or Chroma crashed or hangs.
    """

    def __init__(self, folder: Path, sentences: int) -> None:
        if not folder.is_dir():
            raise IndexFormatError("it is missing")
        if not os.access(folder, os.W_OK):
            raise ReadOnlyError("its folder is read-only, and Chroma opens only what it may write to")
        if not is_trusted(folder):
            raise IndexFormatError(
                f"it was copied or changed, or another user or machine has made it ({TRUST_VARIABLE}=1 uses it anyway)"
            )
        self._folder = folder
        self._process = WorkerProcess(_PROCESS)
        stored = int(self._call("count"))
        if stored != sentences:
            raise IndexFormatError(f"it has {stored:,} sentences instead of {sentences:,}")

    def close(self) -> None:
        """End the process."""
        self._process.close()

    def nearest(self, vector: NDArray[np.float32], count: int) -> list[tuple[int, int]]:
        """Return the chunks' row ids and the positions of sentences near a vector, the nearest first."""
        found: NDArray[np.int64] = self._call("nearest", vector, count)
        return [(row_id, position) for row_id, position in found.tolist()]

    def _call(self, name: str, *arguments: Any) -> Any:
        try:
            return self._process.call(name, str(self._folder), *arguments, seconds=SEARCH_SECONDS)
        except (WorkerError, RaisedInWorkerError) as error:
            raise IndexFormatError(f"{self._folder} cannot be searched: {error}") from error


def copy_folder(previous: Path, working: Path) -> None:
    """Copy Chroma's folder, which another process may be opening."""
    # No hard links: Chroma overwrites each of its files in place.
    shutil.copytree(
        previous,
        working,
        ignore=shutil.ignore_patterns(f"{CHROMA_DATABASE}*"),
        copy_function=shutil.copyfile,
    )
    # VACUUM does not copy deleted rows.
    database = (previous / CHROMA_DATABASE).absolute().as_uri()
    with closing(sqlite3.connect(f"{database}?mode=ro", uri=True)) as source:
        source.execute("VACUUM INTO ?", [str(working / CHROMA_DATABASE)])
