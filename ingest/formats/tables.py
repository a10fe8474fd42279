"""Rows of tables as lines that can be understood one by one, such as `Name: Ada | Year: 1843`; csv files."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import StringIO
from itertools import chain, groupby, islice
from pathlib import Path
from typing import TypeAlias

from arag.ingest.formats.content import MAX_CHARACTERS, Content, FormatError, decode_text
from arag.text.normalise import CELL_BOUNDARY, collapse_whitespace

_Row: TypeAlias = "dict[int, str]"  # the text of each cell that has some, by its column

_MAX_NAME = 100  # characters of a column's name: longer cells are sentences
_FORM_COLUMNS = 2  # a table of so many is often a form
_TOP_ROWS = 3  # that are compared to find the header: up to two rows of names, and one of values
_YEAR = re.compile(r"(?:19|20)\d\d")

_DELIMITERS = ",;\t|"
_SAMPLE_CHARACTERS = 64_000  # in which the delimiter is sought: enough for the sample's rows, if cells are long
_SAMPLE_ROWS = 20  # titles and notes above the table must be fewer than its own rows among these


@dataclass(frozen=True)
class _Header:
    """The names of a table's columns, and how many rows give them."""

    names: _Row = field(default_factory=dict)
    rows: int = 0


def table_lines(rows: Iterable[Sequence[str]], *, header: bool = False) -> list[str]:
    """Return the rows of a table as lines, with the names of their columns.

    A blank row ends a table. The first row of each that has several cells gives the names if its cells look like
    names, together with a second row that divides some of its columns. A table of two columns is often a form, with
    a name at the beginning of each row: its first row gives names only if it is marked as a header.

    Args:
        rows: The cells of each row.
        header: Whether the first row is marked as the header, or is one by nature, as in a sheet.

    Returns:
        The lines. A line of a single cell has an empty line before it and after it, and so has a table.

    Raises:
        FormatError: The lines are longer than a file's text may be.
    """
    lines: list[str] = []
    characters = 0
    is_apart = False
    for has_text, table in groupby(map(_cells_with_text, rows), key=bool):
        if not has_text:
            is_apart = True
            continue
        for line in _lines(table, header):
            is_single_cell = CELL_BOUNDARY not in line
            if lines and (is_apart or is_single_cell):
                lines.append("")
            lines.append(line)
            is_apart = is_single_cell
            characters += len(line)
            if characters > MAX_CHARACTERS:
                raise FormatError(f"more than {MAX_CHARACTERS:,} characters of text: split the file")
    return lines


def _cells_with_text(row: Sequence[str]) -> _Row:
    cells: _Row = {}
    for column, cell in enumerate(row):
        text = collapse_whitespace(cell)
        if text:
            cells[column] = text
    return cells


def _lines(rows: Iterator[_Row], header: bool) -> Iterator[str]:
    """Yield the lines of one table: titles of a single cell, then the rows from the first that has several cells."""
    for row in rows:
        if len(row) > 1:
            yield from _lines_of_several_cells(row, rows, header)
        else:
            yield from row.values()


def _lines_of_several_cells(first: _Row, others: Iterator[_Row], is_marked: bool) -> Iterator[str]:
    top = [first, *islice(others, _TOP_ROWS - 1)]
    header = _find_header(top, is_marked)
    left = min(min(row) for row in top)
    for number, row in enumerate(chain(top, others)):
        if header.names and number >= header.rows:
            yield _line_with_names(row, header.names)
        elif len(row) == 1:
            yield from row.values()
        else:
            yield _line_without_names(row, left)


def _line_with_names(row: _Row, names: _Row) -> str:
    cells: list[str] = []
    for column, text in row.items():
        if column in names:
            name = names[column].rstrip(":")
            cells.append(f"{name}: {text}")
        else:
            cells.append(text)
    return CELL_BOUNDARY.join(cells)


def _line_without_names(row: _Row, left: int) -> str:
    """Return the cells from the table's first column on; empty ones keep the others in their columns."""
    columns = range(min(left, *row), max(row) + 1)
    return CELL_BOUNDARY.join(row.get(column, "") for column in columns)


def _find_header(top: list[_Row], is_marked: bool) -> _Header:
    header = _Header(names=top[0], rows=1)
    if len(top) == _TOP_ROWS and not _are_names(top[2]):
        divided = _divide(top[0], top[1])
        if divided:
            header = _Header(names=divided, rows=2)
    if not _are_names(header.names):
        return _Header()
    if is_marked or len(header.names) > _FORM_COLUMNS:
        return header
    return _Header()


def _divide(first: _Row, second: _Row) -> _Row:
    """Return the names that two rows give together if the second divides columns of the first, else none.

    `Dues` above `1920` and an empty cell above `1921` give the names `Dues 1920` and `Dues 1921`.
    """
    names: _Row = {}
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


def _are_names(row: _Row) -> bool:
    """Return whether all cells look like names; one year alone is a value, and most names differ from each other."""
    cells = list(row.values())
    years = [cell for cell in cells if _YEAR.fullmatch(cell)]
    names = [cell for cell in cells if _has_letter(cell) and len(cell) <= _MAX_NAME]
    if not names or len(years) == 1:
        return False
    return len(names) + len(years) == len(cells) and len(cells) < 2 * len(set(cells))


def _has_letter(text: str) -> bool:
    return any(map(str.isalpha, text))


def read_csv(path: Path, encoding: str = "") -> Content:
    """Read a file of rows, whose cells are separated by commas, semicolons, tabs or bars."""
    text = decode_text(path.read_bytes(), encoding)
    csv.field_size_limit(MAX_CHARACTERS)  # of this process; by default, a cell of a few pages is too long
    rows = csv.reader(StringIO(text, newline=""), delimiter=_find_delimiter(path, text))
    try:
        lines = table_lines(rows, header=True)
    except csv.Error as error:
        raise FormatError(f"line {rows.line_num}: {error}; is a quotation mark missing?") from error
    return Content(title="", text="\n".join(lines))


def _find_delimiter(path: Path, text: str) -> str:
    """Return the delimiter with which most of the first rows have the same number of cells, and then most cells."""
    if path.suffix.lower() == ".tsv":
        return "\t"
    lines = text[:_SAMPLE_CHARACTERS].splitlines(keepends=True)[:_SAMPLE_ROWS]

    def rows_of_one_size(delimiter: str) -> tuple[int, int]:
        sizes = Counter[int]()
        for row in csv.reader(lines, delimiter=delimiter):
            if len(row) > 1:
                sizes[len(row)] += 1
        return max(((rows, cells) for cells, rows in sizes.items()), default=(0, 0))

    return max(_DELIMITERS, key=rows_of_one_size)
