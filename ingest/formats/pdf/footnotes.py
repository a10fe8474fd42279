"""Footnotes and feet of a PDF that interrupt a sentence: they are apart from it, at the end of the page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from operator import attrgetter

from arag.ingest.formats.pdf.bold import usual_size
from arag.ingest.formats.typography import Line

_CLOSING = r"”’»)\]\"'"
_INTERRUPTED = re.compile(rf"[^.!?:;。！？{_CLOSING}][{_CLOSING}]*$")  # a line that does not end a sentence
_NOTE = re.compile(r"(?:\[?\d{1,3}\]?|[*∗†‡§¶])(?:\s+[^\W\d_]|[^\W\d_]{2})")  # its number and its first word
_GLUED = re.compile(r"(\d{1,3})(?=[A-ZÀ-ÞА-Я][a-zß-ÿа-я]|[AI] )")  # a number before the first word of its note
_NUMBER = re.compile(r"(?<!\S)\[?(\d{1,3})\]?(?![\w.])")  # in a text, perhaps of a note
_BOTTOM = attrgetter("bottom")
_SMALLER = 0.92  # times the size of most text
_FAR = 3.0  # times the size of a foot's type, from the line above it


def join_numbers(lines: Sequence[Line]) -> list[Line]:
    """Return the lines of a page, with the number of a footnote and its text in one, of which the number is raised."""
    joined = list(lines[:1])
    for line in lines[1:]:
        last = joined[-1]
        if _NUMBER.fullmatch(last.text) and _is_raised_beside(last, line):
            joined[-1] = line._replace(text=f"{last.text} {line.text}", left=last.left)
        else:
            joined.append(line)
    return joined


def _is_raised_beside(number: Line, line: Line) -> bool:
    is_raised = number.size < line.size and line.bottom < number.bottom < line.top < number.top
    return is_raised and 0 <= line.left - number.right < line.size


def move_footnotes(lines: Sequence[Line]) -> list[Line]:
    """Return the lines of a page; footnotes below half a sentence, and a foot, are paragraphs after its last line."""
    small = _SMALLER * usual_size(lines)
    lowest = min(lines, key=_BOTTOM, default=None)
    text: list[Line] = []
    notes: list[Line] = []
    for column in _columns(lines):
        start = _start_of_notes(column, small, lowest)
        text += column[:start]
        first = [line._replace(begins_paragraph=True) for line in column[start : start + 1]]
        notes += [*first, *column[start + 1 :]]
    return [*text, *notes]


def divide_numbers(lines: Sequence[Line]) -> list[Line]:
    """Return the lines of a page, with a space between the number of a footnote and its text if they touch each other.

    The text above has the number, too, or it is that of the next note.
    """
    small = _SMALLER * usual_size(lines)
    divided: list[Line] = []
    numbers: set[int] = set()
    for line in lines:
        glued = _GLUED.match(line.text)
        number = int(glued[1]) if glued else 0
        if glued and line.size < small and number in numbers:
            note = line.text[glued.end() :]
            divided.append(line._replace(text=f"{number} {note}"))
            numbers.add(number + 1)
        else:
            divided.append(line)
        numbers.update(map(int, _NUMBER.findall(line.text)))
    return divided


def _columns(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Yield the columns of a page: each ends where the next line is higher."""
    column: list[Line] = []
    for line in lines:
        if column and line.bottom > column[-1].top:
            yield column
            column = []
        column.append(line)
    yield column


def _start_of_notes(column: Sequence[Line], small: float, lowest: Line | None) -> int:
    """Return where the footnotes or the foot of a column begin that follow half a sentence; without any, its end.

    A foot is the lowest line of the page, far below the others.
    """
    start = len(column)
    while start > 1 and column[start - 1].size < small:
        start -= 1
    if start == len(column):
        return start
    line, note = column[start - 1 : start + 1]
    is_foot = note is lowest and line.bottom - note.bottom > _FAR * note.size
    is_note = is_foot or _NOTE.match(note.text)
    return start if is_note and _INTERRUPTED.search(line.text) else len(column)
