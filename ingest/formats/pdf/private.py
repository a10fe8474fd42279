"""The characters of fonts of Adobe that have codes for private use: digits in old style, small capitals."""

from __future__ import annotations

from collections.abc import Iterator
from string import ascii_lowercase, digits

_FIRST_DIGIT = 0xF730
_FIRST_CAPITAL = 0xF761
_ACCENTED_CAPITALS = 0xF700  # and the code of the small letter in Latin-1
_LATIN_1_LETTERS = "àáâãäåæçèéêëìíîïðñòóôõöøùúûüýþ"
_FIRST_RAISED = 0xF6E9
_RAISED = "abdeilmorst"
_DOTLESS_J = 0xF6BE


def _characters() -> Iterator[tuple[int, str]]:
    yield from enumerate(digits, _FIRST_DIGIT)
    yield from enumerate(ascii_lowercase, _FIRST_CAPITAL)
    yield from enumerate(_RAISED, _FIRST_RAISED)
    for letter in _LATIN_1_LETTERS:
        yield _ACCENTED_CAPITALS + ord(letter), letter
    yield _DOTLESS_J, "ȷ"


PRIVATE = {chr(code): character for code, character in _characters()}
