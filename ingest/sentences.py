"""Splits texts into sentences, with the headings above them and the headers of their tables."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from arag.ingest.blocks import Block, split_blocks
from arag.ingest.boundaries import ENDS, split_paragraph
from arag.ingest.outline import BARE, DATE, MAX_HEADING, Outline, is_heading_line
from arag.ingest.plain_headings import SECTION_LINE, Place, PlainHeadings
from arag.ingest.plain_tables import is_barred
from arag.retrieval.types import Sentence
from arag.text.normalise import CELL_BOUNDARY

RULES_VERSION = 24  # part of every document's fingerprint: documents are cut again when the rules change

_MAX_SHORT_CELL = 100  # characters: longer ones may have several sentences

# What is below a heading: most of a sentence, or its end. Lines of an address are shorter, or names alone.
_TEXT_BELOW = re.compile(rf"(?![^\W\d_]+: )(?:(?=.{{32}})(?:.*?\s[^\W\d_A-Z]){{2}}.*|.*[{re.escape(ENDS)}:;])")
_NO_TEXT_BELOW = re.compile(rf"\s*(?:{DATE}\s*$|\Z)", re.MULTILINE)  # a paragraph


def split_sentences(
    text: str,
    *,
    title: str = "",
    guess_headings: bool = True,
    headings_apart: bool = False,
    is_plain: bool = False,
    is_code: bool = False,
    barred_lines: Collection[str] = (),
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
        is_plain: Whether a bar is a part of the text where it does not certainly divide the cells of a row.
        is_code: Whether no line is a heading: `# Rye` is a comment.
        barred_lines: The lines in which bars are a part of the text.

    Returns:
        The sentences, in order.
    """
    sentences: list[Sentence] = []
    outline = Outline(title)
    headings = PlainHeadings(text, outline, are_wanted=guess_headings and not is_code, are_apart=headings_apart)
    end_of_text = Block(len(text), len(text), embedded=False)
    before = Block(0, 0)
    blocks = split_blocks(text, title, is_plain=is_plain, is_code=is_code, barred_lines=barred_lines)
    for block, following in pairwise([*blocks, end_of_text]):
        place = Place(text, before, block, following)
        before = block
        level = block.level
        is_section = headings.is_section(place)
        if is_section or headings.is_heading(place):
            level = BARE
        else:
            if headings.may_be_section(place):
                outline.leave_section(place.line)
            if headings.is_alone(place):
                if not outline.repeats(place.line):
                    sentences.append(_make_sentence(text, block, outline.path, embedded=True))
                    continue
                level = BARE
        if level:
            parents = outline.enter(level, place.line, is_certain=is_section)
            sentences.append(_make_sentence(text, block, parents, embedded=False))
        elif not block.embedded:
            sentences.append(_make_sentence(text, block, outline.path, embedded=False))
        elif block.is_row:
            header = outline.enter_row(place.line, text[following.start : following.end])
            sentences += _split_block(text, block, outline, header=header)
        else:
            if len(place.line) > MAX_HEADING:
                outline.leave_table()
            sentences += _split_block(
                text,
                block,
                outline,
                guess_headings=headings.may_be_inside(place),
                headings_apart=headings_apart,
            )
    return sentences


def _make_sentence(text: str, block: Block, heading: str, *, embedded: bool) -> Sentence:
    return Sentence(
        start=block.start,
        end=block.end,
        embedded=embedded,
        heading=heading,
        bars_are_text=_are_bars_text(text, block, block.start, block.end),
    )


def _are_bars_text(text: str, block: Block, start: int, end: int) -> bool:
    """Return whether a sentence of a block has bars, and the block is not a row of a table."""
    return not block.is_row and is_barred(text[start:end])


def _split_block(
    text: str,
    block: Block,
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
    for start, end in _find_sentences(text, block):
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
            bars_are_text=_are_bars_text(text, block, start, end),
        )
    for _, line in headings:
        outline.enter(BARE, line)


def _find_sentences(text: str, block: Block) -> Sequence[tuple[int, int]]:
    """Return start and end of the sentences of a block. Lines of code and short cells of tables are whole."""
    if block.is_code:
        return [(block.start, block.end)]
    sentences: list[tuple[int, int]] = []
    for start, end in split_paragraph(text, block.start, block.end):
        if sentences and block.is_row and _is_in_short_cell(text, block, start):
            first_start, _ = sentences.pop()
            sentences.append((first_start, end))
        else:
            sentences.append((start, end))
    return sentences


def _is_in_short_cell(text: str, row: Block, place: int) -> bool:
    """Return whether a place is inside a short cell, where a full stop rather ends an abbreviation: `MwSt. 19 %`."""
    cell_start = text.rfind(CELL_BOUNDARY, row.start, place) + 1 or row.start
    cell_end = text.find(CELL_BOUNDARY, place, row.end)
    if cell_end < 0:
        cell_end = row.end
    return cell_end - cell_start <= _MAX_SHORT_CELL


def _heading_lines(text: str, block: Block, headings_apart: bool) -> Iterator[tuple[int, str]]:
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
        if block.start == 0:
            above_text = _without_authors(above_text, lines)
    for line, following, has_text in zip(lines, [*lines[1:], ""], above_text, strict=True):
        has_number = SECTION_LINE.match(line) is not None
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


def _without_authors(above_text: Sequence[bool], lines: Sequence[str]) -> list[bool]:
    """Return which lines of a document's first paragraph have text below them, without those below its title.

    These name its authors.
    """
    stripped = map(str.strip, lines)
    are_text = [_TEXT_BELOW.fullmatch(line) is not None for line in stripped]
    first_text = are_text.index(True) if any(are_text) else len(lines)
    authors = range(1, first_text)
    return [has_text and number not in authors for number, has_text in enumerate(above_text)]
