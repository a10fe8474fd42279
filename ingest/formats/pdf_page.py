"""The lines of a page of a PDF, with their places and the size and the font of their type."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable, Iterator, Sequence

import pypdfium2
from pypdfium2 import raw

from arag.ingest.formats.content import clean_text
from arag.ingest.formats.headings import Line
from arag.ingest.formats.pdf_cells import TableRow
from arag.ingest.formats.pdf_columns import separate_columns
from arag.ingest.formats.pdf_fields import Field, insert_fields
from arag.ingest.formats.pdf_rows import Piece, find_rows
from arag.ingest.formats.pdf_tables import find_tables
from arag.ingest.formats.pdf_words import Word, read_lines
from arag.text.normalise import CELL_BOUNDARY

_MAX_FONT_NAME = 100  # bytes


def page_lines(page: pypdfium2.PdfTextPage, fields: Sequence[Field] = ()) -> list[Line]:
    """Return the lines of a page as PDFium orders them, column by column, with the cells of tables set apart.

    Args:
        page: The page.
        fields: The values of its form.
    """
    lines = insert_fields(read_lines(page), fields)
    rows = find_rows(separate_columns(lines))
    return [_make_line(page.raw, words, text) for words, text in _texts(find_tables(rows))]


def _texts(rows: Iterable[TableRow]) -> Iterator[tuple[list[Word], str]]:
    """Yield the words of each line, and its text."""
    for row in rows:
        yield from _plain_lines(row.row.above)
        pieces = [line for cell in row.row.cells for line in cell]
        if row.cells:
            words = [word for piece in pieces for word in piece.words]
            yield words, CELL_BOUNDARY.join(row.cells).strip()
        else:
            yield from _plain_lines(pieces)


def _plain_lines(pieces: Iterable[Piece]) -> Iterator[tuple[list[Word], str]]:
    words: list[Word] = []
    line: int | None = None
    for piece in pieces:
        if words and piece.line != line:
            yield words, " ".join(word.text for word in words)
            words = []
        words += piece.words
        line = piece.line
    if words:
        yield words, " ".join(word.text for word in words)


def _make_line(page: raw.FPDF_TEXTPAGE, words: Sequence[Word], text: str) -> Line:
    printed = [word for word in words if not word.is_field]
    size, font = _type(page, printed[0].first) if printed else (0.0, "")
    last_size, last_font = _type(page, printed[-1].last) if printed else (0.0, "")
    return Line(
        text=clean_text(text),
        size=min(size, last_size),
        font=font if font == last_font else "",
        left=words[0].left,
        right=words[-1].right,
        bottom=words[0].bottom,
        top=words[0].top,
    )


def _type(page: raw.FPDF_TEXTPAGE, character: int) -> tuple[float, str]:
    """Return the size and the font of a character."""
    matrix = raw.FS_MATRIX()
    name = ctypes.create_string_buffer(_MAX_FONT_NAME)
    flags = ctypes.c_int()
    raw.FPDFText_GetMatrix(page, character, matrix)
    raw.FPDFText_GetFontInfo(page, character, name, len(name), flags)
    scale = math.hypot(matrix.b, matrix.d)
    size = raw.FPDFText_GetFontSize(page, character) * scale
    to_half_points = round(2 * size) / 2 if math.isfinite(size) else 0.0  # a damaged file may have any number
    _, _, font = name.value.decode("latin-1").rpartition("+")  # a random prefix marks a font of which only a part is in
    return to_half_points, font
