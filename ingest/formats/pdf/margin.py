"""Sets labels and notes in the margins of a page of a PDF, as in a manual of commands, before their paragraphs."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from arag.ingest.formats.pdf.pieces import STRAIGHT
from arag.ingest.formats.pdf.rows import Extent
from arag.ingest.formats.pdf.words import Word

_MIN_GAP = 0.3  # times the height of the type, from a label to the edge of the text
_MIN_NOTE_GAP = 0.9  # from the edge of the text to a note: a word that is too long for its line is nearer
_MAX_GAP = 2.0  # what ends farther off may be a cell of a table
_MAX_INDENT = 3.0  # times the height: of the first line of a paragraph
_SAME = 0.2  # times the height
_SAME_PLACE = 1.0  # point
_MIN_LINES = 5  # at the edge of the text, for each other one that begins in the margin
_MAX_PITCH = 2.0  # times the height, from one line of a paragraph to the next
_FULL = 0.8  # of the width of the text: the last line of a paragraph is seldom as long
_LABEL = re.compile(r"(?!\S{1,5}[.:)\]]$).*[^\W\d_]{2}.*")  # unlike the number of a section or an item
_END = re.compile(r".*[.:;!?…][^\w\s]*")


class _Line(NamedTuple):
    label: list[Word]
    text: list[Word]


def move_labels(lines: Sequence[list[Word]]) -> list[list[Word]]:
    """Return the lines of a page, with labels and notes in the margins, beside a line within a sentence, before it."""
    if not lines:
        return []
    lines = _move_notes(lines)
    text = _find_text(lines)
    divided = [_divide(line, text.left) for line in lines]
    if not _is_margin(divided, text.left):
        return lines
    return _place(divided, text)


def _move_notes(lines: Sequence[list[Word]]) -> list[list[Word]]:
    """Return the lines of a page, with notes in the right margin, beside full lines of prose, before its paragraph."""
    rights = Counter(round(line[-1].right) for line in lines)
    [(edge, _)] = rights.most_common(1)
    cut = [_cut_note(line, edge) for line in lines]
    if not _are_notes(cut, edge):
        return list(lines)
    text = _find_text(lines)
    return _place(_join_notes(cut), text._replace(right=edge))


def _place(divided: Sequence[_Line], text: Extent) -> list[list[Word]]:
    """Return lines with the labels of each paragraph before it."""
    first = [*divided[0].label, *divided[0].text]  # line of the paragraph
    labels = len(divided[0].label)  # words before it
    moved = [first]
    for above, line in pairwise(divided):
        if _goes_on(above.text, line.text, text):
            first[labels:labels] = _beside(first[-1], line.label)
            labels += len(line.label)
            moved.append(line.text)
        else:
            first = [*line.label, *line.text]
            labels = len(line.label)
            moved.append(first)
    return moved


def _find_text(lines: Iterable[list[Word]]) -> Extent:
    """Return where most lines begin, and where the longest ends."""
    lefts = Counter(round(line[0].left) for line in lines)
    [(left, _)] = lefts.most_common(1)
    right = max(line[-1].right for line in lines)
    return Extent(left, right)


def _divide(line: list[Word], edge: float) -> _Line:
    """Return a line with its label in the margin apart, if it has one."""
    for number, (before, word) in enumerate(pairwise(line), 1):
        height = word.height
        gap = edge - before.right
        indent = word.left - edge
        is_near = _MIN_GAP * height < gap < _MAX_GAP * height
        is_beside = is_near and -_SAME * height < indent < _MAX_INDENT * height
        label = line[:number]
        if is_beside and _LABEL.fullmatch(" ".join(word.text for word in label)):
            return _Line(label, line[number:])
    return _Line([], line)


def _cut_note(line: list[Word], edge: float) -> _Line:
    """Return a line with what is on the right of an edge apart."""
    min_left = edge + _MIN_NOTE_GAP * line[0].height
    number = bisect_left(line, min_left, key=lambda word: word.left)
    return _Line(label=line[number:], text=line[:number])


def _are_notes(lines: Sequence[_Line], edge: float) -> bool:
    """Return whether what is on the right of an edge begins at one place, and is beside few lines, some of them full.

    The first line of the page is more than a note.
    """
    lefts = [line.label[0].left for line in lines if line.label]
    beside = [len(line.label) > 0 for line in lines if _is_full(line.text, edge)]
    width = max(lefts, default=0.0) - min(lefts, default=0.0)
    return all(
        [
            any(beside),
            1 < len(lefts) <= len(beside),  # a word that is too long for its line is alone
            width < _SAME_PLACE,
            lines[0].text,
        ]
    )


def _is_full(line: Sequence[Word], edge: float) -> bool:
    """Return whether a line ends at an edge, and has no wide gaps as rows of tables have."""
    gaps = [word.left - before.right - word.height for before, word in pairwise(line)]
    return max(gaps, default=0.0) < 0 and abs(line[-1].right - edge) < _SAME_PLACE


def _join_notes(lines: Iterable[_Line]) -> list[_Line]:
    """Return the lines of the text, with what is beside them and below that as words without a width before them."""
    joined: list[_Line] = []
    for note, text in lines:
        if text:
            joined.append(_Line([], text))
        label, (first, *_) = joined[-1]
        for word in _beside(first, note):
            label.append(word._replace(left=first.left, right=first.left))
    return joined


def _is_margin(lines: Iterable[_Line], edge: float) -> bool:
    """Return whether hardly any lines but those with labels begin on the left of an edge."""
    lefts = sorted(line.text[0].left for line in lines)
    outside = bisect_left(lefts, edge - STRAIGHT)
    at_edge = bisect_left(lefts, edge + STRAIGHT) - outside
    return at_edge >= _MIN_LINES * max(outside, 1)


def _goes_on(above: list[Word], line: list[Word], text: Extent) -> bool:
    """Return whether a sentence goes on from one line of a text to the next one."""
    pitch = above[0].bottom - line[0].bottom
    is_next = 0 < pitch < _MAX_PITCH * line[0].height
    is_full = above[-1].right - text.left > _FULL * text.width
    return is_next and is_full and not _END.fullmatch(above[-1].text)


def _beside(word: Word, label: Iterable[Word]) -> list[Word]:
    """Return the words of a label at the height of another word."""
    return [part._replace(bottom=word.bottom, top=word.top) for part in label]
