"""Recognises lines of source code on a page of a PDF, whose wide spaces do not divide cells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count, groupby

from arag.ingest.formats.pdf.words import Word

_NUMBER = re.compile(r"(\d{1,5}) \S")
_SIGN = re.compile(r"[\\{}]|;$")  # of programs
_MIN_LINES = 3  # of a listing with numbers
_MIN_CELLS = 4  # of a row of TeX without a command


def find_source_lines(lines: Sequence[Sequence[Word]]) -> set[int]:
    """Return the places of the lines that are source code.

    They have numbers that count up, and most have a sign of programs. Or they are rows of a table in the source of TeX.
    """
    found: set[int] = set()
    numbered: list[tuple[int, int, bool]] = []
    for place, line in enumerate(lines):
        text = " ".join(word.text for word in line)
        number = _NUMBER.match(text)
        if number:
            has_sign = _SIGN.search(text) is not None
            numbered.append((int(number[1]), place, has_sign))
        if _is_row_of_tex(text):
            found.add(place)
    steps = count()
    for _, run in groupby(numbered, key=lambda line: line[0] - next(steps)):
        listing = list(run)
        with_sign = sum(has_sign for _, _, has_sign in listing)
        if len(listing) >= _MIN_LINES and 2 * with_sign > len(listing):
            found.update(place for _, place, _ in listing)
    return found


def _is_row_of_tex(text: str) -> bool:
    """Return whether `&` divides cells. It has spaces around it, unlike that of `R&D`."""
    divisions = text.split().count("&")
    return divisions >= _MIN_CELLS or (divisions > 0 and "\\" in text)
