"""Finds titles of a PDF that are bold, and need not be larger than its text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

from arag.ingest.formats.headings import Line, is_title

# With the short names that fonts of TeX have.
_BOLD = re.compile(
    r"bold|black|heavy|demi|cmbx|cmb\d|cmssbx|sf[bs]x\d|nimbus.*-medi|lin(?:lib|bio)\w*b$",
    re.IGNORECASE,
)
_CODE = re.compile(r"cour|mono|cmtt|consol", re.IGNORECASE)
_CAPTION = re.compile(r"[^\W\d]+\.? \d+[a-z]?")  # Table 3
_MAX_TITLE = 80  # characters
_SET_APART = 1.3  # times the pitch of the lines below it: the pitch above a title, at least
_MAX_PITCH = 2.2  # times the size of the type, down to the text below it
_STRAIGHT = 3.0  # points: how far the text below it may begin from its left
_PITCH = 1.2  # times the size, where one line gives none
_MIN_TEXT = 40  # characters of a single line below it: what is shorter may be the value of a label


def mark_bold_titles(pages: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """Return the lines of each page, with those marked that are bold titles.

    Such a line is alone, with more space above it than between the lines below it, which are not bold.

    Args:
        pages: The lines of each page.
    """
    body_size = usual_size(chain.from_iterable(pages))
    marked: list[list[Line]] = []
    for page in pages:
        lines: list[Line] = []
        for number, line in enumerate(page):
            is_found = line.size >= body_size and _is_bold(line) and _is_bold_title(page, number)
            lines.append(line._replace(is_bold_title=True) if is_found else line)
        marked.append(lines)
    return marked


def usual_size(lines: Iterable[Line]) -> float:
    """Return the size of type that most characters have."""
    characters = Counter[float]()
    for line in lines:
        characters[line.size] += len(line.text)
    return max(characters, key=lambda size: characters[size], default=0.0)


def is_bold_font(name: str) -> bool:
    """Return whether a font is bold, by its name."""
    return _BOLD.search(name) is not None


def _is_bold(line: Line) -> bool:
    return is_bold_font(line.font) and _CODE.search(line.font) is None


def _is_bold_title(page: Sequence[Line], number: int) -> bool:
    """Return whether a bold line is a title: by its words, the space above it, and the text below it."""
    line = page[number]
    if len(line.text) > _MAX_TITLE or not is_title(line.text) or _CAPTION.fullmatch(line.text):
        return False
    text = _text_below(line, page[number + 1 :])
    if not text:
        return False
    first, *others = text[:2]
    if not others and len(first.text) < _MIN_TEXT:
        return False
    pitch = first.bottom - others[0].bottom if others else _PITCH * first.size
    pitch_below = line.bottom - first.bottom
    min_pitch = max(_SET_APART * pitch, pitch_below + 1)
    return _is_set_apart(line, page[:number], min_pitch)


def _text_below(line: Line, following: Iterable[Line]) -> list[Line]:
    """Return the first lines of the text below a line: near to it, not bold, and at its left edge."""
    text: list[Line] = []
    above = line
    for other in following:
        pitch = above.bottom - other.bottom
        is_near = 0 < pitch < _MAX_PITCH * line.size
        is_straight = abs(other.left - line.left) < _STRAIGHT
        if not is_near or not is_straight or _is_bold(other):
            break
        text.append(other)
        above = other
    goes_on = bool(text) and text[0].text[:1].islower()
    return [] if goes_on else text


def _is_set_apart(line: Line, before: Sequence[Line], min_pitch: float) -> bool:
    """Return whether there is space above a line, or it is at the top of its column."""
    if not before:
        return True
    pitch = before[-1].bottom - line.bottom
    is_at_top = pitch <= 0
    return is_at_top or pitch >= min_pitch
