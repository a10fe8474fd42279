"""Finds texts that are on most pages, such as a menu: one page keeps each, so that it is read once.

Only the frame of a web page is compared. What stands in its text may be on most pages, too, and yet be an answer: the
same result of many decisions.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar
from zlib import crc32

from arag.ingest.formats.content import Content, FormatError
from arag.ingest.formats.frame import FRAME_START

_Page = TypeVar("_Page")

_MIN_PAGES = 5  # of a folder: fewer can share a paragraph by chance
_MAX_PAGES = 20  # of a folder, that are compared: each is read once more
_MOSTLY = 0.5  # share of a list's lines that are on most pages: then it is a menu
_MOST_PAGES = 0.6  # share of the compared pages; others may have another menu


def find_keepers(pages: Mapping[_Page, Iterable[str]], min_pages: float) -> dict[str, _Page]:
    """Find the texts that are on many pages.

    Args:
        pages: The texts of each page.
        min_pages: The number of pages from which on a text is kept once.

    Returns:
        Each of these texts, with the first page that has it, which keeps it.
    """
    pages_of_text: dict[str, list[_Page]] = defaultdict(list)
    for page, texts in pages.items():
        for text in set(texts):
            pages_of_text[text].append(page)
    keepers: dict[str, _Page] = {}
    for text, pages_with_text in pages_of_text.items():
        if len(pages_with_text) >= min_pages:
            keepers[text] = pages_with_text[0]
    return keepers


def find_web_keepers(files: Iterable[Path], read: Callable[[Path], Content]) -> dict[str, Path]:
    """Find the lines of the frame that are on most web pages of a folder.

    Args:
        files: The web pages of the folder.
        read: Reads one of them.

    Returns:
        Each of these lines, with the page that keeps it.
    """
    pages = [file for file in files if _is_own_page(file)]
    if len(pages) < _MIN_PAGES:
        return {}
    pages.sort(key=_hash_name)
    lines: dict[Path, list[str]] = {}
    for page in pages[:_MAX_PAGES]:
        try:
            text = read(page).text
        except (FormatError, OSError):
            continue  # it is reported when its turn comes
        lines[page] = [line for line in text.split("\n") if line.startswith(FRAME_START)]
    min_pages = _MOST_PAGES * max(_MIN_PAGES, len(lines))
    return find_keepers(lines, min_pages)


def without_repeats(text: str, page: Path, keepers: Mapping[str, Path]) -> str:
    """Return the text of a web page without the lines of its frame that another page keeps, and without marks."""
    blocks: list[str] = []
    for block in text.split("\n\n"):
        lines = block.split("\n")
        kept = [line for line in lines if keepers.get(line, page) == page]
        is_frame = all(line.startswith(FRAME_START) for line in lines)
        # The lines that differ name this page's neighbours.
        is_menu = is_frame and _MOSTLY * len(lines) <= len(lines) - len(kept)
        if kept and not is_menu:
            blocks.append("\n".join(kept))
    return ("\n\n".join(blocks) or text).replace(FRAME_START, "")


def _is_own_page(file: Path) -> bool:
    """Return whether an ingestion reads a file: neither a link nor hidden."""
    return file.is_file() and not file.is_symlink() and not file.name.startswith(".")


def _hash_name(page: Path) -> int:
    """Return a number by which pages are sorted, so that a sample has some of each kind and is the same each time."""
    return crc32(os.fsencode(page.name))
