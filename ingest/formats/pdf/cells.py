"""Puts the cells of a table into columns by their places, so that an empty cell stays a cell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import TypeAlias

from arag.ingest.formats.joining import join_texts
from arag.ingest.formats.pdf.fonts import Fonts
from arag.ingest.formats.pdf.rows import TIGHT, Extent, Row, extents_of, is_figure
from arag.ingest.formats.table_headers import MAX_ROWS, find_header
from arag.ingest.formats.tables import cells_with_names, cells_with_text
from arag.text.normalise import escape_bars

MAX_NAME = 60  # characters of a column's name

_LOOSE = 1.25  # times the pitch of the lines of a cell: the pitch of rows
_ALIGNED = 2.0  # points
_OFF_MIDDLE = 0.15  # times the width of columns: how far a name may be from their middle
_MAX_COLUMNS = 40  # below names that span several: more are not compared
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")

_Cells: TypeAlias = "dict[int, str]"  # the text of each cell that has some, by its column


@dataclass
class TableRow:
    """A row of a table, or lines outside tables.

    Attributes:
        row: What it comes from.
        cells: The text of each column; none for lines outside tables.
        is_entry: Whether it is an entry of contents.
    """

    row: Row
    cells: list[str] = field(default_factory=list)
    is_entry: bool = False


@dataclass
class _Line:
    """A row, and the text of its cells by their columns."""

    row: Row
    cells: _Cells

    @property
    def has_figure(self) -> bool:
        """Whether a cell is a number. Years also name columns, so they do not count."""
        return any(map(_is_value, self.cells.values()))

    def append(self, further: _Line) -> None:
        """Add further lines of the cells."""
        for column, text in further.cells.items():
            above = self.cells.get(column, "")
            self.cells[column] = join_texts(filter(None, [above, text]))
        # The row then has the pieces of both, so that the next distance is from its last line.
        self.row = Row(
            cells=[*self.row.cells, *further.row.cells],
            above=self.row.above,
        )


def _is_value(text: str) -> bool:
    """Return whether a text is a number other than a year."""
    if _YEAR.fullmatch(text):
        return False
    return is_figure(text)


def align_cells(rows: Sequence[Row]) -> list[TableRow]:
    """Return the rows of a table with the text of each column, or nothing if the columns are not clear.

    A row that only has further lines of the cells above it is part of that row. Names above several columns are part of
    their names: `Dues` above `1880` and `1881` makes `Dues 1880` and `Dues 1881`.

    Args:
        rows: The rows, from top to bottom.
    """
    first, *others = rows
    if len(others) > 1 and _may_be_groups(first, others[0]):
        columns = _find_columns(others)
        lines = _align(others, columns)
        with_names = _join_header(first, lines, columns)
        if with_names:
            return _fill(with_names)
    is_title = len(first.cells) == 1
    if not is_title:
        columns = _find_columns(rows)
        lines = _align(rows, columns)
        return _fill(lines)
    columns = _find_columns(others)
    lines = _align(others, columns)
    if not lines:
        return []
    title = TableRow(first)
    return [title, *_fill(lines)]


def _may_be_groups(first: Row, second: Row) -> bool:
    """Return whether the first row may have names above several columns: it has fewer cells, and no values."""
    if len(first.cells) >= len(second.cells):
        return False
    return not any(map(_is_value, first.texts))


def name_cells(rows: Iterable[TableRow], fonts: Fonts) -> None:
    """Put the names of the columns before the cells below them, if the first rows of a table give names.

    Cells in columns without names are clear by their places alone. One such column stays clear without these.

    Args:
        rows: The rows of a table, and lines between them.
        fonts: Those of the page.
    """
    table = [row for row in rows if row.cells]
    texts = [cells_with_text(row.cells) for row in table]
    header = find_header(
        texts[:MAX_ROWS],
        is_marked=_has_bold_header(table, fonts),
        is_sheet=False,
    )
    below = texts[header.rows :]
    for row in table:
        row.cells = list(map(escape_bars, row.cells))
    if not header.names or not _are_named(below, header.names):
        return
    for row, cells in zip(table[header.rows :], below, strict=True):
        is_label = len(cells) == 1  # above further rows
        if not is_label:
            row.cells = cells_with_names(cells, header.names)


def _has_bold_header(table: Sequence[TableRow], fonts: Fonts) -> bool:
    """Return whether the first row of a table is bold above one that is not, and has no values."""
    has_values = any(map(_is_value, table[0].cells))
    are_bold = [fonts.are_bold(row.row.words) for row in table[:2]]
    return are_bold == [True, False] and not has_values


def _are_named(rows: Iterable[Mapping[int, str]], names: Mapping[int, str]) -> bool:
    """Return whether all columns of rows but one have names, and a row fills more than half of these.

    A line of a text that is spread over its column has many gaps, and is above lines with few.
    """
    columns: set[int] = set()
    most_cells = 0
    for cells in rows:
        columns.update(cells)
        most_cells = max(most_cells, len(cells))
    unnamed = columns - set(names)
    return len(unnamed) <= 1 and 2 * most_cells > len(names)


def _align(rows: Sequence[Row], columns: Sequence[Extent]) -> list[_Line]:
    """Return the rows with their cells by columns, or nothing if these are not clear."""
    lines: list[_Line] = []
    for row in rows:
        cells = _place(row, columns)
        if not cells:
            return []
        lines.append(_Line(row, cells))
    lines = _join_wrapped(lines)
    _move_names(lines)
    most_cells = max(len(row.cells) for row in rows)
    filled = _filled_columns(lines)
    is_clear = len(filled) <= most_cells + 1
    return lines if is_clear else []


def _place(row: Row, columns: Sequence[Extent]) -> _Cells:
    """Return the texts of a row by their columns, or nothing if two of them are in one."""
    cells: _Cells = {}
    for text, extent in zip(row.texts, row.extents, strict=True):
        hits = _hits(columns, extent)
        if not hits:
            return {}
        column = hits[0]
        if column in cells:
            return {}
        cells[column] = text
    return cells


def _fill(lines: Sequence[_Line]) -> list[TableRow]:
    """Return the rows with all their cells, without columns that are left empty because a wide cell is above them."""
    filled = sorted(_filled_columns(lines))
    rows: list[TableRow] = []
    for line in lines:
        cells = [line.cells.get(column, "") for column in filled]
        rows.append(TableRow(line.row, cells))
    return rows


def _filled_columns(lines: Iterable[_Line]) -> set[int]:
    """Return the columns in which a row has text."""
    filled: set[int] = set()
    for line in lines:
        filled.update(line.cells)
    return filled


def _move_names(lines: Sequence[_Line]) -> None:
    """Move names of columns over their figures, which may be set to the other side of the column."""
    header, *others = lines
    if header.has_figure:
        return
    named = set(header.cells)
    filled = _filled_columns(others)
    free = filled - named
    without_figures = named - filled
    for column in sorted(without_figures, reverse=True):
        for other in (column + 1, column - 1):
            if other in free:
                header.cells[other] = header.cells.pop(column)
                free.remove(other)
                break


# --- columns ---


def _find_columns(rows: Sequence[Row]) -> list[Extent]:
    """Return the columns: what the narrow cells below each other take together."""
    extents = extents_of(rows)
    extents.sort(key=lambda extent: extent.width)
    columns: list[Extent] = []
    for extent in extents:
        hits = _hits(columns, extent)
        if not hits:
            columns.append(extent)
        elif len(hits) == 1:
            (number,) = hits
            columns[number] = columns[number].union(extent)
    columns.sort()
    return _join_label_columns(columns, rows)


def _join_label_columns(columns: list[Extent], rows: Sequence[Row]) -> list[Extent]:
    """Return the columns, with the first ones as one if they only have labels that are set in from the left."""
    while len(columns) > 1:
        first, second, *others = columns
        if not _are_of_labels(first, second, rows):
            break
        columns = [first.union(second), *others]
    return columns


def _are_of_labels(first: Extent, second: Extent, rows: Iterable[Row]) -> bool:
    """Return whether no row has cells in both of two columns, and a longer label is above both."""
    both = (first, second)
    has_long_label = False
    for row in rows:
        filled: set[int] = set()
        for extent in row.extents:
            filled.update(_hits(both, extent)[:1])
        fills_both = len(filled) == len(both)
        if fills_both:
            return False
        label = row.extents[0]
        is_long = len(_hits(both, label)) == len(both)
        has_long_label |= is_long
    return has_long_label


def _hits(columns: Iterable[Extent], extent: Extent) -> list[int]:
    """Return the columns that a cell is in, at least in part."""
    hits: list[int] = []
    for number, column in enumerate(columns):
        if column.overlaps(extent):
            hits.append(number)
    return hits


# --- cells of several lines ---


def _join_wrapped(lines: Sequence[_Line]) -> list[_Line]:
    """Join rows that are further lines of the cells of the row above."""
    pitches = [line.row.distance(following.row) for line, following in pairwise(lines)]
    joined = [lines[0]]
    for number, line in enumerate(lines[1:], 1):
        pitch = pitches[number - 1]
        max_pitch = TIGHT * line.row.height
        following = lines[number + 1 :]
        wide_pitches = _count_above(_LOOSE * pitch, pitches)
        is_near = pitch <= max_pitch
        if is_near and _is_further(joined, line, following, wide_pitches):
            joined[-1].append(line)
        else:
            joined.append(line)
    return joined


def _count_above(limit: float, numbers: Iterable[float]) -> int:
    return sum(number > limit for number in numbers)


def _is_further(
    joined: Sequence[_Line],
    line: _Line,
    following: Sequence[_Line],
    wide_pitches: int,
) -> bool:
    """Return whether the cells of the last row go on in a line, which is nearer to it than rows are to each other."""
    if line.row.above or line.has_figure:
        return False
    above = joined[-1]
    columns = set(line.cells)
    columns_above = set(above.cells)
    has_wide_pitch = wide_pitches > 0
    if columns < columns_above:
        has_label = 0 in columns
        return has_wide_pitch or not has_label
    if above.has_figure:
        return False
    is_first = len(joined) == 1
    is_before_figures = any(other.has_figure for other in following[:1])
    if is_first and is_before_figures:
        return has_wide_pitch or columns > columns_above
    # One pitch may be the one below the names of the columns.
    return wide_pitches > 1 and columns == columns_above


# --- names above several columns ---


def _join_header(above: Row, lines: Sequence[_Line], columns: Sequence[Extent]) -> list[_Line]:
    """Join names above several columns to the names below them: `Dues` above `1880` and `1881` is `Dues 1880`...

    Returns:
        The rows with these names as the first, or nothing if the row above has no such names.
    """
    if not lines or len(columns) > _MAX_COLUMNS:
        return []
    first, *others = lines
    are_names = all(map(_may_be_group, above.texts))
    if first.has_figure or not are_names:
        return []
    groups = [_columns_below(extent, first.cells, columns) for extent in above.extents]
    most_columns = max(map(len, groups))
    if most_columns < 2 or not _are_apart(groups):
        return []
    cells = dict(first.cells)
    for text, group in zip(above.texts, groups, strict=True):
        for column in group:
            name = first.cells.get(column, "")
            cells[column] = f"{text} {name}".strip()
    row = Row(
        cells=[*above.cells, *first.row.cells],
        above=above.above,
    )
    return [_Line(row, cells), *others]


def _may_be_group(name: str) -> bool:
    """Return whether a text may be a name above several columns: it has no numbers, unless it is a year."""
    if len(name) > MAX_NAME:
        return False
    if _YEAR.fullmatch(name):
        return True
    return not any(map(str.isdigit, name))


def _are_apart(groups: Sequence[Sequence[int]]) -> bool:
    """Return whether each name has columns of its own."""
    taken = list(chain.from_iterable(groups))
    are_different = len(taken) == len(set(taken))
    return are_different and all(groups)


def _columns_below(name: Extent, cells: _Cells, columns: Sequence[Extent]) -> list[int]:
    """Return the columns in whose middle a name is, as few as possible; several have names of their own."""
    hits = _hits(columns, name)
    best: list[int] = []
    best_score = float("inf")
    for group in _runs(cells, len(columns)):
        first_column = columns[group[0]]
        last_column = columns[group[-1]]
        span = first_column.union(last_column)
        distance = abs(span.middle - name.middle)
        tolerance = _OFF_MIDDLE * span.width
        is_in_middle = distance < max(tolerance, _ALIGNED)
        is_above = is_in_middle or hits == group
        score = distance + tolerance
        if is_above and score < best_score:
            best = group
            best_score = score
    return best


def _runs(cells: _Cells, columns: int) -> Iterator[list[int]]:
    """Yield each column, and all columns beside each other that have cells."""
    for start in range(columns):
        yield [start]
        end = start
        while end in cells and end + 1 in cells:
            end += 1
            yield list(range(start, end + 1))
