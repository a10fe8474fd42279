"""Files that appear only when complete, and survive a power failure."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_BUFFER_BYTES = 1 << 20  # many small pieces are written; larger buffers mean fewer system calls


@contextmanager
def written_whole(file: Path) -> Iterator[BinaryIO]:
    """Open a file for writing; readers see the old version until the new one is complete.

    An incomplete file is deleted, because it would keep filling a full disk.
    """
    temporary = file.with_name(f"{file.name}.{secrets.token_hex(4)}.new")
    try:
        # "x" neither follows a link nor waits for a pipe that somebody has put there.
        with temporary.open("xb", buffering=_BUFFER_BYTES) as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        publish_path(temporary, file)
    except BaseException:
        with suppress(OSError):  # the first error matters more
            temporary.unlink(missing_ok=True)
        raise


def publish_path(temporary: Path, final: Path) -> None:
    """Rename a file or folder that is synced already, and sync the new name."""
    temporary.replace(final)
    sync_path(final.parent)


def make_folder(folder: Path) -> None:
    """Create a folder and its parents so that they survive a power failure."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for created in missing:
        sync_path(created.parent)


def sync_tree(folder: Path) -> None:
    """Sync a folder and everything in it to disk."""
    for path in folder.rglob("*"):
        sync_path(path)
    sync_path(folder)


def sync_path(path: Path) -> None:
    """Sync a file, or the names in a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems cannot sync folders.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP) or not path.is_dir():
            raise
    finally:
        os.close(descriptor)


def delete(path: Path) -> None:
    """Delete a file, a link but not its target, or a folder; whatever cannot be deleted is left."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
