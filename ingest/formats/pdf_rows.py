"""Finds the rows of tables on a page of a PDF, which has only pieces of text at places."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from arag.text.normalise import CELL_BOUNDARY

_MAX_CELL_LINES = 5  # of the first cell of a row; with more, a paragraph beside a figure would become a cell
_MIN_OVERLAP = 1 / 4  # of a piece's height: lower and upper parts of letters may reach into the next line
_FIGURE = re.compile(r"[\W\d]*\d[\W\d]*|[-–—]+")


class Span(NamedTuple):
    """A line or a row of a table, and the part of the page's text that it comes from."""

    start: int
    end: int
    text: str


class Piece(NamedTuple):
    """A part of a line, between wide gaps."""

    start: int  # in the text of the page
    end: int
    left: float
    right: float
    bottom: float
    top: float

    def overlaps(self, other: Piece) -> bool:
        """Return whether another piece is beside it, at least in part."""
        common = min(self.top, other.top) - max(self.bottom, other.bottom)
        return common > (self.top - self.bottom) * _MIN_OVERLAP

    def is_in_column_of(self, other: Piece) -> bool:
        """Return whether another piece is above or below it, at least in part."""
        return self.left < other.right and other.left < self.right


_Cell: TypeAlias = "list[Piece]"  # its lines, from top to bottom


@dataclass
class _Row:
    """Pieces that may be a row of a table: the cells from left to right."""

    cells: list[_Cell]

    def add(self, piece: Piece) -> bool:
        """Add a piece as a new cell or as a line of the last cell; return whether it belongs to the row."""
        cell = self.cells[-1]
        beside = self._lines_beside(piece)
        if beside and _is_right_of(beside, piece) and _is_beside_any(self.cells, piece):
            self.cells[-1] = beside
            self.cells.append([piece])
            return True
        if piece.is_in_column_of(cell[-1]) and self._may_continue(piece):
            cell.append(piece)
            if self._has_one_cell():
                del cell[:-_MAX_CELL_LINES]
            return True
        return False

    def _lines_beside(self, piece: Piece) -> _Cell:
        """Return the lines of the last cell, without lines above the row if it is the first cell."""
        cell = self.cells[-1]
        if not self._has_one_cell():
            return cell
        for number, line in enumerate(cell):
            if line.overlaps(piece):
                return cell[number:]
        return []

    def _may_continue(self, piece: Piece) -> bool:
        """Return whether a piece may be another line of the last cell: beside a line of an earlier one, if any."""
        return self._has_one_cell() or _is_beside_any(self.cells[:-1], piece)

    def _has_one_cell(self) -> bool:
        return len(self.cells) == 1


def find_rows(text: str, pieces: Iterable[Piece]) -> Iterator[Span]:
    """Yield the rows of tables that have a figure after their first cell.

    A cell may have several lines if they are beside lines of other cells.

    Args:
        text: The text of the page.
        pieces: Its pieces, in the order of the text.
    """
    rows: list[_Row] = []
    for piece in pieces:
        if not rows or not rows[-1].add(piece):
            rows.append(_Row(cells=[[piece]]))
    for row in rows:
        yield from _table_row(text, row)


def _is_right_of(cell: _Cell, piece: Piece) -> bool:
    """Return whether a gap is between a cell and a piece that is wider than the type is high."""
    right = max(line.right for line in cell)
    return piece.left - right > piece.top - piece.bottom


def _is_beside_any(cells: Iterable[_Cell], piece: Piece) -> bool:
    return any(piece.overlaps(line) for cell in cells for line in cell)


def _table_row(text: str, row: _Row) -> Iterator[Span]:
    """Yield the row if it is one of a table."""
    cells = [" ".join(text[line.start : line.end] for line in cell) for cell in row.cells]
    if not any(map(_FIGURE.fullmatch, cells[1:])):
        return
    first_line = row.cells[0][0]
    last_line = row.cells[-1][-1]
    yield Span(
        start=first_line.start,
        end=last_line.end,
        text=CELL_BOUNDARY.join(cells),
    )
