"""Finds the tables of a page of a PDF among the rows that may be theirs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from arag.ingest.formats.pdf_cells import MAX_NAME, align_cells
from arag.ingest.formats.pdf_rows import TIGHT, Row

_MAX_HEADER = 3  # rows
_MAX_DISTANCE = 4  # times the height of the type: rows that are farther apart are of two tables
_MIN_ROWS = 3  # of a table of words alone
_MIN_FULL_ROWS = 2  # of these, with a cell in each column
_MIN_WORDS_GAP = 1.5  # times the height, between the columns of such a table
_MAX_CELL = 60  # characters of such a table's cells, on average: longer ones are prose
_GOING_ON = 0.35  # of the lines of prose begin with a small letter, at least
_PROSE_LINE = 20  # characters
_STRAIGHT = 2.0  # points: how far the cells of a column may be from one line

_LEADERS = re.compile(r".*(?:(?:\. ?){4,}|(?:… ?){2,}|_{4,}|·{4,})")  # between an entry of contents and its page
_PAGE = re.compile(r"\d{1,4}|[ivxlc]+")
_REFERENCE = re.compile(r"\[[\w+-]{1,8}\]")
_BULLET = re.compile(r"[•‣◦▪■●○►·*]")
_MARKER = re.compile(r"[^\w\s]{1,3}|[(\[]?(?:\d{1,3}|[A-Za-z]|[ivxIVX]+)[.)\]:]{1,2}|\[[\w+-]{1,8}\]")


@dataclass
class TableRow:
    """A row of a table, or lines outside tables.

    Attributes:
        row: What it comes from.
        cells: The text of each column; none for lines outside tables.
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


def _table(rows: Sequence[Row]) -> Iterator[TableRow]:
    """Yield the rows of a table, with their cells by columns if these are clear, else with those that they have."""
    if not _is_mostly_words(rows):
        aligned = align_cells(rows)
        if aligned:
            for row, cells in aligned:
                yield TableRow(row, cells)
            return
    for row in rows:
        yield TableRow(row, row.texts if row.has_figure else [])


def _is_mostly_words(rows: Sequence[Row]) -> bool:
    """Return whether few rows have figures, as in a text with wide spaces; a table of words alone has none."""
    with_figure = sum(row.has_figure for row in rows)
    return 0 < with_figure < len(rows) - with_figure - 1


def _table_bounds(rows: Sequence[Row]) -> tuple[int, int]:
    """Return start and end of the rows that are a table: rows of words before its figures are its header."""
    if _is_contents(rows):
        return 0, 0
    if _is_table_of_words(rows):
        return 0, len(rows)
    with_figure = [number for number, row in enumerate(rows) if row.has_figure]
    if not with_figure or _is_item(rows[0]) or (len(with_figure) == 1 and _is_spread_text(rows[with_figure[0]])):
        return 0, 0
    start = max(0, with_figure[0] - _MAX_HEADER)
    end = with_figure[-1] + 1
    lefts = [extent.left for row in rows[start:end] for extent in row.extents]
    while end < len(rows) and _is_further(rows[end - 1], rows[end], lefts):
        end += 1
    return start, end


def _is_further(above: Row, row: Row, lefts: Sequence[float]) -> bool:
    """Return whether a row of words after the last figure of a table is in its columns, or goes on in its cells."""
    if above.distance(row) < TIGHT * row.height:
        return True
    return all(_is_near(extent.left, lefts) for extent in row.extents)


def _is_near(place: float, others: Sequence[float]) -> bool:
    return any(abs(place - other) < _STRAIGHT for other in others)


def _is_contents(rows: Sequence[Row]) -> bool:
    """Return whether rows are contents or an index, which may have a title above its entries."""
    entries_end = rows[-1].extents[0].right
    for row in rows:
        is_title = len(row.cells) == 1 and row.extents[0].left < entries_end
        if not is_title and not _is_entry(row):
            return False
    return True


def _is_entry(row: Row) -> bool:
    """Return whether a row is an entry of contents or of an index: leaders and a page's number."""
    if len(row.cells) != 2:
        return False
    entry, page = row.texts
    return _LEADERS.fullmatch(entry) is not None and _PAGE.fullmatch(page) is not None


def _is_spread_text(row: Row) -> bool:
    """Return whether a row is a line of text that is spread over its column: most cells are small words."""
    small = sum(text.isalpha() and text.islower() for text in row.texts)
    return 2 * small > len(row.cells)


def _groups(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Yield rows of several cells that follow each other, and each other row by itself."""
    group: list[Row] = []
    for row in rows:
        if group and _goes_on(group[-1], row):
            group.append(row)
            continue
        is_single = len(row.cells) == 1 or _is_item(row)
        # One line may be the name of the rows below it, but not above names of columns.
        is_apart = is_single or len(row.above) > 1 or (bool(row.above) and not row.has_figure)
        if group and len(group[-1].cells) == 1 and not _is_inside(group[-1], row):
            is_apart = True
        if group and (is_apart or group[-1].distance(row) > _MAX_DISTANCE * row.height):
            yield group
            group = []
        group.append(row)
        if is_single and not _may_be_name(row):
            yield group
            group = []
    if group:
        yield group


def _goes_on(above: Row, row: Row) -> bool:
    """Return whether a line is the next one of a cell of the row above it, other than the first."""
    if len(row.cells) > 1 or len(above.cells) < 2 or row.has_figure or row.above:
        return False
    if above.distance(row) > TIGHT * row.height:
        return False
    return _is_near(row.extents[0].left, [extent.left for extent in above.extents[1:]])


def _may_be_name(row: Row) -> bool:
    """Return whether a line may be a name above several columns of the rows below it."""
    return len(row.cells) == 1 and len(row.cells[0]) == 1 and len(row.texts[0]) <= MAX_NAME


def _is_inside(row: Row, following: Row) -> bool:
    """Return whether a line is above other cells of the next row than the first."""
    return len(following.cells) > 2 and row.extents[0].left > following.extents[0].right


def _is_item(row: Row) -> bool:
    """Return whether a row is an item of a list, or a name with a colon and its value: both are clear as a line."""
    first = row.texts[0]
    if _REFERENCE.fullmatch(first):
        return True
    if row.has_figure or len(row.cells) < 2:
        return False
    if len(row.cells) > 2:
        return _BULLET.fullmatch(first) is not None
    return first.endswith((":", "：")) or _MARKER.fullmatch(first) is not None


# --- tables of words alone ---


def _is_table_of_words(rows: Sequence[Row]) -> bool:
    if len(rows) < _MIN_ROWS:
        return False
    columns = max(len(row.cells) for row in rows)
    full = [row for row in rows if len(row.cells) == columns]
    if len(full) < _MIN_FULL_ROWS or min(len(row.cells) for row in rows) < 2:
        return False
    texts = [text for row in rows for text in row.texts]
    if sum(map(len, texts)) > _MAX_CELL * len(texts) or _is_prose(texts[columns:]):
        return False
    if not all(map(_has_wide_gaps, rows)):
        return False
    return all(_is_straight(full, column) for column in range(columns)) and _are_in_columns(rows, full[0])


def _are_in_columns(rows: Sequence[Row], full: Row) -> bool:
    """Return whether all cells begin, end or have their middle where those of a full row do."""
    for row in rows:
        for extent in row.extents:
            offsets = [
                min(abs(extent.left - other.left), abs(extent.right - other.right), abs(extent.middle - other.middle))
                for other in full.extents
            ]
            if min(offsets) >= _STRAIGHT:
                return False
    return True


def _is_prose(texts: Sequence[str]) -> bool:
    """Return whether texts are lines that go on in other ones."""
    going_on = sum(text[0].islower() for text in texts)
    return going_on > _GOING_ON * len(texts) and sum(map(len, texts)) > _PROSE_LINE * len(texts)


def _is_straight(rows: Sequence[Row], column: int) -> bool:
    """Return whether the cells of a column begin, end or have their middle at one place."""
    extents = [row.extents[column] for row in rows]
    lefts = [extent.left for extent in extents]
    rights = [extent.right for extent in extents]
    middles = [extent.middle for extent in extents]
    return any(max(places) - min(places) < _STRAIGHT for places in (lefts, rights, middles))


def _has_wide_gaps(row: Row) -> bool:
    gaps = [following.left - extent.right for extent, following in pairwise(row.extents)]
    return min(gaps) >= _MIN_WORDS_GAP * row.height
