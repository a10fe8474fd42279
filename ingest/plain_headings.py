"""Finds the headings of a text that nothing marks: short lines by themselves, and lines with numbers of sections."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator
from operator import itemgetter
from typing import NamedTuple

from arag.ingest.blocks import Block
from arag.ingest.boundaries import CLOSERS, ENDS, LIST_ITEM
from arag.ingest.numbering import find_sections
from arag.ingest.outline import MAX_HEADING, Outline, has_marked_headings
from arag.text.contents import is_heading_of_contents
from arag.text.normalise import CELL_BOUNDARY
from arag.text.scripts import CHINESE_OR_JAPANESE

SECTION_LINE = re.compile(r"(?:\d{1,2}|[A-Z])\.\d")

_MAX_HEADING_WORDS = 12  # a line with more words is text
_WIDE = re.compile(f"[{CHINESE_OR_JAPANESE}]")  # each takes two columns
_COMMENT = re.compile(r"Comment(?: by [^\n]{1,100}?)?: ")  # as readers show one, below what it is about
_NUMBERED_LINE = re.compile(rf"\d{{1,2}}\.\s+[^\n]{{1,{MAX_HEADING}}}[^\n{re.escape(ENDS)}:;,]")
_SECTION_NUMBER = re.compile(r"\d{1,2}(?:\.\d{1,2})*\.?\s")
_SECTION_NAME = re.compile(r"\d{1,2}(?:\.\d{1,2})*\.?\s+[^a-zß-öø-ÿ\d][^\d]*[^\d.:;,]$")  # no sentence, or a question
_MAX_SECTION_LINE = 200  # characters
_MAX_SECTION_COLUMN = 4  # in which the title of a section begins; further right is its text
_MIN_EXAMPLE_COLUMN = 4  # from which a line may begin that shows what the text before it announces
_UNFINISHED = re.compile(r"[^\W\d_]{2}[.!?]\s+[A-Z][^.!?:;]*[^\W\d_],?\Z")
_ADDRESS = re.compile(r"\w+://\S+\s*$", re.MULTILINE)  # what a line such as `Alternatively, visit` announces
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
# Above and below a block of AsciiDoc, such as code. Its reader sets the end in, and the start below a name like [NOTE].
_DELIMITER = re.compile(
    r"(?P<above>^(?:\+|\[.*\])?[^\S\n]*\n)?^(?P<is_set_in> {4})?(?P<marks>([-=.*_+])\4{3,})$", re.MULTILINE
)
_NOT_AFTER_HEADING = ENDS + ":;,，；：" + CLOSERS.replace(")", "")


class Place(NamedTuple):
    """A block of a text, between its neighbours."""

    text: str
    before: Block
    block: Block
    following: Block

    @property
    def line(self) -> str:
        """The block's text."""
        return self.text[self.block.start : self.block.end]


class PlainHeadings:
    """Tells which blocks of a text are headings, though nothing marks them.

    Args:
        text: The text.
        outline: The headings above a block.
        are_wanted: Whether there are such headings.
        are_apart: Whether they stand by themselves, after a finished sentence.
    """

    def __init__(self, text: str, outline: Outline, *, are_wanted: bool, are_apart: bool) -> None:
        self._outline = outline
        self._are_wanted = are_wanted
        self._are_apart = are_apart
        self._listings = list(_find_listings(text)) if are_wanted else []
        may_be_numbered = are_wanted and are_apart and not has_marked_headings(text)
        self._sections = find_sections(text) if may_be_numbered else {}
        self._has_unsure_sections = may_be_numbered and not self._sections
        self._first_section = min(self._sections, default=len(text))

    def is_section(self, place: Place) -> bool:
        """Return whether a block is certainly the title of a section."""
        return self._sections.get(place.block.start) == place.block.end

    def is_heading(self, place: Place) -> bool:
        """Return whether a block looks like a heading, and stands like one."""
        if not self._may_be_title(place) or not self._outline.is_plain_heading(place.line):
            return False
        is_in_chapter = place.block.start > self._first_section
        is_set_in = _column(place.text, place.block) > _MAX_SECTION_COLUMN
        if is_in_chapter and (is_set_in or is_heading_of_contents(place.line)):  # which are the chapter's text
            return False
        has_other_number = self._sections and _SECTION_NUMBER.match(place.line)
        return not has_other_number and (self._is_numbered(place) or _is_above_paragraph(place))

    def is_alone(self, place: Place) -> bool:
        """Return whether a block is a short line above a paragraph, such as a date, a name or a repeated heading."""
        return self._may_be_title(place) and _is_above_paragraph(place)

    def may_be_section(self, place: Place) -> bool:
        """Return whether a block with the next number may be a title, where the sections of a text are not certain.

        It begins with a capital, and does not end as a sentence.
        """
        if not self._has_unsure_sections or len(place.line) > _MAX_SECTION_LINE or self._is_in_listing(place.block):
            return False
        if not _SECTION_NAME.match(place.line) or not self._outline.goes_on(place.line):
            return False
        is_above_section = _SECTION_NUMBER.match(place.text, place.following.start)
        return not is_above_section and _is_between_blanks(place)

    def may_be_inside(self, place: Place) -> bool:
        """Return whether lines of a block may be headings."""
        return not self._sections and self._may_have_headings(place)

    def _may_be_title(self, place: Place) -> bool:
        is_in_sentence = self._are_apart and _is_unfinished(place.text, place.before)
        return self._may_have_headings(place) and not is_in_sentence and not _is_example(place)

    def _may_have_headings(self, place: Place) -> bool:
        """Return whether a block is neither code, nor a comment, nor what the comment after it is about."""
        is_comment = _COMMENT.match(place.text, place.block.start) is not None
        has_comment = _COMMENT.match(place.text, place.following.start) is not None
        return all(
            [
                self._are_wanted,
                not is_comment,
                not has_comment,
                not self._is_in_listing(place.block),
            ]
        )

    def _is_in_listing(self, block: Block) -> bool:
        if block.is_code:
            return True
        number = bisect(self._listings, block.start, key=itemgetter(0))
        return number > 0 and block.start < self._listings[number - 1][1]

    def _is_numbered(self, place: Place) -> bool:
        is_next = self._outline.goes_on(place.line) and _is_section_title(place)
        return is_next or _is_numbered_title(place)


def _find_listings(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of the blocks of AsciiDoc in a text, in order."""
    starts: dict[str, int] = {}
    for delimiter in _DELIMITER.finditer(text):
        marks = delimiter["marks"]
        above = delimiter["above"] or ""
        is_below_name = above.startswith("[")
        if delimiter["is_set_in"] and not is_below_name and marks in starts:
            yield starts[marks], delimiter.end()
            starts.clear()
        elif above or delimiter.start() == 0:
            starts[marks] = delimiter.end()


def _is_unfinished(text: str, block: Block) -> bool:
    """Return whether the last sentence of a block, which is not its first one, goes on after it."""
    return _UNFINISHED.search(text, block.start, block.end) is not None


def _is_example(place: Place) -> bool:
    """Return whether a block is what the text before it announces with a colon: it is set in."""
    is_announced = place.text[place.before.start : place.before.end].endswith((":", "："))
    return is_announced and _column(place.text, place.block) > _MIN_EXAMPLE_COLUMN


def _is_above_paragraph(place: Place) -> bool:
    """Return whether a block is a short line with a paragraph after it, which may be a heading."""
    text, _, block, following = place
    if block.is_row or _ADDRESS.match(text, following.start) or not (block.embedded and following.embedded):
        return False
    is_paragraph = not _is_short(text, following) or _is_unfinished(text, following)
    return is_paragraph and _is_short(text, block)


def _is_numbered_title(place: Place) -> bool:
    """Return whether a block is a numbered line between blank lines, above a paragraph, and no item of a list."""
    text, before, block, following = place
    if not _NUMBERED_LINE.fullmatch(text, block.start, block.end):
        return False
    is_above_item = LIST_ITEM.match(text, following.start)
    if is_above_item or not following.embedded or not _is_between_blanks(place):
        return False
    if not LIST_ITEM.match(text, before.start, before.end):
        return True
    return _column(text, before) > _column(text, block)  # an item of a list in the section before


def _is_section_title(place: Place) -> bool:
    """Return whether a block is a short line such as `2.2 Oats` between blank lines, and above any text of its own."""
    text, _, block, following = place
    if not SECTION_LINE.match(text, block.start, block.end) or not _is_short(text, block):
        return False
    is_above_section = SECTION_LINE.match(text, following.start)
    return not is_above_section and following.embedded and _is_between_blanks(place)


def _is_between_blanks(place: Place) -> bool:
    text, before, block, following = place
    is_first = before.end == 0
    is_below_blank = is_first or _BLANK_LINE.search(text, before.end, block.start)
    is_above_blank = _BLANK_LINE.search(text, block.end, following.start)
    return bool(is_below_blank and is_above_blank)


def _column(text: str, block: Block) -> int:
    return block.start - text.rfind("\n", 0, block.start)


def _is_short(text: str, block: Block) -> bool:
    """Return whether a block is a line that may be a heading."""
    line = text[block.start : block.end]
    columns = len(line) + len(_WIDE.findall(line))
    if columns > MAX_HEADING or len(line.split()) > _MAX_HEADING_WORDS:
        return False
    if "\n" in line or CELL_BOUNDARY in line:
        return False
    return line[-1] not in _NOT_AFTER_HEADING and not LIST_ITEM.match(line)
