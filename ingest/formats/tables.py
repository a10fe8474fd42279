"""Rows of tables as lines that can be understood one by one: `Name: Ada | Year: 1843`; csv files and workbooks."""

from __future__ import annotations

import csv
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, time, timedelta
from io import StringIO
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any, TypeAlias

from arag.ingest.formats.content import MAX_CHARACTERS, Content, FormatError, decode_text
from arag.text.normalise import CELL_BOUNDARY, collapse_whitespace

_Row: TypeAlias = "dict[int, str]"  # the text of each cell that has some, by its column

_MAX_NAME = 100  # characters of a column's name
_YEAR = re.compile(r"(?:19|20)\d\d")

_DELIMITERS = ",;\t|"
_SAMPLE_CHARACTERS = 64_000
_SAMPLE_ROWS = 20


def table_lines(rows: Iterable[Sequence[str]], *, header: bool = False) -> list[str]:
    """Return the rows of a table as lines, with the names of their columns.

    A blank row ends a table. The first row of each that has several cells gives the names if its cells look like
    names, together with a second row that divides some of its columns. A table of two columns is often a form, with
    a name at the beginning of each row: there, only a header does.

    A line that follows an empty one has a single cell. `header` says that the first row is marked as the header, or is
    one by nature, as in a sheet.
    """
    lines: list[str] = []
    characters = 0
    is_apart = False
    texts = ({column: text for column, cell in enumerate(row) if (text := collapse_whitespace(cell))} for row in rows)
    for has_text, table in groupby(texts, key=bool):
        is_apart |= not has_text
        for line in _lines(table, header) if has_text else ():
            is_alone = CELL_BOUNDARY not in line
            lines += ["", line] if lines and (is_apart or is_alone) else [line]
            is_apart = is_alone
            characters += len(line)
            if characters > MAX_CHARACTERS:
                raise FormatError(f"more than {MAX_CHARACTERS:,} characters of text: split the file")
    return lines


def _lines(table: Iterator[_Row], header: bool) -> Iterator[str]:
    for cells in table:
        if len(cells) == 1:  # a title
            yield from cells.values()
            continue
        top = [cells, *islice(table, 2)]
        names, header_rows = _column_names(top, header)
        left = min(map(min, top))
        for number, row in enumerate(chain(top, table)):
            if names and number >= header_rows:
                yield CELL_BOUNDARY.join(f"{names[x].rstrip(':')}: {row[x]}" if x in names else row[x] for x in row)
            elif len(row) == 1:
                yield from row.values()
            else:
                yield CELL_BOUNDARY.join(row.get(x, "") for x in range(min(left, *row), max(row) + 1))


def _column_names(top: list[_Row], header: bool) -> tuple[_Row, int]:
    """Return the names of the columns, and how many of the first rows give them."""
    names, rows = top[0], 1
    if len(top) == 3 and not _are_names(top[2]) and (divided := _divide(*top[:2])):
        names, rows = divided, 2
    return (names, rows) if _are_names(names) and (header or len(names) > 2) else ({}, 0)


def _divide(first: _Row, second: _Row) -> _Row:
    """Return the names that two rows give together if the second divides columns of the first, else none."""
    names: _Row = {}
    group, has_groups = "", False
    for x in sorted({*first, *second}):
        above, below = first.get(x, ""), second.get(x, "")
        if above:
            group = above if x + 1 in second and x + 1 not in first else ""
        has_groups |= bool(group)
        is_name = _YEAR.fullmatch(below) or any(map(str.isalpha, below))
        if below and not (is_name and (group or below == above or not above)):
            return {}
        names[x] = f"{group} {below}".strip() if group else above or below
    return names if has_groups else {}


def _are_names(row: _Row) -> bool:
    """Return whether all cells look like names; one year alone is a value, and so is what most cells repeat."""
    cells = list(row.values())
    years = sum(bool(_YEAR.fullmatch(cell)) for cell in cells)
    names = sum(any(map(str.isalpha, cell)) and len(cell) <= _MAX_NAME for cell in cells)
    return names > 0 and names + (years if years > 1 else 0) == len(cells) < 2 * len(set(cells))


def read_csv(path: Path, encoding: str = "") -> Content:
    """Read a file of rows, whose cells are separated by commas, semicolons, tabs or bars."""
    text = decode_text(path.read_bytes(), encoding)
    delimiter = "\t" if path.suffix.lower() == ".tsv" else _find_delimiter(text[:_SAMPLE_CHARACTERS])
    csv.field_size_limit(MAX_CHARACTERS)  # of this process; by default, a cell of a few pages is too long
    rows = csv.reader(StringIO(text, newline=""), delimiter=delimiter)
    try:
        return Content("", "\n".join(table_lines(rows, header=True)))
    except csv.Error as error:
        raise FormatError(f"line {rows.line_num}: {error}; is a quotation mark missing?") from error


def _find_delimiter(sample: str) -> str:
    """Return the delimiter with which most of the first rows have the same number of cells, and then most cells."""
    lines = sample.splitlines(keepends=True)[:_SAMPLE_ROWS]

    def count_rows(delimiter: str) -> tuple[int, int]:
        sizes = Counter(len(row) for row in csv.reader(lines, delimiter=delimiter) if len(row) > 1)
        return max(((rows, cells) for cells, rows in sizes.items()), default=(0, 0))

    return max(_DELIMITERS, key=count_rows)


def read_sheets(path: Path) -> Content:
    """Read a workbook of Excel: each sheet's name as a heading, and its rows with the values that were saved last."""
    from openpyxl import load_workbook

    lines: list[str] = []
    with warnings.catch_warnings(action="ignore"):
        for sheet in load_workbook(path, read_only=True, data_only=True).worksheets:
            sheet.reset_dimensions()  # some programs write them too small
            rows = table_lines(([_shown(cell) for cell in row] for row in sheet.iter_rows()), header=True)
            lines += [f"# {sheet.title}", "", *rows, ""] if rows else []
    return Content("", "\n".join(lines).strip())


def _shown(cell: Any) -> str:
    """Return a cell's value as a person sees it: 15.3%, 2024-03-31, TRUE."""
    value = cell.value
    if value is None or cell.data_type == "e":
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float):
        return f"{value * 100:.10g}%" if "%" in cell.number_format else f"{value:.15g}"
    if isinstance(value, timedelta):
        minutes, seconds = divmod(round(value.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02}" + (f":{seconds:02}" if seconds else "")
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds").removesuffix(":00").removesuffix(" 00:00")
    return str(value).removesuffix(":00") if isinstance(value, time) else str(value)
