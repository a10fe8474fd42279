"""Splits texts into blocks, such as paragraphs, rows and headings."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import NamedTuple

from arag.ingest.boundaries import LEADERS, LIST_ITEM, PAGE
from arag.ingest.outline import FENCE_LINE, HEADING_LINE, underlined_level
from arag.ingest.plain_tables import find_rows, is_barred

# An item, or a numbered line of a listing in the source of TeX.
_LISTED = re.compile(rf"{LIST_ITEM.pattern}|\d{{1,5}} (?:\\[A-Za-z@]|[{{}}⟨])")
_RULE = re.compile(r"[\s=\-*_~#|:+]{3,}$")
_ENTRY_END = re.compile(rf"{LEADERS}\s*{PAGE}$")  # of contents or an index
_ENTRY_CHARACTERS = 40  # at the end of a line that are looked at, as a line of dots may have any length


class Block(NamedTuple):
    """A paragraph, a list item, a table's row, a heading, or a line that is none of these."""

    start: int
    end: int  # after its last character
    embedded: bool = True
    level: int = 0  # of a heading in Markdown: 1 to 6
    is_row: bool = False
    is_code: bool = False  # a line of code between fences


class _Line(NamedTuple):
    """A line of a text."""

    start: int  # of its first character that is not white space
    end: int  # after its last one
    is_blank: bool
    is_row: bool  # of a table
    is_alone: bool  # whether it is a block by itself
    is_code: bool  # whether it is between fences
    ends_paragraph: bool  # whether it ends the paragraph before it
    is_entry_end: bool  # whether it ends an entry of contents or an index, and so its paragraph
    level: int  # of a heading in Markdown: 1 to 6; 0 for other lines


def split_blocks(
    text: str,
    title: str,
    *,
    is_plain: bool = False,
    is_code: bool = False,
    barred_lines: Collection[str] = (),
) -> Iterator[Block]:
    """Yield the blocks of a text; only white space lies between them.

    Args:
        text: The text.
        title: The document's title.
        is_plain: Whether a line with bars may be code.
        is_code: Whether no line is a heading.
        barred_lines: The lines that are not rows although they have bars.
    """
    paragraph: Block | None = None
    for line in _lines(text, title, barred_lines, is_plain=is_plain, is_code=is_code):
        if paragraph and line.ends_paragraph:
            yield paragraph
            paragraph = None
        if line.is_blank:
            continue
        if line.is_alone:
            yield Block(
                start=line.start,
                end=line.end,
                embedded=line.is_row,
                level=line.level,
                is_row=line.is_row,
            )
            continue
        start = paragraph.start if paragraph else line.start
        paragraph = Block(start, line.end, is_code=line.is_code)
        if line.is_entry_end:
            yield paragraph
            paragraph = None
    if paragraph:
        yield paragraph


def _lines(text: str, title: str, barred_lines: Collection[str], *, is_plain: bool, is_code: bool) -> Iterator[_Line]:
    lines = text.splitlines(keepends=True)
    rows = find_rows(text) if is_plain else None
    texts_with_bars = frozenset(barred_lines)
    next_start = 0
    is_fenced = False
    is_at_top = True
    is_after_blank = True
    for line, following in pairwise([*lines, ""]):
        start = next_start
        next_start += len(line)
        stripped = line.strip()
        is_blank = not stripped
        has_bars = is_barred(line) and stripped not in texts_with_bars
        is_row = has_bars and (rows is None or start in rows)
        is_title = is_at_top and stripped == title
        is_fence = FENCE_LINE.match(line) is not None
        is_rule = _RULE.match(line) is not None
        is_item = _LISTED.match(line) is not None
        may_be_heading = not (has_bars or is_code)
        heading = HEADING_LINE.match(line) if may_be_heading else None
        level = 0
        may_be_underlined = is_after_blank and not is_rule and not is_code
        if may_be_underlined and not is_fenced:
            level = underlined_level(stripped, following)
        is_alone = any(
            [
                is_fence,
                is_row,
                is_title,
                is_rule,
                heading is not None,
                level > 0,
            ]
        )
        ends_paragraph = any([is_blank, is_alone, is_item, is_fenced])
        if is_fence:
            is_fenced = not is_fenced
        if heading and not is_fenced:
            level = len(heading[1])
        yield _Line(
            start=start + len(line) - len(line.lstrip()),
            end=start + len(line.rstrip()),
            is_blank=is_blank,
            is_row=is_row,
            is_alone=is_alone,
            is_code=is_fenced,
            ends_paragraph=ends_paragraph,
            is_entry_end=_ENTRY_END.search(stripped[-_ENTRY_CHARACTERS:]) is not None,
            level=level,
        )
        is_after_blank = is_blank
        is_at_top = is_at_top and is_blank
