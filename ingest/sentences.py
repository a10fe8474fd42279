"""Splits texts into blocks, such as paragraphs, rows and headings, and these into sentences."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from arag.ingest.boundaries import CLOSERS, ENDS, LEADERS, LIST_ITEM, PAGE, split_paragraph
from arag.ingest.numbering import find_sections
from arag.ingest.outline import (
    BARE,
    DATE,
    FENCE_LINE,
    HEADING_LINE,
    MAX_HEADING,
    Outline,
    has_marked_headings,
    is_heading_line,
    underlined_level,
)
from arag.retrieval.types import Sentence
from arag.text.normalise import CELL_BOUNDARY

RULES_VERSION = 15  # part of every document's fingerprint: documents are cut again when the rules change

_MAX_HEADING_WORDS = 12  # a line with more words is text
_RULE = re.compile(r"[\s=\-*_~#|:+]{3,}$")
_COMMENT = re.compile(r"Comment(?: by [^\n]{1,100}?)?: ")  # as readers show one, below what it is about
_NUMBERED_LINE = re.compile(rf"\d{{1,2}}\.\s+[^\n]{{1,{MAX_HEADING}}}[^\n{re.escape(ENDS)}:;,]")
_ENTRY_END = re.compile(rf"{LEADERS}\s*{PAGE}$")  # of contents or an index
_SECTION_NUMBER = re.compile(r"\d{1,2}(?:\.\d{1,2})*\.?\s")
_SECTION_LINE = re.compile(r"(?:\d{1,2}|[A-Z])\.\d")
# What is below a heading: most of a sentence, or its end. Lines of an address are shorter, or names alone.
_TEXT_BELOW = re.compile(rf"(?![^\W\d_]+: )(?:(?=.{{32}})(?:.*?\s[^\W\d_A-Z]){{2}}.*|.*[{re.escape(ENDS)}:;])")
_NO_TEXT_BELOW = re.compile(rf"\s*(?:{DATE}\s*$|\Z)", re.MULTILINE)  # a paragraph
_SECTION_NAME = re.compile(r"\d{1,2}(?:\.\d{1,2})*\.?\s+[^a-zß-öø-ÿ\d][^\d]*[^\d.:;,]$")  # no sentence, or a question
_MAX_SECTION_LINE = 200  # characters
_UNFINISHED = re.compile(r"[^\W\d_]{2}[.!?]\s+[A-Z][^.!?:;]*[^\W\d_],?\Z")
_ENTRY_CHARACTERS = 40  # at the end of a line that are looked at, as a line of dots may have any length
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
_NOT_AFTER_HEADING = ENDS + ":;,，；：" + CLOSERS.replace(")", "")


class _Block(NamedTuple):
    """A paragraph, a list item, a table's row, a heading, or a line that is none of these."""

    start: int
    end: int  # after its last character
    embedded: bool = True
    level: int = 0  # of a heading in Markdown: 1 to 6
    is_row: bool = False


class _Line(NamedTuple):
    """A line of a text."""

    start: int  # of its first character that is not white space
    end: int  # after its last one
    is_blank: bool
    is_row: bool  # of a table
    is_alone: bool  # whether it is a block by itself
    ends_paragraph: bool  # whether it ends the paragraph before it
    is_entry_end: bool  # whether it ends an entry of contents or an index, and so its paragraph
    level: int  # of a heading in Markdown: 1 to 6; 0 for other lines


def split_sentences(
    text: str,
    *,
    title: str = "",
    guess_headings: bool = True,
    headings_apart: bool = False,
) -> list[Sentence]:
    """Find the sentences of a text, with the headings above them and the headers of their tables.

    Headings, rules and lines without a letter or digit are sentences that are not embedded. Only white space lies
    between sentences.

    Args:
        text: The text.
        title: The document's title. It is a heading if the text begins with it.
        guess_headings: Whether a plain line may be a heading, too.
        headings_apart: Whether it must then stand by itself, after a finished sentence, or have a section's number at
            the start of a paragraph.

    Returns:
        The sentences, in order.
    """
    sentences: list[Sentence] = []
    outline = Outline(title)
    end_of_text = _Block(len(text), len(text), embedded=False)
    before = _Block(0, 0)
    may_be_numbered = guess_headings and headings_apart and not has_marked_headings(text)
    sections = find_sections(text) if may_be_numbered else {}
    has_unsure_sections = may_be_numbered and not sections
    for block, following in pairwise([*_blocks(text, title), end_of_text]):
        line = text[block.start : block.end]
        level = block.level
        is_section = sections.get(block.start) == block.end
        may_be_heading = guess_headings and not _is_of_comment(text, block, following)
        is_next = outline.goes_on(line) and _is_section_title(text, before, block, following)
        is_numbered = is_next or _is_numbered_title(text, before, block, following)
        is_above = _is_above_paragraph(text, block, following)
        is_in_sentence = headings_apart and _is_unfinished(text, before)
        may_be_section = has_unsure_sections and _may_be_section(text, before, block, following, outline)
        before = block
        may_be_title = may_be_heading and (is_numbered or is_above) and not is_in_sentence
        has_other_number = sections and _SECTION_NUMBER.match(line)
        is_plain_heading = may_be_title and not has_other_number and outline.is_plain_heading(line)
        is_heading = is_section or is_plain_heading
        if may_be_section and not is_heading:
            outline.leave_section(line)
        if is_heading:
            level = BARE
        elif may_be_title and is_above:
            if not outline.repeats(line):  # such as a date or a name
                sentence = Sentence(
                    start=block.start,
                    end=block.end,
                    embedded=True,
                    heading=outline.path,
                )
                sentences.append(sentence)
                continue
            level = BARE
        if level or not block.embedded:
            parents = outline.enter(level, line, is_certain=is_section) if level else outline.path
            sentence = Sentence(
                start=block.start,
                end=block.end,
                embedded=False,
                heading=parents,
            )
            sentences.append(sentence)
        elif block.is_row:
            header = outline.enter_row(line, text[following.start : following.end])
            sentences += _split_block(text, block, outline, header=header)
        else:
            if len(line) > MAX_HEADING:
                outline.leave_table()
            sentences += _split_block(
                text,
                block,
                outline,
                guess_headings=may_be_heading and not sections,
                headings_apart=headings_apart,
            )
    return sentences


def _is_of_comment(text: str, block: _Block, following: _Block) -> bool:
    """Return whether a block is a comment, or is what the comment after it is about."""
    is_comment = _COMMENT.match(text, block.start) is not None
    has_comment = _COMMENT.match(text, following.start) is not None
    return is_comment or has_comment


def _split_block(
    text: str,
    block: _Block,
    outline: Outline,
    *,
    header: str = "",
    guess_headings: bool = False,
    headings_apart: bool = False,
) -> Iterator[Sentence]:
    """Yield the sentences of a paragraph. Lines inside it may be headings, too, or only its first one with a number."""
    headings: deque[tuple[int, str]] = deque()
    if guess_headings:
        headings.extend(_heading_lines(text, block, headings_apart))
    for start, end in split_paragraph(text, block.start, block.end):
        path = outline.path
        while headings and headings[0][0] <= start:
            heading_start, line = headings.popleft()
            parents = outline.enter(BARE, line)
            path = parents if heading_start == start else outline.path
        has_words = any(map(str.isalnum, text[start:end]))
        yield Sentence(
            start=start,
            end=end,
            embedded=has_words,
            heading=path,
            header=header,
        )
    for _, line in headings:
        outline.enter(BARE, line)


def _heading_lines(text: str, block: _Block, headings_apart: bool) -> Iterator[tuple[int, str]]:
    """Yield the lines of a paragraph that look like headings, each with its start; apart, only a numbered first one.

    A line whose next one begins with a small letter is a part of a sentence. One without a number has text below it:
    names in an address and at the end of a letter have none.
    """
    lines = text[block.start : block.end].splitlines(keepends=True)
    if len(lines) == 1:
        return
    start = block.start
    above_text = [False] * len(lines)
    if not headings_apart:
        is_last_above_text = _NO_TEXT_BELOW.match(text, block.end) is None
        above_text = _are_above_text(lines, is_last_above_text=is_last_above_text)
    for line, following, has_text in zip(lines, [*lines[1:], ""], above_text, strict=True):
        has_number = _SECTION_LINE.match(line) is not None
        is_section = start == block.start and has_number
        goes_on = following.lstrip()[:1].islower()
        is_title = not headings_apart and (has_number or has_text)
        may_be_heading = (is_section or is_title) and not goes_on
        if may_be_heading and is_heading_line(line.strip()):
            yield start, line
        start += len(line)


def _are_above_text(lines: Sequence[str], *, is_last_above_text: bool) -> list[bool]:
    """Return for each line of a paragraph whether text is below it, or below further lines that look like headings."""
    found: list[bool] = []
    is_above_text = is_last_above_text
    for line in reversed(lines):
        found.append(is_above_text)
        stripped = line.strip()
        if _TEXT_BELOW.fullmatch(stripped):
            is_above_text = True
        elif not is_heading_line(stripped):
            is_above_text = False
    return found[::-1]


def _blocks(text: str, title: str) -> Iterator[_Block]:
    """Yield the blocks of a text; only white space lies between them."""
    paragraph: _Block | None = None
    for line in _lines(text, title):
        if paragraph and line.ends_paragraph:
            yield paragraph
            paragraph = None
        if line.is_blank:
            continue
        if line.is_alone:
            yield _Block(
                start=line.start,
                end=line.end,
                embedded=line.is_row,
                level=line.level,
                is_row=line.is_row,
            )
            continue
        start = paragraph.start if paragraph else line.start
        paragraph = _Block(start, line.end)
        if line.is_entry_end:
            yield paragraph
            paragraph = None
    if paragraph:
        yield paragraph


def _lines(text: str, title: str) -> Iterator[_Line]:
    next_start = 0
    is_fenced = False
    is_at_top = True
    is_after_blank = True
    for line, following in pairwise([*text.splitlines(keepends=True), ""]):
        start = next_start
        next_start += len(line)
        stripped = line.strip()
        is_blank = not stripped
        is_row = CELL_BOUNDARY in line or stripped.startswith("|")
        is_title = is_at_top and stripped == title
        is_fence = FENCE_LINE.match(line) is not None
        is_rule = _RULE.match(line) is not None
        is_item = LIST_ITEM.match(line) is not None
        heading = HEADING_LINE.match(line)
        level = 0
        may_be_underlined = is_after_blank and not is_rule
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
        is_in_other = is_row or is_fenced
        if heading and not is_in_other:
            level = len(heading[1])
        yield _Line(
            start=start + len(line) - len(line.lstrip()),
            end=start + len(line.rstrip()),
            is_blank=is_blank,
            is_row=is_row,
            is_alone=is_alone,
            ends_paragraph=ends_paragraph,
            is_entry_end=_ENTRY_END.search(stripped[-_ENTRY_CHARACTERS:]) is not None,
            level=level,
        )
        is_after_blank = is_blank
        is_at_top = is_at_top and is_blank


def _is_above_paragraph(text: str, block: _Block, following: _Block) -> bool:
    """Return whether a block is a short line with a paragraph after it, which may be a heading."""
    if block.is_row or not (block.embedded and following.embedded):
        return False
    is_paragraph = not _is_short(text, following) or _is_unfinished(text, following)
    return is_paragraph and _is_short(text, block)


def _is_numbered_title(text: str, before: _Block, block: _Block, following: _Block) -> bool:
    """Return whether a block is a numbered line between blank lines, above a paragraph, and no item of a list."""
    if not _NUMBERED_LINE.fullmatch(text, block.start, block.end):
        return False
    is_above_item = LIST_ITEM.match(text, following.start)
    if is_above_item or not following.embedded:
        return False
    if not _is_between_blanks(text, before, block, following):
        return False
    if not LIST_ITEM.match(text, before.start, before.end):
        return True
    return _indentation(text, before) > _indentation(text, block)  # an item of a list in the section before


def _is_section_title(text: str, before: _Block, block: _Block, following: _Block) -> bool:
    """Return whether a block is a short line such as `2.2 Oats` between blank lines, and above any text of its own."""
    if not _SECTION_LINE.match(text, block.start, block.end) or not _is_short(text, block):
        return False
    is_above_section = _SECTION_LINE.match(text, following.start)
    if is_above_section or not following.embedded:
        return False
    return _is_between_blanks(text, before, block, following)


def _may_be_section(text: str, before: _Block, block: _Block, following: _Block, outline: Outline) -> bool:
    """Return whether a block with the next number may be a title: it has a capital, and does not end as a sentence."""
    line = text[block.start : block.end]
    if len(line) > _MAX_SECTION_LINE or not _SECTION_NAME.match(line) or not outline.goes_on(line):
        return False
    is_above_section = _SECTION_NUMBER.match(text, following.start)
    return not is_above_section and _is_between_blanks(text, before, block, following)


def _is_between_blanks(text: str, before: _Block, block: _Block, following: _Block) -> bool:
    is_first = before.end == 0
    is_below_blank = is_first or _BLANK_LINE.search(text, before.end, block.start)
    is_above_blank = _BLANK_LINE.search(text, block.end, following.start)
    return bool(is_below_blank and is_above_blank)


def _is_unfinished(text: str, block: _Block) -> bool:
    """Return whether the last sentence of a block, which is not its first one, goes on after it."""
    return _UNFINISHED.search(text, block.start, block.end) is not None


def _indentation(text: str, block: _Block) -> int:
    return block.start - text.rfind("\n", 0, block.start)


def _is_short(text: str, block: _Block) -> bool:
    """Return whether a block is a line that may be a heading."""
    line = text[block.start : block.end]
    if len(line) > MAX_HEADING or len(line.split()) > _MAX_HEADING_WORDS:
        return False
    if "\n" in line or CELL_BOUNDARY in line:
        return False
    return line[-1] not in _NOT_AFTER_HEADING and not LIST_ITEM.match(line)
