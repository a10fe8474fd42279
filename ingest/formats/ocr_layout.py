"""Puts the lines that OCR found on a page into the order in which a person reads them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import median

from arag.text.normalise import CELL_BOUNDARY

_SAME_ROW = 0.5  # of the lower line's height that two lines share if they are beside each other
_COLUMN_GAP = 0.8  # of a line's height: narrower gaps are between words
_CELL_CHARACTERS = 12  # columns of shorter lines than this are those of a table
_MIN_ROWS = 3  # lines of a column; shorter ones are read row by row
_PARAGRAPH_GAP = 0.9  # of a line's height, between two paragraphs
_INDENT = 0.8  # of a line's height, at the start of a paragraph
_FULL_LINE = 0.7  # of the column's width: a shorter line is not continued
_SAME_SIZE = 1.35  # lines of one paragraph are at most so many times as high
_DIVIDED = re.compile(r"(?<=[^\W\d_])[-\u2010]$")
_WITHOUT_SPACES = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")


@dataclass(frozen=True, slots=True)
class Box:
    """A line of text on a page, or a part of one, in pixels from the top left."""

    left: float
    top: float
    right: float
    bottom: float
    text: str

    @property
    def height(self) -> float:
        """Its height."""
        return self.bottom - self.top


@dataclass(frozen=True, slots=True)
class _Span:
    """A part of the page's width."""

    left: float
    right: float


@dataclass(frozen=True, slots=True)
class _Band:
    """Rows below each other with the same columns."""

    rows: list[list[Box]]
    covered: list[_Span]  # the columns


def arrange(boxes: Iterable[Box]) -> str:
    """Return the text of a page: column by column, in paragraphs; rows of tables with a bar between cells."""
    rows = _find_rows(boxes)
    if not rows:
        return ""
    height = median(box.height for row in rows for box in row)
    bands = _find_bands(rows, _COLUMN_GAP * height)
    return "\n\n".join(_write_band(band) for band in bands)


def _find_rows(boxes: Iterable[Box]) -> list[list[Box]]:
    """Return the boxes that stand beside each other, from the top, each row from the left."""
    rows: list[list[Box]] = []
    for box in sorted(boxes, key=lambda each: each.top + each.bottom):
        if rows and _shared_height(rows[-1][0], box) >= _SAME_ROW * min(rows[-1][0].height, box.height):
            rows[-1].append(box)
        else:
            rows.append([box])
    return [sorted(row, key=lambda each: each.left) for row in rows]


def _shared_height(one: Box, other: Box) -> float:
    return min(one.bottom, other.bottom) - max(one.top, other.top)


def _find_bands(rows: Sequence[list[Box]], gap: float) -> list[_Band]:
    """Group rows: as long as the same white gaps run through them, they have the same columns."""
    bands: list[_Band] = []
    for row in rows:
        own = _cover([_Span(box.left, box.right) for box in row], gap)
        if bands:
            last = bands[-1]
            together = _cover([*last.covered, *own], gap)
            if len(together) >= max(len(last.covered), len(own)):
                bands[-1] = _Band([*last.rows, row], together)
                continue
            is_part = len(last.covered) == len(together) and len(row) == 1  # a short line of one column
            if is_part:
                last.rows.append(row)
                continue
        bands.append(_Band([row], own))
    return bands


def _cover(spans: Iterable[_Span], gap: float) -> list[_Span]:
    """Join spans between which there is no gap."""
    joined: list[_Span] = []
    for span in sorted(spans, key=lambda each: each.left):
        if joined and span.left - joined[-1].right < gap:
            joined[-1] = _Span(joined[-1].left, max(joined[-1].right, span.right))
        else:
            joined.append(span)
    return joined


def _write_band(band: _Band) -> str:
    columns = [_column(band, span) for span in band.covered]
    if len(columns) == 1:
        return _write_column(columns[0])
    characters = min(median(len(box.text) for box in column) for column in columns)
    if characters < _CELL_CHARACTERS or min(map(len, columns)) < _MIN_ROWS:
        return _write_rows(band)
    return "\n\n".join(_write_column(column) for column in columns)


def _column(band: _Band, span: _Span) -> list[Box]:
    """Return a column's lines; boxes of a row that no gap divides are one line."""
    lines: list[Box] = []
    for row in band.rows:
        parts = [box for box in row if box.left < span.right and box.right > span.left]
        if parts:
            lines.append(_join_boxes(parts))
    return lines


def _join_boxes(boxes: Sequence[Box]) -> Box:
    return Box(
        left=min(box.left for box in boxes),
        top=min(box.top for box in boxes),
        right=max(box.right for box in boxes),
        bottom=max(box.bottom for box in boxes),
        text=" ".join(box.text for box in boxes),
    )


def _write_rows(band: _Band) -> str:
    """Return the rows of a table; rows with one cell below each other are lines of a text, as in a letter's body."""
    blocks: list[str] = []
    for is_text, rows in groupby(band.rows, key=lambda row: len(list(filter(None, _cells(row, band)))) == 1):
        if is_text:
            blocks.append(_write_column([_join_boxes(row) for row in rows]))
        else:
            blocks += [CELL_BOUNDARY.join(_cells(row, band)).rstrip(CELL_BOUNDARY) for row in rows]
    return "\n".join(blocks)


def _cells(row: Sequence[Box], band: _Band) -> list[str]:
    """Return the text of a row in each column."""
    cells: list[str] = []
    for span in band.covered:
        texts = [box.text for box in row if box.left < span.right and box.right > span.left]
        cells.append(" ".join(texts))
    return cells


def _write_column(lines: Sequence[Box]) -> str:
    """Return lines below each other as paragraphs; a line that does not fill the column ends with a line end."""
    left = min(line.left for line in lines)
    width = max(line.right for line in lines) - left
    text = lines[0].text
    for above, line in pairwise(lines):
        height = min(above.height, line.height)
        is_other_size = max(above.height, line.height) > _SAME_SIZE * height
        is_apart = line.top - above.bottom > _PARAGRAPH_GAP * height
        is_indented = line.left - above.left > _INDENT * height
        if is_apart or is_other_size:
            text += f"\n\n{line.text}"
        elif is_indented or above.right - left < _FULL_LINE * width:
            text += f"\n{line.text}"
        else:
            text = _continue(text, line.text)
    return text


def _continue(text: str, line: str) -> str:
    """Add a line to the one that it continues; a hyphen at its end divides a word before a small letter."""
    if _DIVIDED.search(text) and line[:1].islower():
        return text[:-1] + line
    if _WITHOUT_SPACES.match(text[-1:]) and _WITHOUT_SPACES.match(line):
        return text + line
    return f"{text} {line}"
