"""Finds the headings of texts that do not mark them, such as those of PDFs, by the type of their lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from arag.ingest.formats.title_texts import BARE_SECTION, LABEL_OF_PART, match_number, number_of
from arag.ingest.formats.typography import (
    MAX_LEVEL,
    SHORT_DOCUMENT,
    BodyType,
    Line,
    Typography,
    find_body_type,
    find_typography,
    is_cover,
)
from arag.ingest.outline import escape_marks, escape_structure, escape_underlines
from arag.text.normalise import collapse_whitespace
from arag.text.scripts import UNSPACED

_MAX_LABEL_GAP = 2.5  # times the size of a title, from the number of a chapter above it
_MAX_PITCH = 2.6  # times the size of the type, from a line of a title to its next one

_UNSPACED_BREAK = re.compile(f"(?<=[{UNSPACED}])\n(?=[{UNSPACED}])")


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
        return min(level, MAX_LEVEL)


def mark_headings(pages: Sequence[Sequence[Line]]) -> Iterator[str]:
    """Yield the text of each page, with headings as in Markdown.

    A heading is in larger type than most text, or it begins with a section's number and is in another font, or it is
    bold and set apart. Where the document's own outline names headings, other lines in type of that size are none.
    """
    body = find_body_type(pages)
    if body is None:
        yield from map(_without_headings, pages)
        return
    pages_of_blocks = [_join_titles(page, body) for page in pages]
    typography = find_typography(pages_of_blocks, body)
    last_titles: dict[int, str] = {}
    nesting = _Nesting()
    if _is_title_page(pages_of_blocks, body.size):
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
    if len(pages) <= SHORT_DOCUMENT or not is_cover(pages, body_size):
        return False
    return not any(block.level or match_number(block.text) for block in pages[0])


def _join_titles(page: Sequence[Line], body: BodyType) -> list[Line]:
    """Join lines in the same larger type, unless they have numbers of their own, and names to `§ 1` above them.

    A title is joined to `Chapter 1` above it, too, which may be in smaller type.
    """
    blocks = list(page[:1])
    for line in page[1:]:
        last = blocks[-1]
        is_title = line.size >= body.larger
        is_name = line.font != body.font and BARE_SECTION.fullmatch(last.text) is not None
        may_be_joined = is_title or is_name
        if is_title and _is_label_of(last, line):
            blocks[-1] = line._replace(text=f"{last.text}\n{line.text}", top=last.top)
        elif may_be_joined and _goes_on(last, line):
            blocks[-1] = last._replace(text=f"{last.text}\n{line.text}", bottom=line.bottom)
        else:
            blocks.append(line)
    return blocks


def _is_label_of(label: Line, title: Line) -> bool:
    """Return whether a line is the number of a part of a book, in larger type than most text, above its title."""
    return all(
        [
            not label.level,
            not title.level,
            not title.is_entry,
            not match_number(title.text),
            label.size <= title.size,
            label.bottom - title.top < _MAX_LABEL_GAP * title.size,
            LABEL_OF_PART.fullmatch(label.text),
        ]
    )


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


# --- the text with its marks ---


def _leave_out_names(page: Sequence[Line], levels: list[int]) -> None:
    """Take the names of authors for no heading: between the title of a document and its first heading."""
    for place, (title, names, heading) in enumerate(zip(page, page[1:], page[2:], strict=False), 1):
        is_between = title.size > names.size < heading.size and 0 < levels[place + 1] < levels[place]
        if is_between and not names.level and not match_number(names.text):
            levels[place] = 0


def _mark_page(
    page: Sequence[Line],
    typography: Typography,
    last_titles: dict[int, str],
    nesting: _Nesting,
) -> str:
    """Return a page's text with marks before its headings.

    `last_titles` has the last title of each level, also from earlier pages, and `nesting` the headings above the page;
    this page's are added.
    """
    levels = [typography.level(block) for block in page]
    if not nesting.headings:
        _leave_out_names(page, levels)
    levels.append(0)
    lines: list[str] = []
    is_below_title = False
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
            is_title = block.is_bold_title and not level  # which is a paragraph of its own
            is_text_below_title = is_below_title and not block.text[:1].islower()
            begins_paragraph = any([is_title, is_text_below_title, block.begins_paragraph])
            lines += [""] * begins_paragraph
            lines.append(escape_marks(block.text))
            is_below_title = is_title
            continue
        is_below_title = False
        marks = "#" * nesting.enter(block, level)
        lines.append(f"{marks} {title}")
    return escape_underlines("\n".join(lines))
