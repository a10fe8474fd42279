"""Recognises tables of contents, indexes of names and lists of links: they name what other texts say.

A text, or a part of it, is one of these if it has at least five lines, and if most of its text is in lines of one of
these kinds:

- A name with a page number behind it. The page numbers rise from line to line. Dots lead to them (`Scope ..... 12`), or
  the heading says what it is (`Contents`), or the lines have numbers of chapters (`2.1 Scope 12`).
- A name with several page numbers (`Rye, 12, 45-47`), in alphabetical order. Where dots lead to them, a name may hold
  signs, as those of commands do, and an entry may go on in the next line.
- A link and nothing else.
- The number of a chapter, section or appendix and its name. The numbers rise from line to line. The name may be a
  question.
- Under a heading such as `Contents`, a question, or a short line without the end of a sentence; under `Index`, also in
  small letters.

Contents may also stand above, below or between other text: then only these lines are.

Lists of prices have numbers that fall and rise, glossaries have sentences, timetables have times, and bibliographies
have full stops and years: they are none of these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import le

from arag.text.normalise import HEADING_BOUNDARY, collapse_whitespace, is_title, plain, searchable

_MIN_LINES = 5  # fewer are a short list, which is soon read...
_MIN_NAMED = 2  # ...or contents of a short chapter, whose headings stand below it
_MIN_SHARE = 0.7  # of the characters: the rest may be a page's header, or where the text begins
_MIN_ORDERED = 0.9  # of the neighbouring lines: a line may be out of order by a fault of a reader
_CHAPTERS = 1_000  # of a book, at most
_FIRST_LINES = 3  # among which the heading is, below a title or a page's header
_MAX_HEADING = 60  # characters of a heading such as `Contents`


_CONTENTS = re.compile(
    r"(?:table of |list of )?(?:contents|figures|tables|chapters)|on this page|inhalt(?:sverzeichnis)?|sommaire"
    r"|table des matieres|indice(?: general)?|(?:tabla de )?contenidos?|conteudo|sumario|inhoud|obsah|spis tresci"
    r"|turinys|sommario|kazalo|sadrzaj|cuprins|tartalom(?:jegyzek)?|sisallys(?:luettelo)?|innehall(?:sforteckning)?"
    r"|indhold(?:sfortegnelse)?|innhold(?:sfortegnelse)?|icindekiler|содержание|оглавление|目录|目錄|目次|もくじ|차례|목차"
)
_INDEX = re.compile(r"(?:general |subject |name )?index(?: of \w+)?|(?:namens|sach)?register|索引")
_HEADING_OF_INDEX = re.compile(
    r"(?:general |subject |name )?index|(?:namens|sach|stichwort)?(?:register|verzeichnis)|索引"
)
_LIST_MARK = re.compile(r"^(?:[-*+•] |\d+[.)] (?=\[))")
_PAGE = r"(?:(?P<page>\d{1,3}|1[0-3]\d\d)|[ivxl]{1,6})"  # from 1400 on, numbers are years
# Each begins where its dots begin: to try every dot of a long line would take minutes.
_DOTS = r"(?:(?<!\.)(?<!\.\s)(?:\.\s?){3,}|(?<!…)…+\s?|(?<!_)_{3,}\s?|(?<!·)·{3,}\s?)"
# Most lines do not end with a page: to see that first takes a tenth of the time.
_NAME_DOTS_PAGE = re.compile(rf"(?=.*[\divxl]$)\W*\w.*?\s?{_DOTS}{_PAGE}")
_NAME_PAGE = re.compile(rf"(?=.*[^\W\d]).{{2,}}?(?: \| ?| ){_PAGE}(?: \|)?")
_CHAPTER = r"(?:\d+\.\d+|chapter|part|section|appendix|kapitel|第.{1,3}[章节節])\b"
_CHAPTER_PAGE = re.compile(rf"{_CHAPTER}.*? {_PAGE}", re.IGNORECASE)
_TERM = r"(?P<term>[^\d|.;:!?$€£¥]{2,60}?)"
_PAGES = r"(?P<pages>\d{1,4}(?:(?:[-–]|, )\d{1,4})*)"
_TERM_PAGES = re.compile(rf"{_TERM}(?:,? {_PAGES}|[,.]? see (?:also )?\S.*)", re.IGNORECASE)
# A further line of an entry has no term; where its pages stand in the next line, dots end it.
_TERM_DOTS_PAGES = re.compile(
    rf"(?=.*(?:\d,?|[ .]\.)$)(?:(?P<term>[^\s.|\d].{{0,60}}?)(?=[ .|]))?(?P<dots>[ .|]*)(?:{_PAGES},?)?"
)
_LINK = re.compile(r"\[[^\]]+\]\([^)\s]+\)")
_QUESTION = r".{0,200}[?？]"
_NUMBER = r"(?:\d{1,3}|[A-Z])(?:\.\d{1,3})+"
_SECTION = re.compile(
    rf"(?P<number>{_NUMBER})(?:\. | (?=\D))(?:{_QUESTION}|(?!.*[.!。！;:]$).{{1,100}})"
    rf"|(?:\d{{1,3}}|[A-Z])\. [^\W\d_](?:{_QUESTION}|.{{0,100}}(?<![.!;:]))"
)
# A chapter and its first section on one line, as a web page's list gives them: `2. Tar: 2.1. Where it is from`.
_FIRST_SECTION = re.compile(rf": (?={_NUMBER}\. )")
_LETTER = re.compile(r"#+ [A-ZА-Я]")  # the heading above the terms that begin with it
# What ends contents: a sentence, or a paragraph.
_STATEMENT = re.compile(r".{40,}[.!。！]|.{15,}[。！]|.{250,}(?<![?？])")
# The number before a name, also as `Chapter 7.`, and behind a chapter's name that of its first section.
_SECTION_NUMBERS = re.compile(
    r"^(?:(?:[^\W\d_]+ )?\d{1,3}\.(?: |(?=[^\x00-\x7f]))|\d{1,3}(?:\.\d{1,3})*\.? "
    r"|[A-Z](?:\.|(?:\.\d{1,3})+\.?) |第.{1,3}[章节節] ?)"
    rf"|(?:: |^){_NUMBER}\.?$"
)
_LINK_NAME = re.compile(r"\[([^\]]+)\]\([^)\s]+\)")
_LEADER = re.compile(rf"(?:\s?{_DOTS}| \| ?){_PAGE}(?: \|)?$")
# A line of an index, in which bars may stand between columns.
_TERM_ALONE = re.compile(r"(?!.*(?:[.!?。！？;]$|\d{3}|: ))\D.{0,100}")
# A question, or a short line that begins with a capital, and neither ends a sentence nor gives a value.
_NAME = re.compile(rf"{_QUESTION}|(?!.*(?:[.!。！;]$|: | \| ))[\d. ]*[^\W\d_a-z].{{0,80}}")


def find_lists(text: str, title: str = "", headings: Sequence[tuple[int, str]] = ()) -> tuple[range, ...]:
    """Return the characters of a text that are contents, an index or a list of links: all of it, or parts.

    Args:
        text: A part of a document.
        title: The document's title.
        headings: Where sentences start, and the headings above each.
    """
    part = _Part(text, title, headings)
    whole = range(_find_end(part))
    if _is_list(_read_page(part, whole)):
        return (whole,)
    return tuple(run for run in _split_runs(text) if _is_list_in_text(part, run))


def _find_end(part: _Part) -> int:
    """Return where the first section that is named as contents ends, or else where the part does."""
    is_in_contents = False
    for start, heading in part.headings:
        was_in_contents = is_in_contents
        is_in_contents = any(map(_is_heading_of_list, heading.split(HEADING_BOUNDARY)))
        if was_in_contents and not is_in_contents:
            return start
    return len(part.text)


def cut_out(text: str, runs: Iterable[range]) -> str:
    """Return a text without some parts of it."""
    kept: list[str] = []
    end = 0
    for run in runs:
        kept.append(text[end : run.start])
        end = run.stop
    return "\n".join([*kept, text[end:]])


def list_entries(line: str) -> list[str]:
    """Return the names of the sections on a line of contents: a chapter may stand beside its first section."""
    entries = _FIRST_SECTION.split(_LIST_MARK.sub("", collapse_whitespace(line)))
    return list(map(name_section, entries))


def name_section(text: str) -> str:
    """Return a heading, or an entry of contents, without marks, its number, dots and its page, in lower case."""
    text = _LIST_MARK.sub("", collapse_whitespace(text).lstrip("# "))
    text = _LINK_NAME.sub(r"\1", text)
    text = _LEADER.sub("", text)
    return searchable(_SECTION_NUMBERS.sub("", text))


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a document."""

    text: str
    title: str
    headings: Sequence[tuple[int, str]]


def _split_runs(text: str) -> list[range]:
    """Return the runs of lines without statements. A heading, and the first line with a section's number, begins one.

    So contents stand apart from the title page above and the text below. The letters of an index begin none.
    """
    starts = [0]
    has_sections = False  # or a heading that says what the run is
    offset = 0
    for line in text.split("\n"):
        words_of_line = _LIST_MARK.sub("", collapse_whitespace(line))
        begins_section = words_of_line.startswith("#") and not _LETTER.fullmatch(words_of_line)
        if begins_section or _is_heading_of_list(words_of_line):
            starts.append(offset)
            has_sections = True
        elif _STATEMENT.fullmatch(words_of_line):
            starts += [offset, offset + len(line)]
            has_sections = False
        elif not has_sections and _names_section(words_of_line):
            starts.append(offset)
            has_sections = True
        offset += len(line) + 1
    runs = [range(*bounds) for bounds in pairwise([*starts, len(text)])]
    return [run for run in runs if text.count("\n", run.start, run.stop) >= _MIN_NAMED]


def _is_list_in_text(part: _Part, run: range) -> bool:
    """Return whether some lines of a part are contents.

    Between other text, a list of short lines may say something. So a heading must say that it is contents, or leaders
    must show it, or one of its lines must be a heading below it. A very short list needs both headings. Where a part
    begins or ends with the names of sections, the contents may go on in the part before or after it.
    """
    page = _read_page(part, run)
    if _is_list(page):
        is_at_start = not part.text[: run.start].strip()
        is_at_end = not part.text[run.stop :].strip()
        may_go_on = is_at_start or is_at_end
        has_dots = _has_dots(page) or _is_index_with_dots(page)
        if page.is_named or has_dots or (may_go_on and any(map(_names_section, page.lines[:2]))):
            return True
    elif not page.is_named or not _is_list(replace(page, least=_MIN_NAMED)):
        return False
    headings = {name_section(line) for line in part.text[run.stop :].split("\n") if line.startswith("#")}
    return not headings.isdisjoint(map(name_section, page.lines))


def _names_section(line: str) -> bool:
    entries = map(_SECTION.fullmatch, _FIRST_SECTION.split(line))
    return any(entry is not None and entry["number"] for entry in entries)


def _is_list(page: _Page) -> bool:
    if len(page.lines) < page.least:
        return False
    return any(is_kind(page) for is_kind in _KINDS)


@dataclass(frozen=True, slots=True)
class _Page:
    """Some lines, without the title and a heading such as `Contents`."""

    lines: list[str]
    is_named: bool  # whether there is such a heading
    is_index: bool  # whether it is one of an index
    least: int = _MIN_LINES  # that make a list

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
        if len(entries) < self.least or characters < _MIN_SHARE * all_characters:
            return []
        return entries


def _read_page(part: _Part, run: range) -> _Page:
    """Read some lines of a part. The document's title says what all of it is, not what a few lines are."""
    inside = (heading for start, heading in part.headings if start in run)
    headings = next(inside, "").split(HEADING_BOUNDARY)
    if len(run) == len(part.text):
        headings.append(part.title)
    is_named = any(map(_is_heading_of_list, headings))
    is_index = any(map(_is_heading_of_index, headings))
    lines: list[str] = []
    for line in part.text[run.start : run.stop].split("\n"):
        text = _LIST_MARK.sub("", collapse_whitespace(line))
        if len(lines) < _FIRST_LINES and _is_heading_of_list(text):
            is_named = True
            is_index = is_index or _is_heading_of_index(text)
        elif any(map(str.isalnum, text)) and not is_title(text, part.title):
            lines += _FIRST_SECTION.split(text)
    return _Page(lines, is_named, is_index)


def is_heading_of_contents(line: str) -> bool:
    """Return whether a line is a heading such as `Contents` or `List of figures`, in many languages."""
    return len(line) <= _MAX_HEADING and _CONTENTS.fullmatch(plain(line.strip("#*: "))) is not None


def _is_heading_of_list(line: str) -> bool:
    """Return whether a line is a heading of contents or of an index."""
    if is_heading_of_contents(line):
        return True
    return len(line) <= _MAX_HEADING and _INDEX.fullmatch(_name_index(line)) is not None


def _is_heading_of_index(line: str) -> bool:
    return _HEADING_OF_INDEX.fullmatch(_name_index(line)) is not None


def _name_index(line: str) -> str:
    """Return a heading without marks and its number, as in `4 Index`."""
    return plain(_SECTION_NUMBERS.sub("", line.strip("#*: ")))


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


def _is_index_with_dots(page: _Page) -> bool:
    """Return whether dots lead from terms to several page numbers; those that begin with a sign come first."""
    counts: set[int] = set()
    letters: list[str] = []
    with_dots = 0
    for entry in page.find_entries(_TERM_DOTS_PAGES):
        pages = list(map(int, re.findall(r"\d+", entry["pages"] or "")))
        if not _are_ordered(pages):
            return False
        if entry["term"]:
            counts.add(len(pages))
            first = plain(entry["term"]).removeprefix("\\")[:1]
            letters.append(first if first.isalpha() else "")
            with_dots += entry["dots"].count(".") > 1
    has_dots = 2 * with_dots > len(letters) > 0
    is_marked = page.is_named or len(counts) > 1
    return has_dots and is_marked and _are_ordered(letters)


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
    if len(numbers) < page.least:
        return False
    return _are_ordered(numbers)


def _read_number(part: str) -> int:
    """Return a part of a section's number; the letters of appendices come behind all chapters."""
    return int(part) if part.isdecimal() else _CHAPTERS + ord(part)


_KINDS: tuple[Callable[[_Page], bool], ...] = (
    _has_dots,
    _has_pages,
    _is_index,
    _is_index_with_dots,
    _is_list_of_links,
    _is_list_of_names,
    _is_list_of_sections,
)


def _are_ordered(values: Sequence[int] | Sequence[str] | Sequence[list[int]]) -> bool:
    """Return whether nearly all neighbours are in order."""
    in_order: int = sum(map(le, values, values[1:]))
    return in_order >= _MIN_ORDERED * (len(values) - 1)
