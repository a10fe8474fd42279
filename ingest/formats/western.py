"""Tells whether a text that is not Unicode is in a language of Western Europe, by its words and letters."""

from __future__ import annotations

import re
from collections import Counter
from itertools import filterfalse

LATIN = "cp1252"  # with all letters of ISO 8859-1, and those of 8859-15 but for three

# Frequent words without other letters than those of ASCII, which languages with other encodings do not have.
_WORDS = {
    "Danish": "og det som er til af ikke den der med har kan skal eller bliver",
    "Dutch": "het een van niet dat met zijn voor deze wordt worden naar ook kan",
    "French": "les des est dans pour une qui que sur pas avec sont vous cette par peut",
    "German": "der die und das ist nicht ein eine mit von den auf werden wird sich dem",
    "Italian": "che della per una con del sono nel questo alla dei delle gli essere",
    "Portuguese": "uma para com dos das ser este esta pelo pela mais como seu ou",
    "Spanish": "los las del una para con por este esta puede como sus debe ser",
    "Swedish": "och att det som inte med den till kan eller ett har ska",
}
_LANGUAGE_OF_WORD: dict[bytes, list[str]] = {}
for _language, _words in _WORDS.items():
    for _word in _words.split():
        _LANGUAGE_OF_WORD.setdefault(_word.encode(), []).append(_language)

_ASCII_WORD = re.compile(rb"(?<![\x80-\xff])\b[A-Za-z]+\b(?![\x80-\xff])")
_OTHER_WORD = re.compile("[A-Za-z]*+[^\0-\x7f][A-Za-z\u0080-\uffff]*")
# A large letter does not stand behind a small one.
_LETTERS = re.compile("(?:[A-Za-z]{1,5}’)?(?:[A-ZÀ-ÖØ-ÞŠŽŒ]?[a-zß-öø-ÿšžœ]+|[A-ZÀ-ÖØ-ÞŠŽŒ]+)")
_SIGNS = re.compile("[\u00a0\u00ad«»“”„‘’‚…–—·•°§€£©®±×½¼¾¡¿ªº²³¹´]+")
_QUOTES = "«»“”„‘’…\u00a0\u00ad"  # and other signs that stand directly beside words
_MIN_DIFFERENT = 4
_MIN_SHARE = 0.1  # of the words in ASCII
_MAX_ODD = 0.03  # of the words beyond ASCII: a few may be of a program or of another language


def is_western(sample: bytes) -> bool:
    """Return whether most of a text is in one of these languages, and reads as words in their encoding.

    In the encodings of DOS and of old Macintosh computers, letters would read as signs or as capitals within words.

    Args:
        sample: Some of the lines that are not in ASCII.
    """
    return _has_words(sample) and _reads_as_words(sample.decode(LATIN, "replace"))


def _has_words(sample: bytes) -> bool:
    words = Counter(word.lower() for word in _ASCII_WORD.findall(sample))
    counts = Counter[str]()
    different = Counter[str]()
    for word in words.keys() & _LANGUAGE_OF_WORD.keys():
        for language in _LANGUAGE_OF_WORD[word]:
            counts[language] += words[word]
            different[language] += 1
    for language, count in counts.most_common(1):
        return different[language] >= _MIN_DIFFERENT and count >= _MIN_SHARE * words.total()
    return False


def _reads_as_words(text: str) -> bool:
    words = set(_OTHER_WORD.findall(text))
    odd = list(filterfalse(_is_word_or_sign, words))
    return len(odd) <= _MAX_ODD * len(words)


def _is_word_or_sign(word: str) -> bool:
    is_sign = _SIGNS.fullmatch(word) is not None
    return is_sign or _LETTERS.fullmatch(word.strip(_QUOTES)) is not None
