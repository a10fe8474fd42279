"""The rows of tables of OpenDocument: repeated cells, and cells that span several rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from lxml import etree

from arag.ingest.formats.package import attribute

CellText: TypeAlias = "Callable[[etree._Element], str]"  # noqa: SLF001 - lxml names the type so

_MAX_COLUMNS = 16_384
_MAX_REPEATS = 1_000  # of a row with text: more are the sheet's decoration


def read_rows(table: etree._Element, cell_text: CellText) -> Iterator[list[str]]:
    """Yield the cells of each row. A cell that spans several rows has its text in each that has other cells."""
    going_on: dict[int, tuple[str, int]] = {}  # by column: the text, and how many rows below have it
    for row in table.iter("{*}table-row"):
        if _table_of(row) is not table:
            continue
        cells = _read_cells(row, cell_text, going_on)
        repeats = attribute(row, "number-rows-repeated")
        times = int(repeats) if repeats.isdecimal() and any(cells) else 1
        for _ in range(min(times, _MAX_REPEATS)):
            yield cells


def _read_cells(row: etree._Element, cell_text: CellText, going_on: dict[int, tuple[str, int]]) -> list[str]:
    cells: list[str] = []
    covered: dict[int, str] = {}
    for cell in row.iterchildren("{*}table-cell", "{*}covered-table-cell"):
        text = cell_text(cell)
        column = len(cells)
        above, rows_left = going_on.pop(column, ("", 0))
        if rows_left:
            covered[column] = above
            if rows_left > 1:
                going_on[column] = (above, rows_left - 1)
        spanned = attribute(cell, "number-rows-spanned")
        if spanned.isdecimal() and int(spanned) > 1:
            going_on[column] = (text, int(spanned) - 1)
        repeats = attribute(cell, "number-columns-repeated")
        times = int(repeats) if repeats.isdecimal() else 1
        if text or cell.getnext() is not None:  # the last one may fill the sheet's width
            cells += [text] * min(times, _MAX_COLUMNS - column)
    if any(cells):
        cells += [""] * (max(covered, default=-1) + 1 - len(cells))
        for column, text in covered.items():
            cells[column] = cells[column] or text
    return cells


def _table_of(row: etree._Element) -> etree._Element | None:
    return next(row.iterancestors("{*}table"), None)


def plain_value(cell: etree._Element, kind: str) -> str:
    """Return the value of a cell that shows no text: some programs write none."""
    value = attribute(cell, "value")
    try:
        match kind:
            case "percentage":
                return f"{float(value) * 100:.10g}%"
            case "float" | "currency":
                return f"{float(value):.15g} {attribute(cell, 'currency')}".strip()
    except ValueError:
        return value
    return attribute(cell, "string-value") or attribute(cell, "boolean-value").upper() or attribute(cell, "time-value")
