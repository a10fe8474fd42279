"""Rows of tables as lines that can be understood one by one, such as `Name: Ada | Year: 1843`; csv files."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from itertools import chain, groupby, islice
from pathlib import Path

from arag.ingest.formats.content import MAX_CHARACTERS, Content, FormatError, decode_text
from arag.ingest.formats.table_headers import MAX_ROWS, Header, Row, count_notes, find_header
from arag.ingest.outline import escape_structure
from arag.text.normalise import CELL_BOUNDARY, collapse_whitespace

_DELIMITERS = ",;\t|"
_SAMPLE_CHARACTERS = 64_000  # in which the delimiter is sought: enough for the sample's rows, if cells are long
_SAMPLE_ROWS = 20  # titles and notes above the table must be fewer than its own rows among these


def table_lines(rows: Iterable[Sequence[str]], *, header: bool = False, sheet: bool = False) -> list[str]:
    """Return the rows of a table as lines, with the names of their columns.

    A blank row ends a table, and notes may stand above it. The first row of each that has several cells gives the names
    if its cells look like names and not like the rows below, together with a second row that divides some of its
    columns. A table of two columns is often a form, with a name at the beginning of each row: its first row gives names
    only if it is marked as a header, or in a sheet.

    Args:
        rows: The cells of each row.
        header: Whether the first row is marked as the header.
        sheet: Whether the rows are a sheet or a file of rows.

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
        for line in _lines(table, header, sheet):
            is_single_cell = CELL_BOUNDARY not in line
            if lines and (is_apart or is_single_cell):
                lines.append("")
            lines.append(escape_structure(line) if is_single_cell else line)
            is_apart = is_single_cell
            characters += len(line)
            if characters > MAX_CHARACTERS:
                raise FormatError(f"more than {MAX_CHARACTERS:,} characters of text: split the file")
    return lines


def _cells_with_text(row: Sequence[str]) -> Row:
    cells: Row = {}
    for column, cell in enumerate(row):
        text = collapse_whitespace(cell)
        if text:
            cells[column] = text
    return cells


def _lines(rows: Iterator[Row], is_marked: bool, is_sheet: bool) -> Iterator[str]:
    """Yield the lines of one table: titles of a single cell, then the rows from the first that has several cells."""
    for row in rows:
        if len(row) == 1:
            yield from row.values()
            continue
        top = [row, *islice(rows, MAX_ROWS - 1)]
        left = min(min(row) for row in top)
        notes = count_notes(top)
        for note in top[:notes]:
            yield _line_without_names(note, left)
        header = find_header(
            top[notes:],
            is_marked=is_marked,
            is_sheet=is_sheet,
        )
        yield from _lines_below(chain(top[notes:], rows), header, left)


def _lines_below(rows: Iterable[Row], header: Header, left: int) -> Iterator[str]:
    """Yield the lines of the header and of the rows below it."""
    for number, row in enumerate(rows):
        if header.names and number >= header.rows:
            yield _line_with_names(row, header.names)
        elif len(row) == 1:
            yield from row.values()
        else:
            yield _line_without_names(row, left)


def _line_with_names(row: Row, names: Row) -> str:
    cells: list[str] = []
    for column, text in row.items():
        if column in names:
            name = names[column].rstrip(":")
            cells.append(f"{name}: {text}")
        else:
            cells.append(text)
    return CELL_BOUNDARY.join(cells)


def _line_without_names(row: Row, left: int) -> str:
    """Return the cells from the table's first column on; empty ones keep the others in their columns."""
    columns = range(min(left, *row), max(row) + 1)
    return CELL_BOUNDARY.join(row.get(column, "") for column in columns)


def read_csv(path: Path, encoding: str = "") -> Content:
    """Read a file of rows, whose cells are separated by commas, semicolons, tabs or bars."""
    text = decode_text(path.read_bytes(), encoding)
    csv.field_size_limit(MAX_CHARACTERS)  # of this process; by default, a cell of a few pages is too long
    rows = csv.reader(StringIO(text, newline=""), delimiter=_find_delimiter(path, text))
    try:
        lines = table_lines(rows, sheet=True)
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
