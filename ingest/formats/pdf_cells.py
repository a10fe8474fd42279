"""Puts the cells of a table into columns by their places, so that an empty cell stays a cell."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from arag.ingest.formats.joining import join_texts
from arag.ingest.formats.pdf_rows import TIGHT, Extent, Row, is_figure

MAX_NAME = 60  # characters of a column's name

_LOOSE = 1.25  # times that pitch: the pitch of rows
_ALIGNED = 2.0  # points
_OFF_MIDDLE = 0.15  # times the width of columns: how far a name may be from their middle
_MAX_COLUMNS = 40  # below names that span several: more are not compared
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")

_Cells: TypeAlias = "dict[int, str]"  # the text of each cell that has some, by its column


@dataclass
class _Line:
    """A row, and the text of its cells by their columns."""

    row: Row
    cells: _Cells

    @property
    def has_figure(self) -> bool:
        """Whether a cell is a number. Years also name columns, so they do not count."""
        return any(is_figure(text) and not _YEAR.fullmatch(text) for text in self.cells.values())


def align_cells(rows: Sequence[Row]) -> list[tuple[Row, list[str]]]:
    """Return the rows of a table with the text of each column, or nothing if the columns are not clear.

    A row that only has further lines of the cells above it is part of that row. Names above several columns are part of
    their names: `Dues` above `1880` and `1881` makes `Dues 1880` and `Dues 1881`.

    Args:
        rows: The rows, from top to bottom.
    """
    first, *others = rows
    if len(others) > 1 and len(first.cells) < len(others[0].cells) and not first.has_figure:
        columns = _find_columns(others)
        lines = _join_header(first, _align(others, columns), columns)
        if lines:
            return _fill(lines)
    if len(first.cells) == 1:
        lines = _align(others, _find_columns(others))
        return [(first, []), *_fill(lines)] if lines else []
    return _fill(_align(rows, _find_columns(rows)))


def _fill(lines: Sequence[_Line]) -> list[tuple[Row, list[str]]]:
    """Return the rows with all their cells, without columns that are left empty because a wide cell is above them."""
    filled = sorted({column for line in lines for column in line.cells})
    return [(line.row, [line.cells.get(column, "") for column in filled]) for line in lines]


def _align(rows: Sequence[Row], columns: Sequence[Extent]) -> list[_Line]:
    """Return the rows with their cells by columns, or nothing if these are not clear."""
    lines = [_Line(row, _place(row, columns)) for row in rows]
    if not all(line.cells for line in lines):
        return []
    lines = _join_wrapped(lines)
    _move_names(lines, len(columns))
    filled = {column for line in lines for column in line.cells}
    is_clear = len(filled) <= max(len(row.cells) for row in rows) + 1
    return lines if is_clear else []


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


def _find_columns(rows: Sequence[Row]) -> list[Extent]:
    """Return the columns: what the narrow cells below each other take together."""
    columns: list[Extent] = []
    extents = [extent for row in rows for extent in row.extents]
    for extent in sorted(extents, key=lambda extent: extent.right - extent.left):
        hits = _hits(columns, extent)
        if not hits:
            columns.append(extent)
        elif len(hits) == 1:
            column = columns[hits[0]]
            columns[hits[0]] = Extent(min(column.left, extent.left), max(column.right, extent.right))
    return _merge(sorted(columns), rows)


def _merge(columns: list[Extent], rows: Sequence[Row]) -> list[Extent]:
    """Return the columns, with the first ones as one if they only have labels that are set in from the left.

    No row has cells in both of them, and a longer label is above both.
    """
    while len(columns) > 1:
        first, second, *others = columns
        labels = [_hits((first, second), row.extents[0]) for row in rows]
        with_both = [
            row for row in rows if {0, 1} <= {hit for extent in row.extents for hit in _hits(columns[:2], extent)[:1]}
        ]
        if with_both or [0, 1] not in labels:
            break
        columns = [Extent(first.left, max(first.right, second.right)), *others]
    return columns


def _fills_both(row: Row, first: Extent, second: Extent) -> bool:
    """Return whether a row has a cell in each of two columns."""
    places = {tuple(_hits((first, second), extent)) for extent in row.extents}
    return (1,) in places and bool({(0,), (0, 1)} & places)


def _hits(columns: Sequence[Extent], extent: Extent) -> list[int]:
    """Return the columns that a cell is in, at least in part."""
    left, right = extent
    return [number for number, column in enumerate(columns) if column.left < right and left < column.right]


def _place(row: Row, columns: Sequence[Extent]) -> _Cells:
    """Return the texts of a row by their columns, or nothing if two of them are in one."""
    cells: _Cells = {}
    for text, extent in zip(row.texts, row.extents, strict=True):
        hits = _hits(columns, extent)
        if not hits or hits[0] in cells:
            return {}
        cells[hits[0]] = text
    return cells


# --- cells and names of several lines ---


def _join_wrapped(lines: Sequence[_Line]) -> list[_Line]:
    """Join rows that are further lines of the cells of the row above."""
    joined: list[_Line] = []
    pitches = [line.row.distance(following.row) for line, following in pairwise(lines)]
    for number, line in enumerate(lines):
        if number and _is_further(joined, line, lines[number + 1 : number + 2], pitches[number - 1], pitches):
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
    if pitch > TIGHT * line.row.height or line.row.above or line.has_figure:
        return False
    above = joined[-1]
    wide_pitches = sum(other > _LOOSE * pitch for other in pitches)
    if set(line.cells) < set(above.cells):
        return 0 not in line.cells or wide_pitches > 0
    is_header = len(joined) == 1 and not above.has_figure and any(other.has_figure for other in following)
    if is_header:
        return set(above.cells) < set(line.cells) or wide_pitches > 0
    # One pitch may be the one below the names of the columns.
    return set(above.cells) == set(line.cells) and wide_pitches > 1 and not above.has_figure


def _append(line: _Line, further: _Line) -> None:
    for column, text in further.cells.items():
        line.cells[column] = join_texts(part for part in (line.cells.get(column, ""), text) if part)
    # The row then has the pieces of both, so that the next distance is from its last line.
    line.row = Row(cells=[*line.row.cells, *further.row.cells], above=line.row.above)


def _join_header(above: Row, lines: Sequence[_Line], columns: Sequence[Extent]) -> list[_Line]:
    """Join names above several columns to the names below them: `Dues` above `1880` and `1881` is `Dues 1880`...

    Returns:
        The rows with these names as the first, or nothing if the row above has no such names.
    """
    if not lines or lines[0].has_figure or not all(map(_may_be_group, above.texts)):
        return []
    first = lines[0]
    if len(columns) > _MAX_COLUMNS:
        return []
    groups = [_columns_below(extent, first.cells, columns) for extent in above.extents]
    below = [column for group in groups for column in group]
    if not all(groups) or len(below) != len(set(below)) or max(map(len, groups)) < 2:
        return []
    header = dict(first.cells)
    for text, group in zip(above.texts, groups, strict=True):
        for column in group:
            header[column] = f"{text} {first.cells.get(column, '')}".strip()
    row = Row(cells=[*above.cells, *first.row.cells], above=above.above)
    return [_Line(row, header), *lines[1:]]


def _may_be_group(name: str) -> bool:
    """Return whether a text may be a name above several columns: it has no numbers, unless it is a year."""
    return len(name) <= MAX_NAME and (not any(map(str.isdigit, name)) or _YEAR.fullmatch(name) is not None)


def _columns_below(name: Extent, cells: _Cells, columns: Sequence[Extent]) -> list[int]:
    """Return the columns in whose middle a name is, as few as possible; several have names of their own."""
    best: list[int] = []
    best_score = float("inf")
    for start in range(len(columns)):
        for end in range(start + 1, len(columns) + 1):
            group = list(range(start, end))
            if len(group) > 1 and not set(group) <= set(cells):
                break
            left, right = columns[start].left, columns[end - 1].right
            distance = abs((left + right) / 2 - name.middle)
            score = distance + _OFF_MIDDLE * (right - left)
            is_above = distance < max(_OFF_MIDDLE * (right - left), _ALIGNED) or _hits(columns, name) == group
            if is_above and score < best_score:
                best, best_score = group, score
    return best
