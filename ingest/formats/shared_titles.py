"""Titles of web pages without the name of the site, which most pages of a folder share: `Mills — The Manual`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from arag.ingest.formats.content import Content

_SEPARATOR = re.compile(r"\s+(?:[—–|·•»:]|-{1,2}|::)\s+|:\s+")
_IN_PARENTHESES = re.compile(r"\s+(?=\(.*\)$)")  # before the name of a manual: `Mills (The Manual)`
_MIN_PAGES = 3  # of a folder, that share a part of their titles: fewer can do so by chance
_MAX_TITLE = 1_000  # characters: the parts of longer ones would take long to compare
_MOST_PAGES = 0.6  # share of the compared pages; others may be of another site


@dataclass(frozen=True, slots=True)
class SharedTitle:
    """What the titles of a folder's pages share.

    Attributes:
        start: At their beginnings, with the separator behind it; empty if there is nothing.
        end: At their ends, with the separator before it.
    """

    start: str = ""
    end: str = ""

    def remove(self, title: str) -> str:
        """Return a title without it, unless nothing would be left."""
        shown = title.removesuffix(self.end)
        without_start = shown.removeprefix(self.start)
        return without_start or shown or title


def find_shared_title(pages: Sequence[Content]) -> SharedTitle:
    """Find what most titles of a folder's pages share at their beginnings and ends; some pages have the same title.

    What stands in parentheses is a part of the title if the page's text has it, too.
    """
    distinct = {page.title: page for page in pages if len(page.title) <= _MAX_TITLE}
    starts: list[str] = []
    ends: list[str] = []
    for title, page in distinct.items():
        for separator in _SEPARATOR.finditer(title):
            starts.append(title[: separator.end()])
            ends.append(title[separator.start() :])
        for space in _IN_PARENTHESES.finditer(title):
            manual = title[space.end() :]
            if manual not in page.text:
                ends.append(title[space.start() :])
    return SharedTitle(
        start=_find_longest(starts, len(distinct)),
        end=_find_longest(ends, len(distinct)),
    )


def _find_longest(parts: Iterable[str], titles: int) -> str:
    """Return the longest part that most titles have, or an empty string."""
    least = max(_MIN_PAGES, _MOST_PAGES * titles)
    shared = [part for part, pages in Counter(parts).items() if pages >= least]
    return max(shared, key=len, default="")
