"""The scripts that a text is written in, and whether they put spaces between words.

The ranges are for character classes of regular expressions: `f"[{EAST_ASIAN}]"`.
"""

from __future__ import annotations

import re

HIRAGANA = "\u3041-\u309f"
KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff\uff66-\uff9f"  # the last range is the half-width forms
HAN = "\u3005-\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
HANGUL = "\uac00-\ud7a3"

CHINESE_OR_JAPANESE = HIRAGANA + KATAKANA + HAN  # no spaces between words
EAST_ASIAN = CHINESE_OR_JAPANESE + HANGUL  # Korean has spaces, but joins particles to its words

# The first character of the blocks of East Asian scripts and their punctuation, for a test that costs one comparison.
FIRST_EAST_ASIAN = "\u2e80"

SAMPLE_CHARACTERS = 500  # the start of a document, which is enough to see its script

_LETTER = re.compile(r"[^\W\d_]")
OTHER_LETTER = re.compile(r"[^\W\d_\x00-\u02ff\u1e00-\u1eff]")  # a letter that is not Latin
_EAST_ASIAN_CHARACTER = re.compile(f"[{EAST_ASIAN}]")


def is_latin(text: str) -> bool:
    """Return whether at least half of a text's letters are Latin."""
    others = len(OTHER_LETTER.findall(text))
    letters = len(_LETTER.findall(text))
    return 2 * others <= letters


def is_east_asian(text: str) -> bool:
    """Return whether a text has Chinese, Japanese or Korean characters."""
    return _EAST_ASIAN_CHARACTER.search(text) is not None
