"""Rows of csv and tsv files."""

from __future__ import annotations

import csv
from collections import Counter
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
    width, after_blank = 0, False
    try:
        for row in rows:
            # In some files every second line is blank; between two tables, the number of cells changes.
            if row and after_blank and len(row) != width:
                yield []
            after_blank = not row
            if row:
                width = len(row)
                yield row
    except csv.Error as error:
        raise FormatError(f"line {rows.line_num}: {error}; is a quotation mark missing?") from error
