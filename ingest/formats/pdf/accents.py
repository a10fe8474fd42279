"""Accents of a PDF that are characters of their own: each is put on its letter."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

from arag.ingest.formats.pdf.glyphs import Box, PageText

# Accents beside or above a letter, and the mark that combines with it.
_ACCENTS = {
    "`": "\u0300", "´": "\u0301", "^": "\u0302", "ˆ": "\u0302", "~": "\u0303", "˜": "\u0303", "¯": "\u0304",
    "˘": "\u0306", "˙": "\u0307", "¨": "\u0308", "˚": "\u030a", "˝": "\u030b", "ˇ": "\u030c", "¸": "\u0327",
    "˛": "\u0328",
}  # fmt: skip
_MARKS = "\u0300-\u030c\u0327\u0328"
ACCENT = re.compile(f"[{re.escape(''.join(_ACCENTS))}{_MARKS}]")
"""A character that may be the accent of a letter beside it."""

_CODE = "`^~"  # these also stand for themselves
_FAR_OFF = 80  # characters: PDFium sorts the parts of a line by where they begin
_MIN_COMMON_WIDTH = 0.5  # of the narrower one: how much of it an accent and its letter share
_INSIDE_WORD = 0.125  # times the height: a wider gap is between two words
_DOTLESS = {"ı": "i", "ȷ": "j"}
# An acute accent also stands for an apostrophe: "l´eau", "John´s".
_APOSTROPHE = re.compile(r"(?:(?<=\b[cdjlmnst])|(?<=\bqu))´|´(?=s(?![^\W\d_]))", re.IGNORECASE)
# So does one between a consonant and a letter that has no accent in any language: "rock ´n´ roll".
_APOSTROPHE_BETWEEN = re.compile(r"(?<![aeiouy])´(?= ?[^\W\d_])", re.IGNORECASE)


def compose(page: PageText, place: int) -> Mapping[int, str]:
    """Return the letter to which an accent belongs with its accent, and nothing in the place of the accent.

    Args:
        page: The text of the page.
        place: The place of the accent.

    Returns:
        Characters that differ from the text, by their places; none if the accent stands for itself.
    """
    target = _letter_below(page, place)
    if target is None:
        target = _letter_beside(page, place)
    if target is None:
        return {}
    changes = {
        place: "",
        target: _with_accent(page.text[target], page.text[place]),
    }
    between = (place + target) // 2
    if abs(place - target) == 2 and page.text[between] == " ":
        changes[between] = ""
    for space, other in ((place + 1, place + 2), (place - 1, place - 2)):
        if page.character_at(space) == " " and _is_beside(page, target, other):
            changes[space] = ""  # PDFium's, as if the accent were the end of a word
    changes.update(_close_gap(page, place))
    return changes


def _close_gap(page: PageText, place: int) -> dict[int, str]:
    """Return the spaces around an accent, with nothing in each, if it is far from its letter, within another word."""
    before = place - 1
    before -= page.character_at(before) == " "
    after = place + 1
    after += page.character_at(after) == " "
    is_in_word = _is_beside(page, after, before)
    return dict.fromkeys(range(before + 1, after), "") if is_in_word else {}


def _is_beside(page: PageText, target: int, place: int) -> bool:
    """Return whether a letter is so near to another one that no space is between them."""
    if place < 0 or target == place or not page.is_letter(place):
        return False
    letter = page.box(target)
    other = page.box(place)
    common_height = min(letter.top, other.top) - max(letter.bottom, other.bottom)
    gap = max(other.left - letter.right, letter.left - other.right)
    return common_height > 0 and abs(gap) < _INSIDE_WORD * letter.height


def _letter_below(page: PageText, place: int) -> int | None:
    """Return the place of the letter over which an accent is printed: beside it in the text, or farther off."""
    accent = page.text[place]
    accent_box = page.box(place)
    for other in _places_around(place, len(page.text)):
        if _fits(page, other, accent) and _overlap(accent_box, page.box(other)):
            return other
    return None


def _places_around(place: int, length: int) -> list[int]:
    """Return the places in a text that are not far off from another, the nearest ones first."""
    after = range(place + 1, min(place + _FAR_OFF, length))
    before = range(max(place - _FAR_OFF + 1, 0), place)
    return sorted([*after, *before], key=lambda other: abs(other - place))


def _overlap(accent: Box, letter: Box) -> bool:
    """Return whether an accent is printed over a letter, whose box is as high as the font."""
    common_height = min(accent.top, letter.top) - max(accent.bottom, letter.bottom)
    if common_height <= 0:
        return False
    common_width = min(accent.right, letter.right) - max(accent.left, letter.left)
    return common_width > _MIN_COMMON_WIDTH * min(accent.width, letter.width)


def _letter_beside(page: PageText, place: int) -> int | None:
    """Return the place of the letter to which an accent between letters belongs: the next one in most files."""
    accent = page.text[place]
    if accent in _CODE:
        return None
    if unicodedata.combining(accent):
        return _letter_before_mark(page, place)
    if _fits(page, place + 1, accent):
        is_apostrophe = _APOSTROPHE.match(page.text, place)
        return None if is_apostrophe else place + 1
    if _fits(page, place - 1, accent):
        is_apostrophe = _APOSTROPHE_BETWEEN.match(page.text, place)
        return None if is_apostrophe else place - 1
    return None


def _letter_before_mark(page: PageText, place: int) -> int | None:
    """Return the place of the letter before a mark that combines with it; one space may be between them."""
    before = place - 1
    if page.character_at(before) == " ":
        before -= 1
    return before if _fits(page, before, page.text[place]) else None


def _fits(page: PageText, place: int, accent: str) -> bool:
    """Return whether there is a letter at a place that may have an accent."""
    if not page.is_letter(place):
        return False
    return len(_with_accent(page.text[place], accent)) == 1


def _with_accent(letter: str, accent: str) -> str:
    """Return a letter with an accent: one character, or two if there is no such letter."""
    mark = _ACCENTS.get(accent, accent)
    letter = _DOTLESS.get(letter, letter)
    return unicodedata.normalize("NFC", letter + mark)
