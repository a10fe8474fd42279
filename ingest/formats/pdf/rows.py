"""Finds the rows of tables on a page of a PDF, which has only pieces of text at places."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import NamedTuple, TypeAlias

from arag.ingest.formats.joining import join_texts
from arag.ingest.formats.pdf.pieces import STRAIGHT, Piece, find_pieces, make_piece
from arag.ingest.formats.pdf.words import Word

_MAX_CELL_LINES = 5  # of the first cell of a row; with more, a paragraph beside a figure would become a cell
TIGHT = 1.3  # times the height of the type: the pitch of the lines of one cell

_MAX_PITCH = 1.6  # times the height of the type, from one line of a cell to the next
_MAX_WIDE_PITCH = 2.0  # of a cell whose middle is beside the others of its row
_NEAR = 0.9  # times the height of the type: a label that is farther off is a line above the row
_FIGURE = re.compile(r"[\W\d]*\d[\W\d]*|[-–—]+")
_FORMULA_NUMBER = re.compile(r"\([A-Z\d]\d*(?:\.\d+)*[a-z]?\)")  # in brackets, like a loss in accounts
_OF_FORMULA = re.compile(r"[=∼≈≤≥∈∝∑∏∫√⊤∂∇±→∞^]|[α-ωΑ-Ω]")
_CURRENCY = re.compile(r"[$€£¥₹₽₩]|[A-Z]{2}\$")
_SUFFIX = re.compile(r"[%)‰°]+")


class Extent(NamedTuple):
    """Where a cell or a column begins and ends."""

    left: float
    right: float

    @property
    def middle(self) -> float:
        """Its middle."""
        return (self.left + self.right) / 2

    @property
    def width(self) -> float:
        """Its width."""
        return self.right - self.left

    def overlaps(self, other: Extent) -> bool:
        """Return whether another one is above or below it, at least in part."""
        return self.left < other.right and other.left < self.right

    def union(self, other: Extent) -> Extent:
        """Return what two of them take together."""
        return Extent(
            left=min(self.left, other.left),
            right=max(self.right, other.right),
        )

    def offset(self, other: Extent) -> float:
        """Return how far it is from another one that begins, ends or has its middle at the same place."""
        return min(
            abs(self.left - other.left),
            abs(self.right - other.right),
            abs(self.middle - other.middle),
        )

    def begins_with_one_of(self, others: Iterable[Extent]) -> bool:
        """Return whether one of others begins at the same place."""
        return any(abs(self.left - other.left) < STRAIGHT for other in others)


Cell: TypeAlias = "list[Piece]"  # its lines, from top to bottom


@dataclass
class Row:
    """Pieces that may be a row of a table.

    Attributes:
        cells: From left to right.
        above: Lines before the row.
    """

    cells: list[Cell]
    above: list[Piece] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        """The text of each cell."""
        return list(map(cell_text, self.cells))

    @property
    def extents(self) -> list[Extent]:
        """The place of each cell."""
        return list(map(_cell_extent, self.cells))

    @property
    def words(self) -> list[Word]:
        """The words of all cells."""
        lines = chain.from_iterable(self.cells)
        return list(chain.from_iterable(line.words for line in lines))

    @property
    def height(self) -> float:
        """The height of its type."""
        return self.cells[0][0].height

    @property
    def is_one_line(self) -> bool:
        """Whether it has one cell of one line."""
        return self._has_one_cell() and len(self.cells[0]) == 1

    @property
    def has_figure(self) -> bool:
        """Whether a cell after the first is a figure; the number of a formula is none."""
        texts = self.texts
        if self.ends_with_number and _OF_FORMULA.search(" ".join(texts)):
            texts.pop()
        return any(map(is_figure, texts[1:]))

    @property
    def ends_with_number(self) -> bool:
        """Whether the last cell may be the number of a formula."""
        return _FORMULA_NUMBER.fullmatch(self.texts[-1]) is not None

    def distance(self, following: Row) -> float:
        """Return how far the first line of the next row is below the last one of this row; a row above it is far."""
        lines = chain.from_iterable(self.cells)
        following_lines = chain.from_iterable(following.cells)
        lowest = min(line.bottom for line in lines)
        highest = max(following_lines, key=lambda line: line.top)
        distance = lowest - highest.bottom
        return distance if distance > 0 else float("inf")

    def add(self, piece: Piece) -> bool:
        """Add a piece as a new cell or as a line of the last cell; return whether it belongs to the row."""
        return self._add_beside(piece) or self._add_below(piece)

    def add_higher(self, cell: Cell) -> bool:
        """Add a cell that begins above the row, and return whether it belongs to the row.

        Its last line is beside the last one of the row, or this one is beside the middle of the cell: the cells of a
        table may stand on the lower edges of their rows, or in the middle between the edges.
        """
        last = self.cells[-1][-1]
        is_beside = cell[-1].overlaps(last) or _is_middle(last, cell)
        if not is_beside or not _is_right_of([last], cell[-1]):
            return False
        if self._has_one_cell():
            self._keep_last_lines(1)
        self.cells.append(cell)
        return True

    def _add_beside(self, piece: Piece) -> bool:
        """Add a piece as a new cell if it is on the right of the last one."""
        lines = self._lines_beside(piece)
        if not lines or not _is_right_of(lines, piece) or not _is_beside_any(self.cells, piece):
            return False
        self._keep_last_lines(len(lines))
        self.cells.append([piece])
        return True

    def _add_below(self, piece: Piece) -> bool:
        """Add a piece as a line of the last cell if it is below it."""
        cell = self.cells[-1]
        if not piece.is_in_column_of(cell[-1]):
            return False
        if self._has_one_cell():
            cell.append(piece)
            self._keep_last_lines(_MAX_CELL_LINES)
            return True
        if _is_beside_any(self.cells[:-1], piece) or _is_next_line(piece, cell[-1]):
            cell.append(piece)
            return True
        return False

    def _lines_beside(self, piece: Piece) -> Cell:
        """Return the lines of the last cell, without lines above the row if it is the first cell."""
        cell = self.cells[-1]
        if not self._has_one_cell():
            return cell
        for number, line in enumerate(cell):
            if line.overlaps(piece):
                return cell[number:]
        return []

    def _keep_last_lines(self, lines: int) -> None:
        """Leave the last lines of the last cell in it; the others are above the row."""
        cell = self.cells[-1]
        self.above += cell[:-lines]
        self.cells[-1] = cell[-lines:]

    def _has_one_cell(self) -> bool:
        return len(self.cells) == 1


def cell_text(cell: Cell) -> str:
    """Return the text of a cell's lines."""
    return join_texts(line.text for line in cell)


def extents_of(rows: Iterable[Row]) -> list[Extent]:
    """Return the places of the cells of rows."""
    extents: list[Extent] = []
    for row in rows:
        extents += row.extents
    return extents


def is_figure(text: str) -> bool:
    """Return whether a text is a number, or a dash in the place of one."""
    return _FIGURE.fullmatch(text) is not None


def find_rows(lines: Sequence[Sequence[Word]]) -> list[Row]:
    """Return what may be the rows of tables; all other lines are rows of one cell, or above a row.

    A cell may have several lines if they are beside lines of other cells.

    Args:
        lines: The words of each line of a page.
    """
    rows: list[Row] = []
    pieces = deque(find_pieces(lines))
    while pieces:
        piece = pieces.popleft()
        if rows and rows[-1].add(piece):
            continue
        cell = _add_higher(rows[-1], piece, pieces) if rows else []
        if not cell:
            rows.append(Row(cells=[[piece]]))
        for _ in cell[1:]:
            pieces.popleft()
    rows = _join_labels(rows)
    for row in rows:
        _join_signs(row)
    return rows


def _add_higher(row: Row, piece: Piece, following: Iterable[Piece]) -> Cell:
    """Add a cell that begins with a piece to a row that is lower; return its lines, or none if it is not of the row."""
    cell = [piece, *_lines_below(piece, following, _MAX_PITCH)]
    if row.add_higher(cell):
        return cell
    cell = [piece]
    for line in _lines_below(piece, following, _MAX_WIDE_PITCH):
        cell.append(line)
        if _is_middle(row.cells[-1][-1], cell) and row.add_higher(cell):
            return cell
    return []


def _is_middle(piece: Piece, cell: Cell) -> bool:
    """Return whether a piece is beside the middle of a cell of several lines."""
    middle = (cell[0].top + cell[-1].bottom) / 2
    return len(cell) > 1 and abs(middle - (piece.top + piece.bottom) / 2) < STRAIGHT


def _lines_below(piece: Piece, following: Iterable[Piece], max_pitch: float) -> Cell:
    """Return the next lines of a cell, down to the last one that may belong to it."""
    lines: Cell = []
    above = piece
    for line in islice(following, _MAX_CELL_LINES):
        pitch = above.bottom - line.bottom
        is_near = 0 < pitch < max_pitch * line.height
        if not is_near or not line.is_in_column_of(above):
            break
        lines.append(line)
        above = line
    return lines


def _cell_extent(cell: Cell) -> Extent:
    return Extent(
        left=min(line.left for line in cell),
        right=max(line.right for line in cell),
    )


def _is_right_of(cell: Cell, piece: Piece) -> bool:
    """Return whether a piece is right of a cell, and apart from its lines that are beside it."""
    for line in cell:
        min_gap = piece.height if line.overlaps(piece) else 0
        is_divided = line.line == piece.line
        if piece.left - line.right <= min_gap and not is_divided:
            return False
    return True


def _is_beside_any(cells: Iterable[Cell], piece: Piece) -> bool:
    lines = chain.from_iterable(cells)
    return any(map(piece.overlaps, lines))


def _is_next_line(piece: Piece, last: Piece) -> bool:
    """Return whether a piece is the next line of a cell that has more lines than the others of its row."""
    if is_figure(piece.text) or is_figure(last.text):
        return False
    is_below = 0 < last.bottom - piece.bottom < TIGHT * piece.height
    return is_below and abs(last.left - piece.left) < STRAIGHT


# --- labels and signs that are apart ---


def _join_labels(rows: Iterable[Row]) -> list[Row]:
    """Join a label that is beside two rows, as in a table whose cells span rows, to the one that follows it."""
    joined: list[Row] = []
    for row in rows:
        if not joined or not _is_label_of(joined[-1], row):
            joined.append(row)
            continue
        label = joined[-1]
        *lines_above, line = label.cells[0]
        joined[-1] = Row(
            cells=[[line], *row.cells],
            above=[*label.above, *lines_above, *row.above],
        )
    return joined


def _is_label_of(label: Row, row: Row) -> bool:
    """Return whether the last line of a row of one cell is beside another row, but lower or higher."""
    if len(label.cells) > 1 or len(row.cells) == 1 or row.above:
        return False
    line = label.cells[0][-1]
    first = row.cells[0][0]
    is_near = abs(line.bottom - first.bottom) < _NEAR * line.height
    return is_near and first.left - line.right > line.height


def _join_signs(row: Row) -> None:
    """Join a currency's sign to the figure after it, and a percent sign to the one before it."""
    cells = row.cells
    for number in reversed(range(1, len(cells))):
        before = cells[number - 1]
        cell = cells[number]
        is_currency = number > 1 and _is_currency_of(before, cell)
        if is_currency or _is_suffix_of(cell, before):
            cells[number - 1 : number + 1] = [_join_cells(before, cell)]


def _is_currency_of(sign: Cell, cell: Cell) -> bool:
    return _CURRENCY.fullmatch(cell_text(sign)) is not None and is_figure(cell_text(cell))


def _is_suffix_of(sign: Cell, cell: Cell) -> bool:
    return _SUFFIX.fullmatch(cell_text(sign)) is not None and is_figure(cell_text(cell))


def _join_cells(cell: Cell, other: Cell) -> Cell:
    words: list[Word] = []
    for line in (*cell, *other):
        words += line.words
    return [make_piece(words, cell[0].line)]
