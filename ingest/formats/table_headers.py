"""Finds the header of a table: the rows that give the names of its columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from arag.retrieval.corpus.values import is_code, read_date, read_number

Row: TypeAlias = "dict[int, str]"  # the text of each cell that has some, by its column

MAX_ROWS = 30  # that are looked at

_MAX_NAME = 100  # characters of a column's name: longer cells are sentences
_FORM_COLUMNS = 2  # a table of so many is often a form
_MIN_COMMON = 4  # letters at the end of all cells of a column
_YEAR = re.compile(r"(?:1[6-9]|20)\d\d")
_VALUE = re.compile(
    r"[\w.+-]+@[\w-]+\.[\w.-]+"  # an address of mail
    r"|(?:https?://|www\.)\S+"
    r"|(?:true|false|yes|no)"
    r"|\d{1,2}:\d\d(?::\d\d)?(?: ?[ap]\.?m\.?)?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Header:
    """The header of a table.

    Attributes:
        names: The names of the columns; none if no row gives them.
        rows: How many rows give them.
    """

    names: Row = field(default_factory=dict)
    rows: int = 0


def count_notes(top: Sequence[Row]) -> int:
    """Return how many of a table's first rows are notes above it, which fill few of its columns."""
    width = _usual_width(top)
    if width == 0:
        return 0
    first_column = min(min(row) for row in top)
    for number, row in enumerate(top):
        if not _is_note(row, _row_at(top, number + 1), width, first_column):
            return number
    return 0


def _usual_width(rows: Sequence[Row]) -> int:
    """Return the number of cells that most rows have, or 0 if they have one at most."""
    widths = Counter(len(row) for row in rows if len(row) > 1)
    most = max(widths.values(), default=0)
    return max((width for width, count in widths.items() if count == most), default=0)


def _is_note(row: Row, following: Row, width: int, first_column: int) -> bool:
    if len(row) >= width or first_column not in row:  # groups of columns leave the first one empty
        return False
    if row[first_column].startswith("#"):  # a comment
        return True
    if _divide(row, following):
        return False
    return 2 * len(row) <= width or (len(following) >= width and _are_names(following))


def find_header(top: Sequence[Row], *, is_marked: bool, is_sheet: bool) -> Header:
    """Find the header of a table.

    Args:
        top: The first rows.
        is_marked: Whether the first row is marked as the header.
        is_sheet: Whether the table is a sheet: one of two columns is then a table, too, and no form.
    """
    if not top:
        return Header()
    divided = _find_divided(top)
    if divided:
        return Header(divided, rows=2)
    names = top[0]
    if is_marked and _may_be_marked(names):
        return Header(names, rows=1)
    may_be_form = len(names) <= _FORM_COLUMNS and not is_marked
    is_form = may_be_form and (not is_sheet or _is_form(top))
    if is_form or not _are_names(names) or _is_like_rows_below(names, top[1:]):
        return Header()
    return Header(names, rows=1)


def _find_divided(top: Sequence[Row]) -> Row:
    """Return the names that the first two rows give together, or none."""
    first = top[0]
    second = _row_at(top, 1)
    divided = _divide(first, second)
    if divided and _are_names(divided) and _is_divided_header(top):
        return divided
    # A file of rows has no cells that span columns, so it repeats the name of a group.
    begins_with_gap = bool(second) and min(second) > min(first)
    divided = _divide(_without_repeats(first), second)
    return divided if begins_with_gap and _are_names(divided) else {}


def _without_repeats(row: Row) -> Row:
    """Return a row without the cells that are like the one before them."""
    return {column: text for column, text in row.items() if row.get(column - 1) != text}


def _row_at(rows: Sequence[Row], number: int) -> Row:
    return rows[number] if number < len(rows) else {}


def _divide(first: Row, second: Row) -> Row:
    """Return the names that two rows give together if the second divides columns of the first, else none.

    `Dues` above `1920` and an empty cell above `1921` give the names `Dues 1920` and `Dues 1921`.
    """
    names: Row = {}
    group = ""
    has_groups = False
    for column in sorted({*first, *second}):
        above = first.get(column, "")
        below = second.get(column, "")
        if above:
            spans_next_column = column + 1 in second and column + 1 not in first
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
    if not _YEAR.fullmatch(below) and not _has_letter(below):
        return False
    return bool(group) or not above or below == above


def _is_divided_header(top: Sequence[Row]) -> bool:
    """Return whether two rows that could be a header are one: the rows below are of another kind."""
    first, second, *below = top
    if not below:
        return False
    is_repeating = len(set(second.values())) < len(second)  # the same names under each group
    gaps = second.keys() - first.keys()
    fills_gaps = all(gaps <= row.keys() for row in below)
    return is_repeating or not _are_names(below[0]) or fills_gaps


def _may_be_marked(row: Row) -> bool:
    """Return whether cells that are marked as a header can name columns; some may be numbers."""
    cells = list(row.values())
    are_short = all(len(cell) <= _MAX_NAME for cell in cells)
    return are_short and any(map(_has_letter, cells)) and len(set(cells)) == len(cells)


def _are_names(row: Row) -> bool:
    """Return whether all cells look like names; one year alone is a value, and most names differ from each other."""
    cells = list(row.values())
    times = [cell for cell in cells if _YEAR.fullmatch(cell) or read_date(cell)]
    names = [cell for cell in cells if cell not in times and _has_letter(cell) and len(cell) <= _MAX_NAME]
    if not names or len(times) == 1:
        return False
    return len(names) + len(times) == len(cells) and len(cells) < 2 * len(set(cells))


def _has_letter(text: str) -> bool:
    return any(map(str.isalpha, text))


def _kind(cell: str) -> str:
    """Return which kind of value a cell is; an empty string for a text."""
    if _YEAR.fullmatch(cell):
        return "year"
    if read_date(cell):
        return "date"
    number = read_number(cell)
    if number is not None:
        return f"number {number.unit}"
    if is_code(cell):
        return "code"
    return "value" if _VALUE.fullmatch(cell) else ""


def _kind_of_most(cells: Sequence[str]) -> str:
    kinds = Counter(map(_kind, cells))
    kind, count = max(kinds.items(), key=lambda item: item[1], default=("", 0))
    return kind if 2 * count > len(cells) else ""


def _is_form(top: Sequence[Row]) -> bool:
    """Return whether rows of two cells are a form: names on the left, values of several kinds on the right."""
    pairs = [row for row in top if len(row) == _FORM_COLUMNS]
    lefts = [row[min(row)] for row in pairs]
    rights = [row[max(row)] for row in pairs]
    if all(left.endswith(":") for left in lefts):
        return True
    if any(map(_kind, lefts)) or _kind_of_most(rights[1:]):
        return False
    kinds = set(map(_kind, rights[1:]))
    return "" in kinds and len(kinds) > 1


def _is_like_rows_below(names: Row, below: Sequence[Row]) -> bool:
    """Return whether a first row is one of values: it is like the rows below it, or repeats one of their cells."""
    if not below or any(row == names for row in below):  # each page may repeat a header
        return False
    columns: list[_Column] = []
    for column, name in names.items():
        columns.append(_Column(name, [row[column] for row in below if column in row]))
    if any(column.is_of_one_kind() for column in columns):
        return True
    if any(_kind_of_most(column.cells) for column in columns):
        return False  # names above values
    if any(column.name in column.cells or column.has_common_end() for column in columns):
        return True
    cases = {_case(column.name) for column in columns}
    return len(cases) > 1 and len(below) > 1 and all(column.is_of_one_case() for column in columns)


@dataclass(frozen=True)
class _Column:
    """A column that may have a name."""

    name: str
    cells: list[str]

    def is_of_one_kind(self) -> bool:
        """Return whether the name is a value such as those below it."""
        kind = _kind(self.name)
        return kind != "" and kind == _kind_of_most(self.cells)

    def has_common_end(self) -> bool:
        """Return whether the name ends like all cells, as Northfold does above Southfold and Eastfold."""
        texts = {self.name, *self.cells}
        end = self.name[-_MIN_COMMON:]
        if len(texts) < 3 or len(end) < _MIN_COMMON or all(cell.endswith(self.name) for cell in self.cells):
            return False
        return all(text.endswith(end) for text in texts)

    def is_of_one_case(self) -> bool:
        """Return whether the name and all cells begin with small letters, or all with capitals."""
        return {_case(cell) for cell in self.cells} <= {_case(self.name)}


def _case(text: str) -> bool:
    """Return whether a text begins with a small letter."""
    return text[:1].islower()
