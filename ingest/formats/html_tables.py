"""The tables of web pages as lines of text."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import filterfalse, groupby, islice
from operator import attrgetter

from lxml import etree

from arag.ingest.formats.html_pages import find_inside
from arag.ingest.formats.tables import table_lines

CELLS = ("td", "th")
# The text is white space where a program fills an empty cell.
_TEXTS_NOT_BOLD = etree.XPath(
    "descendant::text()[normalize-space(translate(., '\u00a0', ' '))]"
    "[not(ancestor::b or ancestor::strong or ancestor::*[contains(@style, 'bold')])]"
)
_HAS_TEXT = etree.XPath("boolean(descendant::text()[normalize-space(translate(., '\u00a0', ' '))])")
_HAS_FIELD = etree.XPath("boolean(descendant::input)")
_FOOTNOTES = etree.XPath("//table/tbody[@class = 'footnotes']")
_FRAMES_BLOCKS = etree.XPath(
    "boolean(descendant::ul | descendant::ol | descendant::dl)"
    " or (count(descendant::td) = 1 and count(descendant::p) > 1)"
)
_CELLS_OF_ROWS = etree.XPath("tr/td | tr/th")
_HAS_MARKED_HEADER = etree.XPath("boolean(thead/tr[count(th) > 1])")
_PICTURES = etree.XPath("descendant::img/@alt", smart_strings=False)
_SIGN = re.compile(r"\W?\w*\W?")  # the alternative text of a picture such as `[Note]`
_tag_of = attrgetter("tag")
_WITH_CLASS = etree.XPath("//*[@class][ancestor::table]")
_BOLD_CLASS = re.compile(r"\.([\w-]+)\s*\{[^{}]*\bfont-weight\s*:\s*(?:bold|[6-9]00)")
_MAX_SPAN_DIGITS = 4  # of the number of rows or columns that a cell spans: a larger one would fill the memory


def table_rows(table: etree._Element, cell_texts: Mapping[etree._Element, str]) -> list[str]:
    """Return the rows of a table as lines.

    Args:
        table: The table.
        cell_texts: The text of each of its cells.
    """
    rows = _cells_by_row(table)
    grid = _Grid(cell_texts, len(rows), _has_header(rows))
    for row in rows:
        grid.add(row)
    lines: list[str] = []
    for part in _split_parts(rows, grid):
        lines += [""] if lines else []
        lines += table_lines(part.rows, header=part.has_header, web=True, names_one=part.names_one)
    return lines


@dataclass
class _Part:
    """The rows of a table from one header to the next, or between two blank ones."""

    rows: list[list[str]]
    has_header: bool
    names_one: bool  # column: the other header cells are empty


def _split_parts(rows: Sequence[Sequence[etree._Element]], grid: _Grid) -> list[_Part]:
    """Split a table at blank rows, except where the header above goes on: the letters of an index have none."""
    with_cells = [number for number, row in enumerate(rows) if len(row) > 1]

    @cache  # many blank rows may come before one of several cells
    def begins_with_header(place: int) -> bool:
        return _has_header([rows[number] for number in with_cells[place : place + 2]])

    parts: list[_Part] = []
    end = 0
    for has_text, block in groupby(map(_fill_row, grid.rows), key=any):
        texts = list(block)
        start, end = end, end + len(texts)
        if not has_text:
            continue
        has_header = begins_with_header(bisect_left(with_cells, start))
        if parts and _is_above_columns(parts[-1].rows, texts[0]):
            parts[-1].has_header = True
        goes_on = bool(parts) and parts[-1].has_header and not has_header
        if not goes_on:
            parts.append(_Part([], has_header, names_one=_names_one_column(rows[start : start + 2])))
        parts[-1].rows += texts
    return parts


def _is_above_columns(rows: Sequence[Sequence[str]], below: Sequence[str]) -> bool:
    """Return whether a table has one row above a blank one, with a text above each column of the row below."""
    return len(rows) == 1 and all(rows[0]) and len(below) == len(rows[0]) > 1


def show_bold_type(page: etree._Element) -> None:
    """Write bold type into the style of the elements in tables whose class is bold in the page's style sheets."""
    classes: set[str] = set()
    for sheet in page.iter("style"):
        classes.update(_BOLD_CLASS.findall(sheet.text or ""))
    if not classes:
        return
    for element in _WITH_CLASS(page):
        if not classes.isdisjoint(element.get("class").split()):
            style = element.get("style", "")
            element.set("style", f"{style};font-weight:bold")


def take_out_footnotes(page: etree._Element) -> None:
    """Put the footnotes that DocBook writes as the last rows of a table below it."""
    for rows in _FOOTNOTES(page):
        notes = etree.Element("div")
        for cell in _CELLS_OF_ROWS(rows):
            cell.tag = "div"
            notes.append(cell)
        table = rows.getparent()
        table.remove(rows)
        notes.tail, table.tail = table.tail, None
        table.addnext(notes)


def _cells_by_row(table: etree._Element) -> list[list[etree._Element]]:
    """Return the cells of each row, without those of tables in them."""
    outside: list[etree._Element] = []
    rows = [outside]
    of_inner = find_inside(table.iterfind(".//table"), "tr", *CELLS)
    for element in filterfalse(of_inner.__contains__, table.iter("tr", *CELLS)):
        if element.tag == "tr":
            rows.append([])
        else:
            rows[-1].append(element)
    return rows if outside else rows[1:]


def has_marked_header(table: etree._Element) -> bool:
    """Return whether a table has a header of several columns that is marked as one."""
    return bool(_HAS_MARKED_HEADER(table))


def sets_texts_apart(table: etree._Element) -> bool:
    """Return whether no row of a table has two cells with something in them: it only lays out texts.

    It is a note beside its sign, or a quotation between margins; in a single column, a frame around lists, or around
    several paragraphs.
    """
    rows = _cells_by_row(table)
    if any(map(_has_columns, rows)):
        return not any(map(_holds_several, rows))
    return bool(_FRAMES_BLOCKS(table))


def _has_columns(row: Sequence[etree._Element]) -> bool:
    return len(row) > 1


def _holds_several(row: Sequence[etree._Element]) -> bool:
    """Return whether several cells of a row hold something."""
    return sum(map(_holds_something, row)) > 1


def _holds_something(cell: etree._Element) -> bool:
    """Return whether a cell has text, a field, or a picture that stands for more than a word."""
    return _HAS_TEXT(cell) or _HAS_FIELD(cell) or not all(map(_SIGN.fullmatch, _PICTURES(cell)))


class _Grid:
    """The texts of a table by rows and columns.

    A cell that spans several rows has its text in each of them. One that spans several columns has it only in the
    first, or in each that a marked header names if it is not the name of its row. A cell that spans the whole table is
    a note: it stands beside the columns, so that it gets the name of none.

    Attributes:
        rows: The texts of each row, by their columns.
    """

    def __init__(
        self,
        cell_texts: Mapping[etree._Element, str],
        rows: int,
        has_header: bool,
    ) -> None:
        self.rows: list[dict[int, str]] = [{} for _ in range(rows)]
        self._cell_texts = cell_texts
        self._has_header = has_header
        self._is_below_header = False
        self._named: set[int] = set()  # the columns in which a header cell begins
        self._width = 0  # in columns, of the rows so far that have several cells
        self._added = 0

    def add(self, cells: Sequence[etree._Element]) -> None:
        """Add the cells of the next row."""
        row = self.rows[self._added]
        column = 0
        for cell in cells:
            while column in row:
                column += 1
            is_alone = len(cells) == 1 and not row
            end = column + _span(cell, "colspan")
            if is_alone and self._is_note(end):
                row[self._width] = self._cell_texts[cell]
            else:
                self._add_cell(cell, column, end)
        is_header = self._has_header and not self._is_below_header
        if is_header or _are_header_cells(cells):
            self._named.update(filter(row.get, row))
        if len(cells) > 1:
            self._is_below_header = self._has_header
            self._width = max(self._width, max(row) + 1)
        self._added += 1

    def _is_note(self, end: int) -> bool:
        """Return whether a cell that is alone in its row, and ends at a column, spans the whole table."""
        is_table = self._width > 1
        return self._is_below_header and is_table and end >= self._width

    def _add_cell(self, cell: etree._Element, column: int, end: int) -> None:
        text = self._cell_texts[cell]
        is_value = cell.tag == "td" and column > 0
        is_repeated = self._is_below_header and is_value
        spanned = dict.fromkeys(range(column, end), "")
        if is_repeated:
            spanned |= dict.fromkeys(self._named & spanned.keys(), text)
        spanned[column] = text
        last_row = self._added + _span(cell, "rowspan")
        for row in self.rows[self._added : last_row]:
            row.update(spanned)


def _fill_row(texts: Mapping[int, str]) -> list[str]:
    width = max(texts, default=-1) + 1
    row = [""] * width
    for column, text in texts.items():
        row[column] = text
    return row


def _has_header(rows: Sequence[Sequence[etree._Element]]) -> bool:
    """Return whether the first row of several cells has no others than header cells, or is bold above one that is not.

    The row of a sum may be bold, too. Cells between header cells may be empty ones of another kind.
    """
    with_cells = list(islice(filter(_has_columns, rows), 2))
    if not with_cells:
        return False
    first = with_cells[0]
    filled = list(filter(_HAS_TEXT, first))
    if len(filled) < 2:  # such as a letter of an index
        return _are_header_cells(first)
    are_bold = list(map(_is_bold, with_cells))
    return _are_header_cells(filled) or are_bold == [True, False]


def _names_one_column(rows: Sequence[Sequence[etree._Element]]) -> bool:
    """Return whether the first row has several header cells, of which one names a column, and no others follow.

    A letter is that of an index.
    """
    first, *below = rows
    if not _has_columns(first) or not _are_header_cells(first) or any(map(_are_header_cells, below)):
        return False
    names = list(filter(_HAS_TEXT, first))
    return len(names) == 1 and len("".join(names[0].itertext()).strip()) > 1


def _are_header_cells(cells: Sequence[etree._Element]) -> bool:
    return "td" not in map(_tag_of, cells)


def _is_bold(row: Sequence[etree._Element]) -> bool:
    """Return whether a row has no text that is not bold."""
    return not any(map(_TEXTS_NOT_BOLD, row))


def _span(cell: etree._Element, name: str) -> int:
    digits = cell.get(name, "")
    if not digits.isdecimal():
        return 1
    return max(int(digits[:_MAX_SPAN_DIGITS]), 1)
