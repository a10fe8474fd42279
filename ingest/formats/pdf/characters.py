"""Corrects the characters of a PDF: those printed twice, letters joined in one glyph, accents that stand alone."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pypdfium2 import raw

from arag.ingest.formats.joining import HYPHEN  # which also stands for a glyph without a character
from arag.ingest.formats.pdf.accents import ACCENT, compose
from arag.ingest.formats.pdf.glyphs import UNKNOWN, PageText
from arag.ingest.formats.pdf.ligatures import TEX_LIGATURES, find_ligature, has_letter_beside
from arag.ingest.formats.pdf.private import PRIVATE

_SOFT_HYPHEN = "\xad"
_LINE_ENDS = {"", "\r", "\n"}  # the first is the end of the page
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_REPAIR = re.compile(
    f"[{HYPHEN}{_SOFT_HYPHEN}{''.join(TEX_LIGATURES)}]|{_LONE_SURROGATE.pattern}|{ACCENT.pattern}",
)
# PDFium has a line end in place of TeX's circle, around the letter after it.
_NAMED = {**PRIVATE, "c": "©", "R": "®"}
_NAMED_SIGN = re.compile(f"[{''.join(PRIVATE)}]|(?<=\r)[cR]")
# By their places in TeX's fonts for Western languages, which are without a name as pictures of letters.
_QUOTES = {"\x13": "«", "\x14": "»"}
_PICTURE_FONTS = {"LCIRCLE10", "LCIRCLEW10", "LINE10", "LINEW10"}  # TeX's, for parts of lines and circles
_SIGN_OF_FONT = re.compile("[\x13\x14\u2600-\u27bf]")
_TWICE = re.compile(r"(?:([^\W_])\1){2,}")  # a single pair is a double letter
_WIDE_TWICE = re.compile(r"([\U00010000-\U0010ffff])\1")
_SAME_LINE = 0.1  # times the height: letters of a line differ less in their places
_OVERPRINT = 0.5  # times the width: the same letter is printed again at most so far to the right
_MIN_HYPHEN = 0.1  # times the height: the width of a hyphen that is seen


def mend_characters(page: PageText) -> dict[int, str]:
    """Return by their places in a page's text the characters that differ from it; some are empty."""
    mended = _remove_doubles(page)
    for match in _REPAIR.finditer(page.text):
        mended.update(_mend(page, match.start()))
    for match in _NAMED_SIGN.finditer(page.text):
        mended[match.start()] = _NAMED[match[0]]
    for match in _SIGN_OF_FONT.finditer(page.text):
        font = page.font_name(match.start())
        if font in _PICTURE_FONTS:
            mended[match.start()] = ""
        elif not font:
            mended[match.start()] = _QUOTES.get(match[0], match[0])
    return mended


def _remove_doubles(page: PageText) -> dict[int, str]:
    """Return the places of characters that the page has twice at one place, with nothing in each."""
    doubles: dict[int, str] = {}
    for match in _TWICE.finditer(page.text):
        pairs = range(match.start(), match.end(), 2)
        if all(_are_overprinted(page, place) for place in pairs):
            doubles.update(dict.fromkeys(pairs, ""))
    for match in _WIDE_TWICE.finditer(page.text):
        first = match.start()
        if page.box(first) == page.box(first + 1):
            doubles[first] = ""  # PDFium has some of these twice
    return doubles


def _are_overprinted(page: PageText, place: int) -> bool:
    """Return whether two equal characters are one: a program prints a letter again, beside itself, to make it bold."""
    first = page.box(place)
    second = page.box(place + 1)
    if abs(first.bottom - second.bottom) >= _SAME_LINE * first.height:
        return False
    return 0 < second.left - first.left < _OVERPRINT * first.width


def _mend(page: PageText, place: int) -> Mapping[int, str]:
    """Return what stands for a character that may need repair, and for others that change with it."""
    character = page.text[place]
    if character == HYPHEN:
        if raw.FPDFText_IsHyphen(page.page, page.indexes[place]) == 1:
            return {}
        return {place: find_ligature(page, place)}
    if character == _SOFT_HYPHEN:
        return {place: _mend_soft_hyphen(page, place)}
    if _LONE_SURROGATE.match(character):
        return {place: UNKNOWN}
    if character in TEX_LIGATURES:
        letters = TEX_LIGATURES[character] if has_letter_beside(page, place) else ""
        return {place: letters}
    return compose(page, place)


def _mend_soft_hyphen(page: PageText, place: int) -> str:
    """Return what a person sees of a soft hyphen: fonts also have it as their only hyphen."""
    if page.character_at(place + 1) in _LINE_ENDS:
        return HYPHEN
    box = page.box(place)
    return "-" if box.width > _MIN_HYPHEN * box.height else ""
