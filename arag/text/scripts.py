"""The scripts that a text is written in, and whether they put spaces between words.

The ranges are for character classes of regular expressions: `f"[{EAST_ASIAN}]"`.
"""

from __future__ import annotations

import re

HIRAGANA = "\u3041-\u309f"
KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # the last range has the half-width forms
HAN = "\u3005-\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
BOPOMOFO = "\u3105-\u312f\u31a0-\u31bf"
HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7fb\uffa0-\uffdc"  # the last range has the half-width forms
THAI = "\u0e01-\u0e7f"
LAO = "\u0e81-\u0eff"
BURMESE = "\u1000-\u109f\ua9e0-\ua9fe\uaa60-\uaa7f"
KHMER = "\u1780-\u17ff"

CHINESE_OR_JAPANESE = HIRAGANA + KATAKANA + HAN + BOPOMOFO
UNSPACED = CHINESE_OR_JAPANESE + THAI + LAO + BURMESE + KHMER  # no spaces between words
EAST_ASIAN = CHINESE_OR_JAPANESE + HANGUL  # Korean has spaces, but joins particles to its words

# Letters, digits and combining marks of scripts with spaces between words: beside each other, they make one word.
# Punctuation between them is left out, such as the Arabic comma and the Indian full stop.
SPACED = (
    "0-9A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u036f\u1d00-\u1eff"  # Latin, with accents that combine
    "\u0370-\u037d\u037f-\u0386\u0388-\u052f\u1c80-\u1c8a\u1f00-\u1fff"  # Greek, Cyrillic
    "\uff10-\uff19\uff21-\uff3a\uff41-\uff5a"  # the full-width forms of digits and Latin letters
    "\u0531-\u0559\u0560-\u0588"  # Armenian
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7-\u05f4"  # Hebrew
    "\u0610-\u061a\u0620-\u0669\u066e-\u06d3\u06d5-\u06ff\u0750-\u077f\u0870-\u08ff"  # Arabic
    "\u0710-\u074f\u0780-\u07b1\u07c0-\u07f5"  # Syriac, Thaana, N'Ko
    "\u0900-\u0963\u0966-\u096f\u0971-\u0df3"  # Devanagari and the other scripts of India, Sinhala
    "\u10a0-\u10fa\u10fc-\u10ff\u1c90-\u1cbf\u1200-\u135f\u1369-\u139f"  # Georgian, Ethiopic
)

# The first character of the blocks of East Asian scripts and their punctuation, for a test that costs one comparison.
FIRST_EAST_ASIAN = "\u2e80"

_LETTER = re.compile(r"[^\W\d_]")
OTHER_LETTER = re.compile(r"[^\W\d_\x00-\u02ff\u1e00-\u1eff]")  # a letter that is not Latin
_EAST_ASIAN_CHARACTER = re.compile(f"[{EAST_ASIAN}]")
_SPACED_CHARACTER = re.compile(f"[{SPACED}]")


def is_latin(text: str) -> bool:
    """Return whether at least half of a text's letters are Latin."""
    others = len(OTHER_LETTER.findall(text))
    letters = len(_LETTER.findall(text))
    return 2 * others <= letters


def is_east_asian(text: str) -> bool:
    """Return whether a text has Chinese, Japanese or Korean characters."""
    return _EAST_ASIAN_CHARACTER.search(text) is not None


def makes_words(character: str) -> bool:
    """Return whether a character makes one word with the letters beside it: not in scripts without spaces."""
    return _SPACED_CHARACTER.match(character) is not None
