"""Workbooks of Excel: the values by openpyxl, and what it leaves out from the parts of the file."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

from arag.ingest.formats.content import Content, join_blocks, name_lost
from arag.ingest.formats.number_formats import plain_number, show_number
from arag.ingest.formats.package import DamagedError, Package, as_transitional, attribute, unescape
from arag.ingest.formats.sheet_parts import read_beside
from arag.ingest.formats.sheet_texts import set_raised_digits_apart
from arag.ingest.formats.tables import table_lines
from arag.text.normalise import count

_SAVE = "open and save the file in a spreadsheet program"

_MERGED = re.compile(rb'<(?:\w+:)?mergeCell\s[^>]*?ref="([A-Z]+)(\d+):[A-Z]+(\d+)"')
_ERROR = re.compile(rb"<(?:\w+:)?c\s[^>]*\bt=\"e\"")
_FORMULA_WITHOUT_VALUE = re.compile(
    rb"<(?:\w+:)?c\s(?P<attributes>[^>]*)>\s*<(?:\w+:)?f\b(?:[^>]*/>|[^>]*>[^<]*</(?:\w+:)?f>)"
    rb"\s*(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v>\s*</(?:\w+:)?v>)?\s*</(?:\w+:)?c>"
)


@dataclass
class _Sheet:
    """What a sheet has besides the values of its cells.

    Attributes:
        merged: The rows over which a cell goes on, by its column and its first row, both counted from 1.
        formulas_without_values: How many formulas no program has computed yet.
        beside: The texts of comments, boxes and charts.
    """

    merged: dict[tuple[int, int], int] = field(default_factory=dict)
    formulas_without_values: int = 0
    beside: list[str] = field(default_factory=list)


def read_sheets(path: Path) -> Content:
    """Read a workbook of Excel: each sheet's name as a heading, its rows as a person sees them, and its comments."""
    from openpyxl import load_workbook

    lost = Counter[str]()
    data = as_transitional(path.read_bytes())
    try:
        sheets = _read_parts(Package(data), lost)
        data = set_raised_digits_apart(data)
    except DamagedError:  # openpyxl is less strict
        sheets = {}
    blocks: list[str] = []
    with warnings.catch_warnings(action="ignore"):
        workbook = load_workbook(BytesIO(data), read_only=True, data_only=True)
        for sheet in workbook.worksheets:
            about = sheets.pop(sheet.title, _Sheet())
            rows = table_lines(_shown_rows(sheet, about.merged), sheet=True)
            is_hidden = sheet.sheet_state != "visible"
            name = f"{sheet.title} (hidden)" if is_hidden else sheet.title
            blocks += _blocks(name, rows, about)
            lost["formula"] += about.formulas_without_values
    for name, about in sheets.items():  # sheets that are a chart
        blocks += _blocks(name, [], about)
    return Content(
        title="",
        text=join_blocks(blocks),
        left_out=tuple(_name_lost(lost)),
    )


def _blocks(name: str, rows: list[str], about: _Sheet) -> list[str]:
    """Return the texts of a sheet below its name; none of a sheet without texts."""
    if not rows and not about.beside:
        return []
    return [f"# {name}", "\n".join(rows), *about.beside]


def _name_lost(lost: Counter[str]) -> Iterator[str]:
    formulas = lost.pop("formula", 0)
    if formulas:
        yield f"{count(formulas, 'formula')} without a saved value ({_SAVE})"
    yield from name_lost(lost)


def _read_parts(package: Package, lost: Counter[str]) -> dict[str, _Sheet]:
    """Read what the sheets have besides values, by their names."""
    sheets: dict[str, _Sheet] = {}
    main = package.main_part()
    workbook = package.xml(main)
    if workbook is None:
        return sheets
    relations = package.relations(main)
    persons: list[str] = []
    for relation in relations.values():
        if relation.kind == "person":
            persons.append(relation.part)
    for element in workbook.iterfind("{*}sheets/{*}sheet"):
        own = relations.get(attribute(element, "id"))
        if own is None:
            continue
        data = package.read(own.part)
        if data is None:
            continue
        errors = len(_ERROR.findall(data))  # such as #N/A, which is no value of its column
        lost.update(["error value"] * errors)
        sheets[element.get("name", "")] = _Sheet(
            merged=_find_merged(data),
            formulas_without_values=_count_formulas_without_values(data),
            beside=list(read_beside(package, own.part, persons, lost)),
        )
    return sheets


def _find_merged(data: bytes) -> dict[tuple[int, int], int]:
    """Return the cells that span several rows: the last row of each, by its column and its first row."""
    merged: dict[tuple[int, int], int] = {}
    for letters, first, last in _MERGED.findall(data):
        first_row = int(first)
        last_row = int(last)
        if last_row > first_row:
            merged[(_column_number(letters), first_row)] = last_row
    return merged


def _column_number(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + letter - ord("A") + 1
    return number


def _count_formulas_without_values(data: bytes) -> int:
    """Return how many formulas no program has computed; the value of a formula may also be an empty text."""
    if b"<f" not in data and b":f" not in data:
        return 0
    without = 0
    for match in _FORMULA_WITHOUT_VALUE.finditer(data):
        without += b't="str"' not in match["attributes"]
    return without


def _shown_rows(sheet: Any, merged: dict[tuple[int, int], int]) -> Iterator[list[str]]:
    sheet.reset_dimensions()  # some programs write them too small
    going_on = {column: _MergedCell() for column, _ in merged}
    for row_number, cells in enumerate(sheet.iter_rows(), 1):
        row = list(map(_shown, cells))
        if going_on:
            _repeat_merged(row, row_number, merged, going_on)
        yield row


@dataclass
class _MergedCell:
    """A cell that spans several rows, and the last of them."""

    text: str = ""
    last_row: int = 0


def _repeat_merged(
    row: list[str],
    row_number: int,
    merged: dict[tuple[int, int], int],
    going_on: dict[int, _MergedCell],
) -> None:
    """Give the cells that span several rows to a row that has other cells.

    Args:
        row: The texts of the row, which are changed.
        row_number: Its number.
        merged: The last row of each cell that spans several, by its column and its first row.
        going_on: The last of these cells of each column, which is changed.
    """
    has_text = any(row)
    for column, cell in going_on.items():
        last_row = merged.get((column, row_number))
        if last_row is not None and column <= len(row):
            going_on[column] = _MergedCell(row[column - 1], last_row)
        elif row_number <= cell.last_row and has_text:
            row.extend([""] * (column - len(row)))
            row[column - 1] = row[column - 1] or cell.text


def _shown(cell: Any) -> str:
    """Return a cell's value as a person sees it: 15.3%, 00042, 2024-03-31, TRUE."""
    value = cell.value
    if value is None or cell.data_type == "e":  # an error, such as #N/A
        return ""
    match value:
        case bool():
            return str(value).upper()
        case int() | float():
            return _shown_number(value, cell.number_format)
        case timedelta():
            return _shown_duration(value)
        case datetime() | time():
            return _shown_time(value)
        case _:
            return unescape(str(value))


def _shown_number(value: float, number_format: str) -> str:
    if number_format == "General":
        return plain_number(value)
    return show_number(value, number_format)


def _shown_time(value: datetime | time) -> str:
    """Return a date or a time of day without seconds or hours that are zero."""
    if isinstance(value, time):
        return str(value).removesuffix(":00")
    return value.isoformat(" ", "seconds").removesuffix(":00").removesuffix(" 00:00")


def _shown_duration(value: timedelta) -> str:
    minutes, seconds = divmod(round(value.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    shown = f"{hours}:{minutes:02}"
    if seconds:
        shown += f":{seconds:02}"
    return shown
