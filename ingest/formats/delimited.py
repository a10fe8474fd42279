"""Rows of csv and tsv files."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from io import StringIO

from arag.ingest.formats.content import FormatError, decode
from arag.ingest.formats.tables import sheet_lines

_DELIMITERS = ",;\t|"
_SAMPLE = 64_000  # characters
_SAMPLE_ROWS = 20


def read_csv(data: bytes) -> Iterator[str]:
    """Yield the rows of a csv file, as `sheet_lines` does. Commas, semicolons, tabs or bars separate its cells.

    Raises:
        FormatError: The file is in another encoding, or a field of it never ends.
    """
    text = decode(data)
    yield from sheet_lines(_rows(text, _find_delimiter(text[:_SAMPLE])))


def read_tsv(data: bytes) -> Iterator[str]:
    """Yield the rows of a file whose cells are separated by tabs; see `read_csv`."""
    yield from sheet_lines(_rows(decode(data), "\t"))


def _find_delimiter(sample: str) -> str:
    """Return the delimiter with which the first rows have most cells in common."""
    lines = sample.splitlines(keepends=True)[:_SAMPLE_ROWS]

    def count_cells(delimiter: str) -> int:
        try:
            return min((len(row) for row in csv.reader(lines, delimiter=delimiter) if row), default=0)
        except csv.Error:
            return 0

    return max(_DELIMITERS, key=count_cells)


def _rows(text: str, delimiter: str) -> Iterator[list[str]]:
    rows = csv.reader(StringIO(text, newline=""), delimiter=delimiter)
    try:
        yield from rows
    except csv.Error as error:
        raise FormatError(f"line {rows.line_num}: {error}; is a quotation mark missing?") from error
