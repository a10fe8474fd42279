"""Chroma: a record for each sentence, with its vector, and with its text and its chunk's id as metadata.

Chroma is native code that does what the files in its folder say, and it overwrites its graph in pieces: a process that
is killed while it writes damages it, often unnoticed. So a publication's folder is made under another name, renamed
when it is complete, and never written to again. It is opened only by the user who wrote it (`derived`).

Its graph only proposes sentences; their similarities come from the vectors in the index's file.
"""

from __future__ import annotations

import math
import os
import shutil
import sqlite3
import threading
import time
import warnings
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cache
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from arag.errors import IndexFormatError, StorageError
from arag.files import copy_file, delete, publish_path, sync_tree
from arag.retrieval.storage import Vectors
from arag.retrieval.store.derived import GRAPH_DATABASE

if TYPE_CHECKING:
    from chromadb.api.client import Client
    from chromadb.api.collection_configuration import CreateHNSWConfiguration
    from chromadb.api.models.Collection import Collection
    from chromadb.config import Settings

CLOSE_SECONDS = 30.0  # that closing Chroma may take: once, it never returned

_COLLECTION = "sentences"
# Recall at 15 against exact search, among 40,436 real sentence vectors (302 real questions): max_neighbors 16 and
# ef_construction 100 give 0.991 with ef_search 100, 0.997 with 200 and 0.999 with 400; 32 and 100 give 0.995, 0.9985
# and 0.9998; 32 and 200 give 0.997, 0.9998 and 0.9998, and take 1.4 times as long to build; 48 and 400 give no more.
# Questions about something other than the corpus are harder: among 16,000 vectors, 0.97 with ef_search 200.
_HNSW: CreateHNSWConfiguration = {"space": "cosine", "ef_construction": 100, "ef_search": 400, "max_neighbors": 32}
# A write of this many holds the interpreter's lock for half a second. A read turns ids into SQL variables, whose
# number is limited.
_SENTENCES_PER_CALL = 500
_CHANGES_PER_SYNC = 5_000  # after which Chroma writes its graph: each time most of it
_SHIFT = 1e-3  # of a vector's length; less is lost in float32's rounding of a cosine distance
_CLIENTS = threading.Lock()  # Chroma shares what it opens between the clients of a path

_Item = TypeVar("_Item")


class ChromaHangsError(StorageError):
    """Chroma does not return from closing a folder."""


class SentenceRecord(NamedTuple):
    """A sentence: `<chunk number>#<position>`, its chunk's id, its text, and its vector of length one."""

    id: str
    chunk_id: str
    text: str
    vector: NDArray[np.float32]


class ChromaWriter:
    """Writes a new folder, which appears when it is complete.

    Args:
        working: The folder while it is incomplete.
        previous: The folder to start from, written by this user; None to start with an empty one.

    Raises:
        StorageError: The previous folder is damaged, or the new one cannot be written; so do all methods.
    """

    def __init__(self, working: Path, previous: Path | None) -> None:
        self._working = working
        self._is_empty = previous is None
        self._stack = ExitStack()
        delete(working)
        try:
            with self._name_failures():
                if previous is None:
                    working.mkdir()
                else:
                    copy_folder(previous, working)
                self._collection = self._stack.enter_context(open_collection(working, create=True))
                _write_graph_after(_CHANGES_PER_SYNC, self._collection)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the folder; it is deleted if it was not published."""
        try:
            self._stack.close()
        finally:
            delete(self._working)

    def add(self, sentences: Iterable[SentenceRecord], on_added: Callable[[int], None] = lambda _: None) -> None:
        """Add sentences.

        Args:
            sentences: The sentences.
            on_added: Called with how many more were added, each time some are.
        """
        for batch in _batches(sentences):
            ids = [sentence.id for sentence in batch]
            vectors = np.stack([sentence.vector for sentence in batch])
            with self._name_failures():
                _retry_while_locked(
                    self._collection.add,
                    ids=ids,
                    embeddings=vectors + shifts_of(ids, vectors.shape[1]),
                    # Not as documents: Chroma makes a full-text table of these, which is four times as large.
                    metadatas=[{"chunk_id": sentence.chunk_id, "sentence": sentence.text} for sentence in batch],
                )
            on_added(len(batch))

    def remove(self, ids: Iterable[str]) -> None:
        """Remove the sentences with these ids."""
        for batch in _batches(ids):
            with self._name_failures():
                _retry_while_locked(self._collection.delete, ids=batch)

    def publish(self, folder: Path, sentences: int, added: Iterable[SentenceRecord]) -> None:
        """Write everything to disk, read it back, and give the folder its name.

        Args:
            folder: The name.
            sentences: How many sentences it should hold.
            added: Those that were added.
        """
        with self._name_failures():
            # The next to open the folder then writes the graph, so readers find nothing left to write.
            _write_graph_after(2, self._collection)
            self._stack.close()
            with open_collection(self._working) as collection:
                stored = collection.count()
            with open_collection(self._working) as collection:
                lost = sum(_count_lost(collection, batch) for batch in _batches(added))
            if lost or stored != sentences:  # where a disk fails, Chroma may write half of it without an error
                raise IndexFormatError(f"{lost or abs(sentences - stored):,} sentences are lost; is the disk full?")
            if self._is_empty:  # give back what Chroma's queue of writes took
                with closing(sqlite3.connect(self._working / GRAPH_DATABASE)) as connection:
                    connection.execute("VACUUM")
            sync_tree(self._working)
            delete(folder)
            publish_path(self._working, folder)

    @contextmanager
    def _name_failures(self) -> Iterator[None]:
        try:
            yield
        except ChromaHangsError:
            raise
        except BaseException as error:
            if isinstance(error, IndexFormatError | StorageError | OSError | sqlite3.Error) or is_chroma_error(error):
                raise StorageError(f"the sentence vectors cannot be written to {self._working}: {error}") from error
            raise


class ChromaGraph:
    """A publication's sentences in Chroma's graph. Its files are closed with the last reference to it.

    Chroma writes to the folder that it opens. If that is read-only, it opens a temporary copy.

    Args:
        folder: Chroma's folder, written by this user.

    Raises:
        IndexFormatError: The folder or its collection is missing or cannot be opened.
        StorageError: There is no room for the copy.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with ExitStack() as stack:
            opened = folder if os.access(folder, os.W_OK) else _copy_aside(folder, stack)
            self._collection = stack.enter_context(open_collection(opened))
            self._finalizer = weakref.finalize(self, _close_later, stack.pop_all())
            self._finalizer.atexit = False  # the end of the process closes it, too

    def close(self) -> None:
        """Close the files, which no thread may be searching."""
        if closing_thread := self._finalizer():
            closing_thread.join(CLOSE_SECONDS)

    def __len__(self) -> int:
        """Return the number of sentences."""
        with self._name_failures():
            return int(self._collection.count())

    def nearest(self, vector: NDArray[np.float32], count: int) -> list[tuple[int, int]]:
        """Return the chunks' numbers and the positions of sentences near a vector, the nearest first."""
        with self._name_failures():
            found = self._collection.query(query_embeddings=vector.reshape(1, -1), n_results=count, include=[])
            return [(int(number), int(position)) for number, position in (i.split("#") for i in found["ids"][0])]

    def read(self) -> Iterator[tuple[str, str, str]]:
        """Yield the id, the chunk's id and the text of every sentence."""
        for offset in range(0, len(self), _SENTENCES_PER_CALL):
            with self._name_failures():
                found = self._collection.get(limit=_SENTENCES_PER_CALL, offset=offset, include=["metadatas"])
            for sentence_id, metadata in zip(found["ids"], found["metadatas"] or (), strict=True):
                yield sentence_id, str(metadata.get("chunk_id")), str(metadata.get("sentence"))

    @contextmanager
    def _name_failures(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            if is_chroma_error(error):
                raise IndexFormatError(f"{self._folder} cannot be searched: {error}") from error
            raise


@contextmanager
def open_collection(folder: Path, *, create: bool = False) -> Iterator[Collection]:
    """Open the sentences' collection, and close it at the end.

    Args:
        folder: Chroma's folder.
        create: Whether to create the collection if it does not exist.

    Raises:
        IndexFormatError: The folder or its collection is missing or cannot be opened.
        StorageError: The disk is full.
        ChromaHangsError: Chroma cannot be closed.
    """
    # Importing Chroma takes most of a second: only semantic searches and writers do it.
    import chromadb
    from chromadb.errors import NotFoundError

    path = os.path.realpath(folder)  # Chroma identifies clients of the same files by the spelling of the path
    with ExitStack() as stack:
        try:
            with _clients():
                client = cast("Client", chromadb.PersistentClient(path=path, settings=_settings().model_copy()))
            stack.callback(_close, client)
            if create:
                collection = client.get_or_create_collection(
                    _COLLECTION, configuration={"hnsw": _HNSW}, embedding_function=None
                )
            else:
                collection = client.get_collection(_COLLECTION, embedding_function=None)
        except BaseException as error:
            if not is_chroma_error(error):
                raise
            _forget(path)
            reason = "it holds no sentence vectors" if isinstance(error, NotFoundError) else str(error)
            # Chroma writes when it opens, and has no error of its own for a full disk.
            kind = StorageError if "disk is full" in reason else IndexFormatError
            raise kind(f"{folder} cannot be opened: {reason}") from None
        yield collection


def copy_folder(previous: Path, working: Path) -> None:
    """Copy Chroma's folder, which another process may be opening."""
    # Reflinks, never hard links: Chroma overwrites each of its files in place.
    shutil.copytree(previous, working, ignore=shutil.ignore_patterns(f"{GRAPH_DATABASE}*"), copy_function=copy_file)
    # Who opens the folder writes to Chroma's database. What was deleted is not copied.
    with closing(sqlite3.connect(f"{(previous / GRAPH_DATABASE).absolute().as_uri()}?mode=ro", uri=True)) as source:
        source.execute("VACUUM INTO ?", [str(working / GRAPH_DATABASE)])


def shifts_of(ids: Sequence[str], dimension: int) -> Vectors:
    """Return what is added to vectors, which depends on their ids, shape (ids, dimension).

    A sentence that occurs thousands of times in a corpus ("All rights reserved.") has thousands of equal vectors. In a
    graph, these link only to each other and cut off what lies behind them: 3,000 of them among 300 other sentences
    made all of those unfindable. Shifted by a thousandth of their length, they behave like other points.
    """
    # Two random directions, each rotated by a part of the code: dimension squared shifts, none of them stored.
    first, second = np.random.default_rng(dimension).standard_normal((2, dimension), dtype=np.float32)
    codes = np.asarray([[zlib.crc32(i.encode())] for i in ids])
    places = np.arange(dimension)
    shifts = first[(places + codes) % dimension] + second[(places + codes // dimension) % dimension]
    return np.asarray(_SHIFT / math.sqrt(2 * dimension) * shifts, dtype=np.float32)


def is_chroma_error(error: BaseException) -> bool:
    """Return whether Chroma raised an error: one of its own, or a panic of its Rust part."""
    from chromadb.errors import ChromaError

    return isinstance(error, ChromaError | ValueError | AttributeError) or type(error).__name__ == "PanicException"


@contextmanager
def _clients() -> Iterator[None]:
    """Hold the lock of Chroma's clients, unless one that hangs has it for ever."""
    if not _CLIENTS.acquire(timeout=CLOSE_SECONDS):
        raise ChromaHangsError("Chroma does not return from closing another folder")
    try:
        yield
    finally:
        _CLIENTS.release()


def _close(client: Client) -> None:
    """Close a client, in a thread that may hang without keeping the process from its end."""

    def close() -> None:
        with _clients():
            client.close()

    thread = threading.Thread(target=close, name="close-chroma", daemon=True)
    thread.start()
    thread.join(CLOSE_SECONDS)
    if thread.is_alive():
        raise ChromaHangsError(f"Chroma did not close its folder within {CLOSE_SECONDS:.0f} seconds")


def _close_later(stack: ExitStack) -> threading.Thread:
    """Close a folder that was only read, in a thread: the garbage collector may call this at any time."""

    def close() -> None:
        with suppress(ChromaHangsError):
            stack.close()

    thread = threading.Thread(target=close, name="close-graph", daemon=True)
    thread.start()
    return thread


def _copy_aside(folder: Path, stack: ExitStack) -> Path:
    """Copy a folder to a temporary one, which is deleted when the stack is closed."""
    copy = Path(stack.enter_context(TemporaryDirectory(prefix="arag-", ignore_cleanup_errors=True)), folder.name)
    try:
        copy_folder(folder, copy)
    except (OSError, sqlite3.Error) as error:
        raise IndexFormatError(f"{folder} cannot be opened: {error}") from error
    return copy


@cache
def _settings() -> Settings:
    """Read Chroma's settings; that takes longer than opening a small collection."""
    from chromadb.config import Settings

    return Settings(anonymized_telemetry=False)


def _forget(path: str) -> None:
    """Drop a client that failed to open from Chroma's cache, which would hand it to the next who opens the path."""
    from chromadb.api.shared_system_client import SharedSystemClient as Shared

    with _clients():
        if not Shared._identifier_to_refcount.get(path):  # noqa: SLF001 - there is no other way
            Shared._identifier_to_system.pop(path, None)  # noqa: SLF001


def _count_lost(collection: Collection, sentences: Sequence[SentenceRecord]) -> int:
    """Count the sentences that have not the vector that they were added with."""
    ids = [sentence.id for sentence in sentences]
    found = collection.get(ids=ids, include=["embeddings"])
    stored = dict(zip(found["ids"], () if found["embeddings"] is None else found["embeddings"], strict=True))
    added = np.stack([sentence.vector for sentence in sentences])
    added = added + shifts_of(ids, added.shape[1])
    return sum(
        i not in stored or not np.allclose(stored[i], vector, atol=_SHIFT)  # kept as float16 in the index
        for i, vector in zip(ids, added, strict=True)
    )


def _batches(items: Iterable[_Item]) -> Iterator[list[_Item]]:
    """Yield items in lists for one call of Chroma each."""
    rest = iter(items)
    while batch := list(islice(rest, _SENTENCES_PER_CALL)):
        yield batch


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
