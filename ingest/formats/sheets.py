"""Workbooks of Excel: the values by openpyxl, and what it leaves out from the parts of the file."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

from arag.ingest.formats.content import Content, join_blocks, name_lost
from arag.ingest.formats.number_formats import plain_number, show_number
from arag.ingest.formats.package import DamagedError, Package, attribute
from arag.ingest.formats.sheet_parts import read_beside
from arag.ingest.formats.sheet_texts import set_raised_digits_apart
from arag.ingest.formats.tables import table_lines
from arag.text.normalise import count

_SAVE = "open and save the file in a spreadsheet program"

_MERGED = re.compile(rb'<(?:\w+:)?mergeCell\s[^>]*?ref="([A-Z]+)(\d+):[A-Z]+(\d+)"')
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
    data = path.read_bytes()
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
            if rows or about.beside:
                note = "" if sheet.sheet_state == "visible" else " (hidden)"
                blocks += [f"# {sheet.title}{note}", "\n".join(rows), *about.beside]
            lost["formula"] += about.formulas_without_values
    for name, about in sheets.items():  # sheets that are a chart
        if about.beside:
            blocks += [f"# {name}", *about.beside]
    return Content(
        title="",
        text=join_blocks(blocks),
        left_out=tuple(_name_lost(lost)),
    )


def _name_lost(lost: Counter[str]) -> Iterator[str]:
    formulas = lost.pop("formula", 0)
    if formulas:
        yield f"{count(formulas, 'formula')} without a saved value ({_SAVE})"
    yield from name_lost(lost)


def _read_parts(package: Package, lost: Counter[str]) -> dict[str, _Sheet]:
    """Read what the sheets have besides values, by their names."""
    main = package.main_part()
    workbook = package.xml(main)
    relations = package.relations(main)
    sheets: dict[str, _Sheet] = {}
    if workbook is None:
        return sheets
    persons = [relation.part for relation in relations.values() if relation.kind == "person"]
    for element in workbook.iterfind("{*}sheets/{*}sheet"):
        relation = relations.get(attribute(element, "id"))
        data = None if relation is None else package.read(relation.part)
        if relation is not None and data is not None:
            about = _Sheet(_find_merged(data), _count_formulas_without_values(data))
            about.beside += read_beside(package, relation.part, persons, lost)
            sheets[element.get("name", "")] = about
    return sheets


def _find_merged(data: bytes) -> dict[tuple[int, int], int]:
    """Return the cells that span several rows: the last row of each, by its column and its first row."""
    merged: dict[tuple[int, int], int] = {}
    for letters, first, last in _MERGED.findall(data):
        if int(last) > int(first):
            merged[(_column_number(letters), int(first))] = int(last)
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
    rows = ([_shown(cell) for cell in row] for row in sheet.iter_rows())
    return _repeat_merged(rows, merged) if merged else rows


def _repeat_merged(rows: Iterable[list[str]], merged: dict[tuple[int, int], int]) -> Iterator[list[str]]:
    """Give a cell that spans several rows to each of them that has other cells."""
    going_on: dict[int, tuple[str, int]] = {}  # by column: the text, and the last row that has it
    columns = {column for column, _ in merged}
    for row_number, row in enumerate(rows, 1):
        has_text = any(row)
        for column in columns:
            last = merged.get((column, row_number))
            if last is not None and column <= len(row):
                going_on[column] = (row[column - 1], last)
                continue
            text, last = going_on.get(column, ("", 0))
            if row_number <= last and has_text:
                row.extend([""] * (column - len(row)))
                row[column - 1] = row[column - 1] or text
        yield row


def _shown(cell: Any) -> str:
    """Return a cell's value as a person sees it: 15.3%, 00042, 2024-03-31, TRUE."""
    value = cell.value
    if value is None or cell.data_type == "e":  # an error, such as #N/A
        return ""
    match value:
        case bool():
            return str(value).upper()
        case int() | float():
            number_format = cell.number_format
            return plain_number(value) if number_format == "General" else show_number(value, number_format)
        case timedelta():
            return _shown_duration(value)
        case datetime() | time():
            return _shown_time(value)
        case _:
            return str(value)


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
