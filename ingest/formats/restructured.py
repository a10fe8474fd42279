"""Titles of reStructuredText, which are underlined, as headings in Markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby

from arag.ingest.formats.directives import show_directives
from arag.ingest.outline import escape_code, escape_marks

_RULE = re.compile(r"([!-/:-@\[-`{-~])\1{2,}[ \t]*$")
_MAX_LEVEL = 6
# An indented one may be in an example. A name with two colons is a directive; targets, notes and names have signs.
_COMMENT = re.compile(
    r"^\.\.(?:[ \t]+(?![_\[|]|[\w:.+-]+ ?::(?:\s|$))\S[^\n]*(?:\n|\Z)|[ \t]*\n(?=[ \t]+\S))"
    r"(?:(?:[ \t]*\n)*[ \t]+\S[^\n]*(?:\n|\Z))*",
    re.MULTILINE,
)
# The label of a place in the text; others have an address.
_LABEL = re.compile(r"^\.\. _[^\n]*:[ \t]*\n(?![ \t]+\S)", re.MULTILINE)
# :mod:`sched`, :py:class:`~ship.Keel` and :ref:`Oil <oil>`
_ROLE = re.compile(r"(?<!\w):(?:[a-z]+:)?[a-z-]+:`[~!]?([^`<]*[^`<\s])(?:\s+<[^`<>]*>)?`")
_REFERENCE = re.compile(r"`([^`<]+)`_|(?<=\w)_(?!\w)")
_ESCAPE = re.compile(r"\\(?=[!-/:-@\[-`{-~])")
# Indented ones may be examples.
_OBJECT = re.compile(
    r"^\.\. (?:[a-z]+:)?(attribute|class|data|decorator|exception|function|macro|member|method|type):: ", re.MULTILINE
)


# A directive, a substitution, or the target of a link.
_EXPLICIT = re.compile(r"^\.\. (?:(?:\|[^|\n]+\| )?[\w:-]+:: *(?:\S.*)?$|_[^\n]*:(?: |$))", re.MULTILINE)


@dataclass
class _Title:
    """A title, the characters of its lines, and how many lines it takes."""

    text: str
    style: str
    lines: int


def is_restructured(text: str) -> bool:
    """Return whether a text, whose name does not say so, is reStructuredText: it has directives or targets."""
    return _EXPLICIT.search(text) is not None


def mark_titles(text: str) -> str:
    """Return the text with a mark for each title; as in reStructuredText, the order of their lines gives the levels.

    Other lines that would be headings in Markdown, such as comments in code, are indented. Comments and labels are left
    out, and what a directive describes is named as in the printed manual: `exception NoOil`.
    """
    text = show_directives(_LABEL.sub("", _COMMENT.sub("", text)))
    text = _OBJECT.sub(r"\1 ", text)
    lines = _escape_blocks(text.split("\n"))
    marked: list[str] = []
    styles: list[str] = []
    number = 0
    is_after_blank = True
    while number < len(lines):
        title = find_title(lines[number : number + 3]) if is_after_blank else None
        if title is None:
            line = escape_marks(lines[number])
            number += 1
        else:
            if title.style not in styles:
                styles.append(title.style)
            level = min(styles.index(title.style) + 1, _MAX_LEVEL)
            plain = _REFERENCE.sub(r"\1", _ROLE.sub(r"\1", title.text))
            line = f"{'#' * level} {_ESCAPE.sub('', plain)}"
            number += title.lines
        marked.append(line)
        is_after_blank = not line.strip()
    return "\n".join(marked)


def _escape_blocks(lines: list[str]) -> list[str]:
    """Return lines in which those that are set in, such as code, do not look like headings."""
    escaped: list[str] = []
    for is_set_in, block in groupby(lines, key=_is_set_in):
        block_lines = list(block)
        escaped += escape_code(block_lines) if is_set_in else block_lines
    return escaped


def _is_set_in(line: str) -> bool:
    return not line or line[0].isspace()


def find_title(lines: list[str]) -> _Title | None:
    """Return the title that begins with the first of three lines, if one does."""
    first, second, third = [*lines, "", ""][:3]
    if _RULE.match(first):
        return _find_title_between(first, second, third)
    is_title = first.strip() and not first[0].isspace()
    is_underlined = _RULE.match(second) and len(second.rstrip()) >= len(first.rstrip())
    if is_title and is_underlined:
        return _Title(first.strip(), style=f"under {second[0]}", lines=2)
    return None


def _find_title_between(above: str, line: str, below: str) -> _Title | None:
    title = line.strip()
    rule = above.rstrip()
    has_two_rules = rule == below.rstrip()
    if title and has_two_rules and len(title) <= len(rule):
        return _Title(title, style=f"between {rule[0]}", lines=3)
    return None
