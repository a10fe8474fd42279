"""Files of experiments: written as a whole, and CSV files whose cells spreadsheets do not run as formulas.

A spreadsheet takes a text that starts like a formula, such as `=HYPERLINK(...)`, for one. An apostrophe in front keeps
it a text. Texts that already have apostrophes there get one more, so that reading removes only what writing added.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from platformdirs import user_data_path
from pydantic import ValidationError

from arag.errors import StorageError
from arag.files import written_whole
from arag.models.replies import mend_characters

# The first characters of formulas, also in their full-width forms.
_FORMULA = r"[=+\-@\t\r\n＝＋－＠]"
_PLAIN, _MARKED = re.compile(f"'*{_FORMULA}"), re.compile(f"'+{_FORMULA}")


def describe_damage(error: Exception) -> str:
    """Return what is wrong with a file's contents."""
    if not isinstance(error, ValidationError):
        return str(error)
    faults = [(".".join(map(str, fault["loc"])), fault["msg"]) for fault in error.errors()]
    return "; ".join(f"{place}: {what}" if place else what for place, what in faults)


def beside(location: Path | str, ending: str) -> Path:
    """Return the path of what is kept beside an index: next to its folder, else in the user's data folder.

    Args:
        location: The backend's location.
        ending: What follows the index's name: "methods" for `my-index.methods`.
    """
    if isinstance(location, Path):
        folder = location.absolute()
        return folder.with_name(f"{folder.name}.{ending}")
    name = hashlib.sha256(location.encode()).hexdigest()[:16]
    return user_data_path("arag", appauthor=False) / "indexes" / f"{name}.{ending}"


def write_file(file: Path, text: str) -> Path:
    """Write a whole file and create its folder if needed; lone surrogates are replaced.

    Returns:
        The file.

    Raises:
        StorageError: The file cannot be written; it stays as it was.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(file) as out:
            out.write(mend_characters(text).encode())
    except OSError as error:
        raise StorageError(f"{file} cannot be written: {error.strerror}") from error
    return file


def to_csv(rows: Sequence[Mapping[str, object]], columns: Sequence[str] = ()) -> str:
    """Return rows as CSV; a cell is empty if its row lacks the column or its value is None."""
    columns = list(dict.fromkeys([*columns, *(column for row in rows for column in row)]))
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(map(as_cell, columns))
    writer.writerows([as_cell(row.get(column)) for column in columns] for row in rows)
    return lines.getvalue()


def as_cell(value: object) -> object:
    """Return a value as a CSV cell; only texts can be formulas."""
    return f"'{value}" if isinstance(value, str) and _PLAIN.match(value) else value


def from_cell(text: str) -> str:
    """Undo `as_cell`; a cell that a person wrote stays as it is."""
    return text[1:] if _MARKED.match(text) else text
