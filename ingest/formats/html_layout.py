"""The parts of a web page that are tables, code, lists or hidden."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import filterfalse

from lxml import etree

from arag.ingest.formats.frame import is_sidebar
from arag.ingest.formats.html_lists import find_items
from arag.ingest.formats.html_pages import find_inside
from arag.ingest.formats.html_tables import CELLS, has_marked_header, sets_texts_apart

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
BLOCKS = frozenset(
    "address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hgroup hr html iframe legend li main nav ol optgroup option p pre search "
    "section summary svg table td textarea th ul".split()
)
_HIDDEN = frozenset(
    "script style noscript template datalist noembed noframes title rp audio video canvas".split(),
)


@dataclass(frozen=True)
class Layout:
    """The elements of a page that are not shown as plain text."""

    hidden: set[etree._Element]
    preformatted: set[etree._Element]
    rows: set[etree._Element]  # of no table of data, which a browser shows as one line each
    tables: set[etree._Element]
    cells: set[etree._Element]
    items: dict[etree._Element, str]  # of lists, with their bullets and numbers
    cell_texts: dict[etree._Element, str] = field(default_factory=dict)


def find_layout(page: etree._Element, left_out: Collection[etree._Element]) -> Layout:
    """Return the layout of a page.

    Args:
        page: The page.
        left_out: Elements that are not shown, beside those that no browser shows.
    """
    hidden = {*left_out, *page.iter(*_HIDDEN)}
    tables = set(filter(_is_data_table, page.iter("table"))) - hidden
    return Layout(
        hidden=hidden,
        preformatted=find_inside(page.iter("pre")),
        rows=_find_rows(page, tables),
        tables=tables,
        cells=_find_cells(page, tables),
        items=find_items(page),
    )


def _find_cells(page: etree._Element, tables: Collection[etree._Element]) -> set[etree._Element]:
    """Return the cells of tables of data, without those of notes in them."""
    cells: set[etree._Element] = set()
    for cell in page.iter(*CELLS):
        if next(cell.iterancestors("table"), None) in tables:
            cells.add(cell)
    return cells


def _find_rows(page: etree._Element, tables: Collection[etree._Element]) -> set[etree._Element]:
    """Return the rows whose cells hold no blocks, in tables that only lay out the page."""
    rows: set[etree._Element] = set()
    for row in page.iter("tr"):
        table = next(row.iterancestors("table"), None)
        blocks = row.iter("br", *BLOCKS.difference(CELLS))
        if table not in tables and not any(map(_begins_line, blocks)):
            rows.add(row)
    return rows


def _begins_line(element: etree._Element) -> bool:
    """Return whether an element begins a line; a line end does not if nothing follows."""
    is_last = element.getnext() is None and not (element.tail or "").strip()
    return element.tag != "br" or not is_last


def _is_data_table(table: etree._Element) -> bool:
    """Return whether a table holds data; one around headings, other tables or a single text lays out the page.

    So does one with a single row, in which a list of links stands beside the text. Below a header, a cell may hold a
    note in a table of its own, or a line of code.
    """
    blocks = table.iter("table", "pre", *HEADINGS)
    next(blocks)  # the table itself
    if has_marked_header(table):
        blocks = filterfalse(_may_be_in_cell, blocks)
    lays_out = next(blocks, None) is not None or sets_texts_apart(table) or _has_sidebar(table)
    return not lays_out


def _has_sidebar(table: etree._Element) -> bool:
    return len(list(table.iter("tr"))) == 1 and any(map(is_sidebar, table.iter("td")))


def _may_be_in_cell(block: etree._Element) -> bool:
    if block.tag == "pre":
        return "\n" not in "".join(block.itertext()).strip()
    return block.tag == "table" and sets_texts_apart(block)
