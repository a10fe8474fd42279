"""Words, as the full-text tables store them: in lower case, Latin letters without diacritics."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import chain
from string import ascii_lowercase

from arag.retrieval.text import is_east_asian

FUNCTION_WORDS = frozenset("a an and at by de for from in la of on or the to with".split())
MAX_CHARACTERS = 100  # of a keyword: in a longer one, nobody misspells a word or means all of them
_WORD = re.compile(r"[^\W_]+")


def find_words(text: str) -> list[str]:
    """Return a text's words as the corpus's words are stored: in lower case, Latin letters without diacritics."""
    lowered = unicodedata.normalize("NFC", text.lower()).replace("ς", "σ")
    return _WORD.findall("".join(map(_drop_diacritics, lowered)))


def _drop_diacritics(character: str) -> str:
    letter = unicodedata.normalize("NFD", character)[0]
    return letter if letter in ascii_lowercase else character


def telling_words(keyword: str) -> list[str]:
    """Return the words of a keyword of several words, as the corpus's words are stored.

    Function words and single letters tell nothing. There are none of an East Asian keyword, which is looked for by its
    characters, and of one with a number or a date in pieces, such as 83.0%: they say nothing apart from each other.
    """
    parts = [find_words(part) for part in keyword.split()]
    in_pieces = any(len(part) > 1 and any(map(str.isdecimal, part)) for part in parts)
    if is_east_asian(keyword) or len(keyword) > MAX_CHARACTERS or in_pieces:
        return []
    told = [[word for word in part if len(word) > 1 and word not in FUNCTION_WORDS] for part in parts]
    return list(dict.fromkeys(chain.from_iterable(told))) if sum(map(bool, told)) > 1 else []


def place_words(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the words of a text as the corpus's words are stored, and where each begins and ends."""
    for match in _WORD.finditer(unicodedata.normalize("NFC", text)):
        for word in find_words(match[0]):
            yield word, *match.span()
