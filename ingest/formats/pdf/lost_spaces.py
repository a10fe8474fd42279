"""Spaces of a PDF that PDFium does not see between words that are apart, as in files of groff."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

from arag.ingest.formats.pdf.glyphs import PageText

_AFTER_MARK = re.compile(r"(?<=[a-z]{2}[.,;:])(?=[A-Za-z])")
_IN_WORD = re.compile(r"(?<=\S)(?=[^\W\d_])")
_GAP = 0.15  # times the height of the type, between two words
_SAME_LINE = 0.1  # times the height: letters of a line differ less in their places


def add_lost_spaces(page: PageText) -> PageText:
    """Return the text of a page with a space wherever two words are apart, if marks have words apart after them."""
    after_marks = [match.start() for match in _AFTER_MARK.finditer(page.text)]
    if page.is_mirrored or not any(_begins_word(page, place) for place in after_marks):
        return page
    places = [match.start() for match in _IN_WORD.finditer(page.text)]
    return _insert_spaces(page, {place for place in places if _begins_word(page, place)})


def _begins_word(page: PageText, place: int) -> bool:
    """Return whether a character is apart from the one before it in the line."""
    before = page.box(place - 1)
    box = page.box(place)
    is_beside = abs(box.bottom - before.bottom) < _SAME_LINE * box.height
    return is_beside and _GAP * box.height < box.left - before.right < box.height


def _insert_spaces(page: PageText, places: Collection[int]) -> PageText:
    text = ""
    indexes: list[int] = []
    for place, character in enumerate(page.text):
        if place in places:
            text += " "
            indexes.append(page.indexes[place - 1])
        text += character
        indexes.append(page.indexes[place])
    return replace(page, text=text, indexes=[*indexes, page.indexes[-1]])
