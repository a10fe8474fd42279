"""Reads the number of a page in a line at its top or bottom."""

from __future__ import annotations

import re
from typing import NamedTuple

_NAMES = r"(?:page|pag|pg|pág|seite|страница|стр|página|pagina|sida|side|strona|strana|sivu|第)"
_WORD = rf"(?:(?:{_NAMES}|p|s)\.?)"
_OF = r"(?:of|von|de|di|sur|van|av|af|ze?|из|/|共)"
_ROMAN = r"(?=[mdclxvi])m{0,3}(?:cm|cd|d?c{0,3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})"
_ALONE = re.compile(
    rf"(?=.{{1,40}}$)\W*{_WORD}?\W*(?:(\d{{1,5}})|({_ROMAN}))\W*[页頁ページ]*(?:\W*{_OF}?\W*\d+)?\W*[页頁]?\W*",
    re.IGNORECASE,
)
_MARK = r"[|·•–—/-]"
_TOTAL = rf"(?:\s*[页頁]?\W*{_OF}\s*\d+)?\s*[页頁]?"
_AT_END = (
    re.compile(rf"(.*?)(?:(?:\s|,|[\[(]|{_MARK})+{_NAMES}|\s*第)\.?\s*(\d{{1,5}}){_TOTAL}[\])]?", re.IGNORECASE),
    re.compile(rf"(.*\S)(?:\s*{_MARK}\s*|\s+)(?:{_WORD}\s*)?(\d{{1,5}})\s*/\s*\d{{1,5}}", re.IGNORECASE),
    re.compile(rf"(.*\S)\s*{_MARK}\s*(?:{_WORD}\s*)?(\d{{1,5}}){_TOTAL}", re.IGNORECASE),
)
_AT_START = re.compile(rf"({_NAMES})?\.?\s*(\d{{1,5}}){_TOTAL}(\s*{_MARK}\s*|\s+)(\S.*)", re.IGNORECASE)
# Between the two other parts of a foot: between marks, or with its name and the number of all pages.
_IN_MIDDLE = (
    re.compile(rf"(.*\S)\s+{_MARK}\W*(?:{_WORD}\s*)?(\d{{1,5}}){_TOTAL}\W*{_MARK}\s+(\S.*)", re.IGNORECASE),
    re.compile(rf"(.*?\S)[\s|]+{_NAMES}\.?\s*(\d{{1,5}})\s*{_OF}\s*\d+[\s|]+(\S.*)", re.IGNORECASE),
)
_ROMAN_AT_END = re.compile(rf"(.*\S) +({_ROMAN})")
_AFTER_WORDS = re.compile(r"(\S+ .*\S) +(\d{1,5})")
_MAX_LINE = 500  # characters: the patterns are slow on longer lines, which are no heads or feet
_ROMAN_VALUES = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100, "d": 500, "m": 1000}


class PageNumber(NamedTuple):
    """What may be the number of a page.

    Attributes:
        value: The number.
        text: What is beside it.
        is_certain: Whether it is by itself or set apart from the text.
        is_roman: Whether it is a Roman numeral, as in the front matter of books.
    """

    value: int
    text: str
    is_certain: bool
    is_roman: bool = False


def find_page_numbers(text: str) -> list[PageNumber]:
    """Return what may be the page's number in a line, and the text beside it."""
    if len(text) > _MAX_LINE:
        return []
    alone = _ALONE.fullmatch(text)
    if alone:
        digits, numeral = alone.groups()
        if digits:
            return [PageNumber(int(digits), text="", is_certain=True)]
        return [PageNumber(_roman_value(numeral.lower()), text="", is_certain=True, is_roman=True)]
    numbers: list[PageNumber] = []
    for pattern in _AT_END:
        at_end = pattern.fullmatch(text)
        if at_end:
            before, digits = at_end.groups()
            numbers.append(PageNumber(int(digits), before, is_certain=True))
    for pattern in _IN_MIDDLE:
        in_middle = pattern.fullmatch(text)
        if in_middle:
            before, digits, after = in_middle.groups()
            numbers.append(PageNumber(int(digits), f"{before} {after}", is_certain=True))
    at_start = _AT_START.fullmatch(text)
    if at_start:
        word, digits, between, after = at_start.groups()
        is_certain = bool(word or between.strip())
        numbers.append(PageNumber(int(digits), after, is_certain))
    roman = _ROMAN_AT_END.fullmatch(text)
    if roman:
        before, numeral = roman.groups()
        numbers.append(PageNumber(_roman_value(numeral), before, is_certain=False, is_roman=True))
    return numbers


def find_number_after_words(text: str) -> list[PageNumber]:
    """Return the number after two words or more that no mark sets apart, as feet of journals have it.

    One word may be the name of what has the number, such as a figure.
    """
    match = _AFTER_WORDS.fullmatch(text)
    if match is None:
        return []
    before, digits = match.groups()
    return [PageNumber(int(digits), before, is_certain=False)]


def _roman_value(numeral: str) -> int:
    value = 0
    highest = 0
    for digit in reversed(numeral):
        amount = _ROMAN_VALUES[digit]
        if amount < highest:
            value -= amount
        else:
            value += amount
            highest = amount
    return value
