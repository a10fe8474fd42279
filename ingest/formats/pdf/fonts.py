"""The type of the words of a page of a PDF: its size and its font."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from pypdfium2 import raw

from arag.ingest.formats.cell_kinds import has_letter
from arag.ingest.formats.pdf.bold import is_bold_font
from arag.ingest.formats.pdf.glyphs import read_font_name
from arag.ingest.formats.pdf.words import Word

_matrix = raw.FS_MATRIX()  # filled again for each line: making a new one takes longer than the call


class Type(NamedTuple):
    """The type of characters."""

    size: float  # points, to half a point
    font: str
    first_font: str  # of the first word
    first_size: float


@dataclass(frozen=True)
class Fonts:
    """The fonts of a page."""

    page: raw.FPDF_TEXTPAGE

    def type_of(self, words: Iterable[Word]) -> Type:
        """Return the smaller type of the first and the last of some words, with its font if both have the same."""
        printed = [word for word in words if not word.is_field]
        if not printed:
            return Type(0.0, "", "", 0.0)
        first = self._type(printed[0].first)
        last = self._type(printed[-1].last)
        font = first.font if first.font == last.font else ""
        return Type(min(first.size, last.size), font, first.font, first.size)

    def are_bold(self, words: Iterable[Word]) -> bool:
        """Return whether all words that have letters are bold."""
        return all(self._is_bold(word) for word in words if has_letter(word.text))

    def _is_bold(self, word: Word) -> bool:
        return not word.is_field and is_bold_font(self._type(word.first).font)

    def _type(self, character: int) -> Type:
        """Return the size and the font of a character."""
        raw.FPDFText_GetMatrix(self.page, character, _matrix)
        scale = math.hypot(_matrix.b, _matrix.d)
        size = raw.FPDFText_GetFontSize(self.page, character) * scale
        to_half_points = round(2 * size) / 2 if math.isfinite(size) else 0.0  # a damaged file may have any number
        font = read_font_name(self.page, character)
        return Type(to_half_points, font, font, to_half_points)
