"""Tells columns of versions from columns of numbers: 3.10 comes after 3.9, and is not 3.1."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

_NAMES = frozenset(  # the first or the last word of a column's name, as in `Python version` and `Version de Python`
    "version versions versionen versión versiones versione versioni versão versões versie versies wersja verze verzió"
    " версия".split()
)
_WHOLE_NAMES = frozenset("release releases ausgabe fassung since seit depuis".split())
_OF = frozenset("per of pro par por je".split())  # after them, a version is what something else belongs to
_ENDS_NAME = re.compile(r"(?:版本|バージョン|버전)$|^\w{4,}version$")  # such as `programmversion`
_ENDS_OTHERWISE = re.compile(  # such as `bioconversion`, but not `softwareversion`
    r"^(?:extr|intr)|(?:con|(?<!plug)in|di|(?<!p)per|(?<!wa)re|ante|retro|ambi|trans|[ck]ardio|risikoa|verlusta)version$"
)
_WORD = re.compile(r"[^\W_]+")
_POINTED = re.compile(r"(\d+)\.(\d+)")
_COUNTED_ON = [{"8", "9", "10"}, {"9", "10", "11"}, {"98", "99", "100"}, {"99", "100", "101"}]
_MAX_DIGITS = 2  # before the point, where versions are counted on for another number


def are_versions(name: str, numbers: Iterable[str]) -> bool:
    """Return whether the numbers of a column are versions.

    Some have a point, and its name says so or they count on behind the point, as from 3.8 and 3.9 to 3.10. Prices have
    two digits there, and measured values such as 0.05 begin with zeros.

    Args:
        name: The column's name in the documents.
        numbers: Its numbers, as they are written.
    """
    minors: defaultdict[str, set[str]] = defaultdict(set)
    whole: set[str] = set()
    for number in numbers:
        match = _POINTED.fullmatch(number)
        if match is not None:
            minors[match[1]].add(match[2])
        elif number.isdecimal():
            whole.add(number)
        else:
            return False
    if not minors:
        return False
    return _is_name(name) or _count_on(minors, whole)


def _is_name(name: str) -> bool:
    words = _WORD.findall(name.casefold())
    if not words:
        return False
    first, last = words[0], words[-1]
    if first in _NAMES:
        return True
    if len(words) == 1 and first in _WHOLE_NAMES:
        return True
    if not _OF.isdisjoint(words[:-1]) or _ENDS_OTHERWISE.search(last):
        return False
    return last in _NAMES or _ENDS_NAME.search(last) is not None


def _count_on(minors: Mapping[str, set[str]], whole: Iterable[str]) -> bool:
    """Return whether the numbers behind points are counted, for some number before them; none begins with a zero."""
    counted = set()
    for major, numbers in minors.items():
        if any(number.startswith("0") and number != "0" for number in numbers):
            return False
        if any(numbers >= run for run in _COUNTED_ON):
            counted.add(major)
    others = {*minors, *whole} - counted
    return bool(counted) and all(len(other) <= _MAX_DIGITS for other in others)
