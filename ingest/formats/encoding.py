"""Guesses the encoding of a text that is not Unicode, and refuses to guess if there is any doubt."""

from __future__ import annotations

import re
from io import BytesIO
from itertools import islice
from typing import TYPE_CHECKING

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


def guess_encoding(data: bytes) -> str:
    """Return the encoding that gives a text in a known language if each other one gives a worse text; else nothing."""
    from charset_normalizer import from_bytes

    matches = from_bytes(_sample(data))
    best = matches.best()
    if best is None or not _reads_well(best) or _has_rival(best, matches):
        return ""
    if "cp1252" in best.could_be_from_charset:
        return "cp1252"
    return best.encoding


def _sample(data: bytes) -> bytes:
    """Return the first lines that tell anything about the encoding."""
    lines = (line for line in BytesIO(data) if not line.isascii() and len(line) < _MAX_LINE_BYTES)
    return b"".join(islice(lines, _SAMPLE_LINES))


def _reads_well(match: CharsetMatch) -> bool:
    if match.chaos > _MAX_CHAOS:
        return False
    text = str(match)
    if _HALF_WIDTH_KANA.search(text):  # rare in texts, and Cyrillic looks like this in Shift-JIS
        return False
    return match.coherence >= _MIN_COHERENCE or _is_japanese(text)


def _is_japanese(text: str) -> bool:
    beyond_ascii = sum(not character.isascii() for character in text)
    return len(_KANA.findall(text)) > _MIN_KANA * beyond_ascii


def _has_rival(best: CharsetMatch, matches: CharsetMatches) -> bool:
    """Return whether another encoding gives another text that is about as good."""
    limit = best.chaos + _MIN_CHAOS_OF_OTHERS
    good_texts = {str(match) for match in matches if match.chaos < limit}
    return good_texts != {str(best)}
