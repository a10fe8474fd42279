"""Finds texts that are on most pages, such as a menu: one page keeps each, so that it is read once.

Only the frame of a web page is compared, and the end of its text. What else stands there may be on most pages, too, and
yet be an answer: the same result of many decisions.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from itertools import filterfalse
from pathlib import Path
from typing import TypeAlias, TypeVar

from arag.ingest.formats.content import Content
from arag.ingest.formats.frame import FRAME_START, NOTE_ON_PAGE
from arag.text.contents import is_heading_of_contents

_TIME = re.compile(r"\b\d\d:\d\d:\d\d\b")  # at which a page was made, as Doxygen and others write below each
_VARYING = re.compile(  # in a note on the page: its date, version or number, and signs such as in 2019-2022
    r"(?<!\d)\d\d?\W{1,3}(?:d[ei] )?[^\W\d_]+\W{1,3}(?:d[ei] )?\d{4}"
    r"|\b(?:mon|tue(?:s)?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b"
    r"|\b(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?"
    r"|aug(?:ust)?|sep(?:t|tember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b"
    rf"|(?!{FRAME_START})[\W\d_]",
    re.IGNORECASE,
)

_MAY_BE_HEADING = re.compile(rf"{FRAME_START}(?:#+ )?([^\W\d_][^|.:;,\d]{{0,100}})|{FRAME_START}#+ (.+)")

_Page = TypeVar("_Page")

MIN_PAGES = 3  # of a folder, that share a line: fewer can do so by chance
_MOSTLY = 0.5  # share of a list's lines that are on most pages: then it is a menu
_MOST_PAGES = 0.6  # share of the compared pages; others may have another menu
_MOST_ENDS = 0.8  # share of the compared pages with the same end
_MIN_WORDS = 20  # of an end: a shorter one may be an answer
_MAX_BLOCKS = 30  # of an end

Blocks: TypeAlias = "tuple[str, ...]"


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


def find_web_keepers(texts: Mapping[Path, str]) -> dict[str, Path]:
    """Find the lines of the frame that are on most web pages of a folder.

    Args:
        texts: The text of each page that is compared.

    Returns:
        Each of these lines, without what differs in notes on the page itself, with the page that keeps it.
    """
    marked = {page: _frame_lines(text) for page, text in texts.items()}
    frame = find_keepers(marked, MIN_PAGES)
    lines = {page: _frame_lines(_mark_top(text, frame)) for page, text in texts.items()}
    min_pages = max(MIN_PAGES, _MOST_PAGES * len(lines))
    return find_keepers(lines, min_pages)


def find_shared_end(contents: Collection[Content]) -> Blocks:
    """Return the last blocks of most pages of a folder, beside their frames, such as where to ask for help."""
    pages: Counter[Blocks] = Counter()
    for content in contents:
        blocks = tuple(filter(_is_own, content.text.split("\n\n")))
        most = min(len(blocks) - 1, _MAX_BLOCKS)  # the page has other text, too
        pages.update(blocks[-number:] for number in range(1, most + 1))
    min_pages = max(MIN_PAGES, _MOST_ENDS * len(contents))
    shared = [end for end, number in pages.items() if number >= min_pages and _has_many_words(end)]
    return max(shared, key=lambda end: (pages[end], len(end)), default=())  # above it may be the same answer


def _has_many_words(end: Blocks) -> bool:
    return len(" ".join(end).split()) >= _MIN_WORDS


def _is_own(block: str) -> bool:
    return not block.startswith(FRAME_START)


def without_end(text: str, end: Blocks) -> str:
    """Return the text of a page without an end that it shares with others."""
    blocks = text.split("\n\n")
    own = [place for place, block in enumerate(blocks) if _is_own(block)]
    places = own[1:][-len(end) :]  # the page has other text, too
    if tuple(map(blocks.__getitem__, places)) != end:
        return text
    start = min(places, default=len(blocks))
    blocks[start:] = filterfalse(_is_own, blocks[start:])
    return "\n\n".join(blocks)


def _frame_lines(text: str) -> list[str]:
    return list(map(_without_varying, filter(_is_of_frame, text.split("\n"))))


def _without_varying(line: str) -> str:
    """Return a line without a time of the day; a note on the page itself also without its date, version or number."""
    varying = _VARYING if NOTE_ON_PAGE.search(line) else _TIME
    return varying.sub("", line)


def _mark_top(text: str, frame: Collection[str]) -> str:
    """Return the text of a page with marks before the lines at its top that are in the frames of others.

    A page without headings has none there: nothing tells whether a line stands above its title.
    """
    lines = text.split("\n")
    for place, line in enumerate(lines):
        if not line or _is_of_frame(line):
            continue
        marked = f"{FRAME_START}{line}"
        if _without_varying(marked) not in frame:
            break
        lines[place] = marked
    return "\n".join(lines)


def _is_of_frame(line: str) -> bool:
    return line.startswith(FRAME_START)


def without_repeats(text: str, page: Path, keepers: Mapping[str, Path]) -> str:
    """Return the text of a web page without the lines of its frame that another page keeps, and without marks.

    What is kept for all pages, such as the site's name, is an item of a list, and not a heading of this page's text.
    """
    blocks: list[str] = []
    for block in _mark_top(text, keepers).split("\n\n"):
        lines = block.split("\n")
        kept: list[str] = []
        for line in lines:
            keeper = keepers.get(_without_varying(line))
            if keeper is None:
                kept.append(line)
            elif keeper == page:
                kept.append(_without_heading(line))
        if kept and not _is_menu(lines, len(kept)):
            blocks.append("\n".join(kept))
    shown = "\n\n".join(blocks) or text
    return shown.replace(FRAME_START, "")


def _without_heading(line: str) -> str:
    """Return a line that may be a heading as an item of a list. Contents keep their name."""
    match = _MAY_BE_HEADING.fullmatch(line)
    if match is None:
        return line
    name = match[1] or match[2]
    return name if is_heading_of_contents(name) else f"- {name}"


def _is_menu(lines: list[str], kept: int) -> bool:
    """Return whether a list is left out as a whole: the lines that differ name this page's neighbours."""
    left_out = len(lines) - kept
    is_repeated = left_out >= _MOSTLY * len(lines)
    return is_repeated and all(map(_is_of_frame, lines))
