"""Workbooks of Excel and LibreOffice."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from datetime import datetime, time, timedelta
from itertools import repeat
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from lxml import etree
from openpyxl import load_workbook
from openpyxl.styles.numbers import is_date_format, is_timedelta_format
from openpyxl.utils.datetime import MAC_EPOCH, WINDOWS_EPOCH, from_excel

from arag.ingest.formats.content import Content
from arag.ingest.formats.tables import table_lines

_MAX_COLUMNS = 20_000  # LibreOffice has 16,384
_OFFICE, _TABLE, _TEXT = (
    f"{{urn:oasis:names:tc:opendocument:xmlns:{name}:1.0}}" for name in ("office", "table", "text")
)


def read_sheets(path: Path) -> Content:
    """Read a workbook. A sheet begins with its name as a heading; its values are those that were saved last."""
    lines: list[str] = []
    with warnings.catch_warnings(action="ignore"):
        for title, cells in {".xls": _read_xls, ".ods": _read_ods}.get(path.suffix.lower(), _read_xlsx)(path):
            rows = table_lines(cells, header=True)
            lines += [f"# {title}", "", *rows, ""] if rows else []
    return Content("", "\n".join(lines).strip())


def _read_xlsx(path: Path) -> Iterator[tuple[str, Iterable[list[str]]]]:
    for sheet in load_workbook(path, read_only=True, data_only=True).worksheets:
        sheet.reset_dimensions()  # some programs write them too small
        yield sheet.title, ([_xlsx_text(cell) for cell in row] for row in sheet.iter_rows())


def _xlsx_text(cell: Any) -> str:
    return "" if cell.value is None or cell.data_type == "e" else _shown(cell.value, cell.number_format)


def _read_xls(path: Path) -> Iterator[tuple[str, Iterable[list[str]]]]:
    import xlrd

    def text(cell: Any) -> str:
        kind, value = cell.ctype, cell.value
        if kind == xlrd.XL_CELL_TEXT:
            return str(value)
        if kind == xlrd.XL_CELL_BOOLEAN:
            return _shown(bool(value), "")
        if kind not in {xlrd.XL_CELL_NUMBER, xlrd.XL_CELL_DATE}:
            return ""
        number_format = book.format_map[book.xf_list[cell.xf_index].format_key].format_str
        if is_date_format(number_format):
            epoch = MAC_EPOCH if book.datemode else WINDOWS_EPOCH
            value = from_excel(value, epoch, timedelta=is_timedelta_format(number_format))
        return _shown(value, number_format)

    with Path(os.devnull).open("w") as log:
        book = xlrd.open_workbook(path, log, formatting_info=True, ragged_rows=True)
        for sheet in book.sheets():
            yield sheet.name, ([text(cell) for cell in row] for row in sheet.get_rows())


def _read_ods(path: Path) -> Iterator[tuple[str, Iterable[list[str]]]]:
    with ZipFile(path) as archive, archive.open("content.xml") as file:
        root = etree.parse(file, etree.XMLParser(resolve_entities=False, huge_tree=True)).getroot()
    for blank in root.iter(f"{_TEXT}s", f"{_TEXT}tab", f"{_TEXT}line-break"):
        blank.tail = f" {blank.tail or ''}"
    for sheet in root.iterfind(f"{_OFFICE}body/{_OFFICE}spreadsheet/{_TABLE}table"):
        yield sheet.get(f"{_TABLE}name"), _ods_rows(sheet)


def _ods_rows(sheet: Any) -> Iterator[list[str]]:
    for row in sheet.iter(f"{_TABLE}table-row"):
        cells: list[str] = []
        blanks = 0  # rows often end with thousands
        for cell in row.iterchildren(f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"):
            times = min(int(cell.get(f"{_TABLE}number-columns-repeated", 1)), _MAX_COLUMNS)
            if text := _ods_text(cell):
                cells += [*[""] * blanks, *[text] * times]
            blanks = 0 if text else blanks + times
        yield from repeat(cells, int(row.get(f"{_TABLE}number-rows-repeated", 1)) if cells else 1)


def _ods_text(cell: Any) -> str:
    kind, value = (cell.get(f"{_OFFICE}{name}") for name in ("value-type", "value"))
    if kind in {"float", "currency", "percentage"}:
        return _shown(float(value), "%" if kind == "percentage" else "")
    if kind == "date":
        return _shown(datetime.fromisoformat(cell.get(f"{_OFFICE}date-value")), "")
    return "\n".join("".join(paragraph.itertext()) for paragraph in cell.iterchildren(f"{_TEXT}p"))


def _shown(value: Any, number_format: str) -> str:
    """Return a value as a person sees it: 15.3%, 2024-03-31, TRUE."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float):
        return f"{value * 100:.10g}%" if "%" in number_format else f"{value:.15g}"
    if isinstance(value, timedelta):
        minutes, seconds = divmod(round(value.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02}" + (f":{seconds:02}" if seconds else "")
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds").removesuffix(":00").removesuffix(" 00:00")
    return str(value).removesuffix(":00") if isinstance(value, time) else str(value)
