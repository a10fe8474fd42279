"""Tables that stand side by side in a sheet, with an empty column between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, filterfalse, groupby, islice

from arag.ingest.formats.cell_kinds import TEXT, are_names, has_letter, kind_of_most, kinds_of
from arag.ingest.formats.table_headers import MAX_ROWS, Row, find_header
from arag.ingest.formats.table_notes import count_notes

_TIMES = frozenset({"year", "date"})  # that may be names of columns
_ROWS_BELOW = 2  # a row of sums may be below the others
_ROWS_COMPARED = 1_000


def set_tables_apart(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows of a sheet; of tables that stand side by side, one below the other, after a blank row.

    An empty column may also divide one table, whose rows have their labels on the left. So the right part must show
    that it is a table of its own, or a note.
    """
    unread = [groupby(rows, key=bool)]
    while unread:
        _, block = next(unread[-1], (False, None))
        if block is None:
            unread.pop()
            continue
        top = list(islice(block, MAX_ROWS))
        all_rows = chain(top, block)
        if not _find_gaps(top):
            yield from all_rows
            continue
        left, right = _split(list(all_rows))
        yield from left
        if right:
            yield {}
            unread.append(groupby(right, key=bool))


def _find_gaps(rows: Sequence[Row]) -> list[int]:
    """Return the empty columns between others."""
    filled = set(chain.from_iterable(rows))
    first = min(filled, default=0)
    last = max(filled, default=0)
    between = set(range(first, last))
    return sorted(between - filled)


def _split(rows: Sequence[Row]) -> tuple[Sequence[Row], Sequence[Row]]:
    """Return the rows of the first table, and those of the others on its right."""
    width = max(map(max, rows)) + 1
    compared = rows[:_ROWS_COMPARED]
    for gap in _find_gaps(rows):
        left = range(gap)
        right = range(gap, width)
        if _are_two(_columns_of(compared, left), _columns_of(compared, right)):
            return _columns_of(rows, left), _columns_of(rows, right)
    return rows, []


def _columns_of(rows: Sequence[Row], columns: range) -> list[Row]:
    parts: list[Row] = []
    for row in rows:
        inside = filter(columns.__contains__, row)
        part = {column: row[column] for column in inside}
        parts.append(part)
    return parts


@dataclass(frozen=True)
class _Table:
    """A table below titles and notes.

    Attributes:
        start: The number of its first row.
        rows: Its rows.
        names: The names of its columns; none if no row gives them.
    """

    start: int = 0
    rows: Sequence[Row] = ()
    names: Row = field(default_factory=dict)

    def has_labels(self) -> bool:
        """Return whether the first column has a name, and different texts below it."""
        first_column = min(self.names, default=-1)
        labels = _column(self.rows[1:], first_column)
        are_distinct = len(set(labels)) == len(labels)
        return are_distinct and kinds_of(labels) == {TEXT}

    def has_values(self) -> bool:
        """Return whether most cells below one of the names are values of one kind."""
        below = self.rows[1:MAX_ROWS]
        kinds = [kind_of_most(_column(below, column)) for column in self.names]
        return any(kinds)


def _column(rows: Sequence[Row], column: int) -> list[str]:
    cells = [row.get(column, "") for row in rows]
    return list(filter(None, cells))


def _find_table(rows: Sequence[Row]) -> _Table:
    wide_rows = _wide_rows(rows)
    top = [rows[number] for number in wide_rows[:MAX_ROWS]]
    if len(top) < 2:
        return _Table()
    notes = count_notes(top)
    header = find_header(
        top[notes:],
        is_marked=False,
        is_sheet=True,
    )
    start = wide_rows[notes]
    return _Table(start, rows[start:], header.names)


def _wide_rows(rows: Sequence[Row]) -> list[int]:
    """Return the numbers of the rows that have several cells."""
    return [number for number, row in enumerate(rows) if len(row) > 1]


def _are_two(left: Sequence[Row], right: Sequence[Row]) -> bool:
    """Return whether the parts of rows on both sides of an empty column do not belong together."""
    table = _find_table(left)
    if not table.names:
        return False
    beside = right[table.start]
    rows_beside = right[table.start :]
    is_table = len(_wide_rows(right)) > 1
    if not is_table:
        return _is_note(beside, right)
    if not beside:
        return _has_table_with_labels(rows_beside)
    if _has_value(beside):
        return table.has_values() and _has_gap(table.rows, rows_beside)
    own_table = _Table(
        start=0,
        rows=rows_beside,
        names=beside,
    )
    first_name = beside[min(beside)]
    repeats_name = first_name == table.names[min(table.names)]
    return repeats_name or _end_apart(table, own_table)


def _is_note(beside: Row, right: Sequence[Row]) -> bool:
    """Return whether the only text of the right part is beside names of columns, and is none."""
    texts = list(filter(None, right))
    is_alone = texts == [beside]
    return is_alone and not are_names(list(beside.values()))


def _has_table_with_labels(rows: Sequence[Row]) -> bool:
    blocks = [list(block) for _, block in groupby(rows, key=bool)]
    tables = map(_find_table, blocks)
    return any(map(_Table.has_labels, tables))


def _has_value(row: Row) -> bool:
    """Return whether a cell is a number that names no column."""
    numbers = filterfalse(has_letter, row.values())
    return not kinds_of(numbers) <= _TIMES


def _has_gap(rows: Sequence[Row], rows_beside: Sequence[Row]) -> bool:
    """Return whether a row of a table has nothing beside it."""
    beside = [rows_beside[number] for number in _wide_rows(rows)]
    return {} in beside


def _end_apart(left: _Table, right: _Table) -> bool:
    """Return whether two tables that begin in one row end in different ones, and the right one is whole."""
    left_rows = _wide_rows(left.rows)
    right_rows = _wide_rows(right.rows)
    rows_without_gaps = list(range(len(right_rows)))
    is_whole = right_rows == rows_without_gaps and right.has_labels()
    difference = abs(len(left_rows) - len(right_rows))
    return is_whole and difference >= _ROWS_BELOW
