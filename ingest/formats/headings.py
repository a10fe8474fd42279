"""Finds the headings of texts that do not mark them, such as those of PDFs, by the type of their lines."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeVar

from arag.text.normalise import CELL_BOUNDARY, collapse_whitespace

_LARGER = 1.15  # times the size of most text; a lower value makes headings of text that is hardly larger
_MAX_TITLE = 120  # characters: longer ones are sentences
_MAX_TITLE_LINES = 3
_SHORT_DOCUMENT = 2  # pages: in a longer one, headings of one level are on several pages
_MAX_LEVEL = 6  # of a heading in Markdown

_NUMBER = re.compile(r"(?:\d{1,2}|[A-Z](?=\.\d))((?:\.\d{1,2})*)\.?\s+(?=\D)(?!.*\d$)")  # such as 3, 3.4 or A.2
# The end of a sentence or of a part of it, of a title that continues one of an earlier page, and of a table's row.
_NO_TITLE_END = re.compile(r"(?:[.,;:]|\b(?:and|or)|\(continued\)|[\d%)]\s+[-–(]?\d[\d.,%)]*)$", re.IGNORECASE)

_Key = TypeVar("_Key")


class Line(NamedTuple):
    """A line of a page, and its type: the size in points, and the name of the font if it has only one."""

    text: str
    size: float = 0.0
    font: str = ""


@dataclass(frozen=True)
class _Typography:
    """The type of a document's text and of its headings."""

    body_size: float
    body_font: str
    heading_sizes: list[float]  # the largest first

    def level(self, block: Line) -> int:
        """Return the level of a heading, or 0 for text."""
        if not _is_title(block.text):
            return 0
        if block.size in self.heading_sizes:
            return min(self.heading_sizes.index(block.size) + 1, _MAX_LEVEL)
        number = _NUMBER.match(block.text)
        has_other_font = block.font not in {self.body_font, ""}
        if number and has_other_font and block.size >= self.body_size:
            depth = number[1].count(".")
            return min(len(self.heading_sizes) + 1 + depth, _MAX_LEVEL)
        return 0


def mark_headings(pages: Sequence[Sequence[Line]]) -> Iterator[str]:
    """Yield the text of each page, with headings as in Markdown.

    A heading is in larger type than most text, or it begins with a section's number and is in another font.
    """
    characters_by_size, characters_by_font = _count_characters(pages)
    body_size = _most_common(characters_by_size)
    larger = _LARGER * body_size
    pages_of_blocks = [_join_titles(page, larger) for page in pages]
    typography = _Typography(
        body_size=body_size,
        body_font=_most_common(characters_by_font),
        heading_sizes=_find_heading_sizes(pages_of_blocks, larger, characters_by_size),
    )
    last_titles: dict[int, str] = {}
    for page in pages_of_blocks:
        yield _mark_page(page, typography, last_titles)


def _count_characters(pages: Sequence[Sequence[Line]]) -> tuple[Counter[float], Counter[str]]:
    by_size = Counter[float]()
    by_font = Counter[str]()
    for page in pages:
        for line in page:
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
        if _is_same_type(line, last) and line.size >= larger and not _NUMBER.match(line.text):
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


def _mark_page(page: Sequence[Line], typography: _Typography, last_titles: dict[int, str]) -> str:
    """Return a page's text with marks before its headings.

    `last_titles` has the last title of each level, also from earlier pages; this page's are added.
    """
    levels = [typography.level(block) for block in page]
    with_next_levels = pairwise([*levels, 0])
    lines: list[str] = []
    for block, (level, next_level) in zip(page, with_next_levels, strict=True):
        title = collapse_whitespace(block.text)
        # Titles of one level in a row are a list, such as a table of contents.
        is_in_list = level == next_level
        is_repeated = last_titles.get(level) == title
        if level and not is_in_list and not is_repeated:
            lines.append(f"{'#' * level} {title}")
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
    if len(title) < 2 or not title[0].isalpha() or title[0].islower():
        return False
    letters = sum(map(str.isalpha, title))
    if 2 * letters < len(title) or CELL_BOUNDARY in text:
        return False
    return not _NO_TITLE_END.search(text)
