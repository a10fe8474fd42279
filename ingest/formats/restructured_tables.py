"""Tables of reStructuredText, drawn with signs or written in directives, as lines with the names of their columns."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from arag.ingest.formats.tables import table_lines
from arag.text.normalise import collapse_whitespace

_Rows: TypeAlias = "list[list[str]]"

SIMPLE_BORDER = re.compile(r" *=+(?: +=+)+ *$")
GRID_BORDER = re.compile(r" *\+(?:-+\+)+ *$")
_COLUMN = re.compile("=+")
_SPAN = re.compile(r"[ -]*--[ -]*$")  # below names of several columns
_RULE_IN_GRID = re.compile(r"\+(?:-{2,}|={2,})\+")
_ITEM = re.compile(r"(\*[ \t]+)?-(?:[ \t]+|$)")  # a cell of a list-table, and whether it begins a row
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
    borders: list[int] = []
    for number, (line, following) in enumerate(pairwise([*lines, ""])):
        if not SIMPLE_BORDER.match(line):
            continue
        borders.append(number)
        is_last = not following.strip() and len(borders) > 1
        if is_last:
            break
    else:
        return [], 0
    starts = [column.start() for column in _COLUMN.finditer(lines[0])]
    names = _simple_rows(lines[1 : borders[1]], starts)
    rows = _simple_rows(lines[borders[-2] + 1 : borders[-1]], starts)
    if len(borders) == 2:
        names = []
    return _show(names, rows), borders[-1] + 1


def _simple_rows(lines: Sequence[str], starts: Sequence[int]) -> _Rows:
    rows: _Rows = []
    for line in lines:
        if not line.strip() or _SPAN.match(line):
            continue
        cells = _cut(line, starts)
        goes_on = bool(rows) and not cells[0]
        if goes_on:
            rows[-1] = _add(rows[-1], cells)
        else:
            rows.append(cells)
    return rows


def _cut(line: str, starts: Sequence[int]) -> list[str]:
    """Return the cells of a line; one that reaches into the next column spans both."""
    cells: list[str] = []
    first = 0
    for start, end in pairwise([*starts, len(line) + 1]):
        spans = end <= len(line) and line[end - 1] != " "
        if spans:
            cells.append("")
            continue
        text = line[first or start : end].strip()
        first = end
        cells.append(text)
    return cells


def _add(row: Sequence[str], more: Sequence[str]) -> list[str]:
    return [f"{cell} {text}".strip() for cell, text in zip(row, more, strict=True)]


def read_grid(lines: Sequence[str]) -> tuple[list[str], int]:
    """Return the rows of the grid that begins with a line, and the number of its lines."""
    margin = len(lines[0]) - len(lines[0].lstrip())
    grid: list[str] = []
    for line in lines:
        if not line[margin:].startswith(("+", "|")):
            break
        grid.append(line[margin:])
    places = {place for line in grid for place, sign in enumerate(line) if sign == "+"}
    columns = sorted(places)
    names: _Rows = []
    rows: _Rows = []
    row: list[str] = [""] * (len(columns) - 1)
    for line in grid:
        if not _RULE_IN_GRID.search(line):
            row = _add(row, _cut_grid(line, columns))
            continue
        if any(row):
            rows.append(row)
        row = [""] * (len(columns) - 1)
        is_below_names = line.startswith("+=")
        if is_below_names:
            names, rows = rows, []
    return _show(names, rows), len(grid)


def _cut_grid(line: str, columns: Sequence[int]) -> list[str]:
    """Return the cells of a line between its bars, which some columns may lack."""
    cells: list[str] = []
    first = columns[0]
    for column in columns[1:]:
        has_bar = line[column : column + 1] in {"|", "+", ""}
        if not has_bar:
            cells.append("")
            continue
        text = line[first + 1 : column].strip()
        first = column
        cells.append(text)
    return cells


def read_csv_table(body: Sequence[str], options: Mapping[str, str]) -> list[str]:
    """Return the rows of a csv-table, whose names are in an option or in its first rows."""
    delimiter = options.get("delim", ",")
    if len(delimiter) != 1:
        delimiter = "\t" if delimiter == "tab" else " "
    names = _parse([options.get("header", "")], delimiter)
    rows = _parse(body, delimiter)
    marked = _count_names(options)
    return _show([*names, *rows[:marked]], rows[marked:])


def _parse(lines: Sequence[str], delimiter: str) -> _Rows:
    ended = [f"{line}\n" for line in lines]  # a cell may go on in the next one
    return [row for row in csv.reader(ended, delimiter=delimiter, skipinitialspace=True) if row]


def read_list_table(body: Sequence[str], options: Mapping[str, str]) -> list[str]:
    """Return the rows of a list-table, a list of lists."""
    rows: _Rows = []
    for line in body:
        text = line.strip()
        item = _ITEM.match(text)
        if item and item[1]:
            rows.append([text[item.end() :]])
        elif item and rows:
            rows[-1].append(text[item.end() :])
        elif rows:
            rows[-1][-1] += f" {text}"
    marked = _count_names(options)
    return _show(rows[:marked], rows[marked:])


def _count_names(options: Mapping[str, str]) -> int:
    marked = options.get("header-rows", "0")
    return int(marked) if marked.isdecimal() else 0


def _show(names: _Rows, rows: _Rows) -> list[str]:
    """Return the lines of a table, with the rows of its names as one."""
    joined: list[str] = []
    for row in names:
        joined = _add(joined, row) if len(joined) == len(row) else row
    table = [joined, *rows] if any(joined) else rows
    shown = [list(map(_plain, row)) for row in table]
    return table_lines(shown, header=any(joined))


def _plain(cell: str) -> str:
    """Return a cell without the marks of its markup."""
    for pattern, text in _MARKUP:
        cell = pattern.sub(text, cell)
    return collapse_whitespace(cell)
