"""Titles of reStructuredText, which are underlined, as headings in Markdown."""

from __future__ import annotations

import re

_RULE = re.compile(r"([!-/:-@\[-`{-~])\1{2,}[ \t]*$")
_MAX_LEVEL = 6


def mark_titles(text: str) -> str:
    """Return the text with a mark for each title; as in reStructuredText, the order of their lines gives the levels."""
    lines = text.split("\n")
    marked: list[str] = []
    styles: list[str] = []
    number = 0
    while number < len(lines):
        size = _title_size(lines, number, is_after_blank=not marked or not marked[-1].strip())
        if not size:
            marked.append(lines[number])
            number += 1
            continue
        rule = lines[number + size - 1]
        style = f"{size}{rule[0]}"  # with a line above, the same character makes another level
        if style not in styles:
            styles.append(style)
        level = min(styles.index(style) + 1, _MAX_LEVEL)
        marked.append(f"{'#' * level} {lines[number + size - 2].strip()}")
        number += size
    return "\n".join(marked)


def _title_size(lines: list[str], number: int, *, is_after_blank: bool) -> int:
    """Return how many lines a title takes that begins here: 2, or 3 with a line above it; 0 if none begins."""
    first, second, third = (lines[number + offset] if number + offset < len(lines) else "" for offset in range(3))
    if not is_after_blank:
        return 0
    has_line_above = _RULE.match(first) and second.strip() and first.rstrip() == third.rstrip()
    if has_line_above:
        return 3 if len(second.strip()) <= len(first.rstrip()) else 0
    is_title = first.strip() and not first[0].isspace() and not _RULE.match(first) and _RULE.match(second)
    return 2 if is_title and len(second.rstrip()) >= len(first.rstrip()) else 0
