"""The lines at the top and the bottom of the pages of a PDF, and the numbers of the pages in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from arag.ingest.formats.pdf.page_numbers import PageNumber, find_number_after_words, find_page_numbers
from arag.ingest.formats.typography import Line
from arag.text.normalise import collapse_whitespace

MIN_PAGES = 3  # that a head, a foot or the place of a page's number is on
MAX_PITCH = 2.5  # times the height of the type, from a head's or a foot's line to its next one

_TOP = (0, 1)  # the lines at the top of a page, and those at its bottom
_BOTTOM = (-1, -2)
_OUTERMOST = (0, -1)

_MIDDLE = 0.1  # times the width of a page's text: how far from the middle a number is that is in the middle

_CELL_ENDS = " |"  # of empty cells, where the line was read as a row of the table below it

_Key = TypeVar("_Key")
Place: TypeAlias = tuple[int, int]  # a page, and the position of a line among the page's
Beside: TypeAlias = tuple[int, bool, int]  # a page, whether the line is at its top, and the line's rank


@dataclass
class Edge:
    """A line at the top or the bottom of a page.

    Attributes:
        page: The page, from 0.
        position: Of the line among the page's.
        rank: Its number from the top, or from the bottom as for Python's lists.
        text: Its text without the page's number.
        numbers: What may be the page's number in it.
        is_foot: Whether it is the lowest line of the page, and far below the others.
        is_lone_number: Whether it is the number of the page's place in the file: with a name as `Page`, or such a foot.
        has_number: Whether it has the page's number.
    """

    page: int
    position: int
    rank: int
    line: Line
    text: str
    numbers: list[PageNumber]
    is_foot: bool = False
    is_lone_number: bool = False
    has_number: bool = False

    @property
    def place(self) -> Place:
        """Its page and its position there."""
        return (self.page, self.position)

    @property
    def is_number(self) -> bool:
        """Whether it is the page's number and nothing else."""
        return self.has_number and not self.text

    @property
    def is_top(self) -> bool:
        """Whether it is at the top of the page."""
        return self.rank >= 0

    @property
    def outward(self) -> Beside:
        """The line between it and the edge of the page."""
        return self.beside(-1 if self.is_top else 1)

    @property
    def inward(self) -> Beside:
        """The line between it and the middle of the page."""
        return self.beside(1 if self.is_top else -1)

    def beside(self, lines: int) -> Beside:
        """Return the line that is so many lines below it, or above it if the number is negative."""
        return (self.page, self.is_top, self.rank + lines)


def find_edges(pages: Sequence[Sequence[Line]]) -> list[Edge]:
    """Return the lines at the top and the bottom of each page, with the page's number taken out of their text."""
    edges: list[Edge] = []
    for number, page in enumerate(pages):
        edges += _edges(page, number)
    _read_numbers(edges, len(pages))
    return edges


def min_feet(pages: int) -> int:
    """Return on how many of a document's pages words with the page's number must be: on both of two."""
    return 2 if pages == 2 else MIN_PAGES


def _edges(page: Sequence[Line], number: int) -> list[Edge]:
    """Return a page's highest and lowest lines, and its first and last ones."""
    positions = [position for position, line in enumerate(page) if line.text]
    by_height = sorted(positions, key=lambda position: -page[position].bottom)
    foot = _find_foot(page, by_height)
    edges: dict[tuple[bool, int], Edge] = {}
    # A mark of a printer may be lower than the foot, which then is the last line of the text.
    for order in (by_height, positions):
        at_top = zip(_TOP, order, strict=False)
        at_bottom = zip(_BOTTOM, reversed(order), strict=False)
        for rank, position in (*at_top, *at_bottom):
            line = page[position]
            text = collapse_whitespace(line.text)
            is_foot = position == foot
            numbers = find_page_numbers(text)
            if is_foot:
                numbers += find_number_after_words(text)
            edge = Edge(
                page=number,
                position=position,
                rank=rank,
                line=line,
                text=text,
                numbers=numbers,
                is_foot=is_foot,
            )
            edge.is_lone_number = _is_lone_number(edge, page)
            edges.setdefault((edge.is_top, position), edge)
    return list(edges.values())


def _find_foot(page: Sequence[Line], by_height: Sequence[int]) -> int | None:
    """Return the position of the lowest line if it is far below the others."""
    if len(by_height) < 2:
        return None
    *_, above, lowest = by_height
    line = page[lowest]
    distance = page[above].bottom - line.bottom
    return lowest if distance > MAX_PITCH * (line.top - line.bottom) else None


def _is_lone_number(edge: Edge, page: Sequence[Line]) -> bool:
    """Return whether a line is the number of its page alone: named, or a foot, in the middle of a first page."""
    place = edge.page + 1
    number = PageNumber(place, text="", is_certain=True)
    has_name = any(map(str.isalpha, edge.text))
    if has_name:
        return edge.rank in _OUTERMOST and number in edge.numbers
    return all(
        [
            edge.text.strip("- –—") == str(place),
            edge.is_foot,
            edge.page > 0 or _is_in_middle(edge.line, page),
        ]
    )


def _is_in_middle(line: Line, page: Sequence[Line]) -> bool:
    """Return whether a line is in the middle of the lines of a page."""
    left = min(other.left for other in page)
    right = max(other.right for other in page)
    distance = abs(line.left + line.right - left - right) / 2
    return distance < _MIDDLE * (right - left)


# --- page numbers ---


def _read_numbers(edges: Sequence[Edge], pages: int) -> None:
    """Take the page's number out of the text of lines that have one.

    The number of a page is as far from its place in the file as those of other pages.
    """
    offsets = _find_offsets(edges) or _find_offset_of_feet(edges, pages)
    roman_offsets = _find_offsets_of_front_matter(edges, offsets)
    if not offsets and any(edge.is_lone_number for edge in edges):
        offsets = {1}
    places = {(edge.page, edge.is_top, edge.text) for edge in edges}
    for edge in edges:
        previous = (edge.page - 1, edge.is_top, edge.text)
        following = (edge.page + 1, edge.is_top, edge.text)
        if previous in places or following in places:  # neighbours have different numbers: this one is the chapter's
            continue
        number = _number_of_page(edge, offsets, roman_offsets)
        if number is not None:
            edge.text = number.text.strip(_CELL_ENDS)
            edge.has_number = True


def _number_of_page(edge: Edge, offsets: Collection[int], roman_offsets: Collection[int]) -> PageNumber | None:
    """Return the number of a line that is the page's, if there is one."""
    for number in edge.numbers:
        offset = number.value - edge.page
        if offset in (roman_offsets if number.is_roman else offsets):
            return number
    return None


def _find_offsets(edges: Iterable[Edge]) -> set[int]:
    """Return the differences between numbers and the places of their pages that several pages have."""
    alone: dict[int, set[int]] = defaultdict(set)  # the pages, by the difference
    beside: dict[int, set[int]] = defaultdict(set)
    for edge in edges:
        for number in edge.numbers:
            offset = number.value - edge.page
            if number.is_certain and not number.is_roman:
                pages = beside if number.text else alone
                pages[offset].add(edge.page)
    offsets = _of_several_pages(alone)
    if not beside:
        return offsets
    most_common = max(beside, key=lambda offset: len(beside[offset]))
    most_alone = max((len(alone[offset]) for offset in offsets), default=0)
    if len(beside[most_common]) <= most_alone:  # more may be the numbers of lines of code
        return offsets
    return _of_several_pages({most_common: beside[most_common]}) or offsets


def _find_offset_of_feet(edges: Iterable[Edge], pages: int) -> set[int]:
    """Return the difference that the numbers beside the same words have at the foot of several pages, or of both."""
    feet: dict[tuple[str, int], set[int]] = defaultdict(set)
    for edge in edges:
        for number in edge.numbers:
            if edge.is_foot and number.text:
                offset = number.value - edge.page
                feet[(number.text, offset)].add(edge.page)
    found = _of_several_pages(feet, min_feet(pages))
    return {offset for _, offset in found}


def _find_offsets_of_front_matter(edges: Iterable[Edge], offsets: Collection[int]) -> set[int]:
    """Return the differences that Roman numerals have on several pages, alone or beside the same words.

    Before page 1, those that are alone need no other pages.

    Args:
        edges: The lines.
        offsets: The differences of other numbers.
    """
    first_pages = [1 - offset for offset in offsets]
    front_matter = max(first_pages, default=0)
    beside: dict[tuple[str, int], set[int]] = defaultdict(set)
    alone: set[int] = set()
    for edge in edges:
        for number in edge.numbers:
            if not number.is_roman:
                continue
            offset = number.value - edge.page
            beside[number.text, offset].add(edge.page)
            is_certain = all(
                [
                    edge.rank in _OUTERMOST,
                    edge.page < front_matter,
                    number.text == "",
                    offset <= 1,
                ]
            )
            if is_certain:
                alone.add(offset)
    return alone | {offset for _, offset in _of_several_pages(beside)}


def _of_several_pages(pages_by_key: Mapping[_Key, set[int]], min_pages: int = MIN_PAGES) -> set[_Key]:
    """Return what enough pages have."""
    found: set[_Key] = set()
    for key, pages in pages_by_key.items():
        if len(pages) >= min_pages:
            found.add(key)
    return found
