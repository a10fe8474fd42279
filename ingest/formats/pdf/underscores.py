"""Underscores of a PDF that TeX draws as rules, in place of a character: `num_canal` has a space in the text layer."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import replace
from operator import attrgetter

from arag.ingest.formats.pdf.glyphs import Box, PageText

_BETWEEN_LETTERS = re.compile(r"(?<=[^\W_]) (?=[^\W_])")
_LONGEST = 15.0  # points: in the largest type
_NARROW, _WIDE = 0.15, 0.6  # times the height of the type
_NEAR = 0.15  # times that height, from the baseline
_BESIDE = 1.0  # points: how far it may reach into the letters around it
_LEFT = attrgetter("left")


def add_underscores(page: PageText, drawn: Iterable[Box]) -> PageText:
    """Return the text of a page with underscores in place of spaces in which a short rule stands on the line.

    Args:
        page: The text.
        drawn: The boxes of what is drawn on the page.
    """
    rules = [rule for rule in map(page.turn_back, drawn) if rule.height < rule.width < _LONGEST]
    if not rules:
        return page
    rules.sort(key=_LEFT)
    letters = list(page.text)
    for match in _BETWEEN_LETTERS.finditer(page.text):
        place = match.start()
        before = page.box(place - 1)
        following = page.box(place + 1)
        first = bisect_left(rules, before.right - _BESIDE, key=_LEFT)
        last = bisect_right(rules, following.left, key=_LEFT)
        if _has_underscore(rules[first:last], following, page.baseline(place + 1)):
            letters[place] = "_"
    return replace(page, text="".join(letters))


def _has_underscore(rules: Iterable[Box], following: Box, baseline: float) -> bool:
    """Return whether a rule before a letter stands on the line, and is as wide as an underscore."""
    height = following.height
    for rule in rules:
        is_underscore = all(
            [
                rule.right < following.left + _BESIDE,
                abs(rule.bottom - baseline) < _NEAR * height,
                _NARROW * height < rule.width < _WIDE * height,
            ]
        )
        if is_underscore:
            return True
    return False
