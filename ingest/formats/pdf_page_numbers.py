"""Reads the number of a page in a line at its top or bottom."""

from __future__ import annotations

import re
from typing import NamedTuple

_WORD = r"(?:(?:page|pag|pg|p|seite|s|страница|стр|página|pagina|sida|side|strona|第)\.?)"
_ROMAN = r"(?=[mdclxvi])m{0,3}(?:cm|cd|d?c{0,3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})"
_ALONE = re.compile(
    rf"(?=.{{1,40}}$)\W*{_WORD}?\W*(?:(\d{{1,5}})|({_ROMAN}))\W*[页頁ページ]*(?:\W*(?:of|von|de|/|из|共)?\W*\d+)?\W*[页頁]?\W*",
    re.IGNORECASE,
)
_AT_END = re.compile(
    rf"(.*\S)(?:\s*[|·•–—/-]\s*(?:{_WORD}\s*)?|[\s,]+(?:page|seite|стр\.?)\s*)(\d{{1,5}})(?: of \d+)?$",
    re.IGNORECASE,
)
_AT_START = re.compile(
    r"(page|seite)?\s*(\d{1,5})(?: (?:of|von) \d+)?(\s*[|·•–—/-]\s*|\s+)(\S.*)",
    re.IGNORECASE,
)
_ROMAN_VALUES = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100, "d": 500, "m": 1000}


class PageNumber(NamedTuple):
    """What may be the number of a page.

    Attributes:
        value: The number.
        text: What is beside it.
        is_certain: Whether it is by itself or set apart from the text.
    """

    value: int
    text: str
    is_certain: bool


def find_page_numbers(text: str) -> list[PageNumber]:
    """Return what may be the page's number in a line, and the text beside it."""
    alone = _ALONE.fullmatch(text)
    if alone:
        digits, numeral = alone.groups()
        value = int(digits) if digits else _roman_value(numeral.lower())
        return [PageNumber(value, text="", is_certain=True)]
    numbers: list[PageNumber] = []
    at_end = _AT_END.fullmatch(text)
    if at_end:
        before, digits = at_end.groups()
        numbers.append(PageNumber(int(digits), before, is_certain=True))
    at_start = _AT_START.fullmatch(text)
    if at_start:
        word, digits, between, after = at_start.groups()
        is_certain = bool(word or between.strip())
        numbers.append(PageNumber(int(digits), after, is_certain))
    return numbers


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
