"""Rows of tables as lines that can be understood one by one, such as `Name: Ada | Year: 1843`; csv files."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, filterfalse, groupby, islice, takewhile
from operator import itemgetter
from pathlib import Path

from arag.ingest.formats.content import MAX_CHARACTERS, Content, FormatError, decode_text
from arag.ingest.formats.side_tables import set_tables_apart
from arag.ingest.formats.table_headers import (
    FORM_COLUMNS,
    MAX_ROWS,
    Header,
    Row,
    find_header,
    is_group_above,
    may_be_form,
)
from arag.ingest.formats.table_notes import count_notes
from arag.ingest.outline import escape_structure
from arag.text.normalise import CELL_BOUNDARY, collapse_whitespace, escape_bars
from arag.text.units import is_unit_note

_DELIMITERS = ",;\t|"
_SEPARATOR_LINE = re.compile(r"sep=(?P<delimiter>[,;|\t])[ \t]*(?:\n|$)")  # as Excel writes it
_COMMENT = re.compile("#")
_SAMPLE_CHARACTERS = 10_000  # of each row in which the delimiter is sought
_SAMPLE_ROWS = 20  # titles and notes above the table must be fewer than its own rows among these


def table_lines(
    rows: Iterable[Sequence[str]],
    *,
    header: bool = False,
    sheet: bool = False,
    web: bool = False,
    names_one: bool = False,
) -> list[str]:
    """Return the rows of a table as lines, with the names of their columns.

    A blank row ends a table, and notes may stand above it. In a sheet, tables may also stand side by side. The first
    row of each that has several cells gives the names if its cells look like names and not like the rows below,
    together with a second row that divides some of its columns. A table of two columns is often a form, with a name at
    the beginning of each row: its first row gives names only if it is marked as a header, or in a sheet.

    Args:
        rows: The cells of each row.
        header: Whether the first row is marked as the header.
        sheet: Whether the rows are a sheet or a file of rows.
        web: Whether they are a table of a web page: see `find_header`.
        names_one: Whether the first row is a header that names a single column: it is a line above rows without names.

    Returns:
        The lines. A line of a single cell has an empty line before it and after it, and so has a table.

    Raises:
        FormatError: The lines are longer than a file's text may be.
    """
    written = _Lines()
    shown = map(cells_with_text, rows)
    if names_one:
        for line in _lines_below(shown, Header(), left=0):
            written.add(line)
        return written.lines
    for table in _split_tables(set_tables_apart(shown) if sheet else shown):
        written.set_apart()
        for line in _lines(table.rows, header, sheet and not table.is_form, web):
            written.add(line)
    return written.lines


@dataclass
class _Table:
    """The rows between two blank ones, and whether they are fields that describe the table below them."""

    rows: Iterator[Row]
    is_form: bool = False


def _split_tables(rows: Iterable[Row]) -> Iterator[_Table]:
    """Yield the tables that blank rows end; above a wider one, fields such as `Account | 4711` are a form."""
    waiting: list[list[Row]] = []
    for has_text, table in groupby(rows, key=bool):
        if not has_text:
            continue
        table_rows = iter(table)
        top = list(islice(table_rows, MAX_ROWS))
        if may_be_form(top):
            waiting.append(top)
            continue
        widths = map(len, top)
        is_above_wider = max(widths) > FORM_COLUMNS
        for fields in waiting:
            yield _Table(iter(fields), is_form=is_above_wider)
        waiting = []
        yield _Table(chain(top, table_rows))
    for fields in waiting:
        yield _Table(iter(fields))


@dataclass
class _Lines:
    """The lines that have been written, and whether an empty line must come next."""

    lines: list[str] = field(default_factory=list)
    _characters: int = 0
    _is_apart: bool = False

    def set_apart(self) -> None:
        self._is_apart = True

    def add(self, line: str) -> None:
        is_single_cell = CELL_BOUNDARY not in line
        if self.lines and (self._is_apart or is_single_cell):
            self.lines.append("")
        self.lines.append(escape_structure(line) if is_single_cell else line)
        self._is_apart = is_single_cell
        self._characters += len(line)
        if self._characters > MAX_CHARACTERS:
            raise FormatError(f"more than {MAX_CHARACTERS:,} characters of text: split the file")


def cells_with_text(row: Sequence[str]) -> Row:
    """Return the cells of a row that have text, by their columns."""
    cells = enumerate(map(collapse_whitespace, row))
    return dict(filter(itemgetter(1), cells))


def _lines(rows: Iterator[Row], is_marked: bool, is_sheet: bool, is_web: bool) -> Iterator[str]:
    """Yield the lines of one table: titles of a single cell, then the rows from the first that has several cells."""
    last_title: Row = {}  # it may be the name of some columns
    for row in rows:
        if len(row) == 1:
            yield from last_title.values()
            last_title = row
            continue
        top = [row, *islice(rows, MAX_ROWS - 1)]
        if is_group_above(last_title, top):
            top.insert(0, last_title)
        else:
            yield from last_title.values()
        last_title = {}
        left = min(map(min, top))
        notes = 0 if is_web and is_marked else count_notes(top)
        for note in top[:notes]:
            yield " ".join(note.values())  # a row of its own would be taken for a part of the table
        header = find_header(
            top[notes:],
            is_marked=is_marked,
            is_sheet=is_sheet,
            is_web=is_web,
        )
        yield from _lines_below(chain(top[notes:], rows), header, left)
    yield from last_title.values()


def _lines_below(rows: Iterable[Row], header: Header, left: int) -> Iterator[str]:
    """Yield the lines of the header and of the rows below it."""
    for number, row in enumerate(rows):
        is_below_header = number >= header.rows
        if header.names and is_below_header:
            yield CELL_BOUNDARY.join(cells_with_names(row, header.names))
        elif len(row) == 1:
            yield from map(escape_bars, row.values())
        else:
            yield _line_without_names(row, left)


def cells_with_names(row: Row, names: Row) -> list[str]:
    """Return the cells of a row, each after the name of its column.

    A note on the unit of the whole table, above the labels of its rows, names none of them.
    """
    cells: list[str] = []
    first = min(names)
    for column, text in row.items():
        is_label = column == first and is_unit_note(names[first])
        if column in names and not is_label:
            name = names[column].rstrip(":：")
            cells.append(f"{name}: {text}")
        else:
            cells.append(escape_bars(text))
    return cells


def _line_without_names(row: Row, left: int) -> str:
    """Return the cells from the table's first column on; empty ones keep the others in their columns."""
    columns = range(min(left, *row), max(row) + 1)
    return CELL_BOUNDARY.join(escape_bars(row.get(column, "")) for column in columns)


def read_csv(path: Path, encoding: str = "") -> Content:
    """Read a file of rows, whose cells are separated by commas, semicolons, tabs or bars."""
    text = decode_text(path.read_bytes(), encoding)
    return Content(
        title="",
        text=csv_lines(text, path.suffix),
    )


def csv_lines(text: str, extension: str) -> str:
    """Return the rows of a text as lines with the names of their columns.

    Args:
        text: The rows.
        extension: Of the file; in a `.tsv`, tabs come first.
    """
    csv.field_size_limit(MAX_CHARACTERS)  # of this process; by default, a cell of a few pages is too long
    lines = text.splitlines(keepends=True)
    separator_line = _SEPARATOR_LINE.match(text)
    if separator_line:
        delimiter = separator_line["delimiter"]
        lines = lines[1:]
    else:
        delimiter = _find_delimiter(extension, lines)
    notes = list(takewhile(_COMMENT.match, lines))
    lines = lines[len(notes) :]
    if notes and lines and _count_cells(notes[-1], delimiter) == _count_cells(lines[0], delimiter):
        names = notes.pop().lstrip("# ")
        lines.insert(0, names)
    rows = chain(([note.strip()] for note in notes), _read_rows(lines, delimiter))
    return "\n".join(table_lines(rows, sheet=True))


def _count_cells(line: str, delimiter: str) -> int:
    return len(_read_line(line, delimiter))


def _read_rows(lines: Sequence[str], delimiter: str) -> Iterator[list[str]]:
    """Yield the rows; one in which a quotation mark is not closed ends with its line, so that it swallows no others."""
    start = 0
    while start < len(lines):
        rows = csv.reader(
            (lines[number] for number in range(start, len(lines))),
            delimiter=delimiter,
            strict=True,
        )
        read = 0
        try:
            for row in rows:
                yield row
                read = rows.line_num
        except csv.Error as error:
            if "field limit" in str(error):
                raise FormatError(f"line {start + rows.line_num}: {error}") from error
            faulty = start + read
            yield _read_line(lines[faulty], delimiter)
            start = faulty + 1
        else:
            return


def _read_line(line: str, delimiter: str) -> list[str]:
    if _has_open_quote(line):
        rows = csv.reader([line], delimiter=delimiter, quoting=csv.QUOTE_NONE)
    else:
        rows = csv.reader([line], delimiter=delimiter)
    return next(rows, [])


def _find_delimiter(extension: str, lines: Sequence[str]) -> str:
    """Return the delimiter with which most of the first rows have the same number of cells, and then most cells."""
    rows = islice(filterfalse(_COMMENT.match, lines), _SAMPLE_ROWS)
    sample = [row[:_SAMPLE_CHARACTERS] for row in rows]
    whole = list(filterfalse(_has_open_quote, sample))
    has_tab = "\t" in "".join(whole)
    if extension.lower() == ".tsv" and has_tab:
        return "\t"
    return max(_DELIMITERS, key=lambda delimiter: _rows_of_one_size(whole, delimiter))


def _has_open_quote(line: str) -> bool:
    return line.count('"') % 2 == 1


def _rows_of_one_size(sample: Sequence[str], delimiter: str) -> tuple[int, int]:
    """Return how many rows have the most frequent number of cells, and that number; rows of one cell do not count."""
    sizes = Counter(map(len, csv.reader(sample, delimiter=delimiter)))
    del sizes[0], sizes[1]
    rows_and_cells = zip(sizes.values(), sizes, strict=True)
    return max(rows_and_cells, default=(0, 0))
