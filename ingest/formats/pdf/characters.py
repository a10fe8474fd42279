"""Corrects the characters of a PDF: those printed twice, letters joined in one glyph, accents that stand alone."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pypdfium2 import raw

from arag.ingest.formats.joining import HYPHEN  # which also stands for a glyph without a character
from arag.ingest.formats.pdf.accents import ACCENT, compose
from arag.ingest.formats.pdf.dingbats import find_letters
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
_DINGBATS = map(chr, range(0x2600, 0x27C0))
_PICTURES = dict.fromkeys(_DINGBATS, "")
# By the names of fonts. Those for Western languages are without a name as pictures of letters: PDFium gives the places
# of their signs. Others of TeX have parts of lines and circles.
_SIGNS = {
    "": {"\x10": "“", "\x11": "”", "\x12": "„", "\x13": "«", "\x14": "»", "\x15": "–", "\x16": "—", "\x88": "•"},
    "CMEX10": {"\x10": "(", "\x11": ")", "\x12": "(", "\x13": ")", "\x1a": "{"},
    "LCIRCLE10": _PICTURES,
    "LCIRCLEW10": _PICTURES,
    "LINE10": _PICTURES,
    "LINEW10": _PICTURES,
}
_SIGN_OF_FONT = re.compile(r"[\x10-\x16\x1a\u2600-\u27bf]|(?<!\S)\x88(?=\s)")
# A closing quotation mark that is printed lower is an opening one: PDFium has a line end after it.
_MAY_BE_LOW = re.compile(r"”\r\n(?=[^\s\d])")
# The logos of XeTeX and XeLaTeX: PDFium has the first E, which is mirrored, after the letter on its right.
_LOGO = re.compile(r"\bX( TE(?=EX\b)| LE\s*(?=\STEX\b))")
_TWICE = re.compile(r"(?:([^\W_])\1){2,}")  # a single pair is a double letter
_WIDE_TWICE = re.compile(r"([\U00010000-\U0010ffff])\1")
_SAME_LINE = 0.1  # times the height: letters of a line differ less in their places
_OVERPRINT = 0.5  # times the width: the same letter is printed again at most so far to the right
_DROP = 0.5  # times the height: how far below its usual place a quotation mark is low; notes are raised less
_MIN_HYPHEN = 0.1  # times the height: the width of a hyphen that is seen


def mend_characters(page: PageText) -> dict[int, str]:
    """Return by their places in a page's text the characters that differ from it; some are empty."""
    mended = _remove_doubles(page)
    mended.update(find_letters(page))
    for match in _REPAIR.finditer(page.text):
        mended.update(_mend(page, match.start()))
    for match in _NAMED_SIGN.finditer(page.text):
        mended[match.start()] = _NAMED[match[0]]
    for match in _SIGN_OF_FONT.finditer(page.text):
        font = page.font_name(match.start())
        signs = _SIGNS.get(font, {})
        if match[0] in signs:
            mended[match.start()] = signs[match[0]]
    for match in _MAY_BE_LOW.finditer(page.text):
        mended.update(_lower_quote(page, match.start(), match.end()))
    for match in _LOGO.finditer(page.text):
        mended.update(_order_logo(match))
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


def _lower_quote(page: PageText, place: int, following: int) -> dict[int, str]:
    """Return an opening quotation mark in place of a closing one that is low before a word, and of the line's end."""
    quote = page.box(place)
    drop = page.baseline(following) - page.baseline(place)
    gap = abs(page.box(following).left - quote.right)
    is_low = _DROP * quote.height < drop < quote.height - gap
    return {place: "„", place + 1: "", place + 2: ""} if is_low else {}


def _order_logo(logo: re.Match[str]) -> dict[int, str]:
    """Return the letters of a logo in their order, and nothing in the places of spaces between them."""
    start, end = logo.span(1)
    letter = start + 1
    return {
        **dict.fromkeys(range(start, end), ""),
        letter: "E" + logo[1][1],
    }


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
