"""The files that are derived from an index's documents: their names, and receipts for Chroma's folders.

The files are named after the snapshot. Chroma's folder may come from somebody else, or have been overwritten with
files of somebody else. A receipt says that this user has written its files: the receipt is a file in the user's own
state folder, with the name of Chroma's folder, which is random. It lists each file with its inode, its size, and the
times of its last changes. The kernel sets one of these times at each change, and programs cannot set it back. Opening
and searching a published folder changes no file.
"""

from __future__ import annotations

import os
import re
import stat
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_state_path
from pydantic import TypeAdapter, ValidationError

from arag.system.files import delete, make_folder, written_whole

TRUST_VARIABLE = "ARAG_TRUST_INDEX"
VECTOR_INDEX_DRAFT = "chroma-draft"

_DERIVED = re.compile(r"(?:keywords|words|chroma)-(?:[0-9a-f]{32}|draft)(?:\..*)?")
# A receipt of a missing folder is kept for so long after its last use: the folder's disk may only be away.
_KEPT_SECONDS = 90 * 24 * 3600


@dataclass(frozen=True, slots=True)
class _Receipt:
    folder: str  # the path of Chroma's folder when it was written
    removed: int  # sentences that were removed since the graph was built
    files: dict[str, list[int]]  # see `_identify_files`


_RECEIPT = TypeAdapter(_Receipt)


def keyword_file(folder: Path, token: str) -> Path:
    """Return the path of a snapshot's keyword file."""
    return folder / f"keywords-{token}"


def words_file(folder: Path, token: str) -> Path:
    """Return the path of a snapshot's word index, which an index of an earlier version lacks."""
    return folder / f"words-{token}"


def vector_index_folder(folder: Path, token: str) -> Path:
    """Return the path of the Chroma folder of a snapshot."""
    return folder / f"chroma-{token}"


def delete_others(folder: Path, token: str) -> None:
    """Delete the files that are derived from other snapshots, and unfinished files of killed processes."""
    kept = {keyword_file(folder, token), words_file(folder, token), vector_index_folder(folder, token)}
    for path in list(folder.iterdir()):
        if path in kept or not _DERIVED.fullmatch(path.name):
            continue
        # The folder may be a copy: then the receipt belongs to the original.
        if _has_receipt(path):
            delete(_receipt_file(path))
        delete(path)


def is_trusted(folder: Path) -> bool:
    """Return whether this user has written the files in Chroma's folder, or trusts all indexes."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    if os.environ.get(TRUST_VARIABLE) == "1":
        return True
    if not _has_receipt(folder):
        return False
    with suppress(OSError):
        os.utime(_receipt_file(folder))  # records that it was used
    return True


def write_receipt(folder: Path, removed: int) -> None:
    """Record that this user has written Chroma's folder, and how many sentences were removed since it was built."""
    receipt = _Receipt(str(folder), removed, _identify_files(folder))
    with suppress(OSError):  # if it cannot be written, the folder is not opened
        file = _receipt_file(folder)
        make_folder(file.parent)
        _delete_unused(file.parent)
        with written_whole(file) as out:
            out.write(_RECEIPT.dump_json(receipt))


def count_removed(folder: Path) -> int:
    """Return how many sentences were removed since the graph was built; 0 without a receipt."""
    receipt = _read_receipt(_receipt_file(folder))
    return receipt.removed if receipt is not None else 0


def _has_receipt(folder: Path) -> bool:
    """Return whether all files of a folder, and no others, are those of its receipt."""
    receipt = _read_receipt(_receipt_file(folder))
    if receipt is None:
        return False
    try:
        return receipt.files == _identify_files(folder)
    except OSError:  # it is not a folder, or is being deleted
        return False


def _identify_files(folder: Path) -> dict[str, list[int]]:
    """Return inode, size and times of each file in Chroma's folder, and in the folders in it.

    Nothing is opened, and no link is followed. Chroma has no deeper files: a folder there counts as one more file.
    """
    found = {}
    for path in folder.iterdir():
        is_folder = stat.S_ISDIR(path.lstat().st_mode)
        files = list(path.iterdir()) if is_folder else [path]
        for file in files:
            status = file.lstat()
            name = str(file.relative_to(folder))
            found[name] = [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]
    return found


def _delete_unused(receipts: Path) -> None:
    """Delete the receipts of folders that are gone.

    An index may have been moved, or its disk may be away, so a receipt is kept for a while after its last use.
    """
    for file in receipts.iterdir():
        with suppress(OSError):  # another process has deleted it
            is_unused = file.stat().st_mtime < time.time() - _KEPT_SECONDS
            if not is_unused:
                continue
            receipt = _read_receipt(file)
            if receipt is None or not os.path.lexists(receipt.folder):
                file.unlink()


def _read_receipt(file: Path) -> _Receipt | None:
    """Return a receipt, or None if there is none that this program wrote."""
    try:
        if not file.is_file():  # a pipe would block
            return None
        return _RECEIPT.validate_json(file.read_bytes())
    except (OSError, ValidationError):
        return None


def _receipt_file(folder: Path) -> Path:
    return user_state_path("arag") / "graphs" / folder.name
