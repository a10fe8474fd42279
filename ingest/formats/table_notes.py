"""Finds the notes above a table: lines that fill few of its columns, and settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import takewhile

from arag.ingest.formats.cell_kinds import TEXT, kind_of, kinds_of
from arag.ingest.formats.table_headers import Row, divide, find_above_row_names, names_columns

_MIN_NOTES = 3  # rows


def count_notes(top: Sequence[Row]) -> int:
    """Return how many of a table's first rows are notes above it, which fill few of its columns."""
    above_names = _count_settings(top) or _count_rows_of_notes(top)
    if above_names:
        return above_names
    width = _usual_width(top)
    first_column = min(map(min, top))
    for number, row in enumerate(top):
        begins_like_others = first_column in row  # groups of columns leave the first one empty
        begins_header = find_above_row_names(top[number:]) is not None
        if begins_header or not begins_like_others or not _is_note(row, top[number + 1 :], width):
            return number
    return 0


def _count_settings(top: Sequence[Row]) -> int:
    """Return how many of a table's first rows are settings, such as `Rate | 0.05`, above the names of its columns.

    The names are above the first row that begins with a value, if all rows below it do so. Names of groups of columns,
    which leave the first column empty, may be above them.
    """
    first_column = min(map(min, top))
    labels = [row.get(first_column, "") for row in top]
    are_texts = [kind_of(label) == TEXT for label in labels]
    above_values = are_texts.index(False) if False in are_texts else 0
    if above_values < 2 or any(are_texts[above_values:]):
        return 0
    settings = list(takewhile(bool, labels[: above_values - 1]))
    names, values = top[above_values - 1 : above_values + 1]
    are_full = len(values) <= len(names) >= max(map(len, top[: len(settings)]), default=0)
    if not are_full or not names_columns(names) or not _are_texts(names):
        return 0
    has_value = any(map(_ends_with_value, top[: len(settings)]))
    return len(settings) if has_value else 0


def _count_rows_of_notes(top: Sequence[Row]) -> int:
    """Return how many rows of texts are above the names of all columns, if groups of columns have fewer."""
    widths = list(map(len, top))
    place = widths.index(max(widths))
    names, *rows = top[place:]
    are_notes = all(
        [
            place >= _MIN_NOTES,
            *map(_are_texts, top[: place + 1]),
            names_columns(names),
            not all(map(_are_texts, rows[:1])),
        ]
    )
    return place if are_notes else 0


def _are_texts(row: Row) -> bool:
    """Return whether no cell is a value."""
    return kinds_of(row.values()) <= {TEXT}


def _ends_with_value(row: Row) -> bool:
    """Return whether a cell after the first is a value."""
    _, *others = row.values()
    return kinds_of(others) - {TEXT} != set()


def _usual_width(rows: Sequence[Row]) -> int:
    """Return the number of cells that most rows have, or 0 if all have one; of two such numbers, the larger."""
    widths = Counter(map(len, rows))
    del widths[1]
    return max(
        widths,
        key=lambda width: (widths[width], width),
        default=0,
    )


def _is_note(row: Row, below: Sequence[Row], width: int) -> bool:
    if len(row) >= width:
        return False
    nothing: Row = {}
    following = next(iter(below), nothing)
    if divide(row, following):
        return False
    is_narrow = 2 * len(row) <= width
    if is_narrow:
        return True
    places = [place for place, other in enumerate(below) if len(other) >= width]
    if not places:
        return False
    names, *rows = below[places[0] :]
    if names is following:
        return names_columns(names)
    is_setting = _ends_with_value(row)
    is_above_note = 2 * len(following) <= width and any(not _are_texts(other) for other in rows[:1])
    may_be_note = is_setting or is_above_note
    return may_be_note and _are_texts(names) and names_columns(names)
