"""One writer at a time: a lock that the operating system takes back when its holder dies."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from filelock import FileLock, Timeout

from arag.errors import IndexLockedError
from arag.files import written_whole
from arag.retrieval.local.folder import HOLDER_FILE, LOCK_FILE, name_storage_failures


@contextmanager
def write_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of an index.

    Args:
        folder: The index's folder.

    Raises:
        IndexLockedError: Another process holds it; the message says which, and since when.
    """
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
            with suppress(OSError):  # of a disk that takes no more: who holds the lock next replaces the file
                (folder / HOLDER_FILE).unlink(missing_ok=True)
        finally:
            lock.release()


def _name_holder(folder: Path) -> str:
    file = folder / HOLDER_FILE
    if not file.is_file():  # a pipe would be waited for
        return "another process"
    try:
        holder = json.loads(file.read_text(encoding="utf-8"))
        return f"process {holder['pid']} on {holder['host']} since {holder['since']}"
    except (OSError, ValueError, KeyError, TypeError):  # it has only just begun, or is about to end
        return "another process"
