"""Names of tables and their columns in SQL."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Container, Iterable, Sequence
from contextlib import closing
from functools import cache
from pathlib import PurePosixPath

from arag.text.normalise import HEADING_BOUNDARY

_MAX_NAME = 40  # characters of the name of a table or a column
_WORD = re.compile(r"[^\W_]+")
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_LANGUAGE = re.compile(r"(?:^|[._-])[a-z]{2}(?:[-_][A-Za-z]{2,4})?$")  # of `manual.en.html` and `zh-cn/`
_NOT_A_NAME = re.compile(r"\d|sqlite_")  # in SQL
_SHEET_NAME = re.compile(r"(?:(?:sheet|tabelle|feuil|hoja|foglio)\s?\d*)?", re.IGNORECASE)


def sql_name(label: str) -> str:
    """Return a name that SQL takes without quotation marks: in lower case, with `_` between words."""
    name = "_".join(_WORD.findall(label.lower()))[:_MAX_NAME].rstrip("_")
    if not name:
        return "column_1"
    if _NOT_A_NAME.match(name):
        name = f"_{name}"
    return f"{name}_" if _is_reserved(name) else name


@cache
def _is_reserved(name: str) -> bool:
    """Return whether SQLite takes a word for something else than a name."""
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            rows = connection.execute(f'SELECT {name} FROM (SELECT 7 AS "{name}") AS {name}').fetchall()
        except sqlite3.OperationalError:
            return True
    return rows != [(7,)]


def free_name(name: str, taken: Container[str]) -> str:
    """Return a name that is not taken, with a number if need be."""
    free = name
    number = 1
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free


def find_shared_words(documents: Iterable[str], headings: Iterable[str], titles: Iterable[str]) -> list[str]:
    """Return the words that all documents, headings, titles or folders of a table have in their names."""
    files: list[PurePosixPath] = []
    for document_id in documents:
        files.append(PurePosixPath(document_id.partition("#")[0]))
    last_headings: list[str] = []
    for heading in headings:
        last = heading.rpartition(HEADING_BOUNDARY)[2]
        if not _SHEET_NAME.fullmatch(last):
            last_headings.append(last)
    words = _shared_words([_LANGUAGE.sub("", file.stem) for file in files])
    if len(last_headings) == 1 or not words:
        words += _shared_words(last_headings)
    if not words:
        words = _shared_words(list(titles))
    if not words:
        words = _shared_words([_LANGUAGE.sub("", file.parent.name) for file in files])
    return list(dict.fromkeys(words))


def _shared_words(names: Sequence[str]) -> list[str]:
    """Return the words of the first name that all have; of several names, words with two letters or more."""
    if not names:
        return []
    if len(names) == 1:
        return _WORD.findall(names[0].lower())
    shared = set(_LETTERS.findall(names[0].lower()))
    for name in names[1:]:
        shared.intersection_update(_LETTERS.findall(name.lower()))
    return [word for word in _LETTERS.findall(names[0].lower()) if word in shared]
