"""Finds the headings of texts that do not mark them, such as those of PDFs, by the type of their lines."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from statistics import median
from typing import NamedTuple, TypeAlias, TypeVar

from arag.ingest.formats.title_texts import (
    BARE_SECTION,
    is_code_font,
    is_other_line,
    is_title,
    match_number,
    number_of,
)
from arag.ingest.outline import escape_marks, escape_structure, escape_underlines
from arag.text.normalise import collapse_whitespace
from arag.text.scripts import UNSPACED

LARGER = 1.15  # times the size of most text; a lower value makes headings of text that is hardly larger
_MAX_PITCH = 2.6  # times the size of the type, from a line of a title to its next one
_LINES_BELOW = 3  # of text below a title
_MAX_GAP = 2.0  # times the size of the type, from a title to the text below it
_STRAIGHT = 2.0  # points: how far lines that begin at one edge may be from it
_COVER = 0.3  # of the lines of other pages are on a cover that also has lines in the size of the text, at most
_MAX_COVER_LINE = 60  # characters of such a line
_SHORT_DOCUMENT = 2  # pages: in a longer one, headings of one level are on several pages
_UNNAMED = 0.2  # of the titles in one type may be missing in the document's outline
_MAX_LEVEL = 6  # of a heading in Markdown

_UNSPACED_BREAK = re.compile(f"(?<=[{UNSPACED}])\n(?=[{UNSPACED}])")

_Key = TypeVar("_Key")
_Type: TypeAlias = tuple[float, str]


class Line(NamedTuple):
    """A line of a page.

    Attributes:
        text: Its text.
        size: The size of its type, in points.
        font: The name of its font, if it has only one.
        left: Where it begins; this and the other places are in points from the lower left corner.
        right: Where it ends.
        bottom: The lower edge of its type.
        top: The upper edge.
        level: Of the heading that the document's own outline says it is, or 0.
        is_bold_title: Whether it is bold, and set apart from what is above it.
        is_entry: Whether it is an entry of contents, and not a heading.
        first_font: The name of its first word's font.
        first_size: The size of its first word's type.
        begins_paragraph: Whether it certainly begins a paragraph.
    """

    text: str
    size: float = 0.0
    font: str = ""
    left: float = 0.0
    right: float = 0.0
    bottom: float = 0.0
    top: float = 0.0
    level: int = 0
    is_bold_title: bool = False
    is_entry: bool = False
    first_font: str = ""
    first_size: float = 0.0
    begins_paragraph: bool = False


@dataclass(frozen=True)
class _Typography:
    """The type of a document's text and of its headings."""

    body_size: float
    body_font: str
    heading_sizes: list[float]  # the largest first
    section_sizes: set[float]  # in which most lines in the font of the text are above text, on several pages
    cover_types: set[_Type]  # that have one of these sizes, but not on other pages than the first
    outline_levels: int  # how many levels of headings the document's own outline has
    outline_depth: int  # and how many parts its numbers have
    outline_types: Mapping[_Type, int]  # the types of nearly all of these headings alone, and their levels

    def level(self, block: Line) -> int:
        """Return the level of a heading, or 0 for text."""
        if block.level:
            return min(block.level, _MAX_LEVEL)
        font = block.first_font if block.text.startswith("\\") else block.font
        is_code = is_code_font(font) and not is_code_font(self.body_font)
        if block.is_entry or is_code or is_other_line(block.text) or not is_title(block.text):
            return 0
        block_type = (block.size, block.font)
        level_in_outline = self.outline_types.get(block_type, 0)
        if level_in_outline:
            return level_in_outline
        if block.size not in self.heading_sizes or block_type in self.cover_types:
            return self._level_of_number(block) or self._level_of_bold_title(block)
        is_in_text_font = self.outline_levels > 0 and block.font == self.body_font
        if is_in_text_font and block.size not in self.section_sizes:
            return 0  # such as an author, or a label of a figure
        order = self.heading_sizes.index(block.size)
        level = self.outline_levels + order + 1
        return min(level, _MAX_LEVEL)

    def _level_of_number(self, block: Line) -> int:
        """Return the level of a title in the size of the text, which needs a number and another font."""
        parts = len(number_of(block.text))
        is_named_level = parts == 1 and self.outline_levels > 0  # an outline that names headings names the first ones
        if parts <= self.outline_depth or is_named_level:
            return 0
        has_text_font = block.font in {self.body_font, ""}
        if has_text_font or block.size < self.body_size:
            return 0
        level = self.outline_levels + len(self.heading_sizes) + parts
        return min(level, _MAX_LEVEL)

    def _level_of_bold_title(self, block: Line) -> int:
        """Return the level of a bold title in a size that text has, too, if the document's outline names none."""
        if not block.is_bold_title or self.outline_levels:
            return 0
        larger = [size for size in self.heading_sizes if size > block.size]
        level = len(larger) + 1
        return min(level, _MAX_LEVEL)


@dataclass(frozen=True)
class _Heading:
    """A heading above a line: its level, and the parts of its number if it has one."""

    level: int
    number: list[str]


@dataclass
class _Nesting:
    """The headings above a line, outermost first."""

    headings: list[_Heading] = field(default_factory=list)

    def enter(self, block: Line, level: int) -> int:
        """Enter a heading, and return its level so that numbers nest as they count: 5.6.1 is not under 5.5.4.1."""
        number = number_of(block.text)
        if number and not block.level:
            level = self._level_of_number(number, level)
        while self.headings and self.headings[-1].level >= level:
            self.headings.pop()
        heading = _Heading(level, number)
        self.headings.append(heading)
        return level

    def _level_of_number(self, number: list[str], level: int) -> int:
        numbered = [heading for heading in self.headings if heading.number]
        for other in numbered:
            parts = len(other.number)
            further_parts = len(number) - parts
            begins_with_it = number[:parts] == other.number
            has_several_parts = parts > 1 or len(number) > 1
            if further_parts > 0 and begins_with_it:
                level = other.level + further_parts
            elif has_several_parts:
                level = min(level, other.level)
                break
        return min(level, _MAX_LEVEL)


def mark_headings(pages: Sequence[Sequence[Line]]) -> Iterator[str]:
    """Yield the text of each page, with headings as in Markdown.

    A heading is in larger type than most text, or it begins with a section's number and is in another font, or it is
    bold and set apart. Where the document's own outline names headings, other lines in type of that size are none.
    """
    characters_by_size = Counter[float]()
    characters_by_font = Counter[str]()
    named: list[Line] = []
    named_levels: list[int] = []
    named_depths: list[int] = []
    for line in chain.from_iterable(pages):
        if line.size:  # a form's value has none
            characters = len(line.text)
            characters_by_size[line.size] += characters
            characters_by_font[line.font] += characters
        if line.level:
            number = number_of(line.text)
            named.append(line)
            named_levels.append(line.level)
            named_depths.append(len(number))
    if not characters_by_size:
        yield from map(_without_headings, pages)
        return
    body_size = _most_common(characters_by_size)
    larger = LARGER * body_size
    characters_by_font[""] = 0  # of lines in several fonts: others of the same text have only one
    body_font = _most_common(characters_by_font)
    pages_of_blocks = [_join_titles(page, larger, body_font) for page in pages]
    typography = _Typography(
        body_size=body_size,
        body_font=body_font,
        heading_sizes=_find_heading_sizes(pages_of_blocks, larger, characters_by_size, named),
        section_sizes=_find_section_sizes(pages_of_blocks, body_size, body_font),
        cover_types=_find_cover_types(pages_of_blocks),
        outline_levels=max(named_levels, default=0),
        outline_depth=max(named_depths, default=0),
        outline_types=_find_outline_types(pages_of_blocks, larger),
    )
    last_titles: dict[int, str] = {}
    nesting = _Nesting()
    if _is_title_page(pages_of_blocks, body_size):
        cover = pages_of_blocks.pop(0)
        yield _without_headings(cover)
    for blocks in pages_of_blocks:
        yield _mark_page(blocks, typography, last_titles, nesting)


def _without_headings(page: Iterable[Line]) -> str:
    texts: list[str] = []
    for line in page:
        texts.append(line.text)
    return escape_structure("\n".join(texts))


def _is_title_page(pages: Sequence[Sequence[Line]], body_size: float) -> bool:
    """Return whether the first page of a long document has names alone: the document's, its authors' and the like."""
    if len(pages) <= _SHORT_DOCUMENT or not is_cover(pages, body_size):
        return False
    return not any(block.level or match_number(block.text) for block in pages[0])


def is_cover(pages: Sequence[Sequence[Line]], body_size: float) -> bool:
    """Return whether the first page has larger type alone, or a few short lines and far fewer than other pages."""
    first, *others = pages
    small = [line for line in first if line.size <= body_size]
    if not small:
        return True
    lines = [len(page) for page in others if page]
    has_few_lines = bool(lines) and len(first) < _COVER * median(lines)
    return has_few_lines and all(len(line.text) <= _MAX_COVER_LINE for line in small)


def _most_common(counts: Counter[_Key]) -> _Key:
    (most_common,) = counts.most_common(1)
    return most_common[0]


def _join_titles(page: Sequence[Line], larger: float, body_font: str) -> list[Line]:
    """Join lines in the same larger type, unless they have numbers of their own, and names to `§ 1` above them."""
    blocks = list(page[:1])
    for line in page[1:]:
        last = blocks[-1]
        is_title = line.size >= larger
        is_name = line.font != body_font and BARE_SECTION.fullmatch(last.text) is not None
        may_be_joined = is_title or is_name
        if may_be_joined and _goes_on(last, line):
            blocks[-1] = last._replace(text=f"{last.text}\n{line.text}", bottom=line.bottom)
        else:
            blocks.append(line)
    return blocks


def _goes_on(title: Line, line: Line) -> bool:
    """Return whether a line may be the next one of a title: near, in its type, and without a number of its own."""
    if line.level or title.level:  # by the document's outline: it is whole
        return False
    if line.is_entry or title.is_entry:
        return False
    if line.size != title.size or line.font != title.font:
        return False
    is_near = title.bottom - line.bottom < _MAX_PITCH * line.size
    return is_near and match_number(line.text) is None


# --- the types of headings ---


def _find_outline_types(pages: Iterable[Iterable[Line]], larger: float) -> dict[_Type, int]:
    """Return the larger types in which nearly all titles are in the document's outline, with the level of most."""
    levels: dict[_Type, Counter[int]] = defaultdict(Counter)
    for block in chain.from_iterable(pages):
        if block.size < larger or block.is_entry:
            continue
        block_type = (block.size, block.font)
        if block.level or is_title(block.text):
            levels[block_type][block.level] += 1
    types: dict[_Type, int] = {}
    for block_type, counts in levels.items():
        level = _most_common(counts)
        unnamed = counts[0]
        max_unnamed = _UNNAMED * counts.total()
        if level and unnamed <= max_unnamed:
            types[block_type] = min(level, _MAX_LEVEL)
    return types


def _find_heading_sizes(
    pages: Sequence[Iterable[Line]],
    larger: float,
    characters: Counter[float],
    named: Sequence[Line],
) -> list[float]:
    """Return the sizes of type in which headings are set, the largest first: smaller than those of the outline."""
    title_characters = Counter[float]()
    pages_of_size: dict[float, set[int]] = defaultdict(set)
    for page_number, page in enumerate(pages):
        for block in page:
            if block.size < larger or block.is_entry:
                continue
            if is_title(block.text):
                title_characters[block.size] += len(block.text)
                pages_of_size[block.size].add(page_number)
    is_short = len(pages) <= _SHORT_DOCUMENT
    min_pages = 1 if is_short else 2  # the cover of a long document may have a size of its own
    named_sizes = [line.size for line in named if line.size]  # an entry that is no line of its page has none
    end = min(named_sizes, default=float("inf"))
    sizes: list[float] = []
    for size, page_numbers in pages_of_size.items():
        if size >= end or len(page_numbers) < min_pages:
            continue
        is_mostly_titles = 2 * title_characters[size] > characters[size]  # text may have a larger size, too
        if is_mostly_titles:
            sizes.append(size)
    return sorted(sizes, reverse=True)


def _find_section_sizes(pages: Iterable[Sequence[Line]], body_size: float, body_font: str) -> set[float]:
    """Return the larger sizes in which most titles in the font of the text are above text, on several pages."""
    titles = Counter[float]()
    titles_above_text = Counter[float]()
    pages_of_size: dict[float, set[int]] = defaultdict(set)
    for page_number, page in enumerate(pages):
        for place, block in enumerate(page):
            is_large = block.size >= LARGER * body_size
            if not is_large or block.font != body_font or block.level or block.is_entry:
                continue
            titles[block.size] += 1
            below = page[place + 1 : place + 1 + _LINES_BELOW]
            if _is_above_text(block, below, body_size):
                titles_above_text[block.size] += 1
                pages_of_size[block.size].add(page_number)
    sizes: set[float] = set()
    for size, page_numbers in pages_of_size.items():
        is_mostly_above_text = 2 * titles_above_text[size] > titles[size]
        if is_mostly_above_text and len(page_numbers) > 1:
            sizes.add(size)
    return sizes


def _is_above_text(title: Line, lines: Sequence[Line], body_size: float) -> bool:
    """Return whether the lines below a title are text: near, and at one edge, unlike those of an author or a label."""
    text = [line for line in lines if line.size == body_size]
    if not text or text[0] is not lines[0]:
        return False
    gap = title.bottom - text[0].top
    shifts = [abs(line.left - below.left) for line, below in pairwise([title, *text])]
    return gap < _MAX_GAP * title.size and min(shifts) < _STRAIGHT


def _find_cover_types(pages: Sequence[Iterable[Line]]) -> set[_Type]:
    """Return the types in which a long document has only lines of its first page, such as its authors."""
    first, *others = ({(block.size, block.font) for block in page if block.font} for page in pages)
    if len(pages) <= _SHORT_DOCUMENT:
        return set()
    return first.difference(*others)


# --- the text with its marks ---


def _mark_page(
    page: Sequence[Line],
    typography: _Typography,
    last_titles: dict[int, str],
    nesting: _Nesting,
) -> str:
    """Return a page's text with marks before its headings.

    `last_titles` has the last title of each level, also from earlier pages, and `nesting` the headings above the page;
    this page's are added.
    """
    levels = [typography.level(block) for block in page]
    levels.append(0)
    lines: list[str] = []
    for number, block in enumerate(page):
        level = levels[number]
        following_level = levels[number + 1]
        title = _UNSPACED_BREAK.sub("", block.text)
        title = collapse_whitespace(title)
        # Titles of one level in a row are a list, such as a table of contents.
        is_in_list = level == following_level and not block.level
        is_repeated = last_titles.get(level) == title
        last_titles[level] = title
        is_heading = level > 0 and not is_in_list
        if is_repeated or not is_heading:
            lines += [""] * block.begins_paragraph
            lines.append(escape_marks(block.text))
            continue
        marks = "#" * nesting.enter(block, level)
        lines.append(f"{marks} {title}")
    return escape_underlines("\n".join(lines))
