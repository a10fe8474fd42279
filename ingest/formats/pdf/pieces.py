"""Divides the lines of a page of a PDF at wide gaps, which may be between the cells of a table."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from arag.ingest.formats.pdf.listings import find_source_lines
from arag.ingest.formats.pdf.words import Word

STRAIGHT = 2.0  # points: how far lines of one cell, and cells of one column, may be from one edge

_WIDE = 1.0  # times the height of the type: a gap between cells
_NARROW = 0.7  # times that height: a gap between cells that are in line with others; words are nearer to each other
_LEADERS = frozenset(".…·_")
_FLAT = 0.3  # times the height of the type before it: some fonts give dots no more
_MIN_OVERLAP = 1 / 4  # of a piece's height: lower and upper parts of letters may reach into the next line


class Piece(NamedTuple):
    """A part of a line, between wide gaps."""

    words: list[Word]
    line: int  # of the page
    left: float
    right: float
    bottom: float
    top: float

    @property
    def text(self) -> str:
        """Its words."""
        return " ".join(word.text for word in self.words)

    @property
    def height(self) -> float:
        """The height of its type."""
        return self.top - self.bottom

    def overlaps(self, other: Piece) -> bool:
        """Return whether another piece is beside it, at least in part."""
        common = min(self.top, other.top) - max(self.bottom, other.bottom)
        return common > self.height * _MIN_OVERLAP

    def is_in_column_of(self, other: Piece) -> bool:
        """Return whether another piece is above or below it, at least in part."""
        return self.left < other.right and other.left < self.right


class _Places:
    """Where pieces begin, and where their middles are, in order, so that a page with many is divided quickly."""

    def __init__(self, pieces: Iterable[Piece]) -> None:
        self._lefts: list[tuple[float, int]] = []  # with the number of the line
        self._middles: list[tuple[float, int]] = []  # twice their distance from the left
        for piece in pieces:
            self._lefts.append((piece.left, piece.line))
            self._middles.append((piece.left + piece.right, piece.line))
        self._lefts.sort()
        self._middles.sort()

    def lines_in_line_with(self, piece: Piece) -> set[int]:
        """Return the lines in which a piece begins, or has its middle, where another one does."""
        below_left = _lines_near(self._lefts, piece.left)
        below_middle = _lines_near(self._middles, piece.left + piece.right)
        return below_left | below_middle


def find_pieces(lines: Sequence[Sequence[Word]]) -> Iterator[Piece]:
    """Yield the parts of lines between wide gaps, or between narrower ones where cells of other lines begin.

    Lines of source code are not divided.
    """
    pieces: list[Piece] = []
    cells: list[Piece] = []  # after a wide gap
    source_lines = find_source_lines(lines)
    for number, line in enumerate(lines):
        max_gap = math.inf if number in source_lines else _WIDE
        parts: list[Piece] = []
        words = [line[0]]
        for word in line[1:]:
            if _is_apart(words[-1], word, max_gap):
                parts.append(make_piece(words, number))
                words = []
            words.append(word)
        parts.append(make_piece(words, number))
        pieces += parts
        cells += parts[1:]
    yield from _divide(pieces, cells)


def _is_apart(before: Word, word: Word, gap: float) -> bool:
    """Return whether a gap is wider than a share of the type's height. A form's value belongs to what is before it."""
    is_value = word.is_field and not before.is_field
    are_leaders = _LEADERS.issuperset(before.text) and _LEADERS.issuperset(word.text)
    is_flat = word.height < _FLAT * before.height
    height = before.height if is_flat else word.height
    return not is_value and not are_leaders and word.left - before.right > gap * height


def _divide(pieces: Iterable[Piece], cells: Sequence[Piece]) -> Iterator[Piece]:
    """Yield pieces, or their parts between narrower gaps if each part after the first is in line with other cells."""
    if not cells:
        yield from pieces
        return
    parts_of_pieces = list(map(_parts, pieces))
    others: list[Piece] = []
    for parts in parts_of_pieces:
        others += parts[1:]
    places_of_cells = _Places(cells)
    places_of_others = _Places(others)
    for piece, parts in zip(pieces, parts_of_pieces, strict=True):
        are_cells = all(_is_in_line(part, places_of_cells, places_of_others) for part in parts[1:])
        yield from parts if are_cells else [piece]


def _parts(piece: Piece) -> list[Piece]:
    """Return the parts of a piece between narrower gaps, but not those beside the dots that lead to a number."""
    words = piece.words[:1]
    parts: list[Piece] = []
    for word in piece.words[1:]:
        is_beside_leaders = words[-1].text[-1:] in _LEADERS or word.text[:1] in _LEADERS
        if _is_apart(words[-1], word, _NARROW) and not is_beside_leaders:
            parts.append(make_piece(words, piece.line))
            words = []
        words.append(word)
    parts.append(make_piece(words, piece.line))
    return parts


def _is_in_line(part: Piece, cells: _Places, others: _Places) -> bool:
    """Return whether a part begins, or has its middle, where a cell does, and another cell or part."""
    lines_of_cells = cells.lines_in_line_with(part)
    lines = lines_of_cells | others.lines_in_line_with(part)
    lines.discard(part.line)
    return bool(lines_of_cells) and len(lines) > 1


def _lines_near(places: Sequence[tuple[float, int]], place: float) -> set[int]:
    first = bisect_right(places, (place - STRAIGHT, math.inf))
    end = bisect_left(places, (place + STRAIGHT, -math.inf))
    return {line for _, line in places[first:end]}


def make_piece(words: list[Word], line: int) -> Piece:
    """Return the piece of words that follow each other in a line."""
    return Piece(
        words=words,
        line=line,
        left=words[0].left,
        right=words[-1].right,
        bottom=words[0].bottom,
        top=words[0].top,
    )
