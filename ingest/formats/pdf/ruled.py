"""Tables of a PDF whose cells are between rules: the rules say which cell a word is in."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import TypeAlias

from arag.ingest.formats.pdf.cells import TableRow, name_cells
from arag.ingest.formats.pdf.fonts import Fonts
from arag.ingest.formats.pdf.glyphs import PageText
from arag.ingest.formats.pdf.pieces import make_piece
from arag.ingest.formats.pdf.rows import Cell, Row, cell_text, is_figure
from arag.ingest.formats.pdf.rules import Grid, Region
from arag.ingest.formats.pdf.words import Word
from arag.ingest.formats.tables import cells_with_text

_MIN_ROWS = 2  # with several cells that have text
_MIN_FILLED = 0.25  # of a table's cells: a chart has rules, too, but few words between them
_MAX_CROSSING = 0.1  # of a table's words: those of a chart or a form may cross rules
_CROSSING = 3.0  # points
_MAX_LINES = 20  # of a cell: a box with more is a part of a page
_MAX_GAPPED = 0.2  # of the lines of cells may have gaps that are as wide as those between columns
_SAME_PLACE = 0.6  # points
_KERNING = 0.02  # times the height of the type: how far apart, or over each other, two characters of a word are
_SPACE = 0.35  # times the height of the type: nearer words go on; cells have wider margins
_MANY_LINES = 3  # of each cell in a row: these are rows without rules between them

Lines: TypeAlias = "list[Sequence[Word]]"


@dataclass
class RuledTable:
    """A table, and the lines of a page before it."""

    above: Lines
    rows: list[TableRow]


@dataclass
class _Words:
    """The words of a grid, by their cells and their lines."""

    grid: Grid
    lines: dict[Region, dict[int, list[Word]]] = field(default_factory=lambda: defaultdict(dict))
    numbers: list[int] = field(default_factory=list)  # the line of each word
    crossing: int = 0

    def add(self, number: int, word: Word) -> bool:
        """Add a word of a line, and return whether it is in the grid."""
        middle = (word.left + word.right) / 2
        region = self.grid.region_at(middle, (word.bottom + word.top) / 2)
        if region is None:
            return False
        self.lines[region].setdefault(number, []).append(word)
        left = self.grid.lefts[region.first_column]
        right = self.grid.lefts[region.last_column + 1]
        self.numbers.append(number)
        self.crossing += word.left < left - _CROSSING or word.right > right + _CROSSING
        return True

    def rows(self) -> list[dict[Region, list[list[Word]]]]:
        """Return the lines of the cells that begin in each row and have text, from left to right."""
        rows: list[dict[Region, list[list[Word]]]] = [{} for _ in range(self.grid.rows)]
        for region in sorted(self.lines, key=lambda region: region.first_column):
            rows[region.first_row][region] = list(self.lines[region].values())
        return rows


def find_ruled_tables(
    lines: Sequence[Sequence[Word]],
    grids: Sequence[Grid],
    fonts: Fonts,
    text: PageText,
) -> tuple[list[RuledTable], Lines]:
    """Return the tables in grids of rules with the lines above each, and the lines below the last one.

    Args:
        lines: The words of each line of a page.
        grids: The grids on it.
        fonts: Its fonts.
        text: Its text.
    """
    tables: dict[int, list[TableRow]] = {}  # by the number of their first line
    rest: Lines = list(lines)
    for grid in grids:
        words = _Words(grid)
        beside: list[Sequence[Word]] = []
        for number, line in enumerate(rest):
            divided = _divide_at_rules(line, grid, text)
            beside.append([word for word in divided if not words.add(number, word)])
        if not _is_table(words) or _is_in_prose(words, beside):
            continue
        rest = beside
        first_line = words.numbers[0]
        tables[first_line] = tables.get(first_line, []) + _make_rows(words, fonts)
    found: list[RuledTable] = []
    above: Lines = []
    for number, line in enumerate(rest):
        if number in tables:
            found.append(RuledTable(above, tables[number]))
            above = []
        if line:
            above.append(line)
    return found, above


def _divide_at_rules(line: Sequence[Word], grid: Grid, text: PageText) -> list[Word]:
    """Return the words of a line. A word that is too wide for its cell touches the next cell's: PDFium joins them."""
    divided: list[Word] = []
    for word in line:
        middle = (word.bottom + word.top) / 2
        region = grid.region_at(word.left, middle)
        following = grid.region_at(word.right, middle)
        if region and following and region != following:
            padding = word.left - grid.lefts[region.first_column]
            divided += _divide(word, grid.lefts[following.first_column] + padding, text)
        else:
            divided.append(word)
    return divided


def _divide(word: Word, left: float, text: PageText) -> list[Word]:
    """Return the two words of which a word consists if a second one begins at a place; otherwise, the word."""
    start = bisect_left(text.indexes, word.first)
    boxes = [text.box(start + number) for number in range(len(word.text))]
    for number, (before, box) in enumerate(pairwise(boxes), 1):
        is_apart = abs(box.left - before.right) > _KERNING * word.height
        are_letters = word.text[number - 1 : number + 1].isalnum()  # others may overlap
        if is_apart and are_letters and abs(box.left - left) < _SAME_PLACE:
            first = word._replace(text=word.text[:number], right=before.right, last=word.first + number - 1)
            second = word._replace(text=word.text[number:], left=box.left, first=word.first + number)
            return [first, second]
    return [word]


# --- which grids are tables ---


def _is_table(words: _Words) -> bool:
    """Return whether the words in a grid are a table, with a rule between each two of its cells."""
    if words.crossing > _MAX_CROSSING * len(words.numbers):
        return False
    filled = len(words.lines)
    if filled < _MIN_FILLED * len(set(words.grid.regions.values())):
        return False
    rows_of_several = 0
    for cells in words.rows():
        rows_of_several += len(cells) > 1
        if _has_rows_inside(list(cells.values())):
            return False
    return rows_of_several >= _MIN_ROWS and not _has_columns_inside(words)


def _is_in_prose(words: _Words, beside: Sequence[Sequence[Word]]) -> bool:
    """Return whether each line goes on outside the grid, which is the frames around links in several lines."""
    return all(_touches(beside[number], words.grid) for number in words.numbers)


def _touches(line: Sequence[Word], grid: Grid) -> bool:
    """Return whether a word is across the left or the right edge of a grid, or directly beside it."""
    nearest = math.inf
    for word in line:
        from_left = max(grid.lefts[0] - word.right, word.left - grid.lefts[0])
        from_right = max(grid.lefts[-1] - word.right, word.left - grid.lefts[-1])
        distance = min(from_left, from_right) - _SPACE * word.height
        nearest = min(nearest, distance)
    return nearest < 0


def _has_rows_inside(cells: Sequence[Sequence[Sequence[Word]]]) -> bool:
    """Return whether the cells of a row have rows in them that no rule divides."""
    counts = {len(lines) for lines in cells}
    are_alike = len(cells) > 1 and len(counts) == 1
    if are_alike and min(counts) >= _MANY_LINES:
        return True
    is_part_of_page = max(counts, default=0) > _MAX_LINES
    return is_part_of_page or any(map(_are_figures, cells))


def _are_figures(lines: Sequence[Sequence[Word]]) -> bool:
    """Return whether a cell has several lines, of figures alone."""
    words = chain.from_iterable(lines)
    return len(lines) > 1 and all(is_figure(word.text) for word in words)


def _has_columns_inside(words: _Words) -> bool:
    """Return whether many lines of cells have wide gaps, as between columns that no rule divides."""
    lines = list(chain.from_iterable(by_line.values() for by_line in words.lines.values()))
    gapped = sum(map(_has_wide_gap, lines))
    return gapped > _MAX_GAPPED * len(lines)


def _has_wide_gap(line: Sequence[Word]) -> bool:
    return any(word.left - before.right > word.height for before, word in pairwise(line))


# --- their rows ---


def _make_rows(words: _Words, fonts: Fonts) -> list[TableRow]:
    """Return the rows of a table. A cell that spans several rows has its text in each; one of all columns is a line."""
    rows: list[TableRow] = []
    texts: dict[Region, str] = {}
    for number, cells in enumerate(words.rows()):
        pieces: list[Cell] = []
        for region, lines in cells.items():
            cell = [make_piece(line, line_number) for line_number, line in enumerate(lines)]
            texts[region] = cell_text(cell)
            pieces.append(cell)
        if not pieces:
            continue
        row = [_text_at(words.grid, number, column, texts) for column in range(words.grid.columns)]
        is_whole_row = any(_spans_all(region, words.grid) for region in cells)
        rows.append(TableRow(Row(pieces), [] if is_whole_row else row))
    _leave_out_empty_columns(rows)
    name_cells(rows, fonts)
    return rows


def _text_at(grid: Grid, row: int, column: int, texts: dict[Region, str]) -> str:
    """Return the text at a place of a grid: that of a cell which spans several columns is in the first one."""
    region = grid.regions[row, column]
    return texts.get(region, "") if region.first_column == column else ""


def _spans_all(region: Region, grid: Grid) -> bool:
    return region.last_column - region.first_column + 1 == grid.columns


def _leave_out_empty_columns(rows: Sequence[TableRow]) -> None:
    """Leave out columns without text, such as those between two lines of a double rule."""
    filled: set[int] = set()
    for row in rows:
        filled.update(cells_with_text(row.cells))
    for row in rows:
        row.cells = [text for number, text in enumerate(row.cells) if number in filled]
