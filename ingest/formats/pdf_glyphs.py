"""The characters of a page of a PDF as PDFium gives them: the text of the page, and the box of each character."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import pypdfium2
from pypdfium2 import raw

UNKNOWN = "\ufffd"  # a glyph that the file does not name
_MIN_TURN = 0.1  # radians: scanned pages and slanted type are turned by less


class Box(NamedTuple):
    """The box of a character, which is as high as the font."""

    left: float
    right: float
    bottom: float
    top: float

    @property
    def width(self) -> float:
        """Its width."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """Its height."""
        return self.top - self.bottom


_NOWHERE = Box(0, 0, 0, 0)  # in place of numbers that a damaged file makes infinite
# A page has thousands of characters: the function is looked up once, and fills one rectangle again and again.
_get_box = raw.FPDFText_GetLooseCharBox
_rectangle = raw.FS_RECTF()


@dataclass(frozen=True, slots=True)
class PageText:
    """The text of a page.

    Attributes:
        page: PDFium's page.
        text: Its text. A place is an offset in it.
        indexes: PDFium's index of the character at each place.
    """

    page: raw.FPDF_TEXTPAGE
    text: str
    indexes: Sequence[int]

    def box(self, place: int) -> Box:
        """Return the box of a character."""
        _get_box(self.page, self.indexes[place], _rectangle)
        box = Box(_rectangle.left, _rectangle.right, _rectangle.bottom, _rectangle.top)
        return box if math.isfinite(sum(box)) else _NOWHERE

    def is_turned(self, place: int) -> bool:
        """Return whether a character is not upright."""
        angle: float = raw.FPDFText_GetCharAngle(self.page, self.indexes[place])
        return _MIN_TURN < angle % math.tau < math.tau - _MIN_TURN

    def character_at(self, place: int) -> str:
        """Return a character, or an empty string beside the text: for a place of -1, or one after the end."""
        return self.text[place : place + 1]

    def is_letter(self, place: int) -> bool:
        """Return whether there is a letter at a place, which may be beside the text."""
        return self.character_at(place).isalpha()

    def font_size(self, place: int) -> float:
        """Return the width of a character's type, in points."""
        matrix = raw.FS_MATRIX()
        raw.FPDFText_GetMatrix(self.page, self.indexes[place], matrix)
        size: float = raw.FPDFText_GetFontSize(self.page, self.indexes[place]) * abs(matrix.a)
        return size

    def glyph_width(self, place: int, glyph: str, size: float) -> float:
        """Return how wide a glyph is in the font of the character at a place, or 0 if the font has none."""
        width = ctypes.c_float()
        text_object = raw.FPDFText_GetTextObject(self.page, self.indexes[place])
        if text_object:
            font = raw.FPDFTextObj_GetFont(text_object)
            raw.FPDFFont_GetGlyphWidth(font, ord(glyph), size, width)
        return width.value


def read_text(page: pypdfium2.PdfTextPage) -> PageText:
    """Return the text of a page as PDFium orders it."""
    text = page.get_text_range(errors="surrogatepass")  # else characters are missing, and all later places are wrong
    return PageText(
        page=page.raw,
        text=text,
        indexes=_character_indexes(page, text),
    )


def _character_indexes(page: pypdfium2.PdfTextPage, text: str) -> Sequence[int]:
    """Return PDFium's index of each character: it counts in UTF-16, and also characters that are not in the text."""
    if len(text) == page.count_chars():
        return range(len(text) + 1)
    widths = (2 if character > "\uffff" else 1 for character in text)
    offsets = accumulate(widths, initial=0)
    return [raw.FPDFText_GetCharIndexFromTextIndex(page, offset) for offset in offsets]
