"""Guesses the encoding of a text that is not Unicode, and refuses to guess if there is any doubt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BytesIO
from typing import TYPE_CHECKING

from arag.ingest.formats.western import LATIN, is_western

if TYPE_CHECKING:
    from charset_normalizer import CharsetMatch, CharsetMatches

# The sample: enough lines to tell languages apart, few and short enough to take a fraction of a second.
_SAMPLE_LINES = 500
_MAX_LINE_BYTES = 10_000
# charset-normalizer's measures of a text, from 0 to 1. Chaos: the share of characters that are seldom neighbours.
# Coherence: how far the letters are as frequent as in a known language. Stricter values leave more files unread; looser
# ones read more files as gibberish.
_MAX_CHAOS = 0.1
_MIN_COHERENCE = 0.2
_MIN_CHAOS_OF_OTHERS = 0.05  # more than the best match has
_MIN_KANA = 0.3  # share of the characters beyond ASCII: of Japanese, charset-normalizer knows no frequent letters

_KANA = re.compile("[\u3041-\u30fa]")
_HALF_WIDTH_KANA = re.compile("[\uff61-\uff9f]")

# All Latin encodings of Windows and ISO have the same bytes for these letters, so it does not matter which one it is.
# Other bytes are `è` in one encoding and `č` in another. In Mac OS Roman and in encodings of DOS, nearly all of these
# bytes are signs or capitals, which do not stand among small letters. `É` is left out, since it is `…` in Mac OS Roman,
# and `Ö` among capitals, since it is `Í` in DOS.
# A soft hyphen divides a word at the end of a line, in printed manual pages.
_SHARED_WORD = re.compile("[A-ZÄÖÜ]?[a-zäéóöüß]+\u00ad?|[A-ZÄÜ]+")
_SHARED_SIGNS = frozenset("€–§°\u00a0")  # that stand by themselves
# The look back keeps the search linear: a match begins only where a word begins.
_WORD_BEYOND_ASCII = re.compile(rb"(?<![A-Za-z\x80-\xff])[A-Za-z]*+[\x80-\xff][A-Za-z\x80-\xff]*")
_MIN_ASCII_LETTERS = 2  # of a word: one letter beside another one may be a formula, such as Kα
# Two bytes together may be a character of Chinese or Korean. At the end of a word may be a sign of another encoding.
_DOUBTFUL = re.compile("[^\0-\x7f]{2}|[^\0-\x7f\u00ad]$")


def guess_encoding(data: bytes) -> str:
    """Return the encoding that gives a text in a known language if each other one gives a worse text; else nothing."""
    from charset_normalizer import from_bytes

    if _has_only_shared_letters(data):
        return LATIN
    sample = _sample(data)
    if is_western(sample):
        return LATIN
    matches = from_bytes(sample)
    best = matches.best()
    if best is None or not _reads_well(best) or _has_rival(best, matches):
        return ""
    if LATIN in best.could_be_from_charset:
        return LATIN
    return best.encoding


# --- short texts ---


def _has_only_shared_letters(data: bytes) -> bool:
    """Return whether all letters beyond ASCII are ones that the Latin encodings share, in words of Latin letters."""
    certain = 0
    doubtful = 0
    for word in _words_beyond_ascii(data):
        if word in _SHARED_SIGNS:
            continue
        if not _is_shared_word(word):
            return False
        if _DOUBTFUL.search(word):
            doubtful += 1
        else:
            certain += 1
    return certain > doubtful


def _words_beyond_ascii(data: bytes) -> Iterator[str]:
    """Yield each word once."""
    found: set[bytes] = set()
    for line in BytesIO(data):
        if line.isascii():
            continue
        new = set(_WORD_BEYOND_ASCII.findall(line)) - found
        found |= new
        for word in sorted(new):
            yield word.decode(LATIN, "replace")


def _is_shared_word(word: str) -> bool:
    ascii_letters = len(word.encode("ascii", "ignore"))
    return ascii_letters >= _MIN_ASCII_LETTERS and _SHARED_WORD.fullmatch(word) is not None


# --- longer texts ---


def _sample(data: bytes) -> bytes:
    """Return the first lines that tell anything about the encoding."""
    telling: list[bytes] = []
    for line in BytesIO(data):
        is_short = len(line) < _MAX_LINE_BYTES
        if is_short and not line.isascii():
            telling.append(line)
        if len(telling) == _SAMPLE_LINES:
            break
    return b"".join(telling)


def _reads_well(match: CharsetMatch) -> bool:
    if match.chaos > _MAX_CHAOS:
        return False
    text = str(match)
    if _HALF_WIDTH_KANA.search(text):  # rare in texts, and Cyrillic looks like this in Shift-JIS
        return False
    return match.coherence >= _MIN_COHERENCE or _is_japanese(text)


def _is_japanese(text: str) -> bool:
    ascii_characters = len(text.encode("ascii", "ignore"))
    beyond_ascii = len(text) - ascii_characters
    return len(_KANA.findall(text)) > _MIN_KANA * beyond_ascii


def _has_rival(best: CharsetMatch, matches: CharsetMatches) -> bool:
    """Return whether another encoding gives another text that is about as good."""
    limit = best.chaos + _MIN_CHAOS_OF_OTHERS
    good_texts: set[str] = set()
    for match in matches:
        if match.chaos < limit:
            good_texts.add(str(match))
    return good_texts != {str(best)}
