"""Puts the lines that OCR found on a page into the order in which a person reads them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from operator import attrgetter
from statistics import median

from arag.ingest.outline import escape_structure
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

    def select(self, row: Sequence[Box]) -> list[Box]:
        """Return the boxes of a row that are in this part."""
        return [box for box in row if box.left < self.right and box.right > self.left]


@dataclass(frozen=True, slots=True)
class _Band:
    """Rows below each other with the same columns."""

    rows: list[list[Box]]
    columns: list[_Span]


def arrange(boxes: Iterable[Box]) -> str:
    """Return the text of a page: column by column, in paragraphs; rows of tables with a bar between cells."""
    rows = _find_rows(boxes)
    if not rows:
        return ""
    heights = map(attrgetter("height"), chain.from_iterable(rows))
    gap = _COLUMN_GAP * median(heights)
    blocks: list[str] = []
    for band in _find_bands(rows, gap):
        blocks += _write_band(band)
    return escape_structure("\n\n".join(blocks))


def _find_rows(boxes: Iterable[Box]) -> list[list[Box]]:
    """Return the boxes that stand beside each other, from the top, each row from the left."""
    rows: list[list[Box]] = []
    from_top = sorted(boxes, key=lambda each: each.top + each.bottom)
    for box in from_top:
        if rows and _are_beside(rows[-1][0], box):
            rows[-1].append(box)
        else:
            rows.append([box])
    for row in rows:
        row.sort(key=lambda each: each.left)
    return rows


def _are_beside(one: Box, other: Box) -> bool:
    """Return whether two boxes share most of their height."""
    shared_height = min(one.bottom, other.bottom) - max(one.top, other.top)
    lower_height = min(one.height, other.height)
    return shared_height >= _SAME_ROW * lower_height


def _find_bands(rows: Sequence[list[Box]], gap: float) -> list[_Band]:
    """Group rows: as long as the same white gaps run through them, they have the same columns."""
    bands: list[_Band] = []
    for row in rows:
        columns: list[_Span] = []
        if bands:
            columns = _find_columns(bands[-1], row, gap)
        if columns:
            rows_so_far = [*bands[-1].rows, row]
            bands[-1] = _Band(rows_so_far, columns)
            continue
        band = _Band(
            rows=[row],
            columns=_own_columns(row, gap),
        )
        bands.append(band)
    return bands


def _find_columns(band: _Band, row: Sequence[Box], gap: float) -> list[_Span]:
    """Return the columns of a band together with the row below it; none if they have not the same columns."""
    own = _own_columns(row, gap)
    together = _cover([*band.columns, *own], gap)
    most = max(len(band.columns), len(own))
    return together if len(together) >= most else []


def _own_columns(row: Sequence[Box], gap: float) -> list[_Span]:
    spans = [_Span(box.left, box.right) for box in row]
    return _cover(spans, gap)


def _cover(spans: Iterable[_Span], gap: float) -> list[_Span]:
    """Join spans between which there is no gap."""
    joined: list[_Span] = []
    from_left = sorted(spans, key=lambda each: each.left)
    for span in from_left:
        if not joined:
            joined.append(span)
            continue
        last = joined[-1]
        white = span.left - last.right
        if white >= gap:
            joined.append(span)
            continue
        joined[-1] = _Span(
            left=last.left,
            right=max(last.right, span.right),
        )
    return joined


def _write_band(band: _Band) -> list[str]:
    """Return the blocks of text of a band: its columns one after another, or the rows of a table."""
    columns = [_read_column(band, column) for column in band.columns]
    if len(columns) > 1 and _is_table(columns):
        return [_write_rows(band)]
    return [_write_column(column) for column in columns]


def _is_table(columns: Sequence[list[Box]]) -> bool:
    """Return whether columns are those of a table: one has short lines, or few."""
    for lines in columns:
        characters = median(len(box.text) for box in lines)
        if characters < _CELL_CHARACTERS or len(lines) < _MIN_ROWS:
            return True
    return False


def _read_column(band: _Band, column: _Span) -> list[Box]:
    """Return a column's lines; boxes of a row that no gap divides are one line."""
    boxes_by_row = map(column.select, band.rows)
    return list(map(_join_boxes, filter(None, boxes_by_row)))


def _join_boxes(boxes: Sequence[Box]) -> Box:
    joined = boxes[0]
    for box in boxes[1:]:
        joined = Box(
            left=min(joined.left, box.left),
            top=min(joined.top, box.top),
            right=max(joined.right, box.right),
            bottom=max(joined.bottom, box.bottom),
            text=f"{joined.text} {box.text}",
        )
    return joined


def _write_rows(band: _Band) -> str:
    """Return the rows of a table; rows with one cell below each other are lines of a text, as in a letter's body."""
    blocks: list[str] = []
    text_lines: list[Box] = []  # the last rows, as long as each has one cell
    for row in band.rows:
        cells = _read_cells(row, band.columns)
        if cells.count("") == len(cells) - 1:
            text_lines.append(_join_boxes(row))
            continue
        if text_lines:
            blocks.append(_write_column(text_lines))
            text_lines = []
        blocks.append(CELL_BOUNDARY.join(cells).rstrip(CELL_BOUNDARY))
    if text_lines:
        blocks.append(_write_column(text_lines))
    return "\n".join(blocks)


def _read_cells(row: Sequence[Box], columns: Sequence[_Span]) -> list[str]:
    """Return the text of a row in each column."""
    cells: list[str] = []
    for column in columns:
        boxes = column.select(row)
        cells.append(" ".join(map(attrgetter("text"), boxes)))
    return cells


def _write_column(lines: Sequence[Box]) -> str:
    """Return lines below each other as paragraphs; a line that does not fill the column ends with a line end."""
    left = min(map(attrgetter("left"), lines))
    right = max(map(attrgetter("right"), lines))
    full_line = left + _FULL_LINE * (right - left)
    text = lines[0].text
    for above, line in pairwise(lines):
        if _is_new_paragraph(above, line):
            text += f"\n\n{line.text}"
        elif above.right < full_line or _is_indented(above, line):
            text += f"\n{line.text}"
        else:
            text = _continue(text, line.text)
    return text


def _is_new_paragraph(above: Box, line: Box) -> bool:
    """Return whether a line is far below the one above it, or of another size."""
    smaller = min(above.height, line.height)
    larger = max(above.height, line.height)
    if larger > _SAME_SIZE * smaller:
        return True
    return line.top - above.bottom > _PARAGRAPH_GAP * smaller


def _is_indented(above: Box, line: Box) -> bool:
    return line.left - above.left > _INDENT * min(above.height, line.height)


def _continue(text: str, line: str) -> str:
    """Add a line to the one that it continues; a hyphen at its end divides a word before a small letter."""
    if _DIVIDED.search(text) and line[:1].islower():
        return text[:-1] + line
    if _WITHOUT_SPACES.match(text[-1:]) and _WITHOUT_SPACES.match(line):
        return text + line
    return f"{text} {line}"
