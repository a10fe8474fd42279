"""Rows of tables as lines that can be understood one by one: `Name: Ada | Year: 1843`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from arag.ingest.formats.content import folded

CELL_BORDER = " | "  # the sentence splitter takes a line with it for a row

_GAP = "\n"
_MAX_NAME = 100  # characters
_YEAR = re.compile(r"(?:19|20)\d\d")


def table_text(rows: Iterable[Sequence[str]], *, header: bool = False) -> str:
    """Return a table of a document as lines.

    A table in a document is often a form without column names, so its first row gives the names only if it is marked,
    or if it looks like names and the table is wider than a form.

    Args:
        rows: The cells of each row.
        header: Whether the first row is marked as the header.
    """
    found = [row for row in ([folded(cell) for cell in row] for row in rows) if any(row)]
    if not found:
        return ""
    header = header or (len(found[0]) > 2 and all(found[0]) and _has_names(found[0]))
    lines = [_plain(found[0]), *(_named(row, found[0] if header else []) for row in found[1:])]
    return "".join(_spaced(lines)).rstrip("\n")


def sheet_lines(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the rows of a sheet as lines, each with its line end.

    A sheet can hold several tables, with an empty row between them. The first row of each that has several cells
    gives the column names, unless it holds numbers; a single cell above it is text.

    Args:
        rows: The cells of each row.
    """
    return _spaced(_sheet_lines(rows))


def _sheet_lines(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    names: list[str] | None = None
    for row in rows:
        cells = [folded(cell) for cell in row]
        filled = sum(map(bool, cells))
        if not filled:
            names = None
            yield ""
        elif names is None and filled > 1:
            names = cells if _has_names(cells) else []
            yield _plain(cells)
        else:
            yield _named(cells, names or [])


def _spaced(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines with their ends. One with a single cell does not look like a row: blank lines keep it apart."""
    gap = started = False
    for line in lines:
        alone = CELL_BORDER not in line
        if line:
            yield f"{_GAP if started and (gap or alone) else ''}{line}\n"
            started = True
        gap = alone


def _has_names(cells: Sequence[str]) -> bool:
    """Return whether all cells look like the names of columns; one year alone looks like a value."""
    filled = [cell for cell in cells if cell]
    years = sum(bool(_YEAR.fullmatch(cell)) for cell in filled)
    names = sum(any(map(str.isalpha, cell)) and len(cell) <= _MAX_NAME for cell in filled)
    return names > 0 and names + (years if years > 1 else 0) == len(filled) == len(set(filled))


def _plain(cells: Sequence[str]) -> str:
    return CELL_BORDER.join(cells).strip(" |")


def _named(cells: Sequence[str], names: Sequence[str]) -> str:
    """Return the cells with their columns' names; without any names, empty cells keep the others in their place."""
    if not any(names):
        return _plain(cells)
    padded = [*names, *[""] * (len(cells) - len(names))]
    named = zip(padded, cells, strict=False)
    return CELL_BORDER.join(f"{name.rstrip(':')}: {cell}" if name else cell for name, cell in named if cell)
