"""The characters of a page of a PDF as PDFium gives them: the text of the page, and the box of each character."""

from __future__ import annotations

import ctypes
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import pypdfium2
from pypdfium2 import raw

UNKNOWN = "\ufffd"  # a glyph that the file does not name
RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")  # letters of Hebrew, Arabic and others
_LETTER = re.compile(r"[^\W\d_]")
_MIN_TURN = 0.1  # radians: scanned pages and slanted type are turned by less
_QUARTER = math.tau / 4
_MAX_FONT_NAME = 100  # bytes
_SAMPLE = 15  # letters of a page, which say how its text is turned
_MOSTLY = 0.8  # of them


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
_font_name = ctypes.create_string_buffer(_MAX_FONT_NAME)
_flags = ctypes.c_int()


def read_font_name(page: raw.FPDF_TEXTPAGE, character: int) -> str:
    """Return the name of a character's font, without the random prefix of a font of which only a part is in the file.

    Args:
        page: PDFium's page.
        character: PDFium's index of the character.
    """
    raw.FPDFText_GetFontInfo(page, character, _font_name, _MAX_FONT_NAME, _flags)
    _, _, name = _font_name.value.decode("latin-1").rpartition("+")
    return name


@dataclass(frozen=True, slots=True)
class PageText:
    """The text of a page.

    Attributes:
        page: PDFium's page.
        text: Its text. A place is an offset in it.
        indexes: PDFium's index of the character at each place.
        quarters: By how many quarters of a circle most of the text is turned to the right. Boxes are turned back.
        is_mirrored: Whether most of the text runs from right to left. Boxes are mirrored, so that lines begin on the
            left, and columns follow each other from left to right.
    """

    page: raw.FPDF_TEXTPAGE
    text: str
    indexes: Sequence[int]
    quarters: int = 0
    is_mirrored: bool = False

    def box(self, place: int) -> Box:
        """Return the box of a character."""
        _get_box(self.page, self.indexes[place], _rectangle)
        box = Box(_rectangle.left, _rectangle.right, _rectangle.bottom, _rectangle.top)
        if not math.isfinite(sum(box)):
            return _NOWHERE
        is_upright = not self.quarters and not self.is_mirrored
        return box if is_upright else self.turn_back(box)

    def cropped_box(self, page: raw.FPDF_PAGE) -> tuple[Box, Box] | None:
        """Return the box of a page's paper and the part of it that a person sees, if the page is cropped.

        Programs for printers write marks and names of files around that part. PDFium takes the whole paper for an empty
        one.
        """
        left, bottom, right, top = (ctypes.c_float() for _ in range(4))
        shown = raw.FS_RECTF()
        if not raw.FPDFPage_GetMediaBox(page, left, bottom, right, top):
            return None
        if not raw.FPDF_GetPageBoundingBox(page, shown):
            return None
        paper = Box(left.value, right.value, bottom.value, top.value)
        visible = Box(shown.left, shown.right, shown.bottom, shown.top)
        if visible == paper or not visible.width:
            return None
        return self.turn_back(paper), self.turn_back(visible)

    def turn_back(self, box: Box) -> Box:
        """Return a box of the page as it is in text that is turned back."""
        for _ in range(self.quarters):
            box = Box(left=-box.top, right=-box.bottom, bottom=box.left, top=box.right)
        if self.is_mirrored:
            box = Box(left=-box.right, right=-box.left, bottom=box.bottom, top=box.top)
        return box

    def is_turned(self, place: int) -> bool:
        """Return whether a character is turned by another angle than most of the text."""
        angle: float = raw.FPDFText_GetCharAngle(self.page, self.indexes[place]) - self.quarters * _QUARTER
        return _MIN_TURN < angle % math.tau < math.tau - _MIN_TURN

    def is_aslant(self, place: int) -> bool:
        """Return whether a character stands neither upright on the page nor on its side."""
        angle: float = raw.FPDFText_GetCharAngle(self.page, self.indexes[place])
        return _MIN_TURN < angle % _QUARTER < _QUARTER - _MIN_TURN

    def character_at(self, place: int) -> str:
        """Return a character, or an empty string beside the text: for a place of -1, or one after the end."""
        return self.text[place : place + 1]

    def is_letter(self, place: int) -> bool:
        """Return whether there is a letter at a place, which may be beside the text."""
        return self.character_at(place).isalpha()

    def baseline(self, place: int) -> float:
        """Return the height of the line on which a character stands, in points."""
        x = ctypes.c_double()
        y = ctypes.c_double()
        raw.FPDFText_GetCharOrigin(self.page, self.indexes[place], x, y)
        return self.turn_back(Box(x.value, x.value, y.value, y.value)).bottom

    def font_size(self, place: int) -> float:
        """Return the width of a character's type, in points."""
        matrix = raw.FS_MATRIX()
        raw.FPDFText_GetMatrix(self.page, self.indexes[place], matrix)
        size: float = raw.FPDFText_GetFontSize(self.page, self.indexes[place]) * abs(matrix.a)
        return size

    def font_name(self, place: int) -> str:
        """Return the name of a character's font."""
        return read_font_name(self.page, self.indexes[place])

    def glyph_width(self, place: int, glyph: str, size: float) -> float:
        """Return how wide a glyph is in the font of the character at a place, or 0 if the font has none."""
        width = ctypes.c_float()
        text_object = raw.FPDFText_GetTextObject(self.page, self.indexes[place])
        if text_object:
            font = raw.FPDFTextObj_GetFont(text_object)
            raw.FPDFFont_GetGlyphWidth(font, ord(glyph), size, width)
        return width.value


def read_text(page: pypdfium2.PdfTextPage, *, may_turn: bool = False) -> PageText:
    """Return the text of a page as PDFium orders it.

    Args:
        page: The page.
        may_turn: Whether to turn and mirror the boxes of the page's text so that its lines run from left to right.
    """
    text = page.get_text_range(errors="surrogatepass")  # else characters are missing, and all later places are wrong
    indexes = _character_indexes(page, text)
    if not may_turn:
        return PageText(
            page=page.raw,
            text=text,
            indexes=indexes,
        )
    return PageText(
        page=page.raw,
        text=text,
        indexes=indexes,
        quarters=_count_quarters(page, text, indexes),
        is_mirrored=_is_right_to_left(text),
    )


def _count_quarters(page: pypdfium2.PdfTextPage, text: str, indexes: Sequence[int]) -> int:
    """Return by how many quarters of a circle most of a page's text is turned to the right."""
    places = [match.start() for match in _LETTER.finditer(text)]
    step = len(places) // _SAMPLE + 1
    quarters = Counter[int]()
    for place in places[::step]:
        angle: float = raw.FPDFText_GetCharAngle(page.raw, indexes[place])
        quarters[round(angle / _QUARTER) % 4] += 1
    for most, letters in quarters.most_common(1):
        if letters >= _MOSTLY * quarters.total():
            return most
    return 0


def _is_right_to_left(text: str) -> bool:
    right_to_left = len(RIGHT_TO_LEFT.findall(text))
    if not right_to_left:
        return False
    return 2 * right_to_left > len(_LETTER.findall(text))


def _character_indexes(page: pypdfium2.PdfTextPage, text: str) -> Sequence[int]:
    """Return PDFium's index of each character: it counts in UTF-16, and also characters that are not in the text."""
    if len(text) == page.count_chars():
        return range(len(text) + 1)
    widths = (2 if character > "\uffff" else 1 for character in text)
    offsets = accumulate(widths, initial=0)
    return [raw.FPDFText_GetCharIndexFromTextIndex(page, offset) for offset in offsets]
