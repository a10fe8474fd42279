"""Letters of scripts that are written from right to left, which PDFium may have in another order."""

from __future__ import annotations

import re
from itertools import groupby

from arag.ingest.formats.pdf.glyphs import RIGHT_TO_LEFT, PageText

_NEITHER = r"[^\s\dA-Za-z]"  # digits and Latin letters go on from left to right
_WORD = re.compile(rf"{_NEITHER}{{2,}}")


def order_letters(page: PageText) -> dict[int, str]:
    """Return the letters of words from right to left, in the order of writing, by their places in a page's text.

    PDFium orders the letters of some programs from left to right. For other programs, only the letters of each ligature
    are in the wrong order.
    """
    ordered: dict[int, str] = {}
    if not RIGHT_TO_LEFT.search(page.text):
        return ordered
    for match in _WORD.finditer(page.text):
        if not RIGHT_TO_LEFT.search(match[0][:-1]):
            continue
        places = range(match.start(), match.end())
        ordered.update(zip(places, _as_written(page, places), strict=True))
    return ordered


def _as_written(page: PageText, places: range) -> str:
    """Return the letters of a word; those of a ligature have one box."""
    glyphs: list[str] = []
    lefts: list[float] = []
    for box, in_glyph in groupby(places, key=page.box):
        letters = "".join(map(page.text.__getitem__, in_glyph))
        has_place = box.width > 0
        glyphs.append(letters[::-1] if has_place else letters)
        lefts.append(box.left)
    written = "".join(glyphs)
    if len(glyphs) == 1:
        return written
    goes_right = lefts[0] < lefts[-1]
    return written if goes_right == page.is_mirrored else written[::-1]
