"""Tables of reStructuredText, drawn with signs or written in directives, as lines with the names of their columns."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from itertools import chain, pairwise, takewhile, zip_longest
from typing import TypeAlias

from arag.ingest.formats.package import to_int
from arag.ingest.formats.tables import table_lines
from arag.text.normalise import collapse_whitespace

_Rows: TypeAlias = "list[list[str]]"

SIMPLE_BORDER = re.compile(r" *=+(?: +=+)+ *$")
GRID_BORDER = re.compile(r" *\+(?:-+\+)+ *$")
_COLUMN = re.compile("=+")
_SPAN = re.compile(r"\s*|[ -]*--[ -]*")  # a blank line, or one below names of several columns
_IN_GRID = re.compile(r"[+|]")
_JOINT = re.compile(r"\+(?=[-=]|$)|(?<=[-=])\+")
_RULE_IN_GRID = re.compile(r"\+(?:-{2,}|={2,})\+")
MAX_COLUMNS = 100  # of a table: cutting more takes long
_BARS = ("|", "+", "")
_DELIMITERS = {"tab": "\t", "space": " "}
_ITEM = re.compile(r"\s*([*+-]\s+)?[*+-](?:\s+(.*)|$)")  # a cell of a list-table, and whether it begins a row
# :func:`run`, `Oil <oil>`_, ``code``, **bold** and |substitution|
_MARKUP = (
    (re.compile(r"(?<!\w):(?:[\w+-]+:)*[\w+-]+:`[~!]?([^`]*)`"), r"`\1`"),
    (re.compile(r"`([^`<]*[^`<\s])\s+<[^`<>]*>`_{0,2}"), r"\1"),
    (re.compile(r"(`{1,2})([^`]+)\1_{0,2}"), r"\2"),
    (re.compile(r"(\*\*?)(\S|\S[^*]*\S)\1(?!\w)"), r"\2"),
    (re.compile(r"\|(\S[^|]*)\|_{0,2}"), r"\1"),
)


def read_simple(lines: Sequence[str]) -> tuple[list[str], int]:
    """Return the rows of the simple table that begins with a line, and the number of its lines; 0 if it has no end."""
    borders = _find_borders(lines)
    if len(borders) < 2:
        return [], 0
    starts = [column.start() for column in _COLUMN.finditer(lines[0])]
    if len(starts) > MAX_COLUMNS:
        return [], 0
    first, *_, before_last, last = [0, *borders]
    names = _simple_rows(lines[first + 1 : before_last], starts)
    rows = _simple_rows(lines[before_last + 1 : last], starts)
    return _show(names, rows), last + 1


def _find_borders(lines: Sequence[str]) -> list[int]:
    """Return the numbers of a table's borders, up to one above a blank line; none without such a one."""
    borders: list[int] = []
    for number, (line, following) in enumerate(pairwise([*lines, ""])):
        if SIMPLE_BORDER.match(line) is None:
            continue
        borders.append(number)
        is_last = len(borders) > 1 and not following.strip()
        if is_last:
            return borders
    return []


def _simple_rows(lines: Sequence[str], starts: Sequence[int]) -> _Rows:
    rows: _Rows = []
    for line in lines:
        if _SPAN.fullmatch(line):
            continue
        cells = _cut(line, starts)
        begins_row = cells[0] != "" or not rows
        if begins_row:
            rows.append(cells)
        else:
            rows[-1] = _add(rows[-1], cells)
    return rows


def _cut(line: str, starts: Sequence[int]) -> list[str]:
    """Return the cells of a line; one that reaches into the next column spans both."""
    cells: list[str] = []
    first = starts[0]
    width = max(len(line), starts[-1]) + 1
    padded = line.ljust(width)
    for end in [*starts[1:], width]:
        text = padded[first:end].strip()
        is_whole = padded[end - 1] == " "
        if is_whole:
            first = end
        cells.append(text if is_whole else "")
    return cells


def _add(row: Sequence[str], more: Sequence[str]) -> list[str]:
    pairs = zip(row, more, strict=True)
    return [" ".join(pair).strip() for pair in pairs]


def read_grid(lines: Sequence[str]) -> tuple[list[str], int]:
    """Return the rows of the grid that begins with a line, and the number of its lines; 0 if it is too wide."""
    margin = lines[0].index("+")
    set_out = (line[margin:] for line in lines)
    grid = list(takewhile(_IN_GRID.match, set_out))
    signs = chain.from_iterable(map(_JOINT.finditer, grid))
    columns = sorted({sign.start() for sign in signs})
    if len(columns) > MAX_COLUMNS:
        return [], 0
    empty = [""] * (len(columns) - 1)
    names: _Rows = []
    rows = [empty]
    for line in grid:
        is_below_names = line.startswith("+=")
        if is_below_names:
            names = rows
            rows = [empty]
        elif _RULE_IN_GRID.search(line):
            rows.append(empty)
        else:
            rows[-1] = _add(rows[-1], cut_grid(line, columns))
    return _show(names, rows), len(grid)


def cut_grid(line: str, columns: Sequence[int]) -> list[str]:
    """Return the cells of a line between its bars, which some columns may lack."""
    cells: list[str] = []
    first = columns[0]
    for column in columns[1:]:
        text = line[first + 1 : column].strip()
        has_bar = line[column : column + 1] in _BARS
        if has_bar:
            first = column
        cells.append(text if has_bar else "")
    return cells


def read_csv_table(body: Sequence[str], options: Mapping[str, str]) -> list[str]:
    """Return the rows of a csv-table, whose names are in an option or in its first rows."""
    named = options.get("delim", ",")
    delimiter = _DELIMITERS.get(named, named[:1] or ",")
    try:
        names = _parse([options.get("header", "")], delimiter)
        rows = _parse(body, delimiter)
    except csv.Error:  # such as a quotation mark that nothing closes
        return list(body)
    marked = _count_names(options)
    return _show([*names, *rows[:marked]], rows[marked:])


def _parse(lines: Sequence[str], delimiter: str) -> _Rows:
    ended = [f"{line}\n" for line in lines]  # a cell may go on in the next one
    return list(
        csv.reader(
            ended,
            delimiter=delimiter,
            skipinitialspace=True,
        )
    )


def read_list_table(body: Sequence[str], options: Mapping[str, str]) -> list[str]:
    """Return the rows of a list-table, a list of lists."""
    rows: _Rows = [[""]]
    for line in body:
        item = _ITEM.match(line)
        if item is None:
            text = line
        else:
            begins_row, text = item.groups()
            if begins_row:
                rows.append([])
            rows[-1].append("")
        rows[-1][-1] += f" {text}"
    marked = _count_names(options) + 1  # the first row is what stands above the list: nothing
    return _show(rows[1:marked], rows[marked:])


def _count_names(options: Mapping[str, str]) -> int:
    marked = options.get("header-rows", "0")
    return to_int(marked, 0)


def _show(names: _Rows, rows: _Rows) -> list[str]:
    """Return the lines of a table, with the rows of its names as one."""
    columns = zip_longest(*names, fillvalue="")
    joined = [" ".join(column) for column in columns]
    shown = [list(map(_plain, row)) for row in (joined, *rows)]
    has_names = any(shown[0])
    written = filter(any, shown)
    return table_lines(written, header=has_names)


def _plain(cell: str) -> str:
    """Return a cell without the marks of its markup."""
    for pattern, text in _MARKUP:
        cell = pattern.sub(text, cell)
    return collapse_whitespace(cell)
