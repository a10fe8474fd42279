"""Underscores of a PDF that TeX draws as rules, in place of a character: `num_canal` has a space in the text layer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from arag.ingest.formats.pdf.glyphs import Box, PageText

_BETWEEN_LETTERS = re.compile(r"(?<=[^\W_]) (?=[^\W_])")
_LONGEST = 15.0  # points: in the largest type
_NARROW, _WIDE = 0.15, 0.6  # times the height of the type
_NEAR = 0.15  # times that height, from the baseline


def add_underscores(page: PageText, drawn: Iterable[Box]) -> PageText:
    """Return the text of a page with underscores in place of spaces in which a short rule stands on the line.

    Args:
        page: The text.
        drawn: The boxes of what is drawn on the page.
    """
    rules = [rule for rule in map(page.turn_back, drawn) if rule.height < rule.width < _LONGEST]
    if not rules:
        return page
    letters = list(page.text)
    for match in _BETWEEN_LETTERS.finditer(page.text):
        place = match.start()
        if any(_stands_between(rule, page, place) for rule in rules):
            letters[place] = "_"
    return replace(page, text="".join(letters))


def _stands_between(rule: Box, page: PageText, place: int) -> bool:
    """Return whether a rule stands on the line between the characters around a place."""
    before = page.box(place - 1)
    following = page.box(place + 1)
    height = following.height
    is_between = before.right - 1 < rule.left and rule.right < following.left + 1
    return all(
        [
            is_between,
            _NARROW * height < rule.width < _WIDE * height,
            abs(rule.bottom - page.baseline(place + 1)) < _NEAR * height,
        ]
    )
