"""Rows of tables as lines that can be understood one by one: `Name: Ada | Year: 1843`."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from pathlib import Path

from arag.ingest.formats.content import MAX_CHARACTERS, Content, FormatError, decode, folded

CELL_BORDER = " | "  # the sentence splitter takes a line with it for a row

_MAX_NAME = 100  # characters of a column's name
_YEAR = re.compile(r"(?:19|20)\d\d")

_DELIMITERS = ",;\t|"
_SAMPLE_CHARACTERS = 64_000
_SAMPLE_ROWS = 20


def table_lines(rows: Iterable[Sequence[str]], *, header: bool = False) -> list[str]:
    """Return the rows of a table as lines, with the names of their columns.

    A blank row ends a table. The first row of each that has several cells gives the names if its cells look like
    names. A table of two columns is often a form, with a name at the beginning of each row: there, only a header does.

    Args:
        rows: The cells of each row.
        header: Whether the first row is marked as the header, or is one by nature, as in a sheet.

    Returns:
        A line for each row that has text. Empty lines keep a single cell apart, which does not look like a row.

    Raises:
        FormatError: The lines are longer than a text may be.
    """
    lines: list[str] = []
    characters = 0
    names: dict[int, str] | None = None
    gap = False
    for row in rows:
        cells = {column: text for column, cell in enumerate(row) if (text := folded(cell))}
        if not cells:
            names, gap = None, True
            continue
        if names:
            line = CELL_BORDER.join(
                f"{names[x].rstrip(':')}: {cell}" if x in names else cell for x, cell in cells.items()
            )
        else:  # empty cells keep the others apart
            line = CELL_BORDER.join(cells.get(column, "") for column in range(min(cells), max(cells) + 1))
        if names is None and len(cells) > 1:
            names = cells if _are_names(list(cells.values())) and (header or len(cells) > 2) else {}
        is_alone = CELL_BORDER not in line
        lines += ["", line] if lines and (gap or is_alone) else [line]
        gap = is_alone
        characters += len(line)
        if characters > MAX_CHARACTERS:
            raise FormatError(f"more than {MAX_CHARACTERS:,} characters of text: split the file")
    return lines


def _are_names(cells: list[str]) -> bool:
    """Return whether all cells look like names; one year alone is a value, and so is what most cells repeat."""
    years = sum(bool(_YEAR.fullmatch(cell)) for cell in cells)
    names = sum(any(map(str.isalpha, cell)) and len(cell) <= _MAX_NAME for cell in cells)
    return names > 0 and names + (years if years > 1 else 0) == len(cells) < 2 * len(set(cells))


def read_csv(path: Path) -> Content:
    """Read a file of rows, whose cells are separated by commas, semicolons, tabs or bars."""
    text = decode(path.read_bytes())
    delimiter = "\t" if path.suffix.lower() == ".tsv" else _find_delimiter(text[:_SAMPLE_CHARACTERS])
    return Content("", "\n".join(table_lines(_rows(text, delimiter), header=True)))


def _find_delimiter(sample: str) -> str:
    """Return the delimiter with which most of the first rows have the same number of cells, and then most cells."""
    lines = sample.splitlines(keepends=True)[:_SAMPLE_ROWS]

    def count_rows(delimiter: str) -> tuple[int, int]:
        try:
            sizes = Counter(len(row) for row in csv.reader(lines, delimiter=delimiter) if len(row) > 1)
        except csv.Error:
            return 0, 0
        return max(((rows, cells) for cells, rows in sizes.items()), default=(0, 0))

    return max(_DELIMITERS, key=count_rows)


def _rows(text: str, delimiter: str) -> Iterator[list[str]]:
    rows = csv.reader(StringIO(text, newline=""), delimiter=delimiter)
    try:
        yield from rows
    except csv.Error as error:
        raise FormatError(f"line {rows.line_num}: {error}; is a quotation mark missing?") from error
