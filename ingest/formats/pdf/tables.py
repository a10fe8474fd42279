"""Finds the tables of a page of a PDF among the rows that may be theirs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise

from arag.ingest.formats.pdf.cells import MAX_NAME, TableRow, align_cells, name_cells
from arag.ingest.formats.pdf.contents import begins_contents, is_contents, is_entry
from arag.ingest.formats.pdf.fonts import Fonts
from arag.ingest.formats.pdf.pieces import STRAIGHT
from arag.ingest.formats.pdf.rows import TIGHT, Extent, Row, extents_of
from arag.text.contents import is_heading_of_contents
from arag.text.normalise import escape_bars

_MAX_HEADER = 3  # rows
_MAX_DISTANCE = 4  # times the height of the type: rows that are farther apart are of two tables
_MIN_ROWS = 3  # of a table of words alone
_MIN_FULL_ROWS = 2  # of these, with a cell in each column
_MIN_NAMES = 3  # of columns, above rows that may lack most cells
_MIN_WORDS_GAP = 1.5  # times the height, between the columns of such a table
_MAX_CELL = 60  # characters of such a table's cells, on average: longer ones are prose
_MAX_DIGITS = 6  # of the number of a line of code
_GOING_ON = 0.35  # of the lines of prose begin with a small letter, at least
_PROSE_LINE = 20  # characters

_NO_TABLE = range(0)
_REFERENCE = re.compile(r"\[[\w+-]{1,8}\]")
_BULLET = re.compile(r"[•‣◦▪■●○►·*]")
_MARKER_OR_NAME = re.compile(r"[^\w\s]{1,3}|[(\[]?(?:\d{1,3}|[A-Za-z]|[ivxIVX]+)[.)\]:]{1,2}|.*[:：]")


def find_tables(rows: Iterable[Row], fonts: Fonts) -> Iterator[TableRow]:
    """Yield the rows of tables with their cells, and all other lines.

    A table has a figure after the first cell of one of its rows, or it has at least three rows of words in straight
    columns.

    Args:
        rows: What may be rows, in order.
        fonts: Those of the page.
    """
    is_in_contents = False
    for group in _groups(rows):
        is_below_head = _is_contents_head(group[0])
        head = group[: int(is_below_head)]
        entries = group[len(head) :]
        is_in_contents |= is_below_head
        if entries and is_contents(entries, is_in_contents=is_in_contents):
            yield from _table(head, fonts)
            yield from map(_entry, entries)
            is_in_contents = True
        else:
            table = _find_table(group)
            yield from map(TableRow, group[: table.start])
            yield from _table(group[table.start : table.stop], fonts)
            yield from map(TableRow, group[table.stop :])
            is_in_contents = is_below_head or begins_contents(group[-1].texts[-1])


def _entry(row: Row) -> TableRow:
    return TableRow(row, is_entry=is_entry(row))


def _table(rows: Sequence[Row], fonts: Fonts) -> Iterator[TableRow]:
    """Yield the rows of a table, with their cells by columns if these are clear, else with those that they have."""
    aligned: list[TableRow] = []
    if rows and not _is_mostly_words(rows):
        aligned = align_cells(rows)
    if aligned:
        name_cells(aligned, fonts)
        yield from aligned
    else:
        yield from map(_row_with_its_cells, rows)


def _row_with_its_cells(row: Row) -> TableRow:
    """Return a row with the cells that it has if one of them is a figure."""
    if not row.has_figure:
        return TableRow(row)
    return TableRow(row, list(map(escape_bars, row.texts)))


def _is_mostly_words(rows: Sequence[Row]) -> bool:
    """Return whether few rows have figures, as in a text with wide spaces; a table of words alone has none."""
    with_figure = len(_numbers_of_rows_with_figures(rows))
    others = len(rows) - with_figure
    return 0 < with_figure < others - 1


# --- groups of rows that may be one table ---


def _groups(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield rows of several cells that follow each other, and each other row by itself."""
    group: list[Row] = []
    for row in rows:
        if group and _begins_group(group, row):
            yield group
            group = []
        group.append(row)
    if group:
        yield group


def _begins_group(group: Sequence[Row], row: Row) -> bool:
    """Return whether a row does not belong to the rows above it."""
    if _is_line(group[0]) and not _may_be_name(group[0]):
        return True
    above = group[-1]
    if _goes_on(above, row):
        return False
    return _is_line(row) or _is_apart(above, row)


def _goes_on(above: Row, row: Row) -> bool:
    """Return whether a line is the next one of a cell of the row above it, other than the first."""
    is_bare_line = len(row.cells) == 1 and not row.above
    if not is_bare_line or len(above.cells) == 1:
        return False
    max_distance = TIGHT * row.height
    if above.distance(row) > max_distance:
        return False
    (line,) = row.extents
    other_cells = above.extents[1:]
    return line.begins_with_one_of(other_cells)


def _is_apart(above: Row, row: Row) -> bool:
    """Return whether a row of several cells is apart from the row above it."""
    # One line may be the name of the rows below it, but not above names of columns.
    max_lines = 1 if row.has_figure else 0
    if len(row.above) > max_lines:
        return True
    is_line_above = len(above.cells) == 1
    if is_line_above and not _is_inside(above, row):
        return True
    max_distance = _MAX_DISTANCE * row.height
    return above.distance(row) > max_distance


def _is_line(row: Row) -> bool:
    return len(row.cells) == 1 or _is_item(row)


def _may_be_name(row: Row) -> bool:
    """Return whether a line may be a name above several columns of the rows below it."""
    return row.is_one_line and len(row.texts[0]) <= MAX_NAME


def _is_inside(row: Row, following: Row) -> bool:
    """Return whether a line is above other cells of the next row than the first."""
    line = row.extents[0]
    first_cell = following.extents[0]
    has_several_others = len(following.cells) > 2
    return has_several_others and line.left > first_cell.right


def _is_item(row: Row) -> bool:
    """Return whether a row is an item of a list, or a name with a colon and its value: both are clear as a line."""
    first = row.texts[0]
    cells = len(row.cells)
    if _REFERENCE.fullmatch(first):
        return True
    if row.has_figure or cells < 2:
        return False
    beginning = _BULLET if cells > 2 else _MARKER_OR_NAME
    return beginning.fullmatch(first) is not None


# --- which rows of a group are a table ---


def _find_table(rows: Sequence[Row]) -> range:
    """Return the rows that are a table: rows of words before its figures are its header."""
    if _is_table_of_words(rows):
        return range(len(rows))
    with_figure = _numbers_of_rows_with_figures(rows)
    if not with_figure or _is_item(rows[0]):
        return _NO_TABLE
    first = with_figure[0]
    last = with_figure[-1]
    is_one_row = first == last
    if is_one_row and (rows[first].ends_with_number or _is_spread_text(rows[first])):
        return _NO_TABLE
    start = max(0, first - _MAX_HEADER)
    end = _find_end(rows, start, last)
    return range(start, end)


def _numbers_of_rows_with_figures(rows: Iterable[Row]) -> list[int]:
    numbers: list[int] = []
    for number, row in enumerate(rows):
        if row.has_figure:
            numbers.append(number)
    return numbers


def _find_end(rows: Sequence[Row], start: int, last: int) -> int:
    """Return the end of a table: rows of words after its last figure may be in its columns, or go on in its cells."""
    columns = extents_of(rows[start : last + 1])
    end = last + 1
    for above, row in pairwise(rows[last:]):
        max_distance = TIGHT * row.height
        goes_on = above.distance(row) < max_distance
        if not goes_on and not _begins_in_columns(row, columns):
            break
        end += 1
    return end


def _begins_in_columns(row: Row, columns: Sequence[Extent]) -> bool:
    """Return whether each cell of a row begins where a column does."""
    return all(extent.begins_with_one_of(columns) for extent in row.extents)


def _is_contents_head(row: Row) -> bool:
    """Return whether a row is the head of a page of contents, with the page's number."""
    return len(row.cells) > 1 and any(map(is_heading_of_contents, row.texts))


def _is_spread_text(row: Row) -> bool:
    """Return whether a row is a line of text that is spread over its column: most cells are small words."""
    small = sum(map(_is_small_word, row.texts))
    return 2 * small > len(row.cells)


def _is_small_word(text: str) -> bool:
    return text.isalpha() and text.islower()


# --- tables of words alone ---


def _is_table_of_words(rows: Sequence[Row]) -> bool:
    """Return whether rows of words are in straight columns, or below the names of columns."""
    if len(rows) < _MIN_ROWS or _are_numbered_lines(rows):
        return False
    counts = [len(row.cells) for row in rows]
    if min(counts) < 2:
        return False
    columns = max(counts)
    texts = list(chain.from_iterable(row.texts for row in rows))
    without_first_row = texts[columns:]
    if _mean_length(texts) > _MAX_CELL or _is_prose(without_first_row):
        return False
    if not all(map(_has_wide_gaps, rows)):
        return False
    full = rows[counts.index(columns)]
    full_rows = counts.count(columns)
    if full_rows >= _MIN_FULL_ROWS and _are_straight(extents_of(rows), full.extents):
        return True
    return _are_below_names(rows)


def _are_numbered_lines(rows: Sequence[Row]) -> bool:
    """Return whether all rows are one text with a number before it, which counts up, as in a listing of source code."""
    numbers: list[int] = []
    for row in rows:
        number, *others = row.texts
        if len(others) != 1 or not number.isdecimal() or len(number) > _MAX_DIGITS:
            return False
        numbers.append(int(number))
    return all(number + 1 == following for number, following in pairwise(numbers))


def _mean_length(texts: Sequence[str]) -> float:
    return sum(map(len, texts)) / len(texts)


def _is_prose(texts: Sequence[str]) -> bool:
    """Return whether texts are lines that go on in other ones."""
    going_on = sum(map(_begins_small, texts))
    max_going_on = _GOING_ON * len(texts)
    return going_on > max_going_on and _mean_length(texts) > _PROSE_LINE


def _begins_small(text: str) -> bool:
    return text[0].islower()


def _has_wide_gaps(row: Row) -> bool:
    gaps = [following.left - extent.right for extent, following in pairwise(row.extents)]
    return min(gaps) >= _MIN_WORDS_GAP * row.height


def _are_straight(extents: Iterable[Extent], columns: Sequence[Extent]) -> bool:
    """Return whether each cell begins, ends or has its middle where a column does."""
    return all(min(map(extent.offset, columns)) < STRAIGHT for extent in extents)


def _are_below_names(rows: Sequence[Row]) -> bool:
    """Return whether the first row names several columns, and the others have a label and cells in these columns.

    So is a roster of names under weekdays, where a row seldom fills all columns.
    """
    names, *others = rows
    if len(names.cells) < _MIN_NAMES:
        return False
    first_label = others[0].extents[0]
    for row in others:
        label, *cells = row.extents
        is_label = label.begins_with_one_of([first_label])
        if not is_label or not _are_straight(cells, names.extents):
            return False
    return True
