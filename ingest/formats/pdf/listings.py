"""Recognises listings on a page of a PDF: source code, and what programs print. Their wide spaces divide no cells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count, groupby
from operator import attrgetter, itemgetter

from arag.ingest.formats.pdf.fonts import Fonts
from arag.ingest.formats.pdf.words import Word
from arag.ingest.formats.title_texts import is_code_font

_NUMBER = re.compile(r"(\d{1,5}) \S")
_SIGN = re.compile(r"[\\{}]|;$")  # of programs
_FIRST = itemgetter(0)
_LEFT, _TEXT, _WIDTH = attrgetter("left"), attrgetter("text"), attrgetter("box.width")
_MIN_LINES = 3  # of a listing with numbers
_MAX_PITCH = 2.0  # times the height of the type, from one line of a listing to the next
_MOSTLY = 0.9  # of the lines of a page: its text may be in letters of one width, too
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


def keep_columns(lines: Sequence[Sequence[Word]], fonts: Fonts) -> list[Sequence[Word]]:
    """Return the lines of a page, and each line of a listing as one word with all its spaces.

    So code and what a program has printed keep their columns. A listing has several lines in letters of one width.
    """
    printed = [is_code_font(fonts.type_of(line).font) for line in lines]
    if sum(printed) > _MOSTLY * len(lines):
        return list(lines)
    kept: list[Sequence[Word]] = []
    listing: list[Sequence[Word]] = []
    for line, is_printed in zip(lines, printed, strict=True):
        goes_on = is_printed and listing and _is_below(listing[-1][0], line[0])
        if not goes_on:
            kept += _lay_out(listing)
            listing = []
        target = listing if is_printed else kept
        target.append(line)
    return kept + _lay_out(listing)


def _is_below(before: Word, word: Word) -> bool:
    return 0 < before.bottom - word.bottom < _MAX_PITCH * word.height


def _lay_out(listing: Sequence[Sequence[Word]]) -> list[Sequence[Word]]:
    if len(listing) == 1:
        return list(listing)
    edge = min(map(_LEFT, map(_FIRST, listing)), default=0.0)
    return [_as_one_word(line, edge) for line in listing]


def _as_one_word(line: Sequence[Word], edge: float) -> Sequence[Word]:
    """Return a line as one word that has a space for each letter's width from the left edge, and between words."""
    letters = sum(map(len, map(_TEXT, line)))
    width = sum(map(_WIDTH, line)) / letters
    if not width:  # a damaged font
        return line
    text = ""
    right = edge
    for word in line:
        spaces = round((word.left - right) / width)
        needed = 1 if text else 0
        text += " " * max(needed, spaces) + word.text
        right = word.right
    return [line[0]._replace(text=text, right=right, last=line[-1].last)]


def _is_row_of_tex(text: str) -> bool:
    """Return whether `&` divides cells. It has spaces around it, unlike that of `R&D`."""
    divisions = text.split().count("&")
    return divisions >= _MIN_CELLS or (divisions > 0 and "\\" in text)
