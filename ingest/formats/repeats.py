"""What stands on most pages, such as a menu: one of the pages keeps it for all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar
from zlib import crc32

from arag.ingest.formats.content import Content, FormatError

_Page = TypeVar("_Page")

_MIN_PAGES, _MAX_PAGES = 5, 20  # of a folder, that are compared
_MOST_PAGES = 0.6  # of them


def find_keepers(pages: Mapping[_Page, Iterable[str]], most: float) -> dict[str, _Page]:
    """Return the texts that stand on so many pages or more, each with the first one, which keeps it."""
    pages_of: dict[str, list[_Page]] = {}
    for page, texts in pages.items():
        for text in set(texts):
            pages_of.setdefault(text, []).append(page)
    return {text: some[0] for text, some in pages_of.items() if len(some) >= most}


def find_web_keepers(files: Iterable[Path], read: Callable[[Path], Content]) -> dict[str, Path]:
    """Return the blocks that stand on most web pages of a folder, each with the page that keeps it."""
    pages = [file for file in files if file.is_file() and not file.is_symlink() and not file.name.startswith(".")]
    if len(pages) < _MIN_PAGES:
        return {}
    pages.sort(key=lambda page: crc32(os.fsencode(page.name)))  # a sample of each kind, and the same the next time
    blocks: dict[Path, list[str]] = {}
    for page in pages[:_MAX_PAGES]:
        with suppress(FormatError, OSError):
            # What stands under a heading or after a colon may differ.
            blocks[page] = [
                block
                for block in read(page).text.split("\n\n")
                if not block.startswith("#") and not block.endswith(":")
            ]
    return find_keepers(blocks, _MOST_PAGES * max(_MIN_PAGES, len(blocks)))
