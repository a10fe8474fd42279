"""Workbooks of Excel, opened by openpyxl."""

from __future__ import annotations

import warnings
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any

from openpyxl import load_workbook

from arag.ingest.formats.content import Content
from arag.ingest.formats.tables import table_lines


def read_sheets(path: Path) -> Content:
    """Read a workbook. A sheet begins with its name as a heading; its values are those that were saved last."""
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
