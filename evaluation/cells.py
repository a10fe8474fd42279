"""Cells of CSV files that spreadsheets show and do not compute.

A text that begins like a formula, as `=HYPERLINK(...)`, is one to a spreadsheet, whoever wrote it. An apostrophe in
front keeps it a text. Texts that have apostrophes there already get one more, so that reading takes off what writing
has put on, and nothing else.
"""

from __future__ import annotations

import re

# What spreadsheets take for the beginning of a formula, also in its wide form.
_FORMULA = r"[=+\-@\t\r\n＝＋－＠]"
_PLAIN, _MARKED = re.compile(f"'*{_FORMULA}"), re.compile(f"'+{_FORMULA}")


def as_cell(value: object) -> object:
    """Return a value as it goes into a CSV; only texts can be formulas."""
    return f"'{value}" if isinstance(value, str) and _PLAIN.match(value) else value


def from_cell(text: str) -> str:
    """Return the text that `as_cell` has made a cell of; a cell that a person has written stays as it is."""
    return text[1:] if _MARKED.match(text) else text
