"""Finds the sections of a plain text by their numbers: by its table of contents, or where all numbers follow on."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise, starmap
from operator import attrgetter
from typing import NamedTuple

from arag.ingest.boundaries import CLOSERS, LEADERS

_MAX_LINES = 4  # of a title
_MAX_TITLE = 300  # characters
_MIN_SECTIONS = 3  # that a table of contents must name
_MAX_LAST_CHAPTERS = 20  # without sections, behind the last one that has some
_MIN_COUNTED = 6  # sections that follow each other, if there is no such table
_MIN_ENTRIES = 2  # lines of a table of contents
_MAX_ENTRIES = 50  # with one number: each is compared with each title
_MIN_NAME = 3  # letters by which a title is found there

_PARAGRAPH = re.compile(r"(?:^[^\n]*\S[^\n]*(?:\n|\Z))+", re.MULTILINE)
_PARTS = r"\d{1,2}(?:\.\d{1,2})*"
_NUMBER = rf"(?P<number>{_PARTS}|[A-Z](?:\.\d{{1,2}})+)\.?\s+(?=\S)"
_CHAPTER = r"(?P<word>[^\W\d_a-z]\w+)\s(?P<chapter>\d{1,2}|[A-Z])(?:[.:]\s+|$)"  # such as Chapter 3. Mills
_EAST_ASIAN = r"(?P<sign>[第제])\s?(?P<counted>\d{1,2})\s?[章节節部編編장절]\s*"
_TITLE = re.compile(rf" {{0,3}}(?:{_NUMBER}|{_CHAPTER}|{_EAST_ASIAN})")
_ENTRY = re.compile(rf"[ \t]*(?:{_NUMBER}|{_CHAPTER}|{_EAST_ASIAN})")
_LEADERS = re.compile(rf"{LEADERS}.*|(?<!\s)\s+\d+\s*$")
_SIGNS = re.compile(r"[\W_]+")
_TEXT_END = ".。．:：;；,，"
_NO_NAME = re.compile(r"\(?[a-zß-öø-ÿ]|[-*+•|]")  # how a text goes on
_number_and_name = attrgetter("number", "name")


class _Title(NamedTuple):
    """A paragraph that may be the title of a section: where it is, its word as `Chapter`, its number and its name.

    `is_text` says whether it ends like a sentence.
    """

    start: int
    end: int
    word: str
    number: tuple[str, ...]
    name: str
    is_text: bool

    @property
    def depth(self) -> int:
        """The level of its number: 0 for a chapter with a word."""
        return 0 if self.word else len(self.number)

    def is_called(self, entry: str) -> bool:
        """Return whether an entry of contents is its name, or the first line of it."""
        shorter, longer = sorted([entry, self.name], key=len)
        is_beginning = len(entry) >= _MIN_NAME and longer.startswith(shorter)
        return is_beginning or entry == self.name


def find_sections(text: str) -> dict[int, int]:
    """Return the start of the title of each section, with its end; empty where the numbers do not show for certain."""
    titles: list[_Title] = []
    entries: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for paragraph in _PARAGRAPH.finditer(text):
        listed = list(_entries_of(paragraph[0]))
        title = _title_of(paragraph)
        if title and len(listed) < _MIN_ENTRIES:
            titles.append(title)
            continue
        for number, name in listed:
            entries[number].append(name)
    times = Counter(map(_number_and_name, titles))
    named: list[_Title] = []
    for title in titles:
        is_repeated = times[_number_and_name(title)] > 1  # an entry of contents may stand by itself
        if is_repeated or _is_named(title, entries[title.number]):
            named.append(title)
    if len(named) >= _MIN_SECTIONS:
        last = {_number_and_name(title): title for title in named}  # a chapter may begin with its own contents
        sections = _with_lower(titles, list(last.values()))
    else:
        sections = _count(titles)
    return {title.start: title.end for title in sections}


def _entries_of(paragraph: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the number and the name, or the beginning of it, of each line that may be an entry of contents."""
    for line in paragraph.split("\n"):
        entry = _ENTRY.match(line)
        if entry:
            name = _LEADERS.sub("", line[entry.end() :])
            yield _number_of(entry), _letters(name)


def _title_of(paragraph: re.Match[str]) -> _Title | None:
    """Return the title that a paragraph may be."""
    block = paragraph[0].rstrip()
    match = _TITLE.match(block)
    if match is None or len(block) > _MAX_TITLE or block.count("\n") >= _MAX_LINES:
        return None
    name = block[match.end() :]
    word = match["word"] or match["sign"] or ""
    if _NO_NAME.match(name) and not word and len(_number_of(match)) < 2:
        return None
    lead = len(block) - len(block.lstrip())
    return _Title(
        start=paragraph.start() + lead,
        end=paragraph.start() + len(block),
        word=word,
        number=_number_of(match),
        name=_letters(name),
        is_text=block.rstrip(CLOSERS)[-1] in _TEXT_END,
    )


def _number_of(match: re.Match[str]) -> tuple[str, ...]:
    number = match["number"] or match["chapter"] or match["counted"]
    return tuple(number.split("."))


def _letters(name: str) -> str:
    return _SIGNS.sub("", name).lower()


def _is_named(title: _Title, entries: list[str]) -> bool:
    """Return whether a table of contents has a title."""
    return title.name != "" and any(map(title.is_called, entries[:_MAX_ENTRIES]))


def _with_lower(titles: list[_Title], named: list[_Title]) -> list[_Title]:
    """Return the named sections, and those below the lowest level of the contents that follow on."""
    lowest = max(title.depth for title in named)
    is_named = set(named)
    sections: list[_Title] = []
    for title in titles:
        is_lower = title.depth > lowest and not title.is_text
        if title in is_named or (is_lower and sections and _follows(sections[-1], title)):
            sections.append(title)
    return sections


def _count(titles: list[_Title]) -> list[_Title]:
    """Return the titles if they are many, and each has the number after the one before."""
    possible = [title for title in titles if not title.is_text]
    numbered = [title for title in possible if title.depth != 1]
    follow_on = all(starmap(_follows, pairwise(numbered)))
    if not follow_on or len(numbered) < _MIN_COUNTED:
        return []
    return _with_chapters(possible) or numbered


def _with_chapters(titles: list[_Title]) -> list[_Title]:
    """Return the titles of sections with those of their chapters, or none if a chapter with sections has no title.

    Of equal numbers, the title is the last one before the first section. A chapter without sections has the only title
    with its number between the chapters around it. Others are items of lists.
    """
    chapters: dict[int, int] = {}  # the places of their titles
    start = 0
    for place, title in enumerate(titles):
        if title.depth == 1 or not title.number[0].isdigit():
            continue
        chapter = int(title.number[0])
        if chapter not in chapters:
            own = _find_chapter(titles, chapter, start, place)
            if not own:
                return []
            chapters[chapter] = own[-1]
        start = place + 1
    last = max(chapters, default=0)
    for number in range(1, last + _MAX_LAST_CHAPTERS):
        before = max((place for other, place in chapters.items() if other < number), default=-1)
        after = min((place for other, place in chapters.items() if other > number), default=len(titles))
        own = _find_chapter(titles, number, before + 1, after)
        if number not in chapters and len(own) == 1:
            chapters[number] = own[0]
    places = set(chapters.values())
    return [title for place, title in enumerate(titles) if title.depth != 1 or place in places]


def _find_chapter(titles: list[_Title], number: int, start: int, end: int) -> list[int]:
    """Return the places between two others at which a title has the number of a chapter."""
    return [place for place in range(start, end) if titles[place].number == (str(number),)]


def _follows(before: _Title, title: _Title) -> bool:
    """Return whether a number is the next one: 2.3, 3.1 or 2.2.1 after 2.2, and chapter 3 after any of them."""
    *parents, last = title.number
    if not last.isdigit():
        return title.number > before.number
    if last == "1":
        return len(parents) < 2 or list(before.number) == parents
    previous = (*parents, str(int(last) - 1))
    return before.number[: len(previous)] == previous
