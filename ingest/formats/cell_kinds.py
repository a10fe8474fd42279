"""Tells what a cell of a table looks like: a name, a year, a number, an address."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from operator import itemgetter

from arag.retrieval.corpus.values import is_code, read_date, read_number

TEXT = ""  # the kind of a cell that is no value

_SIGNS = frozenset("%#№€$£")  # which name a column, as `Count` and `%` do
_MAX_NAME = 100  # characters of a column's name: longer cells are sentences
_WORDS = re.compile(r"[^\W\d_]+\.?(?:(?:[ /&,'’-]| & )[^\W\d_]+\.?){0,3}(?:(?: \(|（)[^()（）]+[)）])?:?")
_MAX_WORDS = 40  # characters of such a cell
_YEAR = re.compile(r"(?:1[6-9]|20)\d\d")
_OTHER_VALUE = re.compile(
    r"[\w.+-]+@[\w-]+\.[\w.-]+"  # an address of mail
    r"|(?:https?://|www\.)\S+"
    r"|(?:true|false|yes|no)"
    r"|\d{1,2}:\d\d(?::\d\d)?(?: ?[ap]\.?m\.?)?",
    re.IGNORECASE,
)


def has_letter(cell: str) -> bool:
    """Return whether a cell has a letter of any script."""
    return any(map(str.isalpha, cell))


def is_short(cell: str) -> bool:
    """Return whether a cell is as short as a name."""
    return len(cell) <= _MAX_NAME


def is_words(cell: str) -> bool:
    """Return whether a cell is a few words such as `Ships in port (tons)`, and no sentence, code or value."""
    return len(cell) <= _MAX_WORDS and _WORDS.fullmatch(cell) is not None


def is_year(cell: str) -> bool:
    """Return whether a cell is a year of the last centuries."""
    return _YEAR.fullmatch(cell) is not None


def are_names(cells: Sequence[str]) -> bool:
    """Return whether all cells look like the names of columns.

    Years and dates may be names if there are several: one alone is a value. Most names differ from each other.
    """
    names = 0
    times = 0
    for cell in cells:
        if is_year(cell) or read_date(cell):
            times += 1
        elif has_letter(cell) and is_short(cell):
            names += 1
        elif cell in _SIGNS:
            continue  # beside names
        else:
            return False
    most_differ = len(cells) < 2 * len(set(cells))
    return names > 0 and times != 1 and most_differ


def kind_of(cell: str) -> str:
    """Return which kind of value a cell is; `TEXT` if it is none."""
    if is_year(cell):
        return "year"
    if read_date(cell):
        return "date"
    number = read_number(cell)
    if number is not None:
        return f"number {number.unit}"
    if is_code(cell):
        return "code"
    if _OTHER_VALUE.fullmatch(cell):
        return "value"
    return TEXT


def kinds_of(cells: Iterable[str]) -> set[str]:
    """Return the kinds of several cells."""
    return set(map(kind_of, cells))


def kind_of_most(cells: Sequence[str]) -> str:
    """Return the kind of value that more than half of the cells are; `TEXT` if there is none."""
    counts = Counter(map(kind_of, cells))
    kind, count = max(counts.items(), key=itemgetter(1), default=(TEXT, 0))
    return kind if 2 * count > len(cells) else TEXT
