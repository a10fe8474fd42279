"""Leaves out the heads, the feet and the numbers of the pages of a PDF."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from arag.ingest.formats.headings import Line
from arag.text.normalise import CELL_BOUNDARY, collapse_whitespace

_EDGE_LINES = 2  # at the top and at the bottom of a page
_MIN_PAGES = 3
_PLACE = 3.0  # points: lines that are nearer are at the same place of their pages
_NEAR_HEADING = 1.8  # times the height of the type: a heading is nearer to its text, a running head farther off
_LARGER = 1.15
_MAX_VARIANTS = 0.05  # share of pages that may have another text at the place of a running line
_MIN_RUN = 2  # pages of a chapter, on average

_WORD = r"(?:(?:page|pag|pg|p|seite|s|страница|стр|página|pagina|sida|side|strona|第)\.?)"
_ROMAN = r"(?=[mdclxvi])m{0,3}(?:cm|cd|d?c{0,3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})"
_NUMBER = re.compile(
    rf"(?=.{{1,40}}$)\W*{_WORD}?\W*(?:(\d{{1,5}})|({_ROMAN}))\W*[页頁ページ]*(?:\W*(?:of|von|de|/|из|共)?\W*\d+)?\W*[页頁]?\W*",
    re.IGNORECASE,
)
_AT_END = re.compile(
    rf"(.*\S)(?:\s*[|·•–—/-]\s*(?:{_WORD}\s*)?|[\s,]+(?:page|seite|стр\.?)\s*)(\d{{1,5}})(?: of \d+)?$", re.IGNORECASE
)
_AT_START = re.compile(
    r"(page|seite)?\s*(\d{1,5})(?: (?:of|von) \d+)?(\s*[|·•–—/-]\s*|\s+)(\S.*)",
    re.IGNORECASE,
)
_SECTION_NUMBER = re.compile(r"^\W*(?:chapter|part|kapitel|teil)?\s*(?:\d+(?:\.\d+)*|[IVXL]+)?[.:]?\s+", re.IGNORECASE)
_OTHER = re.compile(r"[\W_]+")
_NAME_ENDS = (":", "：")
_ROMAN_VALUES = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100, "d": 500, "m": 1000}


class _Number(NamedTuple):
    """A number on a page and the text beside it."""

    value: int
    text: str
    is_certain: bool  # whether it is by itself or set apart from the text


@dataclass
class _Edge:
    """A line at the top or the bottom of a page.

    Attributes:
        page: The page, from 0.
        position: Of the line among the page's.
        rank: How many lines are between it and the edge.
        text: Its text without the page's number.
        has_number: Whether it has the page's number.
        place: The number of its place: the same for lines of one type at the same height of their pages.
    """

    page: int
    position: int
    rank: int
    is_top: bool
    line: Line
    text: str
    has_number: bool = False
    place: int = 0


def without_running_lines(pages: Sequence[Sequence[Line]], titles: Iterable[str] = ()) -> list[list[Line]]:
    """Leave out page numbers, and heads and feet except on the first page that has them.

    A line is a head or a foot if it is at the same place of most pages, or of most pages on the left or on the right,
    and no page has another text there. One that changes with the chapter must be a heading of the document, too, or
    have the page's number beside it. Headings with their text below them and rows of tables are none.

    Args:
        pages: The lines of each page.
        titles: The entries of the document's outline.
    """
    edges = [edge for number, page in enumerate(pages) for edge in _edges(page, number)]
    _read_numbers(edges)
    _find_places(edges)
    headings = _headings(pages, titles)
    by_place: dict[int, list[_Edge]] = defaultdict(list)
    for edge in edges:
        by_place[edge.place].append(edge)
    running: set[tuple[int, int]] = set()
    kept: set[tuple[str, bool, bool]] = set()
    found = [edge for group in by_place.values() for edge in _find_running(group, len(pages), headings)]
    outer = {(edge.page, edge.is_top, edge.rank) for edge in found}
    for edge in sorted(found, key=lambda edge: (edge.page, edge.position)):
        is_inner = edge.rank and (edge.page, edge.is_top, edge.rank - 1) not in outer
        if is_inner or _belongs_to_text(edge, pages[edge.page], outer):
            continue
        key = (edge.text, edge.has_number, edge.is_top)
        if key in kept or not edge.text:
            running.add((edge.page, edge.position))
        kept.add(key)
    return [
        [line for position, line in enumerate(page) if (number, position) not in running]
        for number, page in enumerate(pages)
    ]


def _edges(page: Sequence[Line], number: int) -> list[_Edge]:
    """Return a page's highest and lowest lines, and its first and last ones."""
    positions = [position for position, line in enumerate(page) if line.text]
    by_height = sorted(positions, key=lambda position: -page[position].bottom)
    edges: dict[tuple[bool, int], _Edge] = {}
    # A mark of a printer may be lower than the foot, which then is the last line of the text.
    for order in (by_height, positions):
        for is_top, from_edge in ((True, order), (False, order[::-1])):
            for rank, position in enumerate(from_edge[:_EDGE_LINES]):
                line = page[position]
                edge = _Edge(number, position, rank, is_top, line, collapse_whitespace(line.text))
                edges.setdefault((is_top, position), edge)
    return list(edges.values())


# --- page numbers ---


def _read_numbers(edges: Sequence[_Edge]) -> None:
    """Take the page's number out of the text of lines that have one.

    The number of a page is as far from its place in the file as those of other pages.
    """
    alone: dict[int, set[int]] = defaultdict(set)  # the pages, by the difference between number and place
    beside: dict[int, set[int]] = defaultdict(set)
    for edge in edges:
        for number in _find_numbers(edge.text):
            if number.is_certain:
                pages = beside if number.text else alone
                pages[number.value - edge.page].add(edge.page)
    offsets = {offset for offset, found in alone.items() if len(found) >= _MIN_PAGES}
    if not offsets and beside:
        offset = max(beside, key=lambda offset: len(beside[offset]))
        offsets = {offset} if len(beside[offset]) >= _MIN_PAGES else set()
    for edge in edges:
        for number in _find_numbers(edge.text):
            if number.value - edge.page in offsets:
                edge.text = number.text
                edge.has_number = True
                break


def _find_numbers(text: str) -> list[_Number]:
    """Return what may be the page's number in a line, and the text beside it."""
    alone = _NUMBER.fullmatch(text)
    if alone:
        value = int(alone[1]) if alone[1] else _roman_value(alone[2].lower())
        return [_Number(value, "", is_certain=True)]
    numbers: list[_Number] = []
    at_end = _AT_END.fullmatch(text)
    if at_end:
        numbers.append(_Number(int(at_end[2]), at_end[1], is_certain=True))
    at_start = _AT_START.fullmatch(text)
    if at_start:
        is_certain = bool(at_start[1] or at_start[3].strip())
        numbers.append(_Number(int(at_start[2]), at_start[4], is_certain))
    return numbers


def _roman_value(numeral: str) -> int:
    value = 0
    for digit, following in zip(numeral, [*numeral[1:], ""], strict=True):
        amount = _ROMAN_VALUES[digit]
        value += -amount if _ROMAN_VALUES.get(following, 0) > amount else amount
    return value


# --- places ---


def _find_places(edges: Sequence[_Edge]) -> None:
    """Number the places of the lines."""
    place = 0
    last: _Edge | None = None
    for edge in sorted(edges, key=lambda edge: (edge.is_top, edge.line.size, edge.line.bottom)):
        if last is not None:
            is_same_kind = (last.is_top, last.line.size) == (edge.is_top, edge.line.size)
            if not is_same_kind or edge.line.bottom - last.line.bottom > _PLACE:
                place += 1
        edge.place = place
        last = edge


def _find_running(edges: Sequence[_Edge], pages: int, headings: Collection[str]) -> list[_Edge]:
    """Return the lines of one place that are heads or feet."""
    running = [edge for edge in edges if edge.has_number and not edge.text]
    if len(running) == 1:
        running = []  # such as the number of an equation, which may be that of its page
    others = [edge for edge in edges if not (edge.has_number and not edge.text)]
    sides = [[edge for edge in others if edge.page % 2 == side] for side in (0, 1)]
    if _is_one_text(others, pages) or _is_chapters(others, pages, headings):
        return running + _without_variants(others)
    for side, (side_edges, other_edges) in enumerate((sides, sides[::-1])):
        side_pages = (pages + 1 - side) // 2
        is_one_text = _is_one_text(side_edges, side_pages) and len({edge.text for edge in other_edges}) < 2
        if is_one_text or _is_chapters(side_edges, side_pages, headings):
            running += _without_variants(side_edges)
    return running


def _is_one_text(edges: Sequence[_Edge], pages: int) -> bool:
    """Return whether most pages have the same text at a place, and hardly any page another one."""
    counts = Counter(edge.text for edge in edges)
    if not counts:
        return False
    _, count = counts.most_common(1)[0]
    is_on_most = count >= _MIN_PAGES and 2 * count > pages
    return is_on_most and len(edges) - count <= _MAX_VARIANTS * len(edges)


def _is_chapters(edges: Sequence[_Edge], pages: int, headings: Collection[str]) -> bool:
    """Return whether the text at a place changes with the chapter."""
    if 2 * len(edges) < pages or len(edges) < _MIN_PAGES:
        return False
    texts = [edge.text for edge in sorted(edges, key=lambda edge: edge.page)]
    runs = 1 + sum(text != following for text, following in pairwise(texts))
    different = set(texts)
    if runs != len(different) or _MIN_RUN * runs > len(texts):
        return False
    with_number = [edge for edge in edges if edge.has_number]
    if 2 * len(with_number) > len(edges):
        return True
    are_headings = [text for text in different if _comparable(text) in headings]
    return 2 * len(are_headings) >= len(different)


def _without_variants(edges: Sequence[_Edge]) -> list[_Edge]:
    """Return the lines whose text is on several pages."""
    counts = Counter(edge.text for edge in edges)
    return [edge for edge in edges if counts[edge.text] > 1]


def _headings(pages: Sequence[Sequence[Line]], titles: Iterable[str]) -> set[str]:
    """Return the texts of lines in larger type than most, and the document's own entries."""
    sizes = Counter[float]()
    for page in pages:
        for line in page:
            sizes[line.size] += len(line.text)
    body_size = max(sizes, key=lambda size: sizes[size], default=0.0)
    headings = {_comparable(title) for title in titles}
    for page in pages:
        for line in page:
            if line.size > _LARGER * body_size:
                headings |= {_comparable(line.text), _comparable(_SECTION_NUMBER.sub("", line.text))}
    return headings


def _comparable(text: str) -> str:
    return _OTHER.sub("", text).casefold()


# --- lines that belong to the text ---


def _belongs_to_text(edge: _Edge, page: Sequence[Line], outer: Collection[tuple[int, bool, int]]) -> bool:
    """Return whether a line is under a heading of its own, is a heading, or is a row of a table."""
    if edge.has_number:
        return False
    by_height = sorted((line for line in page if line.text), key=lambda line: -line.bottom)
    place = by_height.index(edge.line)
    above = by_height[place - 1] if place else None
    below = by_height[place + 1] if place + 1 < len(by_height) else None
    if _is_row_beside(edge.line, above) or _is_row_beside(edge.line, below):
        return True
    if edge.line.text.endswith(_NAME_ENDS) or (above is not None and above.text.endswith(_NAME_ENDS)):
        return True
    outward, inward = (edge.page, edge.is_top, edge.rank - 1), (edge.page, edge.is_top, edge.rank + 1)
    is_above_running = (outward if edge.is_top else inward) in outer
    if above is not None and not is_above_running and _is_heading_of(above, edge.line):
        return True
    is_below_running = (inward if edge.is_top else outward) in outer
    return below is not None and not is_below_running and _is_heading_of(edge.line, below)


def _is_row_beside(line: Line, other: Line | None) -> bool:
    return other is not None and CELL_BOUNDARY in line.text and CELL_BOUNDARY in other.text


def _is_heading_of(line: Line, below: Line) -> bool:
    """Return whether a line is in other type than the one below it, and near to it."""
    is_other_type = line.size >= _LARGER * below.size or (line.font != below.font and line.size >= below.size)
    return is_other_type and line.bottom - below.bottom < _NEAR_HEADING * (line.top - line.bottom)
