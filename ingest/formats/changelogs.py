"""Changelogs and news as plain texts: each entry has a heading, with a version or a date."""

from __future__ import annotations

import re

_DATE = r"[ ,:(–—-]+[^\n]{0,25}\b(?:19|20)\d\d\b[^\n]{0,25}"
_ENTRY = re.compile(
    r"(?:(?<=\n\n)|(?<=---\n)|\A\n*)(?:"
    r"(?P<package>[a-z0-9][a-z0-9+.-]+) \([^()\s]+\) [^;\n]+; urgency=[^\n]+"  # of Debian
    r"|\d{4}-\d\d-\d\d  +[^\s<][^<\n]*<[^>\n]+>"  # of GNU
    r"|(?:[Vv]ersion|[Rr]elease) \d[\w.-]*(?: \([^()\n]*\))?:?"
    rf"|[A-Za-z][\w+]*[ -]v?\d+\.\d[\w.-]*(?:{_DATE})"
    rf"|(?:v\d+\.\d[\w.-]*|\d+\.\d+\.\d+(?!\.\d)[\w-]*)(?:{_DATE})?:?"
    r")[ \t]*$(?!\n[=~-]{3})",
    re.MULTILINE,
)
_MIN_ENTRIES = 2  # other texts may have one such line


def find_package(text: str) -> str | None:
    """Return the package that the first line of a changelog names, or an empty string; nothing for other texts."""
    first = _ENTRY.match(text)
    if first is None or not has_entries(text):
        return None
    return first["package"] or ""


def has_entries(text: str) -> bool:
    """Return whether a text is a changelog."""
    entries = list(_ENTRY.finditer(text))
    is_of_package = bool(entries) and entries[0]["package"] is not None
    return is_of_package or len(entries) >= _MIN_ENTRIES


def mark_entries(text: str) -> str:
    """Return a changelog with marks for the headings of its entries."""
    return _ENTRY.sub(_mark, text)


def _mark(entry: re.Match[str]) -> str:
    line = entry[0].strip()
    return f"# {line}"
