"""Sentences in Chroma: vector, text, and the chunk's id. The position is a part of the id.

Chroma overwrites its graph in pieces, and even the first search does so in a folder with enough changes. A process
that is killed while it writes, or two that have the same folder open, damage the graph, often unnoticed. So every
generation of an index has its own folder. It is written under another name, read back and compared, renamed when it
is complete, and never written to again. It is derived from the chunk store.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from arag.errors import IndexFormatError, StorageError
from arag.files import copy_file, delete, publish_path, sync_tree
from arag.retrieval.backend import SentenceMatch
from arag.retrieval.exact import make_matches
from arag.retrieval.local.chroma_check import COLLECTION, DATABASE, check_database
from arag.retrieval.shift import shifts_of, unshift

if TYPE_CHECKING:
    from chromadb.api.client import Client
    from chromadb.api.collection_configuration import CreateHNSWConfiguration
    from chromadb.api.models.Collection import Collection
    from chromadb.config import Settings

# Recall at 15 against exact search, among 40,436 real sentence vectors (302 real questions): max_neighbors 16 and
# ef_construction 100 give 0.991 with ef_search 100, 0.997 with 200 and 0.999 with 400; 32 and 100 give 0.995, 0.9985
# and 0.9998; 32 and 200 give 0.997, 0.9998 and 0.9998, and take 1.4 times as long to build; 48 and 400 give no more.
# Questions about something other than the corpus are harder: among 16,000 vectors, 0.97 with ef_search 200.
_HNSW: CreateHNSWConfiguration = {"space": "cosine", "ef_construction": 100, "ef_search": 400, "max_neighbors": 32}
_SYNC = 5_000  # changes after which Chroma writes its graph: each time most of it
_CLIENTS = threading.RLock()  # Chroma shares what it opens between clients, and counts them without a lock
_ROUNDING = 1e-5  # of similarities of one vector, stored with different shifts
_SAME = 1e-3  # of vectors, rounded to float16, shifted and shifted back
# A write of this many holds the interpreter's lock for half a second. A read turns ids into SQL variables, whose
# number is limited.
_SENTENCES_PER_CALL = 500
_READ_AT_ONCE = 10_000  # sentences

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class SentenceRecord:
    """A sentence to be stored.

    Attributes:
        id: The id of its vector.
        chunk_id: The id of its chunk.
        text: The sentence.
        vector: Its vector, of length one, shape (dimension,).
    """

    id: str
    chunk_id: str
    text: str
    vector: NDArray[np.float32]


class SentenceStore:
    """The sentence vectors of one generation of an index. The files are closed with the last reference to it.

    Chroma writes to the folder that it opens. If that is read-only, it opens a temporary copy.

    Args:
        folder: Chroma's folder.

    Raises:
        IndexFormatError: The folder or its collection is missing or cannot be opened.
    """

    is_exact = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with ExitStack() as stack:
            check_database(folder)
            opened = folder if os.access(folder, os.W_OK) else _copy_aside(folder, stack)
            self._collection = stack.enter_context(_open_collection(opened))
            self._finalizer = weakref.finalize(self, stack.pop_all().close)

    def close(self) -> None:
        """Release Chroma's files, which no thread may be searching."""
        self._finalizer()

    def count(self) -> int:
        """Return the number of vectors."""
        with self._name_failures():
            return int(self._collection.count())

    def fault(self, expected: Iterable[SentenceRecord], total: int) -> str:
        """Compare the stored vectors with the expected ones; return the difference, or an empty string.

        Args:
            expected: All sentences, or some of them.
            total: How many sentences there should be.
        """
        if self.count() != total:
            return f"it has {self.count():,} vectors instead of {total:,}"
        wrong = 0
        for sentences in _batches(expected):
            found = self._read_rows([s.id for s in sentences])
            wrong += sum(s.id not in found or not _is_as_written(found[s.id], s) for s in sentences)
        return f"{wrong:,} sentences have no vector, or the wrong vector or text" if wrong else ""

    def _read_rows(self, ids: Sequence[str]) -> dict[str, SentenceRecord]:
        """Return the sentences with these ids, as far as they exist."""
        with self._name_failures():
            found = self._collection.get(ids=list(ids), include=["embeddings", "documents", "metadatas"])
        if found["embeddings"] is None or not found["ids"]:
            return {}
        vectors = unshift(found["ids"], found["embeddings"])
        rows = zip(found["ids"], found["metadatas"] or (), found["documents"] or (), vectors, strict=True)
        return {
            # Format 4 has the text as Chroma's document.
            i: SentenceRecord(i, str(kept.get("chunk_id")), str(kept.get("sentence", document)), vector)
            for i, metadata, document, vector in rows
            for kept in [metadata or {}]
        }

    def nearest(self, vector: NDArray[np.float32], count: int) -> list[SentenceMatch]:
        """Return the sentences nearest to a vector; all sentences if the graph finds too few."""
        with self._name_failures():
            found = self._collection.query(
                query_embeddings=vector.reshape(1, -1), n_results=count, include=["embeddings"]
            )
        embeddings = found["embeddings"]
        if not embeddings or len(found["ids"][0]) < count:
            return self._compare(vector)
        return _make_matches(found["ids"][0], embeddings[0], vector)

    def nearest_inside(self, vector: NDArray[np.float32], count: int, chunks: NDArray[np.int64]) -> list[SentenceMatch]:
        """Return those of the sentences nearest to a vector that are in some chunks.

        Only their vectors are read: that takes most of a search's time.

        Args:
            vector: The vector.
            count: How many sentences to look at.
            chunks: The chunks' numbers.
        """
        with self._name_failures():
            (ids,) = self._collection.query(query_embeddings=vector.reshape(1, -1), n_results=count, include=[])["ids"]
            numbers = np.fromiter((int(i.partition("#")[0]) for i in ids), np.int64, len(ids))
            inside = [ids[place] for place in np.flatnonzero(np.isin(numbers, chunks))]
            if not inside:
                return []
            found = self._collection.get(ids=inside, include=["embeddings"])
        if found["embeddings"] is None or len(found["ids"]) < len(inside):
            raise IndexFormatError(f"{self._folder} cannot be searched: a sentence has no vector")
        return _make_matches(found["ids"], found["embeddings"], vector)

    def _compare(self, vector: NDArray[np.float32]) -> list[SentenceMatch]:
        """Compare a vector with every sentence, nearest first: exact, and much slower than the graph."""
        matches: list[SentenceMatch] = []
        for offset in range(0, self.count(), _READ_AT_ONCE):
            with self._name_failures():
                found = self._collection.get(limit=_READ_AT_ONCE, offset=offset, include=["embeddings"])
            if found["embeddings"] is not None:
                matches += _make_matches(found["ids"], found["embeddings"], vector)
        return sorted(matches, key=lambda match: -match.similarity)

    @contextmanager
    def _name_failures(self) -> Iterator[None]:
        """Name the folder in what Chroma raises: it is damaged, or a writer has just deleted it."""
        try:
            yield
        except BaseException as error:
            if _is_chroma_error(error):
                raise IndexFormatError(f"{self._folder} cannot be searched: {error}") from error
            raise


def _is_chroma_error(error: BaseException) -> bool:
    """Return whether Chroma raised an error: one of its own, or a panic of its Rust part."""
    from chromadb.errors import ChromaError

    return isinstance(error, ChromaError | ValueError | AttributeError) or type(error).__name__ == "PanicException"


def _make_matches(ids: Sequence[str], embeddings: Any, vector: NDArray[np.float32]) -> list[SentenceMatch]:
    if any(embedding is None for embedding in embeddings):
        raise IndexFormatError("a sentence has no vector")
    if not len(ids):
        return []
    vectors = unshift(ids, embeddings)
    places = np.asarray([[int(part) for part in i.split("#")] for i in ids], dtype=np.int64)
    return make_matches(np.arange(len(ids)), places, vectors, vectors @ vector, _are_same, rounding=_ROUNDING)


def _are_same(one: NDArray[np.float32], other: NDArray[np.float32]) -> bool:
    return np.allclose(one, other, atol=_SAME)


def _is_as_written(found: SentenceRecord, sentence: SentenceRecord) -> bool:
    is_same = (found.chunk_id, found.text) == (sentence.chunk_id, sentence.text)
    return is_same and np.allclose(found.vector, sentence.vector, atol=_SAME)


def _batches(items: Iterable[_Item]) -> Iterator[list[_Item]]:
    rest = iter(items)
    while batch := list(islice(rest, _SENTENCES_PER_CALL)):
        yield batch


def write_sentences(
    folder: Path,
    previous: Path | None,
    removed: Sequence[str],
    added: Callable[[], Iterable[SentenceRecord]],
    total: int,
    on_written: Callable[[int], None] | None = None,
) -> None:
    """Write the folder of a new generation.

    Args:
        folder: The new folder; it appears when it is complete.
        previous: The folder to start from, or None to start with an empty one.
        removed: Ids of vectors in that folder that the new one does not have.
        added: Returns, each time it is called, the sentences that only the new one has.
        total: How many sentences the new one has.
        on_written: Called with the number of sentences written, each time some are.

    Raises:
        StorageError: They cannot be written, or what was written cannot be read back.
    """
    working = folder.with_name(f"{folder.name}.new")
    delete(working)  # a killed run's folder may be damaged
    try:
        if previous is None:
            working.mkdir()
        else:
            check_database(previous, pages=True)
            _copy(previous, working)
        _write(working, removed, added, total, on_written)
        if previous is None:
            _vacuum(working)
        sync_tree(working)
    except BaseException as error:
        delete(working)
        if isinstance(error, IndexFormatError | OSError | sqlite3.Error) or _is_chroma_error(error):
            raise StorageError(f"the sentence vectors cannot be written to {working}: {error}") from error
        raise
    delete(folder)  # from a run that was killed before publishing it
    publish_path(working, folder)


def _copy_aside(folder: Path, stack: ExitStack) -> Path:
    """Copy a folder to a temporary one, which is deleted when the stack is closed."""
    copy = Path(stack.enter_context(TemporaryDirectory(prefix="arag-", ignore_cleanup_errors=True)), folder.name)
    try:
        _copy(folder, copy)
    except (OSError, sqlite3.Error) as error:
        raise IndexFormatError(f"{folder} cannot be opened: {error}") from error
    return copy


def _copy(previous: Path, working: Path) -> None:
    # Reflinks, never hard links: Chroma overwrites each of its files in place.
    shutil.copytree(previous, working, ignore=shutil.ignore_patterns(f"{DATABASE}*"), copy_function=copy_file)
    # A reader may be opening the folder, which writes to Chroma's database. What was deleted is not copied.
    with closing(sqlite3.connect(f"{(previous / DATABASE).absolute().as_uri()}?mode=ro", uri=True)) as source:
        source.execute("VACUUM INTO ?", [str(working / DATABASE)])


def _write(
    folder: Path,
    removed: Sequence[str],
    added: Callable[[], Iterable[SentenceRecord]],
    total: int,
    on_written: Callable[[int], None] | None,
) -> None:
    with _open_collection(folder, create=True) as collection:
        _write_graph_after(_SYNC, collection)
        for ids in _batches(removed):
            _retry_while_locked(collection.delete, ids=ids)
        for sentences in _batches(added()):
            ids = [s.id for s in sentences]
            vectors = np.stack([s.vector for s in sentences])
            _retry_while_locked(
                collection.add,
                ids=ids,
                embeddings=vectors + shifts_of(ids, vectors.shape[1]),
                # Not as documents: of these Chroma makes a full-text table, four times as large, whatever it is told.
                metadatas=[{"chunk_id": s.chunk_id, "sentence": s.text} for s in sentences],
            )
            if on_written is not None:
                on_written(len(sentences))
        # The next to open the folder then writes the graph, so readers find nothing left to write.
        _write_graph_after(2, collection)
    with _open_collection(folder) as collection:
        collection.count()
    with closing(SentenceStore(folder)) as store:
        fault = store.fault(added(), total)
    if fault:  # on a full disk, Chroma silently writes half of its graph
        raise IndexFormatError(f"{fault}; is the disk full?")


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


@contextmanager
def _open_collection(folder: Path, *, create: bool = False) -> Iterator[Collection]:
    # Importing Chroma takes most of a second: only semantic searches and writers do it.
    import chromadb
    from chromadb.errors import NotFoundError

    path = os.path.realpath(folder)  # Chroma identifies clients of the same files by the spelling of the path
    with ExitStack() as stack:
        try:
            with _CLIENTS:
                client = cast("Client", chromadb.PersistentClient(path=path, settings=_settings().model_copy()))
            stack.callback(_close, client)
            if create:
                collection = client.get_or_create_collection(
                    COLLECTION, configuration={"hnsw": _HNSW}, embedding_function=None
                )
            else:
                collection = client.get_collection(COLLECTION, embedding_function=None)
        except BaseException as error:
            if not _is_chroma_error(error):
                raise
            _forget(path)
            reason = "it holds no sentence vectors" if isinstance(error, NotFoundError) else str(error)
            # Chroma writes when it opens, and has no error of its own for a full disk.
            kind = StorageError if "disk is full" in reason else IndexFormatError
            raise kind(f"{folder} cannot be opened: {reason}") from None
        yield collection


@cache
def _settings() -> Settings:
    """Read Chroma's settings; that takes longer than opening a small collection."""
    from chromadb.config import Settings

    return Settings(anonymized_telemetry=False)


def _forget(path: str) -> None:
    """Drop a client that failed to open from Chroma's cache, which would hand it to the next who opens the path."""
    from chromadb.api.shared_system_client import SharedSystemClient as Shared

    with _CLIENTS:
        if not Shared._identifier_to_refcount.get(path):  # noqa: SLF001 - there is no other way
            Shared._identifier_to_system.pop(path, None)  # noqa: SLF001


def _close(client: Client) -> None:
    with _CLIENTS:
        client.close()
