"""The folder of an index: which files it may hold, who may write to it, and how failures are reported.

One process writes at a time. The operating system releases its lock when it dies.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from filelock import FileLock, Timeout

from arag.errors import ARAGError, DamagedFileError, IndexLockedError, InputError, StorageError
from arag.files import delete, make_folder, written_whole
from arag.retrieval.local.chunk_store import FILE_NAME as CHUNKS_FILE
from arag.retrieval.local.database import is_damage
from arag.retrieval.local.manifest import FILE_NAME, keyword_file, vectors_folder, vocabulary_file

LOCK_FILE = "write.lock"
HOLDER_FILE = "writer.json"

_GENERATION_FILE = re.compile(
    "|".join(rf"{kind(Path(), 0).stem}\.[0-9]+(?:\.new)?" for kind in (keyword_file, vocabulary_file, vectors_folder))
)


def prepare_folder(folder: Path) -> None:
    """Create the folder of a new index, or check an existing one; see `Backend.make`."""
    try:
        str(folder).encode()  # Chroma takes no other names
        _check_folder(folder)
        make_folder(folder)
    except InputError:
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"the folder {str(folder)!r} cannot be created or read: {reason}") from error


def delete_other_generations(folder: Path, generation: int) -> None:
    """Delete the files of generations that readers do not see, and the unfinished files of a killed run."""
    for name in (FILE_NAME, CHUNKS_FILE):
        delete(folder / f"{name}.new")
    seen = {kind(folder, generation) for kind in (keyword_file, vocabulary_file, vectors_folder)}
    for path in list(folder.iterdir()):
        if path not in seen and _GENERATION_FILE.fullmatch(path.name):
            delete(path)


@contextmanager
def name_storage_failures(folder: Path) -> Iterator[None]:
    """Name the index in errors that occur while a writer writes or reads its files.

    Raises:
        DamagedFileError: The chunk store is damaged.
        StorageError: The files cannot be written.
    """
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        if isinstance(error, ARAGError | Timeout):  # OSErrors too: a missing index, and the lock
            raise
        if isinstance(error, sqlite3.Error) and is_damage(error):
            raise DamagedFileError(folder / CHUNKS_FILE, str(error)) from error
        free = _count_free_bytes(folder) / 1e6
        raise StorageError(
            f"the index in {folder} cannot be written to ({error}); its disk has {free:,.0f} MB left. "
            "What was written is kept, and the next run continues from there."
        ) from error


@contextmanager
def write_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of an index; see `Backend.lock`."""
    lock = FileLock(folder / LOCK_FILE, timeout=0)
    try:
        with name_storage_failures(folder):
            lock.acquire()
    except Timeout:
        raise IndexLockedError(
            f"the index in {folder} is being written to by {_name_holder(folder)}; try again when it is done"
        ) from None
    try:
        holder = {
            "pid": os.getpid(),
            "host": platform.node(),
            "since": datetime.now().astimezone().isoformat(timespec="seconds"),
        }
        with name_storage_failures(folder), written_whole(folder / HOLDER_FILE) as out:
            out.write(json.dumps(holder).encode())
        yield
    finally:
        try:
            with suppress(OSError):  # the disk is full: the next holder of the lock replaces the file
                (folder / HOLDER_FILE).unlink(missing_ok=True)
        finally:
            lock.release()


def _check_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file: give a folder for the index")
    if not folder.is_dir() or (folder / FILE_NAME).exists():
        return
    database = {f"{CHUNKS_FILE}{ending}" for ending in ("", "-wal", "-shm", ".new", ".new-journal")}
    known = {*database, f"{FILE_NAME}.new", LOCK_FILE, HOLDER_FILE, f"{HOLDER_FILE}.new"}
    names = {file.name for file in folder.iterdir()}
    # The first run makes its database first: without one, a file called words.1 belongs to another program.
    others = {name for name in names - known if CHUNKS_FILE not in names or not _GENERATION_FILE.fullmatch(name)}
    if others:
        raise InputError(
            f"{folder} is not empty and holds no index ({min(others)!r} is there): give an empty or new folder"
        )


def _name_holder(folder: Path) -> str:
    file = folder / HOLDER_FILE
    if not file.is_file():  # reading a pipe would block
        return "another process"
    try:
        holder = json.loads(file.read_text(encoding="utf-8"))
        return f"process {holder['pid']} on {holder['host']} since {holder['since']}"
    except (OSError, ValueError, KeyError, TypeError):  # the writer has just started, or is about to finish
        return "another process"


def _count_free_bytes(folder: Path) -> int:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return 0
