"""Recognises tables of contents, indexes of names and lists of links: they name what other chunks say.

A chunk is one of these if it has at least five lines, and if most of its text is in lines of one of these kinds:

- A name with a page number behind it. The page numbers rise from line to line. Dots lead to them (`Scope ..... 12`), or
  the heading says what it is (`Contents`), or the lines have numbers of chapters (`2.1 Scope 12`).
- A name with several page numbers (`Rye, 12, 45-47`), in alphabetical order.
- A link and nothing else.
- Under a heading such as `Contents`, a short line without the end of a sentence.

Lists of prices have numbers that fall and rise, glossaries have sentences, timetables have times, and bibliographies
have full stops and years: they are none of these.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

from arag.retrieval.types import Chunk
from arag.text.normalise import HEADING_BOUNDARY, collapse_whitespace, is_title, plain

_MIN_LINES = 5  # fewer are a short list, which is soon read
_MIN_SHARE = 0.7  # of the characters: the rest may be a page's header, or where the text begins
_MIN_ORDERED = 0.9  # of the neighbouring lines: a line may be out of order by a fault of a reader
_MAX_NAME = 80  # characters of a heading in a list: longer lines are sentences
_FIRST_LINES = 3  # among which the heading is, below a title or a page's header

_HEADING = re.compile(
    r"(?:table of |list of )?(?:contents|figures|tables|chapters)|(?:general |subject |name )?index(?: of \w+)?"
    r"|on this page|inhalt(?:sverzeichnis)?|(?:namens|sach)?register|sommaire|table des matieres|indice(?: general)?"
    r"|contenido|inhoud|содержание|оглавление|目录|目錄|目次|もくじ|索引"
)
_LIST_MARK = re.compile(r"^(?:[-*+•] |\d+[.)] (?=\[))")
_PAGE = r"(?P<page>\d{1,4}|[ivxl]{1,6})"
_LEADER = re.compile(rf".*\w.*?\s*(?:(?:\.\s?){{3,}}|…+\s*|_{{3,}}\s*|·{{3,}}\s*){_PAGE}")
_NAME_AND_PAGE = re.compile(rf"(?=.*[^\W\d]).{{2,}}?(?: \| ?| ){_PAGE}(?: \|)?")
_CHAPTER = re.compile(r"(?:\d+\.\d+|chapter|part|section|appendix|kapitel|第.{1,3}[章节節])\b", re.IGNORECASE)
_PAGES = r"\d{1,4}(?:[-–]\d{1,4})?"
_TERM = re.compile(rf"(?P<term>[^\d|.;:!?$€£¥]{{2,60}}),? (?P<pages>{_PAGES}(?:, {_PAGES})*)")
_SEE = re.compile(r"[^\d|.;:!?]{2,60}[,.]? see (?:also )?\S.*", re.IGNORECASE)
_LINK = re.compile(r"\[[^\]]+\]\([^)\s]+\)")
_SENTENCE_OR_VALUE = re.compile(r"[.!?。！？;]$|: | \| ")
_FIRST_YEAR, _LAST_YEAR = 1_400, 2_100  # mostly such numbers are years, not pages


@lru_cache(maxsize=256)
def is_contents(chunk: Chunk) -> bool:
    """Return whether a chunk is a table of contents, an index, or a list of links."""
    page = _read_page(chunk)
    if len(page.lines) < _MIN_LINES:
        return False
    return _has_rising_pages(page) or _is_index(page) or _is_list_of_links(page) or _is_list_of_headings(page)


@dataclass(frozen=True, slots=True)
class _Page:
    """The lines of a chunk, without its title and a heading such as `Contents`."""

    lines: list[str]
    is_named: bool  # whether there is such a heading

    def is_mostly(self, lines: Sequence[str]) -> bool:
        """Return whether some of its lines are enough, and most of its text."""
        characters = sum(map(len, lines))
        return len(lines) >= _MIN_LINES and characters >= _MIN_SHARE * sum(map(len, self.lines))


def _read_page(chunk: Chunk) -> _Page:
    headings = chunk.sentences[0].heading.split(HEADING_BOUNDARY) if chunk.sentences else []
    is_named = any(_is_heading_of_contents(heading) for heading in headings)
    lines: list[str] = []
    for line in chunk.text.split("\n"):
        text = _LIST_MARK.sub("", collapse_whitespace(line))
        if len(lines) < _FIRST_LINES and _is_heading_of_contents(text):
            is_named = True
        elif any(map(str.isalnum, text)) and not is_title(text, chunk.title):
            lines.append(text)
    return _Page(lines, is_named)


def _is_heading_of_contents(line: str) -> bool:
    return _HEADING.fullmatch(plain(line.strip("#*: "))) is not None


# --- names with page numbers ---


def _has_rising_pages(page: _Page) -> bool:
    """Return whether most of the text is names with rising page numbers."""
    entries = _match_all(_LEADER, page.lines)
    if not page.is_mostly(_texts_of(entries)):
        entries = _match_all(_NAME_AND_PAGE, page.lines)
        chapters = [entry for entry in entries if _CHAPTER.match(entry[0])]
        if not page.is_named and len(chapters) < len(entries) // 2:
            return False
        if not page.is_mostly(_texts_of(entries)):
            return False
    numbers = [int(entry["page"]) for entry in entries if entry["page"].isdecimal()]
    years = [number for number in numbers if _FIRST_YEAR <= number <= _LAST_YEAR]
    return 2 * len(years) < len(numbers) and numbers[0] < numbers[-1] and _are_ordered(numbers)


def _is_index(page: _Page) -> bool:
    """Return whether most of the text is terms in alphabetical order, with page numbers."""
    entries = _match_all(_TERM, page.lines)
    references = _match_all(_SEE, page.lines)
    if not page.is_mostly(_texts_of([*entries, *references])):
        return False
    counts: set[int] = set()
    for entry in entries:
        numbers = [int(number) for number in re.findall(r"\d+", entry["pages"])]
        counts.add(len(numbers))
        if not _are_ordered(numbers):
            return False
    terms = [plain(entry["term"]) for entry in entries]
    # In a list of prices, too, lines may be in alphabetical order: but each has the same number of them.
    return _are_ordered(terms) and (page.is_named or len(counts) > 1)


# --- names alone ---


def _is_list_of_links(page: _Page) -> bool:
    return page.is_mostly(_texts_of(_match_all(_LINK, page.lines)))


def _is_list_of_headings(page: _Page) -> bool:
    if not page.is_named:
        return False
    headings: list[str] = []
    for line in page.lines:
        name = line.lstrip("0123456789. ")
        if name and len(line) <= _MAX_NAME and not name[0].islower() and not _SENTENCE_OR_VALUE.search(line):
            headings.append(line)
    return page.is_mostly(headings)


def _match_all(pattern: re.Pattern[str], lines: Sequence[str]) -> list[re.Match[str]]:
    matches: list[re.Match[str]] = []
    for line in lines:
        match = pattern.fullmatch(line)
        if match is not None:
            matches.append(match)
    return matches


def _texts_of(matches: Sequence[re.Match[str]]) -> list[str]:
    return [match[0] for match in matches]


def _are_ordered(values: Sequence[Any]) -> bool:
    """Return whether nearly all neighbouring numbers or texts are in order."""
    pairs = list(pairwise(values))
    ordered = [pair for pair in pairs if pair[0] <= pair[1]]
    return len(ordered) >= _MIN_ORDERED * len(pairs)
