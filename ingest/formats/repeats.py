"""What stands on most web pages of a folder, such as a menu: one of the pages keeps it for all."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from zlib import crc32

from arag.ingest.formats.content import Content, FormatError

_MIN_PAGES, _MAX_PAGES = 5, 20  # of a folder, that are compared
_MOST_PAGES = 0.6  # of them


def list_files(folder: Path) -> list[Path]:
    """Return the files in a folder that are read with it: not links, and not hidden."""
    with suppress(OSError):  # it cannot be listed
        files = [file for file in folder.iterdir() if not file.name.startswith(".") and not file.is_symlink()]
        return [file for file in files if file.is_file()]
    return []


def find_keepers(pages: Sequence[Path], read: Callable[[Path], Content]) -> dict[str, Path]:
    """Return the blocks that stand on most of a folder's pages, each with the page that keeps it."""
    if len(pages) < _MIN_PAGES:
        return {}
    sample = sorted(pages, key=lambda page: crc32(os.fsencode(page.name)))  # of each kind, and the same the next time
    texts: dict[Path, str] = {}
    for page in sample[:_MAX_PAGES]:
        with suppress(FormatError, OSError):
            texts[page] = read(page).text
    pages_of: dict[str, list[Path]] = {}
    for page, text in texts.items():
        for block in set(text.split("\n\n")):
            # What stands under a heading or after a colon may differ.
            if not block.startswith("#") and not block.endswith(":"):
                pages_of.setdefault(block, []).append(page)
    most = _MOST_PAGES * max(_MIN_PAGES, len(texts))
    return {block: some[0] for block, some in pages_of.items() if len(some) >= most}
