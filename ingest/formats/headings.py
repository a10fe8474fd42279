"""Finds the headings of texts that do not mark them, such as those of PDFs, by the type of their lines."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple, TypeAlias, TypeVar

from arag.text.normalise import CELL_BOUNDARY, collapse_whitespace
from arag.text.scripts import UNSPACED

_LARGER = 1.15  # times the size of most text; a lower value makes headings of text that is hardly larger
_MAX_TITLE = 120  # characters: longer ones are sentences
_MAX_TITLE_LINES = 3
_SHORT_DOCUMENT = 2  # pages: in a longer one, headings of one level are on several pages
_UNNAMED = 0.2  # of the titles in one type may be missing in the document's outline
_MAX_LEVEL = 6  # of a heading in Markdown

_NUMBER = re.compile(r"(\d{1,2}(?:\.\d{1,2})*|[A-Z](?:\.\d{1,2})+)\.?\s+(?=\D)(?!.*\d$)")  # such as 3, 3.4 or A.2
# The end of a sentence or of a part of it, of a title that continues one of an earlier page, and of a table's row.
_LEADERS = re.compile(r"(?:\. ?){4,}|(?:… ?){2,}|_{4,}|·{4,}")  # between a title and its page in a table of contents
_BULLET = re.compile(r"[-–—*•‣◦·▪■●○►§©|<>=+]")
_BULLET_APART = re.compile(rf"{_BULLET.pattern}+\s")  # after a number, a sign may begin a name: 5.6.2 --force
_NO_TITLE_END = re.compile(r"(?:[.,;:]|\b(?:and|or)|\(continued\)|[\d%)]\s+[-–(]?\d[\d.,%)]*)$", re.IGNORECASE)
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
    """

    text: str
    size: float = 0.0
    font: str = ""
    left: float = 0.0
    right: float = 0.0
    bottom: float = 0.0
    top: float = 0.0
    level: int = 0


@dataclass(frozen=True)
class _Typography:
    """The type of a document's text and of its headings."""

    body_size: float
    body_font: str
    heading_sizes: list[float]  # the largest first
    outline_levels: int  # how many levels of headings the document's own outline has
    outline_depth: int  # and how many parts its numbers have
    outline_types: Mapping[_Type, int]  # the types of nearly all of these headings alone, and their levels

    def level(self, block: Line) -> int:
        """Return the level of a heading, or 0 for text."""
        if block.level:
            return min(block.level, _MAX_LEVEL)
        if not _is_title(block.text):
            return 0
        if (block.size, block.font) in self.outline_types:
            return self.outline_types[block.size, block.font]
        if block.size in self.heading_sizes:
            return min(self.outline_levels + self.heading_sizes.index(block.size) + 1, _MAX_LEVEL)
        number = _NUMBER.match(block.text)
        has_other_font = block.font not in {self.body_font, ""}
        depth = number[1].count(".") if number else 0
        if number and has_other_font and block.size >= self.body_size and depth >= self.outline_depth:
            return min(self.outline_levels + len(self.heading_sizes) + 1 + depth, _MAX_LEVEL)
        return 0


@dataclass
class _Nesting:
    """The headings above a line, outermost first: the level of each, and the parts of its number if it has one."""

    headings: list[tuple[int, list[str]]] = field(default_factory=list)

    def enter(self, block: Line, level: int) -> int:
        """Enter a heading, and return its level so that numbers nest as they count: 5.6.1 is not under 5.5.4.1."""
        match = _NUMBER.match(block.text)
        number = match[1].split(".") if match else []
        if number and not block.level:
            level = self._level_of_number(number, level)
        self.headings = [heading for heading in self.headings if heading[0] < level]
        self.headings.append((level, number))
        return level

    def _level_of_number(self, number: list[str], level: int) -> int:
        for other_level, other in self.headings:
            if other == number[: len(other)] and len(other) < len(number) and other:
                level = other_level + len(number) - len(other)
            elif len(other) > 1 or (other and len(number) > 1):
                level = min(level, other_level)
                break
        return min(level, _MAX_LEVEL)


def mark_headings(pages: Sequence[Sequence[Line]]) -> Iterator[str]:
    """Yield the text of each page, with headings as in Markdown.

    A heading is in larger type than most text, or it begins with a section's number and is in another font. Where the
    document's own outline names headings, other lines in type of that size are none.
    """
    characters_by_size, characters_by_font = _count_characters(pages)
    if not characters_by_size:
        yield from ("\n".join(line.text for line in page) for page in pages)
        return
    body_size = _most_common(characters_by_size)
    larger = _LARGER * body_size
    pages_of_blocks = [_join_titles(page, larger) for page in pages]
    sizes = _find_heading_sizes(pages_of_blocks, larger, characters_by_size)
    named = [block for page in pages for block in page if block.level]
    if named:
        smallest = min(block.size for block in named)
        sizes = [size for size in sizes if size < smallest]
    typography = _Typography(
        body_size=body_size,
        body_font=_most_common(characters_by_font),
        heading_sizes=sizes,
        outline_levels=max((block.level for block in named), default=0),
        outline_depth=max((_count_parts(block.text) for block in named), default=0),
        outline_types=_find_outline_types(pages_of_blocks, larger),
    )
    last_titles: dict[int, str] = {}
    nesting = _Nesting()
    for page in pages_of_blocks:
        yield _mark_page(page, typography, last_titles, nesting)


def _find_outline_types(pages: Sequence[Sequence[Line]], larger: float) -> dict[_Type, int]:
    """Return the larger types in which nearly all titles are in the document's outline, with the level of most."""
    levels: dict[_Type, Counter[int]] = defaultdict(Counter)
    for page in pages:
        for block in page:
            if block.size >= larger and (block.level or _is_title(block.text)):
                levels[block.size, block.font][block.level] += 1
    types: dict[_Type, int] = {}
    for block_type, counts in levels.items():
        level = _most_common(counts)
        if level and counts[0] <= _UNNAMED * counts.total():
            types[block_type] = min(level, _MAX_LEVEL)
    return types


def _count_parts(title: str) -> int:
    """Return how many parts the number of a title has."""
    number = _NUMBER.match(title)
    return number[1].count(".") + 1 if number else 0


def _count_characters(pages: Sequence[Sequence[Line]]) -> tuple[Counter[float], Counter[str]]:
    by_size = Counter[float]()
    by_font = Counter[str]()
    for page in pages:
        for line in page:
            if line.size:  # a form's value has none
                by_size[line.size] += len(line.text)
                by_font[line.font] += len(line.text)
    return by_size, by_font


def _most_common(counts: Counter[_Key]) -> _Key:
    (most_common,) = counts.most_common(1)
    return most_common[0]


def _join_titles(page: Sequence[Line], larger: float) -> list[Line]:
    """Join lines in the same larger type, unless they have numbers of their own."""
    blocks = list(page[:1])
    for line in page[1:]:
        last = blocks[-1]
        is_named = line.level or last.level  # by the document's outline: it is whole
        if _is_same_type(line, last) and line.size >= larger and not _NUMBER.match(line.text) and not is_named:
            blocks[-1] = last._replace(text=f"{last.text}\n{line.text}")
        else:
            blocks.append(line)
    return blocks


def _is_same_type(line: Line, other: Line) -> bool:
    return line.size == other.size and line.font == other.font


def _find_heading_sizes(
    pages: Sequence[Sequence[Line]],
    larger: float,
    characters: Counter[float],
) -> list[float]:
    """Return the sizes of type in which headings are set, the largest first."""
    title_characters = Counter[float]()
    pages_of_size: dict[float, set[int]] = defaultdict(set)
    for page_number, page in enumerate(pages):
        for block in page:
            if block.size >= larger and _is_title(block.text):
                title_characters[block.size] += len(block.text)
                pages_of_size[block.size].add(page_number)
    # The cover of a long document may have a size of its own.
    min_pages = 1 if len(pages) <= _SHORT_DOCUMENT else 2
    sizes: list[float] = []
    for size, page_numbers in pages_of_size.items():
        is_mostly_titles = 2 * title_characters[size] > characters[size]  # text may have a larger size, too
        if is_mostly_titles and len(page_numbers) >= min_pages:
            sizes.append(size)
    return sorted(sizes, reverse=True)


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
    with_next_levels = pairwise([*levels, 0])
    lines: list[str] = []
    for block, (level, next_level) in zip(page, with_next_levels, strict=True):
        title = collapse_whitespace(_UNSPACED_BREAK.sub("", block.text))
        # Titles of one level in a row are a list, such as a table of contents.
        is_in_list = level == next_level and not block.level
        is_repeated = last_titles.get(level) == title
        if level and not is_in_list and not is_repeated:
            lines.append(f"{'#' * nesting.enter(block, level)} {title}")
        else:
            lines.append(block.text)
        last_titles[level] = title
    return "\n".join(lines)


def _is_title(text: str) -> bool:
    """Return whether a text looks like a title: short, mostly letters, and no sentence or row of a table."""
    if len(text) > _MAX_TITLE or text.count("\n") >= _MAX_TITLE_LINES:
        return False
    number = _NUMBER.match(text)
    title = text[number.end() :] if number else text
    if len(title) < 2 or CELL_BOUNDARY in text:
        return False
    bullet = _BULLET_APART if number else _BULLET
    if bullet.match(title):
        return False
    if title[0].islower() and not number:
        return False
    letters = sum(map(str.isalpha, title))
    signs = sum(map(str.isalnum, title))
    if 2 * letters < signs or 4 * letters < len(title) or not letters:
        return False
    return not _NO_TITLE_END.search(text) and not _LEADERS.search(text)
