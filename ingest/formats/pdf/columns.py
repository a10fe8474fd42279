"""Sets the columns of a page apart where a PDF has its text row by row, across the columns."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple, TypeAlias

from arag.ingest.formats.pdf.words import Word
from arag.text.scripts import EAST_ASIAN, UNSPACED

_Line: TypeAlias = "list[Word]"

_MIN_GAP = 0.28  # times the height of the type: hardly more than a space
_WIDE_GAP = 0.8  # times the height: needs fewer rows, and no straight edge beside it
_MIN_ROWS = 5
_MIN_ROWS_WIDE = 3
_MAX_PITCH = 2.5  # times the height, from one row to the next
_MIN_CHARACTERS = 15  # of a column's lines, on average: cells of tables are shorter
_MIN_WORDS = 3
_LONG = 0.7  # times the longest line of a column: most lines of prose are at least as long
_MOSTLY = 0.6
_MIN_COMMON = 0.3  # of the heights of two lines that are beside each other
_BALANCE = 0.7  # of the lines of two columns, side by side
_GOING_ON = 0.25  # of the lines of prose, at least
_TOLERANCE = 0.1  # times the height: how far equal places and heights may differ
_SAME_PLACE = 0.1  # points

_INDEX_ENTRY = re.compile(r".*\D, \d{1,4}(?:[-–]\d+)?")
_WITHOUT_SPACES = re.compile(f"[{UNSPACED}{EAST_ASIAN}]")


class _Gap(NamedTuple):
    """A white strip between words."""

    left: float
    right: float

    @property
    def width(self) -> float:
        """Its width."""
        return self.right - self.left

    def common(self, other: _Gap) -> _Gap:
        """Return the strip that is white in both."""
        return _Gap(
            left=max(self.left, other.left),
            right=min(self.right, other.right),
        )


@dataclass(frozen=True)
class _Sides:
    """The lines on the left and on the right of a gap."""

    left: list[_Line]
    right: list[_Line]


def separate_columns(lines: Iterable[_Line]) -> list[_Line]:
    """Return the lines of a page, with those of each column together.

    Rows that go across columns are cut at the white strip between them if both sides are prose or an index; tables stay
    as they are.

    Args:
        lines: The words of each line, as PDFium orders them.
    """
    rows = join_rows(lines)
    separated: list[_Line] = []
    start = 0
    while start < len(rows):
        gaps, end = _find_gaps(rows, start)
        gap = _find_column_gap(rows[start:end], gaps)
        if gap is None:
            end = max(start + 1, end - 1)  # the last row may begin another block
            separated += rows[start:end]
        else:
            sides = _cut(rows[start:end], gap)
            separated += separate_columns(sides.left)
            separated += separate_columns(sides.right)
        start = end
    return separated


def join_rows(lines: Iterable[_Line]) -> list[_Line]:
    """Return lines that are beside each other as one."""
    rows: list[_Line] = []
    for line in lines:
        if rows and _is_beside(rows[-1][-1], line[0]):
            rows[-1] = [*rows[-1], *line]
        else:
            rows.append(line)
    return rows


def _is_beside(last: Word, word: Word) -> bool:
    """Return whether a word in the same type is beside another one, but far from it."""
    height = word.height
    is_same_type = abs(last.height - height) < _TOLERANCE * height
    gap = word.left - last.right
    is_apart = gap > height
    if not is_same_type or not is_apart:
        return False
    common = min(last.top, word.top) - max(last.bottom, word.bottom)
    return common > _MIN_COMMON * height


# --- white strips ---


def _find_gaps(lines: Sequence[_Line], start: int) -> tuple[list[_Gap], int]:
    """Return the white strips that go from a line through most others below it, and the end of these lines."""
    gaps = _inner_gaps(lines[start])
    end = start + 1
    while gaps and end < len(lines):
        line = lines[end]
        above = lines[end - 1]
        if not _is_next_row(above, line):
            break
        min_width = _MIN_GAP * line[0].height
        common = _cross(gaps, _free_gaps(line), min_width)
        if not common:
            break
        gaps = common
        end += 1
    return gaps, end


def _inner_gaps(line: _Line) -> list[_Gap]:
    """Return the white strips between the words of a row, from left to right."""
    gaps: list[_Gap] = []
    first, *words = sorted(line, key=lambda word: word.left)
    right = first.right
    for word in words:
        if word.left - right >= _MIN_GAP * word.height > 0:
            gaps.append(_Gap(right, word.left))
        right = max(right, word.right)
    return gaps


def _free_gaps(line: _Line) -> list[_Gap]:
    """Return the white strips of a row, with those beside it."""
    left = min(word.left for word in line)
    right = max(word.right for word in line)
    return [
        _Gap(float("-inf"), left),
        *_inner_gaps(line),
        _Gap(right, float("inf")),
    ]


def _cross(gaps: Sequence[_Gap], others: Sequence[_Gap], min_width: float) -> list[_Gap]:
    """Return the strips that are white in both."""
    common: list[_Gap] = []
    number = 0
    other_number = 0
    while number < len(gaps) and other_number < len(others):
        gap = gaps[number]
        other = others[other_number]
        both = gap.common(other)
        if both.width >= min_width:
            common.append(both)
        if gap.right < other.right:
            number += 1
        else:
            other_number += 1
    return common


def _is_next_row(line: _Line, following: _Line) -> bool:
    """Return whether a line is beside another one or the next below it."""
    height = max(line[0].height, following[0].height)
    pitch = line[0].bottom - following[0].bottom
    return -height < pitch < _MAX_PITCH * height


# --- the strip between two columns ---


def _find_column_gap(rows: Sequence[_Line], gaps: Iterable[_Gap]) -> _Gap | None:
    """Return the widest strip that has columns on its sides."""
    if len(rows) < _MIN_ROWS_WIDE:
        return None
    widest_first = sorted(
        gaps,
        key=lambda gap: gap.width,
        reverse=True,
    )
    for gap in widest_first:
        if _has_columns(rows, gap):
            return gap
    return None


def _has_columns(rows: Sequence[_Line], gap: _Gap) -> bool:
    """Return whether the text goes across a strip often enough, and both sides are an index or prose."""
    sides = _cut(rows, gap)
    height = rows[0][0].height
    is_wide = gap.width >= _WIDE_GAP * height
    min_rows = _MIN_ROWS_WIDE if is_wide else _MIN_ROWS
    if _count_across(rows, gap) < min_rows:
        return False
    if not is_wide and not _has_straight_edge(sides.right):
        return False
    both = [sides.left, sides.right]
    if all(map(_is_index, both)):
        return True
    if not _are_full(rows, gap):
        return False
    return all(map(_is_prose, both))


def _cut(rows: Iterable[_Line], gap: _Gap) -> _Sides:
    """Return what is on the left and on the right of a strip."""
    sides = _Sides(left=[], right=[])
    for row in rows:
        left: _Line = []
        right: _Line = []
        for word in row:
            side = left if word.left < gap.left else right
            side.append(word)
        if left:
            sides.left.append(left)
        if right:
            sides.right.append(right)
    return sides


def _count_across(rows: Iterable[_Line], gap: _Gap) -> int:
    """Return how often the text goes from the left side to the right one."""
    count = 0
    was_left = False
    for word in chain.from_iterable(rows):
        is_left = word.right <= gap.left + _SAME_PLACE
        if was_left and not is_left:
            count += 1
        was_left = is_left
    return count


def _are_full(rows: Sequence[_Line], gap: _Gap) -> bool:
    """Return whether both sides have about as many lines, down to the end of the shorter one.

    In a table of sentences, the cells on one side have fewer lines than those on the other.
    """
    lefts: list[int] = []
    rights: list[int] = []
    for number, row in enumerate(rows):
        places = [word.left for word in row]
        if min(places) < gap.left:
            lefts.append(number)
        if max(places) >= gap.left:
            rights.append(number)
    end = min(lefts[-1], rights[-1]) + 1
    left_lines = bisect_left(lefts, end)
    right_lines = bisect_left(rights, end)
    fewer = min(left_lines, right_lines)
    more = max(left_lines, right_lines)
    return fewer >= _BALANCE * more


def _has_straight_edge(lines: Sequence[_Line]) -> bool:
    """Return whether most lines begin at the same place."""
    left = min(line[0].left for line in lines)
    at_edge = 0
    for line in lines:
        first = line[0]
        indent = first.left - left
        at_edge += indent < _TOLERANCE * first.height
    return at_edge >= _MOSTLY * len(lines)


def _is_index(lines: Sequence[_Line]) -> bool:
    """Return whether most lines end with the number of a page."""
    if len(lines) < _MIN_ROWS:
        return False
    entries = 0
    for line in lines:
        text = _text(line)
        entries += _INDEX_ENTRY.fullmatch(text) is not None
    return entries >= _MOSTLY * len(lines)


def _is_prose(lines: Sequence[_Line]) -> bool:
    """Return whether lines are long, of several words, and go on in the next line."""
    texts = list(map(_text, lines))
    if not _has_many_words(lines, texts):
        return False
    return _are_long(lines) and _go_on(texts)


def _has_many_words(lines: Sequence[_Line], texts: Sequence[str]) -> bool:
    """Return whether lines have several words; in scripts without spaces, a character is as long as two letters."""
    min_characters = _MIN_CHARACTERS * len(lines)
    min_words = _MIN_WORDS * len(lines)
    characters = sum(map(len, texts))
    text = "".join(texts)
    unspaced = len(_WITHOUT_SPACES.findall(text))
    if 2 * unspaced > characters:
        return 2 * characters >= min_characters
    words = sum(map(len, lines))
    return characters >= min_characters and words >= min_words


def _are_long(lines: Sequence[_Line]) -> bool:
    widths = [line[-1].right - line[0].left for line in lines]
    min_width = _LONG * max(widths)
    long_lines = sum(width >= min_width for width in widths)
    return long_lines >= _MOSTLY * len(lines)


def _go_on(texts: Sequence[str]) -> bool:
    """Return whether enough lines go on in the next one, which begins with a small letter or has no such ones."""
    going_on = 0
    for text in texts[1:]:
        first = text[0]
        going_on += first.isalpha() and not first.isupper()
    return going_on >= _GOING_ON * (len(texts) - 1)


def _text(line: _Line) -> str:
    return " ".join(word.text for word in line)
