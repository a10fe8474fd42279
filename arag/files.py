"""Files that appear when they are complete, and stay when the power fails."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def written_whole(file: Path) -> Iterator[BinaryIO]:
    """Open a file for writing whose readers see the old one, or the new one when it is complete.

    When this returns, a power failure does not bring the old one back. What cannot be completed is deleted: it would
    go on filling a full disk.

    Args:
        file: The file.
    """
    temporary = file.with_name(f"{file.name}.new")
    temporary.unlink(missing_ok=True)
    try:
        # "x" follows no link and waits for no pipe that somebody has put there.
        with temporary.open("xb", buffering=1 << 20) as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        publish_path(temporary, file)
    except BaseException:
        with suppress(OSError):  # what went wrong first is worth more
            temporary.unlink(missing_ok=True)
        raise


def digest(file: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def publish_path(temporary: Path, final: Path) -> None:
    """Rename a file, or a folder, whose content is synced, and make the new name last."""
    temporary.replace(final)
    sync_path(final.parent)


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it, that a power failure leaves where they are."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for made in missing:
        sync_path(made.parent)


def sync_tree(folder: Path) -> None:
    """Write a folder and all that is in it to the disk."""
    for path in folder.rglob("*"):
        sync_path(path)
    sync_path(folder)


def sync_path(path: Path) -> None:
    """Write a file, or the names in a folder, to the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    except OSError as error:
        # Some network file systems sync no folders.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP) or not path.is_dir():
            raise
    finally:
        os.close(opened)


def delete(path: Path) -> None:
    """Delete a file, a link or a folder, as far as possible; a link's target stays."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
