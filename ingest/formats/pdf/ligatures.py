"""Letters of a PDF that are joined in one glyph, such as fi, where the file does not name the glyph."""

from __future__ import annotations

import re

from arag.ingest.formats.pdf.glyphs import UNKNOWN, PageText

# The glyphs of joined letters; the likelier ones first, for fonts in which several are equally wide.
_LIGATURES = {"\ufb01": "fi", "\ufb02": "fl", "\ufb03": "ffi", "\ufb04": "ffl", "\ufb00": "ff"}
_WITH_L = {"fi": "fl", "ffi": "ffl"}  # which may be as wide
# Where fonts of TeX have these letters: PDFium gives the place if the font does not name the character.
TEX_LIGATURES = {
    "\x0b": "ff", "\x0c": "fi", "\x0e": "ffi", "\x0f": "ffl",
    "\x1b": "ff", "\x1c": "fi", "\x1d": "fl", "\x1e": "ffi",
}  # fmt: skip
"""The letters of these characters, which a text has by itself nowhere."""

# After `fl` comes a vowel in most words; `fi` comes before one in few: `field`, `modified`, `fiery`.
_AFTER_FL = re.compile(r"(?!e(?:ld|d\b|r\b|s\b|ry|rce|nd))[aeiouyäöü]")
_SAME_WIDTH = 0.02  # of the width: two glyphs of one font that differ by less are the same
_SIMILAR_WIDTH = 0.25  # of the width: letters that are joined take about as much room as two glyphs


def has_letter_beside(page: PageText, place: int) -> bool:
    """Return whether a character is in a word."""
    return page.is_letter(place - 1) or page.is_letter(place + 1)


def find_ligature(page: PageText, place: int) -> str:
    """Return the letters of a glyph that the font does not name, by its width; `UNKNOWN` if none fit."""
    if not has_letter_beside(page, place):
        return UNKNOWN
    fitting = _fit_by_glyphs(page, place)
    if not fitting:
        fitting = _fit_by_letters(page, place)
    if not fitting:
        return UNKNOWN
    likeliest = fitting[0]
    with_l = _WITH_L.get(likeliest)
    if with_l in fitting and _AFTER_FL.match(page.text, place + 1):
        return with_l
    return likeliest


def _fit_by_glyphs(page: PageText, place: int) -> list[str]:
    """Return the letters whose joined glyph in the same font is as wide as the one at a place."""
    width = page.box(place).width
    size = page.font_size(place)
    fitting: list[str] = []
    for ligature, letters in _LIGATURES.items():
        difference = abs(page.glyph_width(place, ligature, size) - width)
        if difference < _SAME_WIDTH * width:
            fitting.append(letters)
    return fitting


def _fit_by_letters(page: PageText, place: int) -> list[str]:
    """Return the letters that are together about as wide as a glyph, in the font of the letter beside it."""
    beside = place - 1 if page.is_letter(place - 1) else place + 1
    width = page.box(place).width
    size = page.font_size(place)
    f_width = page.glyph_width(beside, "f", size)
    i_width = page.glyph_width(beside, "i", size)
    if not f_width or not i_width:
        return []
    widths = {
        "ff": 2 * f_width,
        "fi": f_width + i_width,
        "ffi": 2 * f_width + i_width,
    }
    differences = {letters: abs(whole - width) for letters, whole in widths.items()}
    nearest = min(differences, key=differences.__getitem__)
    if differences[nearest] > _SIMILAR_WIDTH * width:
        return []
    if nearest in _WITH_L:
        return [nearest, _WITH_L[nearest]]
    return [nearest]
