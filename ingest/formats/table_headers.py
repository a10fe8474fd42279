"""Finds the header of a table: the rows that give the names of its columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter
from typing import TypeAlias

from arag.ingest.formats.cell_kinds import (
    TEXT,
    are_names,
    has_letter,
    is_short,
    is_words,
    is_year,
    kind_of,
    kind_of_most,
    kinds_of,
)

Row: TypeAlias = "dict[int, str]"  # the text of each cell that has some, by its column

MAX_ROWS = 30  # that are looked at

_INITIAL = re.compile(r"^[A-Z][\w'’-]+ (?:[A-Z]\. ?)+[A-Z]|^(?:[A-Z]\. ?)+[A-Z][a-z]")  # John A. Martin, J. A. Martin
FORM_COLUMNS = 2  # a table of so many is often a form
_MIN_LIST = 9  # cells that are in the order of the alphabet: fewer may be so by chance


@dataclass(frozen=True)
class Header:
    """The header of a table.

    Attributes:
        names: The names of the columns; none if no row gives them.
        rows: How many rows give them.
    """

    names: Row = field(default_factory=dict)
    rows: int = 0


def find_header(top: Sequence[Row], *, is_marked: bool, is_sheet: bool, is_web: bool = False) -> Header:
    """Find the header of a table.

    Args:
        top: The first rows.
        is_marked: Whether the first row is marked as the header.
        is_sheet: Whether the table is a sheet: one of two columns is then a table, too, and no form.
        is_web: Whether the table is one of a web page, which marks most headers: a first row that is not marked must
            then differ from those below.
    """
    if _are_named_fields(top):
        return Header()
    above_row_names = find_above_row_names(top)
    if above_row_names:
        return above_row_names
    if _are_years_beside_labels(top):
        return Header(top[0], rows=1)
    divided = _find_divided(top)
    if divided:
        return Header(divided, rows=2)
    if is_marked and _may_be_marked(top[0]):
        return Header(top[0], rows=1)
    must_stand_out = is_web and not is_marked
    is_header = _is_header(top, is_sheet) and (not must_stand_out or _stands_out(top))
    return Header(top[0], rows=1) if is_header else Header()


def _is_header(top: Sequence[Row], is_sheet: bool) -> bool:
    """Return whether the first row looks like names, and not like the rows below it."""
    first, *below = top
    if not names_columns(first) or all(map(_has_labels, top)):
        return False
    if _is_form(top, is_sheet) or _is_list(top):
        return False
    return not _is_like_rows_below(first, below)


def _are_years_beside_labels(top: Sequence[Row]) -> bool:
    """Return whether the first row has years in order above values, and a gap above the labels of the rows."""
    first, *below = top
    years = list(first.values())
    labels = [row.get(min(first) - 1, "") for row in below]
    return all(
        [
            *labels,
            kinds_of(labels) == {TEXT},
            kinds_of(years) == {"year"},
            years == sorted(set(years)),
        ]
    )


def names_columns(row: Row) -> bool:
    """Return whether the cells of a row can be the names of columns."""
    return are_names(list(row.values()))


def _may_be_marked(row: Row) -> bool:
    """Return whether cells that are marked as a header can name columns; some may be numbers."""
    cells = list(row.values())
    has_repeats = len(set(cells)) < len(cells)
    if has_repeats:
        return False
    are_short = all(map(is_short, cells))
    have_letters = any(map(has_letter, cells))
    return are_short and have_letters


# --- a header of two rows ---


def _find_divided(top: Sequence[Row]) -> Row:
    """Return the names that the first two rows give together, or none."""
    if len(top) == 1:
        return {}
    first, second, *below = top
    # The first column of a header of two rows often needs no division.
    begins_with_gap = min(second) > min(first)
    groups = _without_repeats(first) if begins_with_gap else first
    names = divide(groups, second)
    if not names_columns(names):
        return {}
    if begins_with_gap or _are_of_another_kind(below, first, second):
        return names
    return {}


def _without_repeats(row: Row) -> Row:
    """Return a row without the cells that are like the one before them.

    A file of rows has no cells that span columns, so it repeats the name of a group.
    """
    without: Row = {}
    for column, text in row.items():
        if row.get(column - 1) != text:
            without[column] = text
    return without


def divide(first: Row, second: Row) -> Row:
    """Return the names that two rows give together if the second divides columns of the first, else none.

    `Dues` above `1920` and an empty cell above `1921` give the names `Dues 1920` and `Dues 1921`.
    """
    names: Row = {}
    group = ""
    has_groups = False
    gaps = _gaps(first, second)
    for column in sorted({*first, *second}):
        above = first.get(column, "")
        below = second.get(column, "")
        if above:
            spans_next_column = column + 1 in gaps
            group = above if spans_next_column else ""
        if below and not _is_name_below(below, above, group):
            return {}
        if group:
            has_groups = True
            names[column] = f"{group} {below}".strip()
        else:
            names[column] = above or below
    return names if has_groups else {}


def _is_name_below(below: str, above: str, group: str) -> bool:
    """Return whether a cell of the second row gives a name: it does not add to a column that has one of its own."""
    if not is_year(below) and not has_letter(below):
        return False
    return bool(group) or above in {"", below}


def _are_of_another_kind(below: Sequence[Row], first: Row, second: Row) -> bool:
    """Return whether the rows below two that could be a header hold values, or fill the gaps of the first."""
    if not below:
        return False
    if not names_columns(below[0]):
        return True
    gaps = _gaps(first, second)
    return all(map(gaps.issubset, below))


def _gaps(first: Row, second: Row) -> set[int]:
    """Return the columns in which only the second of two rows has text."""
    return second.keys() - first.keys()


# --- names of the first columns in a row of their own ---


def is_group_above(row: Row, top: Sequence[Row]) -> bool:
    """Return whether a single cell above the first rows of a table is the name of some of its columns.

    They begin with its own one, and the rows below with an earlier one. The title of a table is above its first column.
    """
    column = min(row, default=0)
    first_column = min(map(min, top))
    return first_column < column == min(top[0])


def find_above_row_names(top: Sequence[Row]) -> Header | None:
    """Return the header of a table that names its first columns in a row of their own, below the names of the others.

    Pivot tables and pandas write it so: `Farm` alone, below the gap beside `2022` and `2023`. Where several rows have
    cells in the first columns only, they are titles of parts of the table, and give no names.
    """
    for rows in (1, 2):
        if len(top) < rows + 2:
            return None
        above = top[:rows]
        row_names, *below = top[rows:]
        if not _names_first_columns(row_names, above, below[0]):
            continue
        last = max(row_names)
        others = [_columns_after(row, last) for row in above]
        names = _join_names(*others)
        all_names = {**row_names, **names}
        are_parts = min(map(max, below)) <= last
        may_be_part = rows + len(row_names) == 2  # or a row whose other cells are empty
        if names_columns(all_names):
            return Header(names if are_parts or may_be_part else all_names, rows=rows + 1)
    return None


def _names_first_columns(row: Row, above: Sequence[Row], below: Row) -> bool:
    """Return whether a row may name the first columns of a table, which the rows above it leave empty.

    In two rows, there may be names of the columns' groups, such as `Year` beside `2022`, above its last name.
    """
    last = max(row)
    is_whole = len(row) == last - min(below) + 1
    if not is_whole:
        return False
    last_columns = list(map(max, above))
    goes_on = min(*last_columns, max(below)) > last
    if not goes_on:
        return False
    first_columns = set(map(min, above))
    is_below_gap = min(first_columns) > last
    if is_below_gap:
        return True
    are_groups = first_columns == {last} and all(map(names_columns, above))
    if not are_groups or len(above) == 1:
        return False
    return max(last_columns) > last + 1  # fields with a title between them have one value each


def _join_names(first: Row, second: Row | None = None) -> Row:
    """Return the names of columns: of one row, or of groups of columns in it with the second row's names."""
    if second is None:
        return first
    names: Row = {}
    group = ""
    for column, name in second.items():
        group = first.get(column, group)
        names[column] = f"{group} {name}".strip()
    return names


def _columns_after(row: Row, column: int) -> Row:
    """Return the cells of a row after a column."""
    after = sorted(row.keys() - range(column + 1))
    return {number: row[number] for number in after}


# --- rows that are no header ---


def may_be_form(rows: Sequence[Row]) -> bool:
    """Return whether the rows of a short table may be titles and fields, with different names and mostly texts."""
    if len(rows) == MAX_ROWS or max(map(len, rows)) > FORM_COLUMNS:
        return False
    names, values = _read_fields(rows)
    are_distinct = len(set(names)) == len(names)
    return are_distinct and _are_mostly_texts(names, values)


def _read_fields(rows: Sequence[Row]) -> tuple[list[str], list[str]]:
    """Return the names and the values of rows of two cells; others are titles."""
    names: list[str] = []
    values: list[str] = []
    for row in rows:
        if len(row) == FORM_COLUMNS:
            name, value = row.values()
            names.append(name)
            values.append(value)
    return names, values


def _are_mostly_texts(names: Sequence[str], values: Sequence[str]) -> bool:
    """Return whether the names of fields are texts, and no other kind is that of most values below the first."""
    return kinds_of(names) <= {TEXT} and kind_of_most(values[1:]) == TEXT


def _are_named_fields(rows: Sequence[Row]) -> bool:
    """Return whether rows of two cells are names that end with a colon, and their values."""
    names, _ = _read_fields(rows)
    return len(rows) > 1 and len(names) == len(rows) and all(name.endswith((":", "：")) for name in names)


def _is_form(top: Sequence[Row], is_sheet: bool) -> bool:
    """Return whether rows of two cells are a form: names on the left, values of several kinds on the right."""
    start, *starts_below = map(min, top)
    has_empty_corner = start > max(starts_below, default=start)
    columns = len(top[0]) + has_empty_corner
    if columns > FORM_COLUMNS:
        return False
    if not is_sheet:
        return True
    names, values = _read_fields(top)
    if not _are_mostly_texts(names, values):
        return False
    kinds = kinds_of(values[1:])
    has_several_kinds = len(kinds) > 1
    return has_several_kinds and TEXT in kinds


def _is_list(top: Sequence[Row]) -> bool:
    """Return whether the cells are the items of one long list, in the order of the alphabet by rows or by columns."""
    cells = list(chain.from_iterable(map(dict.items, top)))
    by_rows = [text.casefold() for _, text in cells]
    by_columns = [text.casefold() for _, text in sorted(cells, key=itemgetter(0))]
    are_distinct = len(set(by_rows)) == len(by_rows)
    is_long = len(by_rows) >= _MIN_LIST and len(top[0]) > 1
    return is_long and are_distinct and sorted(by_rows) in (by_rows, by_columns)


def _has_labels(row: Row) -> bool:
    """Return whether a row has several labels with colons, each before its value: `Name: | Ada | Town: | Porto`."""
    are_labels = [cell.endswith(":") for cell in row.values()]
    pairs = len(are_labels) // 2
    return pairs > 1 and are_labels == [True, False] * pairs


def _stands_out(top: Sequence[Row]) -> bool:
    """Return whether a first row of texts is above values, or is words above texts that are more than words."""
    first, *below = top
    columns = _columns_below(first, below)
    if any(map(_Column.has_values, columns)):
        return True
    are_words = all(map(is_words, first.values()))
    return are_words and any(map(_Column.has_other_texts, columns))


def _columns_below(first: Row, below: Sequence[Row]) -> list[_Column]:
    columns: list[_Column] = []
    for column, name in first.items():
        cells = [row[column] for row in below if column in row]
        columns.append(_Column(name, cells))
    return columns


def _is_like_rows_below(first: Row, below: Sequence[Row]) -> bool:
    """Return whether a first row is one of values: it is like the rows below it, or repeats one of their cells."""
    if first in below:  # a header that each page or each joined file repeats
        return False
    columns = _columns_below(first, below)
    if any(map(_Column.is_of_one_kind, columns)):
        return True
    if any(map(_Column.has_values, columns)):
        return False  # names above values
    if any(map(_Column.repeats_name, columns)):
        return True
    if any(map(_Column.is_of_people, columns)):
        return True
    # Texts alone: `Orsolya | miller` is a row if all cells of a column begin with a capital or all with a small letter.
    cases = set(map(_is_small, first.values()))
    cases_differ = len(cases) > 1
    has_rows_to_compare = len(below) > 1
    return cases_differ and has_rows_to_compare and all(map(_Column.is_of_one_case, columns))


@dataclass(frozen=True)
class _Column:
    """A column that may have a name."""

    name: str
    cells: list[str]

    def is_of_one_kind(self) -> bool:
        """Return whether the name is a value such as those below it."""
        kind = kind_of(self.name)
        return kind != TEXT and kind == kind_of_most(self.cells)

    def has_values(self) -> bool:
        """Return whether most cells are values of one kind."""
        return kind_of_most(self.cells) != TEXT

    def has_other_texts(self) -> bool:
        """Return whether most cells are sentences, or code, or have digits."""
        words = sum(map(is_words, self.cells))
        return 2 * words < len(self.cells)

    def repeats_name(self) -> bool:
        """Return whether a cell is like the name."""
        return self.name in self.cells

    def is_of_people(self) -> bool:
        """Return whether the name and a cell are people with an initial, as in a list: `John A. Martin`."""
        return _INITIAL.search(self.name) is not None and any(map(_INITIAL.search, self.cells))

    def is_of_one_case(self) -> bool:
        """Return whether the name and all cells begin with small letters, or all with capitals."""
        texts = {self.name, *self.cells}
        return len(set(map(_is_small, texts))) == 1


def _is_small(text: str) -> bool:
    """Return whether a text begins with a small letter."""
    return text[:1].islower()
