r"""The words of a text as the word index has them: runs of characters without white space or punctuation.

They are at least as long as any other kind of word: their characters are those of Python's `\w`, of RE2's `\p{L}`,
`\p{M}` and `\p{N}`, and all others that make a word with the letters beside them (`arag.text.scripts.SPACED`). So what
is inside a word, and what is beside it there, can be told without its text. A run of scripts without spaces between
words is left out: it may be a whole clause.
"""

from __future__ import annotations

import re

from arag.text.normalise import lower
from arag.text.scripts import UNSPACED

SEPARATOR = "\0"  # between lines: no text has it

# What is in no word.
_BREAKS = (
    "\\x00-/:-@\\[-\\^`{-\u00a9\u00ab-\u00b1\u00b4\u00b6-\u00b8\u00bb\u00bf\u00d7\u00f7"  # ASCII and Latin 1
    "\u037e\u0387\u0589\u060c\u061b\u061f\u06d4\u0964\u0965\u1680\u2000-\u206f\u20a0-\u20c0\u2190-\u245f\u2500-\u2775"
    "\u3000-\u3004\u3008-\u3020\u3030\uff01-\uff0f\uff1a-\uff20\uff3b-\uff3e\uff40\uff5b-\uff65"
)
_WORD = re.compile(f"[^{_BREAKS}]+|{SEPARATOR}")
# A word of a text that may have scripts without spaces; the group is empty for a run that has nothing else.
_MIXED_WORD = re.compile(f"([{UNSPACED}]*+[^{_BREAKS}{UNSPACED}][^{_BREAKS}]*+|{SEPARATOR})|[{UNSPACED}]++")
_MAY_BE_UNSPACED = re.compile("[\u0e01-\u1fff\u2e80-\U0010ffff]")


def find_words(text: str) -> list[str]:
    """Return the words of a text, and its separators; runs that are left out may be empty strings."""
    if text.isascii() or not _MAY_BE_UNSPACED.search(text):
        return _WORD.findall(text)
    return _MIXED_WORD.findall(text)


def is_in_word(text: str) -> bool:
    """Return whether a text can only be inside a word of the index."""
    return find_words(text) == [text] and text != SEPARATOR


def keeps_case(text: str) -> bool:
    """Return whether the words of a text have the same lower case as in the text.

    The lower case of "Σ" depends on what is beside it.
    """
    return "Σ" not in text or find_words(lower(text)) == list(map(lower, find_words(text)))
