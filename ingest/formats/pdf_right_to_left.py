"""Letters of scripts that are written from right to left, which PDFium may have in another order."""

from __future__ import annotations

import re
from itertools import groupby, pairwise
from typing import NamedTuple

from arag.ingest.formats.pdf_glyphs import RIGHT_TO_LEFT, Box, PageText

_WORD = re.compile(r"[^\s\dA-Za-z]{2,}")  # digits and Latin letters go on from left to right


class _Glyph(NamedTuple):
    """A glyph and its letters; a ligature has several."""

    box: Box
    letters: str


def order_letters(page: PageText) -> dict[int, str]:
    """Return by their places in a page's text the letters of words that are in another order than a person writes them.

    PDFium has words of some programs in the order of their places from left to right. In other words, it has the
    letters of a ligature in the wrong order.
    """
    ordered: dict[int, str] = {}
    if not RIGHT_TO_LEFT.search(page.text):
        return ordered
    for match in _WORD.finditer(page.text):
        word = match[0]
        if not RIGHT_TO_LEFT.search(word):
            continue
        written = _as_written(_glyphs(page, match.start(), word), page)
        for place, letter in enumerate(written, match.start()):
            if letter != page.text[place]:
                ordered[place] = letter
    return ordered


def _glyphs(page: PageText, start: int, word: str) -> list[_Glyph]:
    boxes = [page.box(start + number) for number in range(len(word))]
    glyphs: list[_Glyph] = []
    for box, letters in groupby(zip(boxes, word, strict=True), key=lambda pair: pair[0]):
        glyphs.append(_Glyph(box, "".join(letter for _, letter in letters)))
    return glyphs


def _as_written(glyphs: list[_Glyph], page: PageText) -> str:
    """Return the letters of a word from right to left."""
    steps_right = 0
    for glyph, following in pairwise(glyphs):
        goes_right = (following.box.left > glyph.box.left) != page.is_mirrored
        steps_right += 1 if goes_right else -1
    if steps_right > 0:
        return "".join(glyph.letters for glyph in reversed(glyphs))
    parts: list[str] = []
    for glyph in glyphs:
        is_ligature = glyph.box.width > 0
        parts.append(glyph.letters[::-1] if is_ligature else glyph.letters)
    return "".join(parts)
