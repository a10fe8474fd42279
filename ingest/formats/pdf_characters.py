"""Corrects the characters of a PDF: letters joined in one glyph, accents that stand alone, raised figures."""

from __future__ import annotations

import ctypes
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from pypdfium2 import raw

from arag.ingest.formats.joining import HYPHEN  # which also stands for a glyph without a character

UNKNOWN = "\ufffd"  # a glyph that the file does not name
_SOFT_HYPHEN = "\xad"
_LIGATURES = {"\ufb00": "ff", "\ufb01": "fi", "\ufb02": "fl", "\ufb03": "ffi", "\ufb04": "ffl"}
# Where fonts of TeX have these letters: PDFium gives the place if the font does not name the character.
_TEX_LIGATURES = {
    "\x0b": "ff", "\x0c": "fi", "\x0e": "ffi", "\x0f": "ffl",
    "\x1b": "ff", "\x1c": "fi", "\x1d": "fl", "\x1e": "ffi",
}  # fmt: skip
# After `fl` comes a vowel in most words; `fi` comes before one in few: `field`, `modified`, `fiery`.
_AFTER_FL = re.compile(r"(?!e(?:ld|d\b|r\b|s\b|ry|rce|nd))[aeiouyäöü]")

# Accents beside or above a letter, and the mark that combines with it.
_ACCENTS = {
    "`": "\u0300", "´": "\u0301", "^": "\u0302", "ˆ": "\u0302", "~": "\u0303", "˜": "\u0303", "¯": "\u0304",
    "˘": "\u0306", "˙": "\u0307", "¨": "\u0308", "˚": "\u030a", "˝": "\u030b", "ˇ": "\u030c", "¸": "\u0327",
    "˛": "\u0328",
}  # fmt: skip
_CODE = "`^~"  # these also stand for themselves
_MARKS = "\u0300-\u030c\u0327\u0328"
_ACCENT = re.compile(f"[{re.escape(''.join(_ACCENTS))}{_MARKS}]")
_FAR_OFF = 80  # characters: PDFium sorts the parts of a line by where they begin
_DOTLESS = {"ı": "i", "ȷ": "j"}
# An acute accent also stands for an apostrophe: "l´eau", "John´s".
_ELISION = re.compile(r"\b(?:[cdjlmnst]|qu)$", re.IGNORECASE)
_LONE_SURROGATES = "\ud800-\udfff"
_REPAIR = re.compile(f"[{HYPHEN}{_SOFT_HYPHEN}{''.join(_TEX_LIGATURES)}{_LONE_SURROGATES}]|{_ACCENT.pattern}")

_TWICE = re.compile(r"(?:([^\W_])\1){2,}")  # a single pair is a double letter
_WIDE_TWICE = re.compile(r"([\U00010000-\U0010ffff])\1")
_RAISED = re.compile(r"[\d*†‡§¶#+,()\[\]–−-]+|[a-z](?:,[a-z])*")
_EXPONENT_BASE = re.compile(r"(?:(?<![\w.,])\d{1,2}|(?<![^\W_])(?:[A-Za-z]|[cdkmnµμ]m|kg|ft|Hz))$")
_SIGNED = re.compile(r"[-–−+]\d+")
_NOTE = re.compile(r"[\[(]?([\da-z][\d,–−a-z-]*)[\])]?")
_LOW = 0.87  # times the height of the type beside it: the height of raised characters
_RISE = 0.15  # times that height: the least rise


class Box(NamedTuple):
    """The box of a character, which is as high as the font."""

    left: float
    right: float
    bottom: float
    top: float

    @property
    def height(self) -> float:
        """Its height."""
        return self.top - self.bottom


_NOWHERE = Box(0, 0, 0, 0)  # in place of numbers that a damaged file makes infinite
_rectangle = raw.FS_RECTF()  # filled again and again: a page has thousands of characters


def fill_box(page: raw.FPDF_TEXTPAGE, character: int) -> Box:
    """Return the box of a character."""
    raw.FPDFText_GetLooseCharBox(page, character, _rectangle)
    box = Box(_rectangle.left, _rectangle.right, _rectangle.bottom, _rectangle.top)
    return box if math.isfinite(sum(box)) else _NOWHERE


def is_turned(page: raw.FPDF_TEXTPAGE, character: int) -> bool:
    """Return whether a character is not upright."""
    angle: float = raw.FPDFText_GetCharAngle(page, character)
    return 0.1 < angle % math.tau < math.tau - 0.1


def mend_characters(page: raw.FPDF_TEXTPAGE, text: str, indexes: Sequence[int]) -> dict[int, str]:
    """Return by their places in a page's text the characters that differ from it; some are empty.

    Args:
        page: The page.
        text: Its text.
        indexes: PDFium's index of each character of the text.
    """
    mended: dict[int, str] = {}
    for match in _TWICE.finditer(text):
        pairs = range(match.start(), match.end(), 2)
        if all(_are_overprinted(page, indexes, place) for place in pairs):
            mended.update(dict.fromkeys(pairs, ""))
    for match in _WIDE_TWICE.finditer(text):
        if fill_box(page, indexes[match.start()]) == fill_box(page, indexes[match.start() + 1]):
            mended[match.start()] = ""  # PDFium has some of these twice
    for match in _REPAIR.finditer(text):
        place = match.start()
        character = match[0]
        if character == HYPHEN:
            if raw.FPDFText_IsHyphen(page, indexes[place]) != 1:
                mended[place] = _find_ligature(page, text, indexes, place)
        elif character == _SOFT_HYPHEN:
            mended[place] = _mend_soft_hyphen(page, text, indexes, place)
        elif "\ud800" <= character <= "\udfff":
            mended[place] = UNKNOWN
        elif character in _TEX_LIGATURES:
            mended[place] = _TEX_LIGATURES[character] if _has_letter_beside(text, place) else ""
        else:
            mended.update(_compose(page, text, indexes, place))
    return mended


def _mend_soft_hyphen(page: raw.FPDF_TEXTPAGE, text: str, indexes: Sequence[int], place: int) -> str:
    """Return what a person sees of a soft hyphen: fonts also have it as their only hyphen."""
    if text[place + 1 : place + 2] in {"", "\r", "\n"}:
        return HYPHEN
    box = fill_box(page, indexes[place])
    return "-" if box.right - box.left > 0.1 * box.height else ""


def _are_overprinted(page: raw.FPDF_TEXTPAGE, indexes: Sequence[int], place: int) -> bool:
    """Return whether two equal characters are one: a program prints a letter again, beside itself, to make it bold."""
    first, second = fill_box(page, indexes[place]), fill_box(page, indexes[place + 1])
    is_beside = abs(first.bottom - second.bottom) < 0.1 * first.height
    return is_beside and 0 < second.left - first.left < 0.5 * (first.right - first.left)


def _has_letter_beside(text: str, place: int) -> bool:
    return text[place - 1 : place].isalpha() or text[place + 1 : place + 2].isalpha()


# --- letters joined in one glyph ---


def _find_ligature(page: raw.FPDF_TEXTPAGE, text: str, indexes: Sequence[int], place: int) -> str:
    """Return the letters of a glyph that the font does not name, by its width."""
    if not _has_letter_beside(text, place):
        return UNKNOWN
    box = fill_box(page, indexes[place])
    width = box.right - box.left
    size = _font_size(page, indexes[place])
    fitting: list[str] = []
    for ligature, letters in _LIGATURES.items():
        if width and abs(_glyph_width(page, indexes[place], ligature, size) - width) < 0.02 * width:
            fitting.append(letters)
    if not fitting:
        beside = place - 1 if text[place - 1 : place].isalpha() else place + 1
        fitting = _fit_by_letters(page, indexes[beside], width, size)
    if {"fi", "fl"} <= set(fitting):
        return "fl" if _AFTER_FL.match(text, place + 1) else "fi"
    if {"ffi", "ffl"} <= set(fitting):
        return "ffl" if _AFTER_FL.match(text, place + 1) else "ffi"
    return fitting[0] if fitting else UNKNOWN


def _fit_by_letters(page: raw.FPDF_TEXTPAGE, character: int, width: float, size: float) -> list[str]:
    """Return the letters that are together about as wide as a glyph, in the font of another character."""
    f_width = _glyph_width(page, character, "f", size)
    i_width = _glyph_width(page, character, "i", size)
    if not f_width or not i_width:
        return []
    widths = {"ff": 2 * f_width, "fi": f_width + i_width, "ffi": 2 * f_width + i_width}
    nearest = min(widths, key=lambda letters: abs(widths[letters] - width))
    if abs(widths[nearest] - width) > 0.25 * width:
        return []
    return [nearest] if nearest == "ff" else [nearest, nearest.replace("i", "l")]


def _font_size(page: raw.FPDF_TEXTPAGE, character: int) -> float:
    matrix = raw.FS_MATRIX()
    raw.FPDFText_GetMatrix(page, character, matrix)
    size: float = raw.FPDFText_GetFontSize(page, character) * abs(matrix.a)
    return size


def _glyph_width(page: raw.FPDF_TEXTPAGE, character: int, glyph: str, size: float) -> float:
    """Return the width of a glyph in a character's font, or 0 if the font has none."""
    text_object = raw.FPDFText_GetTextObject(page, character)
    font = raw.FPDFTextObj_GetFont(text_object) if text_object else None
    width = ctypes.c_float()
    if font:
        raw.FPDFFont_GetGlyphWidth(font, ord(glyph), size, width)
    return width.value


# --- accents that stand alone ---


def _compose(page: raw.FPDF_TEXTPAGE, text: str, indexes: Sequence[int], place: int) -> Mapping[int, str]:
    """Return the letter to which an accent belongs with its accent, and nothing in the place of the accent."""
    before = _letter_place(text, place, -1)
    after = _letter_place(text, place, 1)
    target = _letter_below(page, text, indexes, place)
    if target is None:
        target = _letter_beside(text, place, before, after)
    if target is None:
        return {}
    letter = _with_accent(text[target], text[place])
    if not letter:
        return {}
    changes = {place: "", target: letter}
    between = (place + target) // 2
    if abs(place - target) == 2 and text[between] == " ":
        changes[between] = ""
    return changes


def _letter_place(text: str, place: int, step: int) -> int | None:
    """Return the place of the letter beside an accent; one space may be between them."""
    other = place + step
    if text[other : other + 1] == " " and other > 0:
        other += step
    if other >= 0 and text[other : other + 1].isalpha():
        return other
    return None


def _letter_below(page: raw.FPDF_TEXTPAGE, text: str, indexes: Sequence[int], place: int) -> int | None:
    """Return the place of the letter over which an accent is printed: beside it in the text, or farther off."""
    accent = fill_box(page, indexes[place])
    near = range(1, _FAR_OFF)
    for other in chain.from_iterable((place + distance, place - distance) for distance in near):
        if not 0 <= other < len(text) or not text[other].isalpha() or not _with_accent(text[other], text[place]):
            continue
        letter = fill_box(page, indexes[other])
        common = min(accent.right, letter.right) - max(accent.left, letter.left)
        narrower = min(accent.right - accent.left, letter.right - letter.left)
        if common > 0.5 * narrower > 0 and min(accent.top, letter.top) > max(accent.bottom, letter.bottom):
            return other
    return None


def _letter_beside(text: str, place: int, before: int | None, after: int | None) -> int | None:
    """Return the place of the letter to which an accent between letters belongs: the next one in most files."""
    accent = text[place]
    if accent in _CODE:
        return None
    if unicodedata.combining(accent):
        return before
    is_word_end = not text[place + 2 : place + 3].isalpha()
    if after == place + 1 and _with_accent(text[after], accent):
        if accent != "´":
            return after
        is_apostrophe = _ELISION.search(text, max(0, place - 3), place) or (text[after] in "sS" and is_word_end)
        return None if is_apostrophe else after
    if before == place - 1 and _with_accent(text[before], accent):
        may_be_apostrophe = accent == "´" and after is not None and text[before] not in "aeiouyAEIOUY"
        return None if may_be_apostrophe else before
    return None


def _with_accent(letter: str, accent: str) -> str:
    """Return a letter with an accent, or an empty string if there is no such letter."""
    mark = _ACCENTS.get(accent, accent)
    letter = _DOTLESS.get(letter, letter)
    composed = unicodedata.normalize("NFC", letter + mark)
    return composed if len(composed) == 1 else ""


# --- raised figures ---


def set_raised_apart(
    page: raw.FPDF_TEXTPAGE,
    text: str,
    indexes: Sequence[int],
    places: range,
) -> dict[int, str]:
    """Return the first and last raised characters of a word with marks: `10^6` for a power, `1880 [3]` for a note.

    Args:
        page: The page.
        text: Its text.
        indexes: PDFium's index of each character of the text.
        places: The places of the word's characters in the text.
    """
    if is_turned(page, indexes[places[0]]):
        return {}
    places_with_type = [place for place in places if text[place] not in "\r\n"]
    boxes = [fill_box(page, indexes[place]) for place in places_with_type]
    base = max(boxes, key=lambda box: box.height)
    changes: dict[int, str] = {}
    for start, end in _raised_runs(boxes, base):
        run = [places_with_type[number] for number in range(start, end)]
        before = "".join(text[place] for place in places_with_type[:start])
        after = text[places_with_type[end]] if end < len(places_with_type) else ""
        raised = "".join(text[place] for place in run)
        marked = _mark_raised(before, raised, after)
        if marked != raised:
            changes.update(dict.fromkeys(run, ""))
            changes[run[0]] = marked
    return changes


def _raised_runs(boxes: Sequence[Box], base: Box) -> Iterator[tuple[int, int]]:
    """Yield start and end of each run of raised characters."""
    start: int | None = None
    for number, box in enumerate(boxes):
        is_raised = box.height < _LOW * base.height and box.bottom - base.bottom > _RISE * base.height
        if is_raised and start is None:
            start = number
        if not is_raised and start is not None:
            yield start, number
            start = None
    if start is not None:
        yield start, len(boxes)


def _mark_raised(before: str, raised: str, after: str) -> str:
    if not _RAISED.fullmatch(raised) or (raised[0].isalpha() and (after.isalnum() or not before)):
        return raised  # such as th in 4th
    if before[-1:].isdigit() and after in {"/", "⁄"}:
        return f" {raised}"  # such as 3 1/2
    if _SIGNED.fullmatch(raised) or _EXPONENT_BASE.search(before):
        return f"^{raised}"
    note = _NOTE.fullmatch(raised)
    if not note:
        return raised
    mark = f"[{note[1]}]"
    if before:
        mark = f" {mark}"
    return f"{mark} " if after.isalnum() else mark
