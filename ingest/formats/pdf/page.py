"""The lines of a page of a PDF, with their places and the size and the font of their type."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import pypdfium2
from pypdfium2 import raw

from arag.ingest.formats.content import clean_text
from arag.ingest.formats.headings import Line
from arag.ingest.formats.pdf.cells import TableRow
from arag.ingest.formats.pdf.columns import separate_columns
from arag.ingest.formats.pdf.fields import Field, insert_fields
from arag.ingest.formats.pdf.glyphs import read_text
from arag.ingest.formats.pdf.pieces import Piece
from arag.ingest.formats.pdf.rows import find_rows
from arag.ingest.formats.pdf.ruled import find_ruled_tables
from arag.ingest.formats.pdf.rules import find_grids
from arag.ingest.formats.pdf.spaced import join_spaced_letters
from arag.ingest.formats.pdf.tables import find_tables
from arag.ingest.formats.pdf.words import Word, read_lines
from arag.text.normalise import CELL_BOUNDARY

_MAX_FONT_NAME = 100  # bytes
# Filled again for each line: making new ones takes longer than the calls.
_matrix = raw.FS_MATRIX()
_font_name = ctypes.create_string_buffer(_MAX_FONT_NAME)
_flags = ctypes.c_int()


class _TextLine(NamedTuple):
    """A line of a page, or a row of a table."""

    words: list[Word]
    text: str
    is_entry: bool = False  # of contents


class _Type(NamedTuple):
    """The type of characters."""

    size: float  # points, to half a point
    font: str


def page_lines(page: pypdfium2.PdfTextPage, fields: Sequence[Field] = ()) -> list[Line]:
    """Return the lines of a page as PDFium orders them, column by column, with the cells of tables set apart.

    Args:
        page: The page.
        fields: The values of its form.
    """
    may_turn = not fields  # whose places are as on the page
    text = read_text(page, may_turn=may_turn)
    words = map(join_spaced_letters, read_lines(page.page, text))
    lines = list(separate_columns(insert_fields(list(words), fields)))
    tables, below = find_ruled_tables(lines, find_grids(page.page, text))
    found: list[_TextLine] = []
    for table in tables:
        found += _lines(find_tables(find_rows(table.above)))
        found += _lines(table.rows)
    found += _lines(find_tables(find_rows(below)))
    return [_make_line(page.raw, line) for line in found]


def _lines(rows: Iterable[TableRow]) -> Iterator[_TextLine]:
    for row in rows:
        yield from _plain_lines(row.row.above)
        pieces: list[Piece] = []
        for cell in row.row.cells:
            pieces += cell
        if row.cells:
            yield _TextLine(
                words=_words(pieces),
                text=CELL_BOUNDARY.join(row.cells).strip(),
            )
        else:
            for line in _plain_lines(pieces):
                yield line._replace(is_entry=row.is_entry)


def _plain_lines(pieces: Iterable[Piece]) -> Iterator[_TextLine]:
    """Yield the lines of pieces outside tables: those that PDFium has in one line."""
    for _, beside in groupby(pieces, key=lambda piece: piece.line):
        words = _words(beside)
        yield _TextLine(
            words=words,
            text=" ".join(word.text for word in words),
        )


def _words(pieces: Iterable[Piece]) -> list[Word]:
    words: list[Word] = []
    for piece in pieces:
        words += piece.words
    return words


def _make_line(page: raw.FPDF_TEXTPAGE, line: _TextLine) -> Line:
    first, last = line.words[0], line.words[-1]
    type_ = _line_type(page, line.words)
    return Line(
        text=clean_text(line.text),
        size=type_.size,
        font=type_.font,
        left=first.left,
        right=last.right,
        bottom=first.bottom,
        top=first.top,
        is_entry=line.is_entry,
    )


def _line_type(page: raw.FPDF_TEXTPAGE, words: Iterable[Word]) -> _Type:
    """Return the smaller type of a line's first and last word, with its font if both have the same."""
    printed = [word for word in words if not word.is_field]
    if not printed:
        return _Type(0.0, "")
    first = _type(page, printed[0].first)
    last = _type(page, printed[-1].last)
    font = first.font if first.font == last.font else ""
    return _Type(min(first.size, last.size), font)


def _type(page: raw.FPDF_TEXTPAGE, character: int) -> _Type:
    """Return the size and the font of a character."""
    raw.FPDFText_GetMatrix(page, character, _matrix)
    raw.FPDFText_GetFontInfo(page, character, _font_name, _MAX_FONT_NAME, _flags)
    scale = math.hypot(_matrix.b, _matrix.d)
    size = raw.FPDFText_GetFontSize(page, character) * scale
    to_half_points = round(2 * size) / 2 if math.isfinite(size) else 0.0  # a damaged file may have any number
    _, _, font = _font_name.value.decode("latin-1").rpartition(
        "+"
    )  # a random prefix marks a font of which only a part is in
    return _Type(to_half_points, font)
