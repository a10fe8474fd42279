"""Workbooks of Excel, opened by openpyxl."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any

from arag.ingest.formats.content import Content
from arag.ingest.formats.tables import table_lines


def read_sheets(path: Path) -> Content:
    """Read a workbook of Excel: each sheet's name as a heading, and its rows with the values that were saved last."""
    from openpyxl import load_workbook

    lines: list[str] = []
    with warnings.catch_warnings(action="ignore"):
        workbook = load_workbook(path, read_only=True, data_only=True)
        for sheet in workbook.worksheets:
            rows = table_lines(_shown_rows(sheet), sheet=True)
            if rows:
                lines += [f"# {sheet.title}", "", *rows, ""]
    return Content(title="", text="\n".join(lines).strip())


def _shown_rows(sheet: Any) -> Iterator[list[str]]:
    sheet.reset_dimensions()  # some programs write them too small
    for row in sheet.iter_rows():
        yield [_shown(cell) for cell in row]


def _shown(cell: Any) -> str:
    """Return a cell's value as a person sees it: 15.3%, 2024-03-31, TRUE."""
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
            return str(value)


def _shown_number(value: float, number_format: str) -> str:
    if "%" in number_format:
        return f"{value * 100:.10g}%"
    return f"{value:.15g}"  # as many digits as Excel keeps: 0.1 + 0.2 is 0.3


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
