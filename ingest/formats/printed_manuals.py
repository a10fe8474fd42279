"""Manual pages as `man` prints them: below a line with the page's name at both ends, headings begin at the edge."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from arag.ingest.outline import escape_marks

_HEAD = re.compile(r"\s*^(\S[^\n(]*\(\d\w*\)|\S+\([nlp]\))[ \t](?:[^\n]*[ \t])?\1[ \t]*$", re.MULTILINE)
_GAP = re.compile(r"\t[ \t]*|[ \t]{2,}")
_LEVELS = {0: 1, 2: 2, 3: 2}  # of headings, by their indentations
_MAX_BELOW = 2  # lines below a heading, in which its text begins


class PrintedManual(NamedTuple):
    """The parts of a printed manual page."""

    title: str  # such as `ls(1)`
    edition: str  # what the foot says: the version and the date
    text: str  # without head and foot


def split_manual(text: str) -> PrintedManual | None:
    """Return the parts of a printed manual page, or None for another text."""
    head = _HEAD.match(text)
    if head is None:
        return None
    name = head[1]
    body = text[head.end() :].rstrip()
    above, _, last = body.rpartition("\n")
    edition = ""
    is_foot = last.endswith(name)
    if is_foot:
        edition = _GAP.sub(", ", last.removesuffix(name).strip())
        body = above.rstrip()
    is_in_capitals = name[: name.rfind("(")].isupper()
    title = name.lower() if is_in_capitals else name
    return PrintedManual(title, edition, body.lstrip("\n") + "\n")


def mark_manual(text: str) -> str:
    """Return a printed manual page with its headings marked as in Markdown; no other line looks like one."""
    lines = text.split("\n")
    marked: list[str] = []
    is_apart = True
    for number, line in enumerate(lines, 1):
        level = 0
        if is_apart and line:
            level = _level_of(line, lines[number : number + _MAX_BELOW])
        shown = escape_marks(line)
        if level:
            shown = f"{'#' * level} {line.strip()}"
        marked.append(shown)
        is_blank = not line.strip()
        is_apart = is_blank or level == 1  # a lower heading may follow at once
    return "\n".join(marked)


def _level_of(line: str, below: Iterable[str]) -> int:
    """Return the level of a heading: its text is set in further. It is 0 for another line."""
    indentation = _indentation_of(line)
    filled = filter(str.strip, below)
    following = next(filled, "")
    if _indentation_of(following) <= indentation:
        return 0
    return _LEVELS.get(indentation, 0)


def _indentation_of(line: str) -> int:
    return len(line.expandtabs()) - len(line.expandtabs().lstrip())
