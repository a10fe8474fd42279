"""Headings of Emacs' outline mode, as in the news of GNU programs: `* Changes in 2.0`, and `** Bugs` below it."""

from __future__ import annotations

import re

_HEADING = re.compile(r"(?<=\n\n)(\*{1,4}) (\S[^\n]*)\n(?=\n)")
_SECOND = re.compile(r"(?<=\n\n)\*\* \S")
_NEXT = re.compile(r"\s*(?:(\*{1,4}) |\Z)")
_MIN_SECOND = 3  # lines with two stars: a text with one star before each item has none


def has_outline(text: str) -> bool:
    """Return whether a text has headings of outline mode."""
    return len(_SECOND.findall(text)) >= _MIN_SECOND


def mark_outline(text: str) -> str:
    """Return a text with marks for its headings. What has no text and no lower heading below it is an item."""
    return _HEADING.sub(_mark, text)


def _mark(line: re.Match[str]) -> str:
    stars, name = line.groups()
    following = _NEXT.match(line.string, line.end())
    is_heading = following is None or len(following[1] or "") > len(stars)
    if not is_heading:
        return line[0]
    marks = "#" * len(stars)
    return f"{marks} {name}\n"
