"""The tables of Word: their rows and cells, and the columns in which these stand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from lxml import etree

from arag.ingest.formats.package import attribute, find_child, local_name, to_int, value_of
from arag.ingest.formats.word.styles import Styles, is_on

CellText: TypeAlias = "Callable[[etree._Element], str]"  # noqa: SLF001 - lxml names the type so

_AROUND = frozenset(  # elements around paragraphs, tables, rows or cells that do not show
    "sdt sdtContent customXml smartTag ins moveTo AlternateContent Choice".split()
)
_DELETED = frozenset({"del", "moveFrom"})
_FIRST_ROW = 0x20  # in the bits that say which parts of a table's style show
_MAX_SPAN = 1_000  # columns that a cell spans: more would fill the memory


@dataclass(frozen=True)
class Row:
    """A row of a table."""

    properties: etree._Element | None
    cells: list[etree._Element]


def shown_children(container: etree._Element) -> Iterator[etree._Element]:
    """Yield the elements of a container, and in the place of those that do not show what is in them."""
    for element in container:
        name = local_name(element)
        if name in _AROUND:
            yield from shown_children(element)
        elif name not in _DELETED:
            yield element


def rows_of(table: etree._Element) -> list[Row]:
    """Return the rows of a table, without those that are deleted."""
    rows: list[Row] = []
    for element in _named(table, "tr"):
        properties = find_child(element, "{*}trPr")
        is_deleted = find_child(properties, "{*}del") is not None
        if not is_deleted:
            rows.append(Row(properties, list(_named(element, "tc"))))
    return rows


def _named(container: etree._Element, name: str) -> Iterator[etree._Element]:
    for element in shown_children(container):
        if local_name(element) == name:
            yield element


def lay_out(rows: Sequence[Row], cell_text: CellText) -> list[list[str]]:
    """Return the texts of each row by their columns; a cell that spans several rows has its text in each.

    One that spans all columns is a note: it stands beside them, so that it gets the name of none.
    """
    grid: list[list[str]] = []
    columns = max(map(_count_cells, rows), default=0)
    above: dict[int, str] = {}  # the text of the last cell that begins in each column
    for row in rows:
        before = _columns(row.properties, "gridBefore", 0)
        texts = [""] * before
        for cell in row.cells:
            column = len(texts)
            properties = find_child(cell, "{*}tcPr")
            text = cell_text(cell)
            if not text and _continues_cell_above(properties):
                text = above.get(column, "")
            above[column] = text
            width = _columns(properties, "gridSpan", 1)
            padding = [""] * (width - 1)
            if len(row.cells) == 1 < columns <= width:
                texts += ["", *padding, text]
            else:
                texts += [text, *padding]
        grid.append(texts)
    return grid


def has_header(table: etree._Element, rows: Sequence[Row], styles: Styles) -> bool:
    """Return whether the first row is marked as the header, or is bold above one that is not."""
    is_marked = is_on(rows[0].properties, "tblHeader")
    if is_marked or _has_style_of_header(find_child(table, "{*}tblPr"), styles):
        return True
    with_cells = [row for row in rows if sum(map(_has_text, row.cells)) > 1]
    are_bold = list(map(_is_bold, with_cells[:2]))
    return are_bold == [True, False]


def _has_style_of_header(properties: etree._Element | None, styles: Styles) -> bool:
    """Return whether a table has a style that sets its first row in bold, and shows that row so."""
    look = find_child(properties, "{*}tblLook")
    if look is None or not styles.has_bold_first_row(value_of(properties, "{*}tblStyle")):
        return False
    shown_parts = int(attribute(look, "val") or "0", 16)
    return shown_parts & _FIRST_ROW != 0


def _count_cells(row: Row) -> int:
    return len(row.cells)


def _has_text(cell: etree._Element) -> bool:
    return "".join(cell.itertext("{*}t", with_tail=False)).strip() != ""


def _is_bold(row: Row) -> bool:
    """Return whether a row has no text that is not bold."""
    for cell in row.cells:
        for text in cell.iter("{*}t"):
            run = text.getparent()
            is_bold = is_on(find_child(run, "{*}rPr"), "b")
            if not is_bold and (text.text or "").strip():
                return False
    return True


def _continues_cell_above(properties: etree._Element | None) -> bool:
    merge = find_child(properties, "{*}vMerge")
    return merge is not None and attribute(merge, "val") != "restart"


def _columns(properties: etree._Element | None, name: str, default: int) -> int:
    number = to_int(value_of(properties, f"{{*}}{name}"), default)
    return min(number, _MAX_SPAN)
