"""Finds the headings of a PDF that its own outline names: the bookmarks that viewers show beside the pages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import pypdfium2

from arag.ingest.formats.headings import Line
from arag.ingest.formats.joining import join_texts

_MAX_BOOKMARKS = 20_000
_MAX_LEVEL = 6
_MAX_TITLE_LINES = 5
_MIN_MATCHES = 2
_PART = (
    "chapter|appendix|part|section|kapitel|anhang|teil|abschnitt|chapitre|annexe|partie|capítulo|apéndice|apêndice"
    "|capitolo|appendice|глава|приложение|часть|부록|付録|附录|附錄"
)
_NUMBERS = (
    rf"(?:{_PART})\s+[\dA-Z][\d.]*",
    r"[^\W\d]+\s+(?:\d+|[A-Z])[.:]",
    r"[第제]?\s*\d+\s*[章部장]",
    r"\d+(?:\.\d+)*",
    r"[A-Z](?:\.\d+)+",
    r"(?-i:[IVXL]+)",
)
SECTION_NUMBER = re.compile(rf"^\W*(?:{'|'.join(_NUMBERS)})[.:]?\s+", re.IGNORECASE)
_OTHER = re.compile(r"[\W_]+")


class _Title(NamedTuple):
    """A title in a form that can be compared.

    The number may be that of the section, which an outline may lack, or the title's own, as in `2 September 1666`.
    """

    whole: str
    bare: str  # without its number


class _Bookmark(NamedTuple):
    title: _Title
    level: int
    page: int


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
            if _mark(page, bookmark):
                matches += 1
                break
    if matches < _MIN_MATCHES or 2 * matches < len(bookmarks):
        return [list(page) for page in pages]
    return marked


def _read_bookmarks(document: pypdfium2.PdfDocument) -> list[_Bookmark]:
    """Return the bookmarks that point to a page."""
    bookmarks: list[_Bookmark] = []
    for entry in islice(document.get_toc(max_depth=_MAX_LEVEL), _MAX_BOOKMARKS):
        destination = entry.get_dest()
        if not destination:
            continue
        page = destination.get_index()
        title = _comparable(entry.get_title())
        if page in range(len(document)) and title.whole:
            bookmarks.append(_Bookmark(title, entry.level + 1, page))
    return bookmarks


def _mark(page: list[Line], bookmark: _Bookmark) -> bool:
    """Mark the lines of a page that are a bookmark's title as one heading; return whether it has any."""
    found = _find(page, bookmark.title)
    if not found:
        return False
    text = join_texts(line.text for line in page[found.start : found.stop])
    heading = page[found.start]._replace(text=text, level=bookmark.level)
    page[found.start : found.stop] = [heading]
    return True


def _find(page: Sequence[Line], title: _Title) -> range:
    """Return the places of the lines of a page that are a title, in the largest type; no places if none are."""
    found: list[range] = []
    for start, line in enumerate(page):
        if line.level or not _begins(title, line.text):
            continue
        for end in range(start + 1, min(start + _MAX_TITLE_LINES, len(page)) + 1):
            text = " ".join(other.text for other in page[start:end])
            if _is_same(title, _comparable(text)):
                found.append(range(start, end))
    return max(found, key=lambda lines: page[lines.start].size, default=range(0))


def _begins(title: _Title, text: str) -> bool:
    """Return whether a title begins with the text of a line."""
    line = _comparable(text)
    if not line.whole:
        return False
    return title.whole.startswith(line) or title.bare.startswith(line)


def _is_same(title: _Title, other: _Title) -> bool:
    return not set(title).isdisjoint(other)


def _comparable(text: str) -> _Title:
    return _Title(
        whole=_letters(text),
        bare=_letters(SECTION_NUMBER.sub("", text)),
    )


def _letters(text: str) -> str:
    return _OTHER.sub("", text).casefold()
