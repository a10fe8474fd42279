"""Titles of web pages that tell them apart.

They are without the name of the site, which most pages around them share: `Mills — The Manual`. If several pages have
the same title, such as the name of the site alone, each has its own heading as its title.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from arag.ingest.formats.content import Content
from arag.ingest.outline import HEADING_LINE, name_of
from arag.text.contents import is_heading_of_contents

_SEPARATOR = re.compile(r"(?:\s+(?:[—–|·•«»<>~:]|-{1,2}|::)\s+|:\s+)(?![^()]*\))")  # not in `Mills (Part - 1)`
_IN_PARENTHESES = re.compile(r"\s+(?=\(.*\)$)")  # before the name of a manual: `Mills (The Manual)`
_PLACE = re.compile(
    r"(?:section|chapter|appendix|part|abschnitt|kapitel|anhang|teil|chapitre|annexe|capítulo|apéndice|capitolo"
    r"|appendice|hoofdstuk|kapittel|rozdział|глава|раздел|приложение)\s+(?:\d+(?:\.\d+)*|[A-Z](?:\.\d+)*|[IVXLC]+)\.?",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+")
_MIN_PAGES = 3  # that share a part of their titles: fewer can do so by chance
_MAX_TITLE = 1_000  # characters: the parts of longer ones would take long to compare
_MOST_PAGES = 0.6  # share of the compared pages; others may be of another site


@dataclass(frozen=True, slots=True)
class PageTitle:
    """The title of a web page, and which of its parts may be the name of the site.

    Attributes:
        text: The title.
        starts: The beginnings, with the separators behind them.
        ends: The ends, with the separators before them.
    """

    text: str
    starts: tuple[str, ...]
    ends: tuple[str, ...]

    @property
    def has_parts(self) -> bool:
        """Whether a part of it may be the name of the site."""
        return bool(self.starts or self.ends)


@dataclass(frozen=True, slots=True)
class SharedTitle:
    """What the titles of pages share.

    Attributes:
        start: At their beginnings, with the separator behind it; empty if there is nothing.
        end: At their ends, with the separator before it.
    """

    start: str = ""
    end: str = ""

    def remove(self, title: str) -> str:
        """Return a title without it, in capitals or not, unless nothing would be left."""
        shown = title
        without_end = title[: len(title) - len(self.end)]
        if _are_same(title[len(without_end) :], self.end):
            shown = without_end
        without_start = shown[len(self.start) :]
        if _are_same(shown[: len(self.start)], self.start):
            shown = without_start or shown
        return shown or title


@dataclass(frozen=True, slots=True)
class PageNames:
    """How many pages have each title, and each heading at their tops."""

    titles: Counter[str]
    headings: Counter[str]


def count_names(pages: Iterable[Content]) -> PageNames:
    """Count the titles and headings of pages."""
    titles: Counter[str] = Counter()
    headings: Counter[str] = Counter()
    for page in pages:
        titles[page.title] += 1
        headings.update(set(_top_headings(page.text)))
    return PageNames(titles, headings)


def find_own_title(title: str, text: str, names: PageNames) -> str:
    """Return a title, or instead of one that several pages have, the first heading at a page's top that no other has.

    Args:
        title: Of the page. It is kept if it is a heading at the top of this page, and of few others.
        text: Of the page.
        names: Of some pages of its folder.
    """
    if names.titles[title] < _MIN_PAGES:
        return title
    headings = _top_headings(text)
    if title in headings and names.headings[title] < _MIN_PAGES:
        return title
    for heading in headings:
        is_label = heading.endswith(":") or not re.match(r"\w", heading)  # such as `- b -` in an index
        is_name = not is_label and not is_heading_of_contents(heading)
        if is_name and names.headings[heading] <= 1:
            return heading
    return title


def names_place(title: str) -> bool:
    """Return whether a title only says where a page stands in a manual: `Section 4.17`."""
    return _PLACE.fullmatch(title) is not None


def find_spoken_title(name: str, text: str, names: PageNames) -> str:
    """Return the first heading at a page's top, whose title is its file's name or its place, if it says more than that.

    Args:
        name: The title.
        text: Of the page.
        names: Of some pages of its folder.
    """
    for heading in _top_headings(text)[:1]:
        has_words = " " in heading and name.casefold() not in heading.casefold()
        if has_words and not is_heading_of_contents(heading) and names.headings[heading] <= 1:
            return heading
    return name


def _top_headings(text: str) -> list[str]:
    """Return the first heading of a text, and those that follow without other lines between them."""
    headings: list[str] = []
    for line in filter(None, text.split("\n")):
        if HEADING_LINE.match(line):
            headings.append(name_of(line))
        elif headings:
            break
    return headings


def divide_title(page: Content) -> PageTitle:
    """Return a page's title with its parts. One in parentheses belongs to the title if the text has it, too."""
    title = page.title
    starts: list[str] = []
    ends: list[str] = []
    if len(title) <= _MAX_TITLE:
        for separator in _SEPARATOR.finditer(title):
            starts.append(title[: separator.end()])
            ends.append(title[separator.start() :])
        for space in _IN_PARENTHESES.finditer(title):
            manual = title[space.end() :]
            if manual not in page.text:
                ends.append(title[space.start() :])
    return PageTitle(title, tuple(starts), tuple(ends))


def find_shared_title(titles: Iterable[PageTitle]) -> SharedTitle:
    """Find what most titles share at their beginnings and ends; some pages have the same title."""
    starts: list[str] = []
    ends: list[str] = []
    distinct = set(titles)
    for title in distinct:
        starts += title.starts
        ends += title.ends
    return SharedTitle(
        start=_find_longest(starts, len(distinct)),
        end=_find_longest(ends, len(distinct)),
    )


def _find_longest(parts: Iterable[str], titles: int) -> str:
    """Return the longest part that most titles have, or an empty string.

    `Part 1` is not a name of a site where others have `Part 2`.
    """
    least = max(_MIN_PAGES, _MOST_PAGES * titles)
    pages = Counter(parts)
    numbered: dict[str, int] = defaultdict(int)  # how many parts differ in their numbers only
    for part in pages:
        numbered[_without_numbers(part)] += 1
    longest = ""
    for part, number in pages.items():
        is_only = numbered[_without_numbers(part)] == 1
        if number >= least and is_only and len(part) > len(longest):
            longest = part
    return longest


def _without_numbers(part: str) -> str:
    return _NUMBER.sub("", part)


def _are_same(part: str, shared: str) -> bool:
    return part.casefold() == shared.casefold()
