"""Finds the headings of a PDF that its own outline names: the bookmarks that viewers show beside the pages."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import reduce
from itertools import chain, islice
from operator import attrgetter
from typing import NamedTuple, TypeAlias

import pypdfium2
from pypdfium2 import raw

from arag.ingest.formats.joining import HYPHEN, join_texts
from arag.ingest.formats.title_texts import LABEL_OF_PART, NUMBER_IN_CAPITALS, PART
from arag.ingest.formats.typography import Line
from arag.text.contents import is_heading_of_contents
from arag.text.normalise import collapse_whitespace, plain

_Type: TypeAlias = tuple[float, str]

_MAX_BOOKMARKS = 20_000
_MAX_LEVEL = 6
_MAX_TITLE_LINES = 5
_MIN_MATCHES = 2
_NUMBERS = (
    rf"(?:{PART})\s+[\dA-Z][\d.]*",
    NUMBER_IN_CAPITALS,
    r"[^\W\d]+\s+(?:\d+|[A-Z])[.:]",
    r"[第제]?\s*\d+\s*[章部장]",
    r"\d+(?:\.\d+)*",
    r"[A-Z](?:\.\d+)+",
    r"(?-i:[IVXL]+)",
)
SECTION_NUMBER = re.compile(rf"^\W*(?:{'|'.join(_NUMBERS)})[.:]?\s+", re.IGNORECASE)
_MARK = re.compile(
    r"^\W*[^\W\dIVXL][.:)]?\s+"
)  # the letter of an appendix, or an ornament that its font has as a letter
_NOTE_SIGN = re.compile(r"(?<=\w)\s*\[\d+\]$")
_PART_NAME = re.compile(rf"^\W*(?:{PART})\s+", re.IGNORECASE)
_OTHER = re.compile(r"[\W_]+")
_POINTED_AT = 3.0  # times the size of the type: how far the place to which an entry points is from its title
_LIKE = 0.75  # of the letters of a title that the outline has in other words, such as the code of a program's name
_TIGHT = 1.4  # times the size of the type: the pitch of the lines of one title, at most
_NEAR = 40.0  # points: how far the text is below the place to which an entry points
_BARS = re.compile(r" \|(?= |$)")
_LAST_WORD = re.compile(rf"\w+(?=[{HYPHEN}-]$)")  # before a hyphen
_FIRST_WORD = re.compile(r"\w+")
# Where a destination says how high on its page it is; others are a whole page.
_PLACES_OF_TOP = {
    raw.PDFDEST_VIEW_XYZ: 1,
    raw.PDFDEST_VIEW_FITH: 0,
    raw.PDFDEST_VIEW_FITBH: 0,
    raw.PDFDEST_VIEW_FITR: 3,
}


class _Bookmark(NamedTuple):
    title: str
    level: int
    page: int
    left: float  # of the place to which it points
    top: float

    @property
    def line(self) -> Line:
        """Its title as a line of the page, without type."""
        return Line(self.title, left=self.left, bottom=self.top, top=self.top, level=self.level)


@dataclass(frozen=True)
class Outline:
    """The headings that a document's outline names.

    Attributes:
        pages: The lines of each page, with the levels of those that are headings.
        unfound: By page, the entries whose titles it lacks.
        titles: The entries whose titles were found.
    """

    pages: list[list[Line]]
    unfound: dict[int, list[Line]]
    titles: list[str]

    def complete(self, pages: Iterable[list[Line]]) -> list[list[Line]]:
        """Return pages with the entries whose titles they lack: each ends the section above the place it points to.

        Args:
            pages: The lines of each page; some may have been left out or joined.
        """
        completed: list[list[Line]] = []
        for number, lines in enumerate(pages):
            entries = self.unfound.get(number, [])
            completed.append(_insert(entries, lines))
        return completed


def read_outline(document: pypdfium2.PdfDocument, pages: Sequence[Sequence[Line]]) -> Outline:
    """Find the headings that the document's outline names.

    An outline is left aside if less than half of its entries are lines of the pages to which they point, or if it
    begins in the last half of the document, as one of pages that were appended.
    """
    bookmarks = _read_bookmarks(document)
    text_type = _find_text_type(pages)
    marked = [list(page) for page in pages]
    titles: list[str] = []
    others: list[_Bookmark] = []
    for bookmark in bookmarks:
        # Some programs let an entry point to the place just before its title.
        near = marked[bookmark.page : bookmark.page + 2]
        if any(_mark(page, _find(page, bookmark, text_type), bookmark, text_type) for page in near):
            titles.append(bookmark.title)
        else:
            others.append(bookmark)
    matches = len(titles)
    first_page = min(map(attrgetter("page"), bookmarks), default=0)
    if matches < _MIN_MATCHES or 2 * matches < len(bookmarks) or 2 * first_page > len(pages):
        return Outline([list(page) for page in pages], unfound={}, titles=[])
    unfound: dict[int, list[Line]] = defaultdict(list)
    for bookmark in others:
        page = marked[bookmark.page]
        if not _mark(page, _find_like(page, bookmark, text_type), bookmark, text_type):
            unfound[bookmark.page].append(bookmark.line)
    completed = [_join_further_lines(page, text_type) for page in marked]
    return Outline(completed, unfound, titles)


def _read_bookmarks(document: pypdfium2.PdfDocument) -> list[_Bookmark]:
    """Return the bookmarks that point to a page of this document.

    Chapters below an entry for the contents are on its level.
    """
    bookmarks: list[_Bookmark] = []
    places: set[tuple[str, int, float]] = set()
    contents_level = _MAX_LEVEL
    for entry in islice(document.get_toc(max_depth=_MAX_LEVEL), _MAX_BOOKMARKS):
        destination = entry.get_dest()
        if not destination or _leads_elsewhere(entry):
            continue
        page = destination.get_index()
        title = collapse_whitespace(entry.get_title())
        if entry.level <= contents_level:
            contents_level = entry.level if is_heading_of_contents(title) else _MAX_LEVEL
        is_below_contents = entry.level > contents_level
        level = entry.level if is_below_contents else entry.level + 1
        if page in range(len(document)) and _forms(title):
            left, top = _find_place(destination)
            place = (title, page, top)
            is_repeated = top < math.inf and place in places  # some programs write an entry twice, below itself
            if not is_repeated:
                bookmarks.append(_Bookmark(title, level, page, left, top))
            places.add(place)
    return bookmarks


def _leads_elsewhere(bookmark: pypdfium2.PdfBookmark) -> bool:
    """Return whether a bookmark opens another file: the number of the page is one of that file."""
    action = raw.FPDFBookmark_GetAction(bookmark.raw)
    return bool(action) and raw.FPDFAction_GetType(action) == raw.PDFACTION_REMOTEGOTO


def _find_place(destination: pypdfium2.PdfDest) -> tuple[float, float]:
    """Return the left and the top of the place of its page to which an entry points; of the page, if it names none."""
    view, numbers = destination.get_view()
    place = _PLACES_OF_TOP.get(view, len(numbers))
    if place >= len(numbers):
        return 0.0, math.inf
    left = numbers[0] if place else 0.0
    top = numbers[place] or math.inf
    return left, top


def _find_text_type(pages: Iterable[Iterable[Line]]) -> _Type:
    """Return the type of most text."""
    characters = Counter[_Type]()
    for line in chain.from_iterable(pages):
        if line.font:  # others have several
            characters[line.size, line.font] += len(line.text)
    return max(characters, key=characters.__getitem__, default=(0.0, ""))


def _mark(page: list[Line], found: range, bookmark: _Bookmark, text_type: _Type) -> bool:
    """Mark the lines of a page that were found to be a bookmark's title as one heading; return whether it has any."""
    if not found:
        return False
    texts = [line.text for line in page[found.start : found.stop]]
    text = _join_title(texts, bookmark.title)
    if "|" not in bookmark.title:
        text = _BARS.sub("", text)  # it was read as a row of a table
    heading = page[found.start]
    text = _without_ornament(text, heading, bookmark.title)
    start = _find_label(page, found.start, text_type)
    label = [line.text for line in page[start : found.start]]
    text = " ".join([*label, text])
    bottom = page[found.stop - 1].bottom
    page[start : found.stop] = [heading._replace(text=text, level=bookmark.level, bottom=bottom)]
    return True


def _join_further_lines(page: Sequence[Line], text_type: _Type) -> list[Line]:
    """Return the lines of a page, with the further lines of titles that are shorter in the outline joined to them."""
    joined = list(page[:1])
    for line in page[1:]:
        title = joined[-1]
        goes_on = all(
            [
                title.level > 0,
                line.level == 0,
                (line.size, line.font) == (title.size, title.font),
                0 < title.bottom - line.bottom < _TIGHT * line.size,
                not _may_be_text(line, text_type),
            ]
        )
        if goes_on:
            text = join_texts([title.text, line.text])
            joined[-1] = title._replace(text=text, bottom=line.bottom)
        else:
            joined.append(line)
    return joined


def _without_ornament(text: str, line: Line, title: str) -> str:
    """Return the text of a title without an ornament before it, whose font has it as a letter."""
    without_mark = _MARK.sub("", text)
    is_of_other_font = line.first_font != line.font
    if is_of_other_font and _letters(without_mark) == _letters(title):
        return without_mark
    return text


def _find_label(page: Sequence[Line], title: int, text_type: _Type) -> int:
    """Return where the lines above a title begin that are the number of a part; the title's place if there are none."""
    size, _ = text_type
    if title == 0 or page[title - 1].size <= size:
        return title
    for start in range(max(0, title - 2), title):
        text = " ".join(line.text for line in page[start:title])
        if LABEL_OF_PART.fullmatch(text):
            return start
    return title


def _find(page: Sequence[Line], bookmark: _Bookmark, text_type: _Type) -> range:
    """Return the places of the lines of a page that are a bookmark's title; no places if none are.

    Of several, one at the place to which it points is chosen, then those in the largest type, and then the nearest.
    A line in the type of the text that begins small, unlike the title, is the end of a sentence.
    """
    title = _forms(bookmark.title)
    name = SECTION_NUMBER.sub("", bookmark.title)
    begins_large = name[:1].isupper()
    found: list[range] = []
    for start, line in enumerate(page):
        begins_small = begins_large and line.text[:1].islower()
        is_rest = begins_small and _may_be_text(line, text_type)
        if line.level or is_rest or not _begins(title, line.text):
            continue
        for end in range(start + 1, min(start + _MAX_TITLE_LINES, len(page)) + 1):
            text = " ".join(other.text for other in page[start:end])
            if not title.isdisjoint(_forms(text)):
                found.append(range(start, end))

    def rank(lines: range) -> tuple[bool, float, float]:
        line = page[lines.start]
        distance = abs(line.top - bookmark.top)
        is_pointed_at = distance < _POINTED_AT * line.size
        return is_pointed_at, line.size, -distance

    return max(found, key=rank, default=range(0))


def _find_like(page: Sequence[Line], bookmark: _Bookmark, text_type: _Type) -> range:
    """Return the place of the title to which a bookmark points, if its first line has nearly the same letters.

    The outline may have a short title: the one on the page begins with it, after its number.
    """
    title = _letters(bookmark.title)
    name = _letters(SECTION_NUMBER.sub("", bookmark.title))
    longer = re.compile(rf"[a-z]?\d+{name}")

    def likeness(place: int) -> float:
        text = _letters(page[place].text)
        if longer.match(text):
            return 1.0
        return SequenceMatcher(None, title, text, autojunk=False).ratio()

    pointed_at: list[int] = []
    for place, line in enumerate(page):
        may_be_title = all(
            [
                abs(line.top - bookmark.top) < _POINTED_AT * line.size,
                line.level == 0,
                not _may_be_text(line, text_type),
            ]
        )
        if may_be_title:
            pointed_at.append(place)
    best = max(pointed_at, key=likeness, default=-1)
    if best < 0 or likeness(best) < _LIKE:
        return range(0)
    return range(best, best + 1)


def _may_be_text(line: Line, text_type: _Type) -> bool:
    size, font = text_type
    return line.size < size or (line.size == size and line.font in {font, ""})


def _begins(title: Iterable[str], text: str) -> bool:
    """Return whether a title begins with the text of a line."""
    starts = tuple(_forms(text))
    return any(form.startswith(starts) for form in title)


def _forms(text: str) -> set[str]:
    """Return a title in forms that can be compared, without accents, marks and spaces.

    The number may be that of the section, which an outline may lack, or the title's own, as in `2 September 1666`. The
    outline may also have the number alone, where the page has `Appendix A`.
    """
    text = _NOTE_SIGN.sub("", text)
    without_part_name = _PART_NAME.sub("", text)
    without_number = SECTION_NUMBER.sub("", text)
    without_mark = _MARK.sub("", without_number)
    return {*map(_letters, (text, without_part_name, without_number, without_mark))} - {""}


def _letters(text: str) -> str:
    return _OTHER.sub("", plain(text)).casefold()


def _join_title(texts: Iterable[str], title: str) -> str:
    """Return the lines of a title as one text. The outline's title says which hyphens at their ends are its own."""
    words = plain(title)

    def join(text: str, following: str) -> str:
        end = _LAST_WORD.search(text)
        start = _FIRST_WORD.match(following)
        if end and start and plain(f"{end[0]}-{start[0]}") in words:
            return f"{text[:-1]}-{following}"
        if end and start and plain(end[0] + start[0]) in words:
            return text[:-1] + following
        return join_texts([text, following])

    return reduce(join, texts)


def _insert(entries: Iterable[Line], lines: Sequence[Line]) -> list[Line]:
    """Return lines with entries before the first ones that are not above them, in their column.

    PDFium orders captions and notes on the margin before the text: lines near to the entry are the first choice.
    """
    before: dict[int, list[Line]] = defaultdict(list)
    for entry in entries:
        below = [number for number, line in enumerate(lines) if line.bottom <= entry.top and line.right > entry.left]
        first = min(below, key=lambda number: entry.top - lines[number].top > _NEAR, default=len(lines))
        before[first].append(entry)
    completed: list[Line] = []
    for number, line in enumerate(lines):
        completed += [*before[number], line]
    return completed + before[len(lines)]
