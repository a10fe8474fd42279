"""The lines of a page of a PDF, with the size and the font of their type."""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

import pypdfium2
from pypdfium2 import raw

from arag.ingest.formats.content import clean_text
from arag.ingest.formats.headings import Line
from arag.ingest.formats.pdf_rows import Piece, Span, find_rows

_LINE = re.compile(r"\S(?:.*\S)?")
_GAP = re.compile(r"(?<=\S)\s+(?=\S)|(?<=\S)\s*\Z")  # between words, and after the last
_LINE_END_HYPHEN = "\ufffe"  # as PDFium marks a hyphen at the end of a line
_LOWER = r"[^\W\d_A-Z]"
# A hyphen between lower-case letters divides a word. The hyphen comes first in the pattern, for speed.
_DIVIDED_WORD = re.compile(f"{_LINE_END_HYPHEN}(?<={_LOWER}{_LINE_END_HYPHEN})(?={_LOWER})")
_MAX_FONT_NAME = 100  # bytes


def page_lines(page: pypdfium2.PdfTextPage) -> list[Line]:
    """Return the lines of a page as PDFium orders them, with the cells of tables set apart."""
    text = page.get_text_range()
    indexes = _character_indexes(page, text)
    rows = find_rows(text, _pieces(page.raw, text, indexes))
    return [_make_line(page.raw, span, indexes) for span in _split_lines(text, rows)]


def _character_indexes(page: pypdfium2.PdfTextPage, text: str) -> Sequence[int]:
    """Return PDFium's index of each character: it counts in UTF-16, and also characters that are not in the text."""
    if len(text) == page.count_chars():
        return range(len(text) + 1)
    widths = (2 if character > "\uffff" else 1 for character in text)
    offsets = accumulate(widths, initial=0)
    return [raw.FPDFText_GetCharIndexFromTextIndex(page, offset) for offset in offsets]


def _split_lines(text: str, rows: Iterable[Span]) -> list[Span]:
    """Return the rows of tables, and the lines before, between and after them."""
    spans: list[Span] = []
    end = 0
    for row in rows:
        spans += _lines_between(text, end, row.start)
        spans.append(row)
        end = row.end
    spans += _lines_between(text, end, len(text))
    return spans


def _lines_between(text: str, start: int, end: int) -> Iterator[Span]:
    for match in _LINE.finditer(text, start, end):
        yield Span(
            start=match.start(),
            end=match.end(),
            text=match[0],
        )


def _make_line(page: raw.FPDF_TEXTPAGE, span: Span, indexes: Sequence[int]) -> Line:
    size, font = _type(page, indexes[span.start])
    last_size, last_font = _type(page, indexes[span.end - 1])
    return Line(
        text=_join_divided_words(clean_text(span.text)),
        size=min(size, last_size),
        font=font if font == last_font else "",
    )


def _join_divided_words(text: str) -> str:
    text = _DIVIDED_WORD.sub("", text)
    return text.replace(_LINE_END_HYPHEN, "-")


def _pieces(page: raw.FPDF_TEXTPAGE, text: str, indexes: Sequence[int]) -> Iterator[Piece]:
    """Yield the parts of lines between wide gaps."""
    # A page has a gap after each word: so the boxes are filled again and again.
    fill_box = raw.FPDFText_GetLooseCharBox
    first, before, after = raw.FS_RECTF(), raw.FS_RECTF(), raw.FS_RECTF()
    start = len(text) - len(text.lstrip())
    fill_box(page, indexes[start], first)
    for gap in _GAP.finditer(text):
        fill_box(page, indexes[gap.start() - 1], before)
        fill_box(page, indexes[gap.end()], after)
        is_end = "\n" in gap[0] or gap.end() == len(text)
        if is_end or after.left - before.right > after.top - after.bottom:  # wider than the type is high
            yield Piece(
                start=start,
                end=gap.start(),
                left=first.left,
                right=before.right,
                bottom=first.bottom,
                top=first.top,
            )
            start = gap.end()
            first, after = after, first  # the next piece begins after the gap


def _type(page: raw.FPDF_TEXTPAGE, character: int) -> tuple[float, str]:
    """Return the size and the font of a character."""
    matrix = raw.FS_MATRIX()
    name = ctypes.create_string_buffer(_MAX_FONT_NAME)
    flags = ctypes.c_int()
    raw.FPDFText_GetMatrix(page, character, matrix)
    raw.FPDFText_GetFontInfo(page, character, name, len(name), flags)
    scale = math.hypot(matrix.b, matrix.d)
    size = raw.FPDFText_GetFontSize(page, character) * scale
    to_half_points = round(2 * size) / 2
    _, _, font = name.value.decode("latin-1").rpartition("+")  # a random prefix marks a font of which only a part is in
    return to_half_points, font
