"""Finds the headings of a PDF that its own outline names: the bookmarks that viewers show beside the pages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import pypdfium2

from arag.ingest.formats.headings import Line

_MAX_BOOKMARKS = 20_000
_MAX_LEVEL = 6
_MAX_TITLE_LINES = 5
_MIN_MATCHES = 2
_NUMBER = re.compile(
    r"^\W*(?:(?:chapter|appendix|part|section|kapitel|anhang|teil|abschnitt|annexe|chapitre)\s+[\dA-Z][\d.]*"
    r"|\d+(?:\.\d+)*|[A-Z](?:\.\d+)+)[.:]?\s+",
    re.IGNORECASE,
)
_OTHER = re.compile(r"[\W_]+")


class _Bookmark(NamedTuple):
    title: str
    level: int
    page: int


class _Match(NamedTuple):
    start: int  # of the lines of a title
    end: int
    size: float


def mark_outline(document: pypdfium2.PdfDocument, pages: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """Return the pages with the levels of the headings that the document's outline names.

    An outline is left aside if less than half of its entries are lines of the pages to which they point.
    """
    bookmarks = _read_bookmarks(document)
    marked = [list(page) for page in pages]
    matches = 0
    for bookmark in bookmarks:
        # Some programs let an entry point to the place just before its title.
        for page in marked[bookmark.page : bookmark.page + 2]:
            match = _find(page, bookmark)
            if match is not None:
                break
        else:
            continue
        title = "\n".join(line.text for line in page[match.start : match.end])
        page[match.start : match.end] = [page[match.start]._replace(text=title, level=bookmark.level)]
        matches += 1
    if matches < _MIN_MATCHES or 2 * matches < len(bookmarks):
        return [list(page) for page in pages]
    return marked


def _read_bookmarks(document: pypdfium2.PdfDocument) -> list[_Bookmark]:
    """Return the bookmarks that point to a page."""
    bookmarks: list[_Bookmark] = []
    for entry in islice(document.get_toc(max_depth=_MAX_LEVEL), _MAX_BOOKMARKS):
        destination = entry.get_dest()
        page = destination.get_index() if destination else None
        title = entry.get_title()
        if page is not None and 0 <= page < len(document) and _comparable(title):
            bookmarks.append(_Bookmark(title, entry.level + 1, page))
    return bookmarks


def _find(page: Sequence[Line], bookmark: _Bookmark) -> _Match | None:
    """Return the lines of a page that are a bookmark's title, in the largest type."""
    title = _comparable(bookmark.title)
    bare_title = _comparable(_NUMBER.sub("", bookmark.title))
    best: _Match | None = None
    for start, line in enumerate(page):
        first = _comparable(line.text)
        if line.level or not first or not (title.startswith(first) or bare_title.startswith(_bare(line.text))):
            continue
        for end in range(start + 1, min(start + _MAX_TITLE_LINES, len(page)) + 1):
            text = " ".join(other.text for other in page[start:end])
            is_title = _comparable(text) == title or _bare(text) == bare_title
            if is_title and (best is None or line.size > best.size):
                best = _Match(start, end, line.size)
    return best


def _bare(text: str) -> str:
    """Return a title without its number, to compare it."""
    return _comparable(_NUMBER.sub("", text))


def _comparable(text: str) -> str:
    return _OTHER.sub("", text).casefold()
