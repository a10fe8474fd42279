"""Recognises tables of contents, indexes of names and lists of links: they name what other chunks say.

A chunk is one of these if it has at least five lines, and if most of its text is in lines of one of these kinds:

- A name with a page number behind it. The page numbers rise from line to line. Dots lead to them (`Scope ..... 12`), or
  the heading says what it is (`Contents`), or the lines have numbers of chapters (`2.1 Scope 12`).
- A name with several page numbers (`Rye, 12, 45-47`), in alphabetical order.
- A link and nothing else.
- The number of a chapter, section or appendix and its name. The numbers rise from line to line. The name may be a
  question.
- Under a heading such as `Contents`, a question, or a short line without the end of a sentence; under `Index`, also in
  small letters.

A chunk may begin with a title page and end with contents: then these are only the lines below the heading.

Lists of prices have numbers that fall and rise, glossaries have sentences, timetables have times, and bibliographies
have full stops and years: they are none of these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import le

from arag.retrieval.types import Chunk, Hit
from arag.text.normalise import HEADING_BOUNDARY, collapse_whitespace, is_title, plain, searchable

_MIN_LINES = 5  # fewer are a short list, which is soon read
_MIN_SHARE = 0.7  # of the characters: the rest may be a page's header, or where the text begins
_MIN_ORDERED = 0.9  # of the neighbouring lines: a line may be out of order by a fault of a reader
_CHAPTERS = 1_000  # of a book, at most
_FIRST_LINES = 3  # among which the heading is, below a title or a page's header


_HEADING = re.compile(
    r"(?:table of |list of )?(?:contents|figures|tables|chapters)|(?:general |subject |name )?index(?: of \w+)?"
    r"|on this page|inhalt(?:sverzeichnis)?|(?:namens|sach)?register|sommaire|table des matieres|indice(?: general)?"
    r"|(?:tabla de )?contenidos?|sumario|inhoud|obsah|spis tresci|turinys|содержание|оглавление"
    r"|目录|目錄|目次|もくじ|索引|차례|목차"
)
_HEADING_OF_INDEX = re.compile(
    r"(?:general |subject |name )?index|(?:namens|sach|stichwort)?(?:register|verzeichnis)|索引"
)
_LIST_MARK = re.compile(r"^(?:[-*+•] |\d+[.)] (?=\[))")
_PAGE = r"(?:(?P<page>\d{1,3}|1[0-3]\d\d)|[ivxl]{1,6})"  # from 1400 on, numbers are years
# Each begins where its dots begin: to try every dot of a long line would take minutes.
_DOTS = r"(?:(?<!\.)(?<!\.\s)(?:\.\s?){3,}|(?<!…)…+\s?|(?<!_)_{3,}\s?|(?<!·)·{3,}\s?)"
_NAME_DOTS_PAGE = re.compile(rf"\W*\w.*?\s?{_DOTS}{_PAGE}")
_NAME_PAGE = re.compile(rf"(?=.*[^\W\d]).{{2,}}?(?: \| ?| ){_PAGE}(?: \|)?")
_CHAPTER = r"(?:\d+\.\d+|chapter|part|section|appendix|kapitel|第.{1,3}[章节節])\b"
_CHAPTER_PAGE = re.compile(rf"{_CHAPTER}.*? {_PAGE}", re.IGNORECASE)
_TERM = r"(?P<term>[^\d|.;:!?$€£¥]{2,60}?)"
_PAGES = r"(?P<pages>\d{1,4}(?:(?:[-–]|, )\d{1,4})*)"
_TERM_PAGES = re.compile(rf"{_TERM}(?:,? {_PAGES}|[,.]? see (?:also )?\S.*)", re.IGNORECASE)
_LINK = re.compile(r"\[[^\]]+\]\([^)\s]+\)")
_QUESTION = r".{0,200}[?？]"
_NUMBER = r"(?:\d{1,3}|[A-Z])(?:\.\d{1,3})+"
_SECTION = re.compile(
    rf"(?P<number>{_NUMBER})(?:\. | (?=\D))(?:{_QUESTION}|(?!.*[.!。！;:]$).{{1,100}})"
    rf"|(?:\d{{1,3}}|[A-Z])\. [^\W\d_](?:{_QUESTION}|.{{0,100}}(?<![.!;:]))"
)
# A chapter and its first section on one line, as a web page's list gives them: `2. Tar: 2.1. Where it is from`.
_FIRST_SECTION = re.compile(rf": (?={_NUMBER}\. )")
# A line of an index, in which bars may stand between columns.
_TERM_ALONE = re.compile(r"(?!.*(?:[.!?。！？;]$|\d{3}|: ))\D.{0,100}")
# A question, or a short line that begins with a capital, and neither ends a sentence nor gives a value.
_NAME = re.compile(rf"{_QUESTION}|(?!.*(?:[.!。！;]$|: | \| ))[\d. ]*[^\W\d_a-z].{{0,80}}")


def is_in_contents(hit: Hit) -> bool:
    """Return whether a hit was found in a table of contents, an index, or a list of links."""
    chunk = hit.chunk
    start = _find_start(chunk)
    if not start:
        return start == 0
    if hit.similarities:
        nearest = max(hit.similarities, key=lambda position: hit.similarities[position])
        return chunk.sentences[nearest].start >= start
    before = searchable(chunk.text[:start])
    return bool(hit.keyword_counts) and not any(searchable(keyword) in before for keyword in hit.keyword_counts)


@lru_cache(maxsize=256)
def _find_start(chunk: Chunk) -> int | None:
    """Return the character from which on a chunk is a table of contents or the like, or None if it is none."""
    if _is_list(_read_page(chunk, 0)):
        return 0
    start = _find_late_start(chunk)
    if start and _is_list(_read_page(chunk, start)):
        return start
    return None


def _find_late_start(chunk: Chunk) -> int | None:
    """Return where a heading such as `Contents`, or a section's number and name, come first below the first line."""
    start = 0
    for line in chunk.text.split("\n"):
        text = collapse_whitespace(line)
        if start and (_is_heading_of_contents(text) or _names_section(text)):
            return start
        start += len(line) + 1
    return None


def _names_section(line: str) -> bool:
    entries = map(_SECTION.fullmatch, _FIRST_SECTION.split(line))
    return any(entry is not None and entry["number"] for entry in entries)


def _is_list(page: _Page) -> bool:
    return any(is_kind(page) for is_kind in _KINDS)


@dataclass(frozen=True, slots=True)
class _Page:
    """The lines of a chunk, without its title and a heading such as `Contents`."""

    lines: list[str]
    is_named: bool  # whether there is such a heading
    is_index: bool  # whether it is one of an index

    def find_entries(self, pattern: re.Pattern[str]) -> list[re.Match[str]]:
        """Return the lines of a kind if they are enough and most of the text, else none."""
        entries: list[re.Match[str]] = []
        characters = 0
        for line in self.lines:
            entry = pattern.fullmatch(line)
            if entry is not None:
                entries.append(entry)
                characters += len(line)
        all_characters = sum(map(len, self.lines))
        if len(entries) < _MIN_LINES or characters < _MIN_SHARE * all_characters:
            return []
        return entries


def _read_page(chunk: Chunk, start: int) -> _Page:
    """Read the lines of a chunk from a character on."""
    headings: list[str] = []
    if chunk.sentences:
        headings = chunk.sentences[0].heading.split(HEADING_BOUNDARY)
    headings.append(chunk.title)
    is_named = any(map(_is_heading_of_contents, headings))
    is_index = any(map(_is_heading_of_index, headings))
    lines: list[str] = []
    for line in chunk.text[start:].split("\n"):
        text = _LIST_MARK.sub("", collapse_whitespace(line))
        if len(lines) < _FIRST_LINES and _is_heading_of_contents(text):
            is_named = True
            is_index = is_index or _is_heading_of_index(text)
        elif any(map(str.isalnum, text)) and not is_title(text, chunk.title):
            lines += _FIRST_SECTION.split(text)
    return _Page(lines, is_named, is_index)


def _is_heading_of_contents(line: str) -> bool:
    return _HEADING.fullmatch(plain(line.strip("#*: "))) is not None


def _is_heading_of_index(line: str) -> bool:
    return _HEADING_OF_INDEX.fullmatch(plain(line.strip("#*: "))) is not None


# --- names with page numbers ---


def _has_dots(page: _Page) -> bool:
    """Return whether dots lead from names to rising page numbers."""
    return _have_rising_pages(page.find_entries(_NAME_DOTS_PAGE))


def _has_pages(page: _Page) -> bool:
    """Return whether names have rising page numbers, and a heading or numbers of chapters say what they are."""
    pattern = _CHAPTER_PAGE
    if page.is_named:
        pattern = _NAME_PAGE
    return _have_rising_pages(page.find_entries(pattern))


def _have_rising_pages(entries: Sequence[re.Match[str]]) -> bool:
    pages = [int(entry["page"]) for entry in entries if entry["page"]]
    if not pages:
        return False
    return pages[0] < pages[-1] and _are_ordered(pages)


def _is_index(page: _Page) -> bool:
    """Return whether most of the text is terms in alphabetical order, with page numbers."""
    entries = page.find_entries(_TERM_PAGES)
    counts: set[int] = set()
    for entry in entries:
        pages = list(map(int, re.findall(r"\d+", entry["pages"] or "")))
        counts.add(len(pages))
        if not _are_ordered(pages):
            return False
    # In a list of prices, too, lines may be in alphabetical order: but each has the same number of them.
    is_marked = page.is_named or len(counts) > 1
    terms = [plain(entry["term"]) for entry in entries]
    return bool(entries) and is_marked and _are_ordered(terms)


# --- names alone ---


def _is_list_of_links(page: _Page) -> bool:
    return bool(page.find_entries(_LINK))


def _is_list_of_names(page: _Page) -> bool:
    return page.is_named and bool(page.find_entries(_TERM_ALONE if page.is_index else _NAME))


def _is_list_of_sections(page: _Page) -> bool:
    """Return whether most of the text is names of sections whose numbers rise."""
    numbers: list[list[int]] = []
    for entry in page.find_entries(_SECTION):
        if entry["number"]:
            numbers.append(list(map(_read_number, entry["number"].split("."))))
    if len(numbers) < _MIN_LINES:
        return False
    return _are_ordered(numbers)


def _read_number(part: str) -> int:
    """Return a part of a section's number; the letters of appendices come behind all chapters."""
    return int(part) if part.isdecimal() else _CHAPTERS + ord(part)


_KINDS: tuple[Callable[[_Page], bool], ...] = (
    _has_dots,
    _has_pages,
    _is_index,
    _is_list_of_links,
    _is_list_of_names,
    _is_list_of_sections,
)


def _are_ordered(values: Sequence[int] | Sequence[str] | Sequence[list[int]]) -> bool:
    """Return whether nearly all neighbours are in order."""
    in_order: int = sum(map(le, values, values[1:]))
    return in_order >= _MIN_ORDERED * (len(values) - 1)
