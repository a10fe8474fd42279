"""Puts the cells of tables into columns by their places, so that an empty cell stays a cell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from arag.ingest.formats.joining import join_texts
from arag.ingest.formats.pdf_rows import Cell, Row, cell_text, is_figure

_MAX_HEADER = 3  # rows
_MAX_DISTANCE = 4  # times the height of the type: rows that are farther apart are of two tables
_MIN_ROWS = 3  # of a table of words alone
_MIN_WORDS_GAP = 1.5  # times the height, between the columns of such a table
_MAX_CELL = 60  # characters of such a table's cells, on average: longer ones are prose
_GOING_ON = 0.35  # of the lines of prose begin with a small letter, at least
_PROSE_LINE = 20  # characters
_TIGHT = 1.3  # times the height: the pitch of the lines of one cell
_LOOSE = 1.25  # times that pitch: the pitch of rows
_MAX_NAME = 60  # characters of a column's name
_ALIGNED = 2.0  # points
_OFF_MIDDLE = 0.15  # times the width of columns: how far a name may be from their middle

_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_MARKER = re.compile(r"[^\w\s]{1,3}|[(\[]?(?:\d{1,3}|[A-Za-z]|[ivxIVX]+)[.)\]:]{1,2}|\[[\w+-]{1,8}\]")

_Cells: TypeAlias = "dict[int, str]"  # the text of each cell that has some, by its column


class _Column(NamedTuple):
    left: float
    right: float

    @property
    def middle(self) -> float:
        return (self.left + self.right) / 2


@dataclass
class TableRow:
    """A row of a table, or lines that are none.

    Attributes:
        row: What it comes from.
        cells: The text of each column; empty for lines that are no row.
    """

    row: Row
    cells: list[str]


def find_tables(rows: Sequence[Row]) -> Iterator[TableRow]:
    """Yield the rows of tables with their cells, and all other lines.

    A table has a figure after the first cell of one of its rows, or it has at least three rows of words in straight
    columns.

    Args:
        rows: What may be rows, in order.
    """
    for group in _groups(rows):
        start, end = _table_bounds(group)
        for row in group[:start]:
            yield TableRow(row, [])
        if start < end:
            yield from _table(group[start:end])
        for row in group[end:]:
            yield TableRow(row, [])


def _table_bounds(rows: Sequence[Row]) -> tuple[int, int]:
    """Return start and end of the rows that are a table: rows of words before its figures are its header."""
    if _is_table_of_words(rows):
        return 0, len(rows)
    with_figure = [number for number, row in enumerate(rows) if row.has_figure]
    if not with_figure or (len(with_figure) == 1 and _is_spread_text(rows[with_figure[0]])):
        return 0, 0
    start = max(0, with_figure[0] - _MAX_HEADER)
    end = with_figure[-1] + 1
    if end < len(rows) and _distance(rows[end - 1], rows[end]) < _TIGHT * _height(rows[end]):
        end += 1  # it may be further lines of the last row's cells
    return start, end


def _is_spread_text(row: Row) -> bool:
    """Return whether a row is a line of text that is spread over its column: most cells are small words."""
    small = sum(text.isalpha() and text.islower() for text in row.texts)
    return 2 * small > len(row.cells)


def _groups(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Yield rows of several cells that follow each other, and each other row by itself."""
    group: list[Row] = []
    for row in rows:
        is_single = len(row.cells) == 1 or _is_item(row)
        # One line may be the name of the rows below it, but not above names of columns.
        is_apart = is_single or len(row.above) > 1 or (bool(row.above) and not row.has_figure)
        if group and len(group[-1].cells) == 1 and not _is_inside(group[-1], row):
            is_apart = True
        if group and (is_apart or _distance(group[-1], row) > _MAX_DISTANCE * _height(row)):
            yield group
            group = []
        group.append(row)
        if is_single and not _may_be_name(row):
            yield group
            group = []
    if group:
        yield group


def _may_be_name(row: Row) -> bool:
    """Return whether a line may be a name above several columns of the rows below it."""
    return len(row.cells) == 1 and len(row.cells[0]) == 1 and len(row.texts[0]) <= _MAX_NAME


def _is_inside(row: Row, following: Row) -> bool:
    """Return whether a line is above other cells of the next row than the first."""
    return len(following.cells) > 2 and _extent(row.cells[0]).left > _extent(following.cells[0]).right


def _is_item(row: Row) -> bool:
    """Return whether a row is an item of a list, or a name with a colon and its value: both are clear as a line."""
    if len(row.cells) != 2 or row.has_figure:
        return False
    first = row.texts[0]
    return first.endswith((":", "：")) or _MARKER.fullmatch(first) is not None


def _distance(row: Row, following: Row) -> float:
    """Return how far the first line of a row is below the last one of another; a row above it is far."""
    bottom = min(line.bottom for cell in row.cells for line in cell)
    top_line = max((line for cell in following.cells for line in cell), key=lambda line: line.top)
    distance = bottom - top_line.bottom
    return distance if distance > 0 else float("inf")


def _height(row: Row) -> float:
    return row.cells[0][0].height


# --- tables of words alone ---


def _is_table_of_words(rows: Sequence[Row]) -> bool:
    if len(rows) < _MIN_ROWS:
        return False
    columns = len(rows[0].cells)
    if columns < 2 or any(len(row.cells) > columns for row in rows):
        return False
    full = [row for row in rows if len(row.cells) == columns]
    if len(full) < _MIN_ROWS or any(len(row.cells) < 2 for row in rows):
        return False
    texts = [text for row in full for text in row.texts]
    if sum(map(len, texts)) > _MAX_CELL * len(texts):
        return False
    if _is_prose(texts[columns:]):
        return False
    return all(_is_straight(full, column) for column in range(columns)) and all(map(_has_wide_gaps, full))


def _is_prose(texts: Sequence[str]) -> bool:
    """Return whether texts are lines that go on in other ones."""
    going_on = sum(text[0].islower() for text in texts)
    return going_on > _GOING_ON * len(texts) and sum(map(len, texts)) > _PROSE_LINE * len(texts)


def _is_straight(rows: Sequence[Row], column: int) -> bool:
    """Return whether the cells of a column begin, end or have their middle at one place."""
    columns = [_extent(row.cells[column]) for row in rows]
    for places in (
        [column.left for column in columns],
        [column.right for column in columns],
        [column.middle for column in columns],
    ):
        if max(places) - min(places) < _ALIGNED:
            return True
    return False


def _has_wide_gaps(row: Row) -> bool:
    for cell, following in pairwise(row.cells):
        if _extent(following).left - _extent(cell).right < _MIN_WORDS_GAP * _height(row):
            return False
    return True


# --- columns ---


def _extent(cell: Cell) -> _Column:
    return _Column(
        left=min(line.left for line in cell),
        right=max(line.right for line in cell),
    )


def _table(rows: Sequence[Row]) -> Iterator[TableRow]:
    """Yield the rows of a table with their cells by columns if these are clear, else with the cells that they have."""
    if _is_mostly_words(rows):
        yield from _unaligned(rows)
        return
    if len(rows) > 2 and len(rows[0].cells) < len(rows[1].cells) and not rows[0].has_figure:
        columns = _find_columns(rows[1:])
        lines = _join_header(rows[0], _align(rows[1:], columns), columns)
        if lines:
            yield from _rows(lines, columns)
            return
    if len(rows[0].cells) == 1:
        yield TableRow(rows[0], [])
        rows = rows[1:]
    columns = _find_columns(rows)
    lines = _align(rows, columns)
    yield from _rows(lines, columns) if lines else _unaligned(rows)


def _align(rows: Sequence[Row], columns: Sequence[_Column]) -> list[_Line]:
    """Return the rows with their cells by columns, or nothing if these are not clear."""
    places = [_place(row, columns) for row in rows]
    if not all(places):
        return []
    lines = _join_wrapped([_Line(row, cells) for row, cells in zip(rows, places, strict=True)])
    _move_names(lines, len(columns))
    filled = {column for line in lines for column in line.cells}
    return lines if len(filled) <= max(len(row.cells) for row in rows) + 1 else []


def _move_names(lines: Sequence[_Line], columns: int) -> None:
    """Move names of columns over their figures, which may be set to the other side of the column."""
    header, *others = lines
    if header.has_figure or not others:
        return
    below = {column for line in others for column in line.cells}
    for column in range(columns - 1, -1, -1):
        if column in below or column not in header.cells:
            continue
        for other in (column + 1, column - 1):
            if other in below and other not in header.cells:
                header.cells[other] = header.cells.pop(column)
                break


def _rows(lines: Sequence[_Line], columns: Sequence[_Column]) -> Iterator[TableRow]:
    """Yield the rows, without columns that are left empty because a wide cell is above them."""
    filled = [column for column in range(len(columns)) if any(column in line.cells for line in lines)]
    for line in lines:
        yield TableRow(line.row, [line.cells.get(column, "") for column in filled])


def _unaligned(rows: Sequence[Row]) -> Iterator[TableRow]:
    for row in rows:
        yield TableRow(row, row.texts if row.has_figure else [])


def _is_mostly_words(rows: Sequence[Row]) -> bool:
    """Return whether few rows have figures, as in a text with wide spaces; a table of words alone is no such text."""
    with_figure = sum(row.has_figure for row in rows)
    return 0 < with_figure < len(rows) - with_figure - 1


@dataclass
class _Line:
    row: Row
    cells: _Cells

    @property
    def has_figure(self) -> bool:
        return any(is_figure(text) and not _YEAR.fullmatch(text) for text in self.cells.values())


def _find_columns(rows: Sequence[Row]) -> list[_Column]:
    """Return the columns: what the narrow cells below each other take together."""
    columns: list[_Column] = []
    extents = [_extent(cell) for row in rows for cell in row.cells]
    for extent in sorted(extents, key=lambda extent: extent.right - extent.left):
        hits = _hits(columns, extent)
        if not hits:
            columns.append(extent)
        elif len(hits) == 1:
            column = columns[hits[0]]
            columns[hits[0]] = _Column(min(column.left, extent.left), max(column.right, extent.right))
    return _merge(sorted(columns), rows)


def _merge(columns: list[_Column], rows: Sequence[Row]) -> list[_Column]:
    """Return the columns, with neighbours as one that no row fills both and that one of the first column's cells spans.

    So are labels of rows that are set in from the left.
    """
    first_cells = [_extent(row.cells[0]) for row in rows]
    while len(columns) > 1:
        first, second = columns[:2]
        are_filled = any(
            any(_overlap(first, _extent(cell)) > 0 for cell in row.cells)
            and any(_overlap(second, _extent(cell)) > 0 and _overlap(first, _extent(cell)) <= 0 for cell in row.cells)
            for row in rows
        )
        are_spanned = any(_overlap(first, cell) > 0 and _overlap(second, cell) > 0 for cell in first_cells)
        if are_filled or not are_spanned:
            break
        columns[:2] = [_Column(first.left, max(first.right, second.right))]
    return columns


def _hits(columns: Sequence[_Column], extent: _Column) -> list[int]:
    """Return the columns that a cell is in, at least in part."""
    left, right = extent
    return [number for number, column in enumerate(columns) if column.left < right and left < column.right]


def _overlap(column: _Column, other: _Column) -> float:
    return min(column.right, other.right) - max(column.left, other.left)


def _place(row: Row, columns: Sequence[_Column]) -> _Cells:
    """Return a row's cells by their columns, or nothing if two of them are in one."""
    cells: _Cells = {}
    for cell in row.cells:
        extent = _extent(cell)
        hits = _hits(columns, extent)
        if not hits or hits[0] in cells:
            return {}
        cells[hits[0]] = cell_text(cell)
    return cells


# --- cells and names of several lines ---


def _join_wrapped(lines: Sequence[_Line]) -> list[_Line]:
    """Join rows that are further lines of the cells of the row above."""
    joined: list[_Line] = []
    pitches = [_distance(line.row, following.row) for line, following in pairwise(lines)]
    for number, line in enumerate(lines):
        if number and _is_further(joined, line, lines[number + 1 :], pitches[number - 1], pitches):
            _append(joined[-1], line)
        else:
            joined.append(_Line(line.row, dict(line.cells)))
    return joined


def _is_further(
    joined: Sequence[_Line],
    line: _Line,
    following: Sequence[_Line],
    pitch: float,
    pitches: Sequence[float],
) -> bool:
    """Return whether the cells of the last row go on in a line, which is nearer to it than rows are to each other."""
    if pitch > _TIGHT * _height(line.row) or line.row.above or line.has_figure:
        return False
    above = joined[-1]
    wide_pitches = sum(other > _LOOSE * pitch for other in pitches)
    if set(line.cells) < set(above.cells):
        return 0 not in line.cells or wide_pitches > 0
    is_header = len(joined) == 1 and not above.has_figure and any(other.has_figure for other in following[:1])
    if is_header:
        return set(above.cells) < set(line.cells) or wide_pitches > 0
    # One pitch may be the one below the names of the columns.
    return set(above.cells) == set(line.cells) and wide_pitches > 1 and not above.has_figure


def _append(line: _Line, further: _Line) -> None:
    for column, text in further.cells.items():
        line.cells[column] = join_texts(part for part in (line.cells.get(column, ""), text) if part)
    # The row then has the pieces of both, so that the next distance is from its last line.
    line.row = Row(cells=[*line.row.cells, *further.row.cells], above=line.row.above)


def _join_header(above: Row, lines: Sequence[_Line], columns: Sequence[_Column]) -> list[_Line]:
    """Join names above several columns to the names below them: `Dues` above `1880` and `1881` is `Dues 1880`...

    Returns:
        The rows with these names as the first, or nothing if the row above is no such names.
    """
    if not lines or lines[0].has_figure or not all(map(_may_be_group, above.texts)):
        return []
    first = lines[0]
    groups = [_columns_below(_extent(cell), first.cells, columns) for cell in above.cells]
    below = [column for group in groups for column in group]
    if not all(groups) or len(below) != len(set(below)) or max(map(len, groups)) < 2:
        return []
    header = dict(first.cells)
    for text, group in zip(above.texts, groups, strict=True):
        for column in group:
            header[column] = f"{text} {first.cells[column]}"
    row = Row(cells=[*above.cells, *first.row.cells], above=above.above)
    return [_Line(row, header), *lines[1:]]


def _may_be_group(name: str) -> bool:
    """Return whether a text may be a name above several columns: it has no numbers, unless it is a year."""
    return len(name) <= _MAX_NAME and (not any(map(str.isdigit, name)) or _YEAR.fullmatch(name) is not None)


def _columns_below(name: _Column, cells: _Cells, columns: Sequence[_Column]) -> list[int]:
    """Return the columns in whose middle a name is, as few as possible."""
    best: list[int] = []
    best_score = float("inf")
    filled = sorted(cells)
    for start in range(len(filled)):
        for end in range(start + 1, len(filled) + 1):
            group = filled[start:end]
            left, right = columns[group[0]].left, columns[group[-1]].right
            distance = abs((left + right) / 2 - name.middle)
            score = distance + _OFF_MIDDLE * (right - left)
            if distance < max(_OFF_MIDDLE * (right - left), _ALIGNED) and score < best_score:
                best, best_score = group, score
    return best
