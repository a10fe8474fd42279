"""Tells columns of versions from columns of numbers: 3.10 comes after 3.9, and is not 3.1."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

_NAMES = frozenset(  # the first or the last word of a column's name, as in `Python version` and `Version de Python`
    "version versions versionen versión versiones versione versioni versão versões versie versies wersja verze verzió"
    " версия".split()
)
_WHOLE_NAMES = frozenset("release releases ausgabe fassung since seit depuis".split())
_ENDS_NAME = re.compile(r"(?:版本|バージョン|버전)$|^(?!extr|intr)\w{4,}version$")  # such as `programmversion`
_WORD = re.compile(r"[^\W_]+")
_POINTED = re.compile(r"(\d+)\.(\d+)")
_COUNTED_ON = [{"9", "10"}, {"99", "100"}]


def are_versions(name: str, numbers: Iterable[str]) -> bool:
    """Return whether the numbers of a column are versions.

    Some have a point, and its name says so or they count on behind the point, as from 3.9 to 3.10. Prices have two
    digits there, and measured values such as 0.05 begin with zeros.

    Args:
        name: The column's name in the documents.
        numbers: Its numbers, as they are written.
    """
    minors: defaultdict[str, set[str]] = defaultdict(set)
    for number in numbers:
        match = _POINTED.fullmatch(number)
        if match is not None:
            minors[match[1]].add(match[2])
        elif not number.isdecimal():
            return False
    if not minors:
        return False
    return _is_name(name) or _count_on(minors.values())


def _is_name(name: str) -> bool:
    words = _WORD.findall(name.casefold())
    if not words:
        return False
    if len(words) == 1 and words[0] in _WHOLE_NAMES:
        return True
    return bool(_NAMES & {words[0], words[-1]}) or _ENDS_NAME.search(words[-1]) is not None


def _count_on(minors: Iterable[set[str]]) -> bool:
    """Return whether the numbers behind points are counted, for some number before them; none begins with a zero."""
    counts_on = False
    for numbers in minors:
        if any(number.startswith("0") and number != "0" for number in numbers):
            return False
        counts_on |= any(numbers >= counted for counted in _COUNTED_ON)
    return counts_on
