"""What is derived from an index's documents: its names, and the receipts for what native code opens.

The files are named after the publication. Chroma's folder may come from somebody else. A receipt says that this user
has written it: a file in the user's own state folder, with the name of the folder, which is random, and the inode of
its database, which no copy has.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from platformdirs import user_state_path

from arag.files import delete, make_folder, written_whole

TRUST_VARIABLE = "ARAG_TRUST_INDEX"
GRAPH_DRAFT = "chroma-draft"
GRAPH_DATABASE = "chroma.sqlite3"

_DERIVED = re.compile(r"(?:keywords|chroma)-(?:[0-9a-f]{32}|draft)(?:\..*)?")


def keyword_file(folder: Path, token: str) -> Path:
    """Return the path of a publication's keyword file."""
    return folder / f"keywords-{token}"


def graph_folder(folder: Path, token: str) -> Path:
    """Return the path of the Chroma folder of a publication."""
    return folder / f"chroma-{token}"


def delete_others(folder: Path, token: str) -> None:
    """Delete what is derived from other publications, and unfinished files of killed processes."""
    kept = {keyword_file(folder, token), graph_folder(folder, token)}
    for path in list(folder.iterdir()):
        if path not in kept and _DERIVED.fullmatch(path.name):
            with suppress(OSError):  # most have no receipt
                _receipt(path).unlink()
            delete(path)


def is_trusted(folder: Path) -> bool:
    """Return whether this user has written Chroma's folder, or trusts all indexes."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    return os.environ.get(TRUST_VARIABLE) == "1" or read_receipt(folder) is not None


def write_receipt(folder: Path, removed: int) -> None:
    """Record that this user has written Chroma's folder, and how many sentences were removed since it was built."""
    with suppress(OSError):  # without a place for it, the folder is not opened
        file = _receipt(folder)
        make_folder(file.parent)
        with written_whole(file) as out:
            out.write(str(removed).encode())


def read_receipt(folder: Path) -> int | None:
    """Return how many sentences were removed since the graph was built; None without a receipt."""
    try:
        return int(_receipt(folder).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _receipt(folder: Path) -> Path:
    return user_state_path("arag") / "graphs" / f"{folder.name}.{(folder / GRAPH_DATABASE).lstat().st_ino}"
