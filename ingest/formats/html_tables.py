"""The tables of web pages as lines of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lxml import etree

from arag.ingest.formats.tables import table_lines

CELLS = ("td", "th")
_MAX_SPAN_DIGITS = 4  # of the number of rows or columns that a cell spans: a larger one would fill the memory


def table_rows(table: etree._Element, cell_texts: Mapping[etree._Element, str]) -> list[str]:
    """Return the rows of a table as lines.

    Args:
        table: The table.
        cell_texts: The text of each of its cells.
    """
    rows = _cells_by_row(table)
    grid = _lay_out(rows, cell_texts)
    return table_lines(map(_fill_row, grid), header=_has_header(rows))


def _cells_by_row(table: etree._Element) -> list[list[etree._Element]]:
    outside: list[etree._Element] = []
    rows = [outside]
    for element in table.iter("tr", *CELLS):
        if element.tag == "tr":
            rows.append([])
        else:
            rows[-1].append(element)
    return rows if outside else rows[1:]


def _lay_out(
    rows: Sequence[Sequence[etree._Element]],
    cell_texts: Mapping[etree._Element, str],
) -> list[dict[int, str]]:
    """Return the texts of each row by their columns.

    A cell that spans several rows has its text in each of them. One that spans several columns has it only in the
    first, or in each if it is below a marked header and not the name of its row. A cell that spans the whole table is
    a note: it stands beside the columns, so that it gets the name of none.
    """
    grid: list[dict[int, str]] = [{} for _ in rows]
    has_header = _has_header(rows)
    is_below_header = False
    width = 0
    for row_number, row in enumerate(rows):
        column = 0
        for cell in row:
            while column in grid[row_number]:
                column += 1
            last_row = row_number + _span(cell, "rowspan")
            last_column = column + _span(cell, "colspan")
            is_alone = len(row) == 1 and not grid[row_number]
            if is_below_header and is_alone and last_column >= width > 1:
                grid[row_number][width] = cell_texts[cell]
                continue
            is_repeated = is_below_header and cell.tag == "td" and column > 0
            others = dict.fromkeys(range(column + 1, last_column), cell_texts[cell] if is_repeated else "")
            for line in grid[row_number:last_row]:
                line[column] = cell_texts[cell]
                line.update(others)
        if len(row) > 1:
            is_below_header = has_header
            width = max(width, *(number + 1 for number in grid[row_number]))
    return grid


def _fill_row(texts: Mapping[int, str]) -> list[str]:
    width = max(texts, default=-1) + 1
    row = [""] * width
    for column, text in texts.items():
        row[column] = text
    return row


def _has_header(rows: Sequence[Sequence[etree._Element]]) -> bool:
    """Return whether the first row of several cells has no others than header cells."""
    for row in rows:
        if len(row) > 1:
            return all(cell.tag == "th" for cell in row)
    return False


def _span(cell: etree._Element, name: str) -> int:
    digits = cell.get(name, "")
    if not digits.isdecimal():
        return 1
    return max(int(digits[:_MAX_SPAN_DIGITS]), 1)
