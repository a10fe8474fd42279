"""Changelogs and news as plain texts: each entry has a heading, with a version or a date."""

from __future__ import annotations

import re

_DATE = r"[ ,:(–—-]+[^\n]{0,25}\b(?:19|20)\d\d\b[^\n]{0,25}"
_ENTRY = re.compile(
    r"(?:(?<=\n\n)|(?<=---\n)|\A\n*)(?:"
    r"(?P<package>[a-z0-9][a-z0-9+.-]+) \([^()\s]+\) [^;\n]+; urgency=[^\n]+"  # of Debian
    r"|\d{4}-\d\d-\d\d  +[^\s<][^<\n]*<[^>\n]+>"  # of GNU
    r"|(?:[Vv]ersion|[Rr]elease) \d[\w.-]*(?: \([^()\n]*\))?:?"
    r"|(?P<version>"  # with or without its date
    rf"[A-Za-z][\w+]*[ -]v?\d+\.\d[\w.-]*(?:{_DATE})"
    rf"|(?:v\d+\.\d[\w.-]*|\d+\.\d+\.\d+(?!\.\d)[\w-]*)(?:{_DATE})?:?)"
    r")[ \t]*$(?!\n[=~-]{3})",
    re.MULTILINE,
)
_EARLY = 0.25  # of a text: where the first entry begins...
_LATE = 0.5  # ...and the last one
_MIN_ENTRIES = 2  # other texts may have one such line


def find_package(text: str) -> str | None:
    """Return the package that the first line of a changelog names, or an empty string; nothing for other texts."""
    first = _ENTRY.match(text)
    if first is None or not has_entries(text):
        return None
    return first["package"] or ""


def has_entries(text: str) -> bool:
    """Return whether a text is a changelog: others may list their versions at the beginning or at the end."""
    entries = list(_ENTRY.finditer(text))
    if len(entries) < _MIN_ENTRIES:
        return bool(entries) and entries[0]["package"] is not None
    others = [entry for entry in entries if entry["version"] is None]
    begins_early = entries[0].start() < _EARLY * len(text)
    ends_late = entries[-1].start() > _LATE * len(text)
    return len(others) >= _MIN_ENTRIES or (begins_early and ends_late)


def mark_entries(text: str) -> str:
    """Return a changelog with marks for the headings of its entries."""
    return _ENTRY.sub(_mark, text)


def _mark(entry: re.Match[str]) -> str:
    line = entry[0].strip()
    return f"# {line}"
