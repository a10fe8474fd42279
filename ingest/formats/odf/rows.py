"""The rows of tables of OpenDocument: repeated cells, and cells that span several rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from lxml import etree

from arag.ingest.formats.odf.styles import Styles
from arag.ingest.formats.package import attribute, to_int

CellText: TypeAlias = "Callable[[etree._Element], str]"  # noqa: SLF001 - lxml names the type so

_MAX_COLUMNS = 16_384
_MAX_REPEATS = 1_000  # of a row with text: more are the sheet's decoration
_NUMBERS = frozenset({"percentage", "float", "currency"})


@dataclass
class _Span:
    """A cell that goes on in the rows below."""

    text: str
    rows_left: int


def read_rows(table: etree._Element, cell_text: CellText) -> Iterator[list[str]]:
    """Yield the cells of each row. A cell that spans several rows has its text in each that has other cells."""
    spans: dict[int, _Span] = {}  # by column
    for row in table.iter("{*}table-row"):
        if _table_of(row) is not table:
            continue
        cells = _read_cells(row, cell_text, spans)
        times = 1
        if any(cells):
            repeats = to_int(attribute(row, "number-rows-repeated"), 1)
            times = min(repeats, _MAX_REPEATS)
        for _ in range(times):
            yield cells


def _table_of(row: etree._Element) -> etree._Element | None:
    return next(row.iterancestors("{*}table"), None)


def _read_cells(row: etree._Element, cell_text: CellText, spans: dict[int, _Span]) -> list[str]:
    cells: list[str] = []
    from_above: dict[int, str] = {}  # by column
    for cell in row.iterchildren("{*}table-cell", "{*}covered-table-cell"):
        column = len(cells)
        text = cell_text(cell)
        span = spans.pop(column, None)
        if span is not None:
            from_above[column] = span.text
            _continue_span(span, column, spans)
        spanned_rows = to_int(attribute(cell, "number-rows-spanned"), 1)
        if spanned_rows > 1:
            spans[column] = _Span(text, spanned_rows - 1)
        is_last = cell.getnext() is None
        if text or not is_last:  # an empty last cell may fill the sheet's width
            repeats = to_int(attribute(cell, "number-columns-repeated"), 1)
            cells += [text] * min(repeats, _MAX_COLUMNS - column)
    if any(cells):
        _fill_from_above(cells, from_above)
    return cells


def _continue_span(span: _Span, column: int, spans: dict[int, _Span]) -> None:
    span.rows_left -= 1
    if span.rows_left:
        spans[column] = span


def _fill_from_above(cells: list[str], from_above: dict[int, str]) -> None:
    for column, text in from_above.items():
        missing = column + 1 - len(cells)
        cells += [""] * missing
        cells[column] = cells[column] or text


def has_header(table: etree._Element, styles: Styles) -> bool:
    """Return whether a table's first row is marked as the header, or is bold above one that is not."""
    if table.find("{*}table-header-rows") is not None:
        return True
    with_cells = [row for row in table.iter("{*}table-row") if sum(map(_has_text, row)) > 1]
    are_bold = [_is_bold(row, styles) for row in with_cells[:2]]
    return are_bold == [True, False]


def _has_text(cell: etree._Element) -> bool:
    return "".join(cell.itertext()).strip() != ""


def _is_bold(row: etree._Element, styles: Styles) -> bool:
    """Return whether a row has no text that is not bold."""
    for paragraph in row.iter("{*}p"):
        if styles.is_bold("paragraph", attribute(paragraph, "style-name")):
            continue
        parts = [paragraph.text]
        for part in paragraph:
            is_bold = styles.is_bold("text", attribute(part, "style-name"))
            parts += [part.tail] if is_bold else [*part.itertext(), part.tail]
        if "".join(filter(None, parts)).strip():
            return False
    return True


def plain_value(cell: etree._Element, kind: str) -> str:
    """Return the value of a cell that shows no text: some programs write none."""
    if kind in _NUMBERS:
        return _plain_number(cell, kind)
    text = attribute(cell, "string-value")
    truth = attribute(cell, "boolean-value").upper()
    time = attribute(cell, "time-value")
    return text or truth or time


def _plain_number(cell: etree._Element, kind: str) -> str:
    value = attribute(cell, "value")
    try:
        number = float(value)
    except ValueError:
        return value
    if kind == "percentage":
        return f"{number * 100:.10g}%"
    currency = attribute(cell, "currency")
    return f"{number:.15g} {currency}".strip()
