"""Sets the columns of a page apart where a PDF has its text row by row, across the columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from arag.ingest.formats.joining import HYPHEN
from arag.ingest.formats.pdf_words import Word
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

_INDEX_ENTRY = re.compile(r".*\D, \d{1,4}(?:[-–]\d+)?")
_WITHOUT_SPACES = re.compile(f"[{UNSPACED}{EAST_ASIAN}]")
_DIVIDED = re.compile(r"(?<=[^\W\d_])[-‐]$")


class _Gap(NamedTuple):
    """A white strip between words."""

    left: float
    right: float

    @property
    def width(self) -> float:
        """Its width."""
        return self.right - self.left


def separate_columns(lines: Sequence[_Line]) -> list[_Line]:
    """Return the lines of a page, with those of each column together.

    Rows that go across columns are cut at the white strip between them if both sides are prose or an index; tables stay
    as they are.

    Args:
        lines: The words of each line, as PDFium orders them.
    """
    rows = _join_rows(lines)
    separated: list[_Line] = []
    start = 0
    while start < len(rows):
        gaps, end = _find_gaps(rows, start)
        gap = _find_column_gap(rows[start:end], gaps)
        if gap is None:
            end = max(start + 1, end - 1)  # the last row may begin another block
            separated += rows[start:end]
        else:
            left, right = _cut(rows[start:end], gap)
            separated += _join_divided_words(separate_columns(left))
            separated += _join_divided_words(separate_columns(right))
        start = end
    return separated


def _join_rows(lines: Sequence[_Line]) -> list[_Line]:
    """Return lines that are beside each other as one."""
    rows: list[_Line] = []
    for line in lines:
        if rows and _is_beside(rows[-1][-1], line[0]):
            rows[-1] = [*rows[-1], *line]
        else:
            rows.append(line)
    return rows


def _is_beside(last: Word, word: Word) -> bool:
    common = min(last.top, word.top) - max(last.bottom, word.bottom)
    is_same_type = abs(last.height - word.height) < 0.1 * word.height
    return is_same_type and common > _MIN_COMMON * word.height and word.left > last.right + word.height


def _find_gaps(lines: Sequence[_Line], start: int) -> tuple[list[_Gap], int]:
    """Return the white strips that go from a line through most others below it, and the end of these lines."""
    gaps = _inner_gaps(lines[start])
    end = start + 1
    while gaps and end < len(lines) and _is_next_row(lines[end - 1], lines[end]):
        following = _cross(gaps, _free_gaps(lines[end]), _MIN_GAP * lines[end][0].height)
        if not following:
            break
        gaps = following
        end += 1
    return gaps, end


def _find_column_gap(rows: Sequence[_Line], gaps: Sequence[_Gap]) -> _Gap | None:
    """Return the widest strip that has columns on its sides."""
    if len(rows) < _MIN_ROWS_WIDE:
        return None
    for gap in sorted(gaps, key=lambda gap: gap.width, reverse=True):
        if _has_columns(rows, gap):
            return gap
    return None


def _inner_gaps(line: _Line) -> list[_Gap]:
    """Return the white strips between the words of a row, from left to right."""
    gaps: list[_Gap] = []
    words = sorted(line, key=lambda word: word.left)
    right = words[0].right
    for word in words[1:]:
        if word.left - right >= _MIN_GAP * word.height > 0:
            gaps.append(_Gap(right, word.left))
        right = max(right, word.right)
    return gaps


def _free_gaps(line: _Line) -> list[_Gap]:
    """Return the white strips of a row, with those beside it."""
    left = min(word.left for word in line)
    right = max(word.right for word in line)
    return [_Gap(float("-inf"), left), *_inner_gaps(line), _Gap(right, float("inf"))]


def _cross(gaps: Sequence[_Gap], others: Sequence[_Gap], min_width: float) -> list[_Gap]:
    """Return the strips that are white in both."""
    common: list[_Gap] = []
    number = other_number = 0
    while number < len(gaps) and other_number < len(others):
        gap, other = gaps[number], others[other_number]
        both = _Gap(max(gap.left, other.left), min(gap.right, other.right))
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
    return -height < line[0].bottom - following[0].bottom < _MAX_PITCH * height


def _has_columns(rows: Sequence[_Line], gap: _Gap) -> bool:
    left, right = _cut(rows, gap)
    height = rows[0][0].height
    across = _count_across(rows, gap)
    if gap.width >= _WIDE_GAP * height:
        if across < _MIN_ROWS_WIDE:
            return False
    elif across < _MIN_ROWS or not _has_straight_edge(right):
        return False
    if _is_index(left) and _is_index(right):
        return True
    return _are_full(rows, gap) and _is_prose(left) and _is_prose(right)


def _are_full(rows: Sequence[_Line], gap: _Gap) -> bool:
    """Return whether both sides have about as many lines, down to the end of the shorter one.

    In a table of sentences, the cells on one side have fewer lines than those on the other.
    """
    lefts = [number for number, row in enumerate(rows) if min(word.left for word in row) < gap.left]
    rights = [number for number, row in enumerate(rows) if max(word.left for word in row) >= gap.left]
    end = min(lefts[-1], rights[-1])
    left_lines = sum(number <= end for number in lefts)
    right_lines = sum(number <= end for number in rights)
    return min(left_lines, right_lines) >= _BALANCE * max(left_lines, right_lines)


def _count_across(rows: Sequence[_Line], gap: _Gap) -> int:
    """Return how often the text goes from the left side to the right one."""
    count = 0
    was_left = False
    for row in rows:
        for word in row:
            is_left = word.right <= gap.left + 0.1
            if was_left and not is_left:
                count += 1
            was_left = is_left
    return count


def _cut(rows: Sequence[_Line], gap: _Gap) -> tuple[list[_Line], list[_Line]]:
    """Return the lines on the left and on the right of a gap."""
    left: list[_Line] = []
    right: list[_Line] = []
    for row in rows:
        left.append([word for word in row if word.left < gap.left])
        right.append([word for word in row if word.left >= gap.left])
    return [line for line in left if line], [line for line in right if line]


def _has_straight_edge(lines: Sequence[_Line]) -> bool:
    """Return whether most lines begin at the same place."""
    left = min(line[0].left for line in lines)
    at_edge = [line for line in lines if line[0].left - left < 0.1 * line[0].height]
    return len(at_edge) >= _MOSTLY * len(lines)


def _is_index(lines: Sequence[_Line]) -> bool:
    entries = [line for line in lines if _INDEX_ENTRY.fullmatch(_text(line))]
    return len(lines) >= _MIN_ROWS and len(entries) >= _MOSTLY * len(lines)


def _is_prose(lines: Sequence[_Line]) -> bool:
    """Return whether lines are long, of several words, and go on in the next line."""
    texts = [_text(line) for line in lines]
    characters = sum(map(len, texts)) / len(lines)
    words = sum(len(line) for line in lines) / len(lines)
    is_unspaced = len(_WITHOUT_SPACES.findall("".join(texts))) > 0.5 * characters * len(lines)
    if is_unspaced:
        characters *= 2
    if characters < _MIN_CHARACTERS or (words < _MIN_WORDS and not is_unspaced):
        return False
    widths = [line[-1].right - line[0].left for line in lines]
    long_lines = [width for width in widths if width >= _LONG * max(widths)]
    going_on = [text for text in texts[1:] if text[0].isalpha() and not text[0].isupper()]
    return len(long_lines) >= _MOSTLY * len(lines) and len(going_on) >= 0.25 * len(texts[1:])


def _text(line: _Line) -> str:
    return " ".join(word.text for word in line)


def _join_divided_words(lines: list[_Line]) -> list[_Line]:
    """Mark the hyphens at the ends of lines, which PDFium did not see there."""
    for line, following in pairwise(lines):
        if _DIVIDED.search(line[-1].text) and following[0].text[0].islower():
            line[-1] = line[-1]._replace(text=line[-1].text[:-1] + HYPHEN)
    return lines
