"""Files of experiments: written whole, and CSV files whose cells spreadsheets show and do not compute.

A text that begins like a formula, as `=HYPERLINK(...)`, is one to a spreadsheet, whoever wrote it. An apostrophe in
front keeps it a text. Texts that have apostrophes there already get one more, so that reading takes off what writing
has put on, and nothing else.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from arag.errors import StorageError
from arag.files import written_whole
from arag.models.replies import mend_characters

# What spreadsheets take for the beginning of a formula, also in its wide form.
_FORMULA = r"[=+\-@\t\r\n＝＋－＠]"
_PLAIN, _MARKED = re.compile(f"'*{_FORMULA}"), re.compile(f"'+{_FORMULA}")


def write_file(file: Path, text: str) -> Path:
    """Write a file whole, in a folder that need not exist; half characters are replaced.

    Returns:
        The file.

    Raises:
        StorageError: It cannot be written; then it is as it was.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(file) as out:
            out.write(mend_characters(text).encode())
    except OSError as error:
        raise StorageError(f"{file} cannot be written: {error.strerror}") from error
    return file


def to_csv(rows: Sequence[Mapping[str, object]], columns: Sequence[str] = ()) -> str:
    """Return rows as CSV; nothing stands where one lacks a column that another has, or it is None."""
    columns = list(dict.fromkeys([*columns, *(column for row in rows for column in row)]))
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(map(as_cell, columns))
    writer.writerows([as_cell(row.get(column)) for column in columns] for row in rows)
    return lines.getvalue()


def as_cell(value: object) -> object:
    """Return a value as it goes into a CSV; only texts can be formulas."""
    return f"'{value}" if isinstance(value, str) and _PLAIN.match(value) else value


def from_cell(text: str) -> str:
    """Return the text that `as_cell` has made a cell of; a cell that a person has written stays as it is."""
    return text[1:] if _MARKED.match(text) else text
