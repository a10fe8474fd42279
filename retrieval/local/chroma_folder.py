"""The folder in which Chroma keeps a generation's sentences: opening it, copying it, what its calls take and raise."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from arag.errors import IndexFormatError, StorageError
from arag.files import copy_file
from arag.retrieval.local.chroma_check import COLLECTION, DATABASE

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
# A write of this many holds the interpreter's lock for half a second. A read turns ids into SQL variables, whose
# number is limited.
_SENTENCES_PER_CALL = 500
_CLIENTS = threading.RLock()  # Chroma shares what it opens between clients, and counts them without a lock

_Item = TypeVar("_Item")


@contextmanager
def open_collection(folder: Path, *, create: bool = False) -> Iterator[Collection]:
    """Open the sentences' collection, and close it at the end.

    Args:
        folder: Chroma's folder.
        create: Whether to create the collection if it does not exist.

    Raises:
        IndexFormatError: The folder or its collection is missing or cannot be opened.
        StorageError: The disk is full.
    """
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
            if not is_chroma_error(error):
                raise
            _forget(path)
            reason = "it holds no sentence vectors" if isinstance(error, NotFoundError) else str(error)
            # Chroma writes when it opens, and has no error of its own for a full disk.
            kind = StorageError if "disk is full" in reason else IndexFormatError
            raise kind(f"{folder} cannot be opened: {reason}") from None
        yield collection


def copy_vectors(previous: Path, working: Path) -> None:
    """Copy Chroma's folder, which another process may be opening."""
    # Reflinks, never hard links: Chroma overwrites each of its files in place.
    shutil.copytree(previous, working, ignore=shutil.ignore_patterns(f"{DATABASE}*"), copy_function=copy_file)
    # Who opens the folder writes to Chroma's database. What was deleted is not copied.
    with closing(sqlite3.connect(f"{(previous / DATABASE).absolute().as_uri()}?mode=ro", uri=True)) as source:
        source.execute("VACUUM INTO ?", [str(working / DATABASE)])


def batches(items: Iterable[_Item]) -> Iterator[list[_Item]]:
    """Yield items in lists for one call of Chroma each."""
    rest = iter(items)
    while batch := list(islice(rest, _SENTENCES_PER_CALL)):
        yield batch


def is_chroma_error(error: BaseException) -> bool:
    """Return whether Chroma raised an error: one of its own, or a panic of its Rust part."""
    from chromadb.errors import ChromaError

    return isinstance(error, ChromaError | ValueError | AttributeError) or type(error).__name__ == "PanicException"


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
