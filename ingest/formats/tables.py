"""Rows of tables as lines that can be understood one by one: `Name: Ada | Year: 1843`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from arag.ingest.documents import Limits
from arag.ingest.formats.content import FormatError, folded

CELL_BORDER = " | "  # the sentence splitter takes a line with it for a row

_GAP = "\n"
_MAX_NAME = 100  # characters
_YEAR = re.compile(r"(?:19|20)\d\d")


Row: TypeAlias = Sequence[str] | Mapping[int, str]  # all cells of a row, or some by the number of their column


def limited(rows: Iterable[Sequence[str]], limits: Limits) -> Iterator[Sequence[str]]:
    """Yield the rows of a table as long as they have no more characters than a document may have.

    Raises:
        FormatError: They have more; an empty cell counts as one.
    """
    left = limits.max_characters
    for row in rows:
        left -= sum(map(len, row)) + len(row)
        if left < 0:
            raise FormatError(limits.exceeded("max_characters"))
        yield row


def table_text(rows: Iterable[Sequence[str]], *, header: bool = False) -> str:
    """Return a table of a document as lines.

    A table in a document is often a form without column names, so its first row gives the names only if it is marked,
    or if it looks like names and the table is wider than a form.

    Args:
        rows: The cells of each row.
        header: Whether the first row is marked as the header.
    """
    found = [(len(row), cells) for row in rows if (cells := _filled(row))]
    if not found:
        return ""
    width, first = found[0]
    header = header or (width == len(first) > 2 and _has_names(first))
    lines = [_plain(first), *(_named(cells, first if header else {}) for _, cells in found[1:])]
    return "".join(_spaced(lines)).rstrip("\n")


def sheet_lines(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the rows of a sheet as lines, each with its line end.

    A sheet can hold several tables, with an empty row between them. The first row of each that has several cells
    gives the column names, unless it holds numbers; a single cell above it is text.

    Args:
        rows: The cells of each row.
    """
    return _spaced(_sheet_lines(rows))


def _sheet_lines(rows: Iterable[Row]) -> Iterator[str]:
    names: dict[int, str] | None = None
    for row in rows:
        cells = _filled(row)
        if not cells:
            names = None
            yield ""
        elif names is None and len(cells) > 1:
            names = cells if _has_names(cells) else {}
            yield _plain(cells)
        else:
            yield _named(cells, names or {})


def _filled(row: Row) -> dict[int, str]:
    """Return the cells of a row that have text, by their column."""
    cells = row.items() if isinstance(row, Mapping) else enumerate(row)
    return {column: text for column, cell in cells if (text := folded(cell))}


def _spaced(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines with their ends. One with a single cell does not look like a row: blank lines keep it apart."""
    gap = started = False
    for line in lines:
        alone = CELL_BORDER not in line
        if line:
            yield f"{_GAP if started and (gap or alone) else ''}{line}\n"
            started = True
        gap = alone


def _has_names(cells: Mapping[int, str]) -> bool:
    """Return whether all cells look like the names of columns; one year alone looks like a value.

    A few names can be there twice, but a row in which most cells are the same holds values.
    """
    filled = list(cells.values())
    years = sum(bool(_YEAR.fullmatch(cell)) for cell in filled)
    names = sum(any(map(str.isalpha, cell)) and len(cell) <= _MAX_NAME for cell in filled)
    return names > 0 and names + (years if years > 1 else 0) == len(filled) < 2 * len(set(filled))


def _plain(cells: Mapping[int, str]) -> str:
    """Return the cells as they stand, with the empty ones between them."""
    return CELL_BORDER.join(cells.get(column, "") for column in range(min(cells), max(cells) + 1))


def _named(cells: Mapping[int, str], names: Mapping[int, str]) -> str:
    """Return the cells with their columns' names; without any names, empty cells keep the others apart."""
    if not names:
        return _plain(cells)
    return CELL_BORDER.join(
        f"{names[column].rstrip(':')}: {cell}" if column in names else cell for column, cell in cells.items()
    )
