"""The table of scripts, against the names of the characters in Unicode."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections import defaultdict
from functools import cache

import pytest

from arag.text import scripts

SCRIPTS = {
    "CJK": scripts.HAN,
    "HIRAGANA": scripts.HIRAGANA,
    "KATAKANA": scripts.KATAKANA,
    "BOPOMOFO": scripts.BOPOMOFO,
    "HANGUL": scripts.HANGUL,
    "THAI": scripts.THAI,
    "LAO": scripts.LAO,
    "MYANMAR": scripts.BURMESE,
    "KHMER": scripts.KHMER,
}
SPACED = (
    "LATIN FULLWIDTH GREEK CYRILLIC ARMENIAN HEBREW ARABIC DEVANAGARI BENGALI TAMIL TELUGU GEORGIAN ETHIOPIC".split()
)


@cache
def letters():
    """The letters and digits of each script, without those of historic writing, which have higher numbers."""
    found = defaultdict(list)
    for character in map(chr, range(0xC0, sys.maxunicode + 1)):
        if character.isalnum():
            script = unicodedata.name(character, "").removeprefix("HALFWIDTH ").partition(" ")[0]
            if script == "CJK" or character < "\U00010000":
                found[script].append(character)
    return found


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_range_has_all_letters_and_digits_of_its_script_and_no_others(script):
    pattern = re.compile(f"[{SCRIPTS[script]}]")
    assert [letter for letter in letters()[script] if not pattern.match(letter)] == []
    for other in {*SCRIPTS, *SPACED} - {script}:
        assert [letter for letter in letters()[other] if pattern.match(letter)] == []


def test_letters_make_words_only_in_scripts_with_spaces():
    for script in SPACED:
        # Between these are signs, and letters of phonetic alphabets and manuscripts.
        common = [letter for letter in letters()[script] if letter < "\u2000" or letter > "\uff00"]
        assert [letter for letter in common if not scripts.makes_words(letter)] == []
    for script in SCRIPTS:
        assert [letter for letter in letters()[script] if scripts.makes_words(letter)] == []


@pytest.mark.parametrize("mark", "×÷،؛؟۔।॥։። .,-“”…")
def test_marks_between_words_make_no_words(mark):
    assert not scripts.makes_words(mark)
