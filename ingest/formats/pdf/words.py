"""The words of a page of a PDF, with their places, line by line as PDFium orders them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import pypdfium2

from arag.ingest.formats.joining import HYPHEN
from arag.ingest.formats.pdf.characters import mend_characters
from arag.ingest.formats.pdf.glyphs import Box, PageText
from arag.ingest.formats.pdf.joined import NONE_JOINED, JoinedLetters
from arag.ingest.formats.pdf.raised import is_note, is_raised, set_raised_apart
from arag.ingest.formats.pdf.right_to_left import order_letters

_SPACES = r" \t\r\n\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_WORD = re.compile(rf"[^{_SPACES}{HYPHEN}]+{HYPHEN}?|{HYPHEN}")
_DIVIDED = re.compile(r"(?<=[^\W\d_])[-‐]$")
_SMALLER = 0.95  # times the height of the type beside it: that of raised and lowered characters
_SAME_HEIGHT = 0.05  # times the height: the boxes of one font differ by less
_FAR_BELOW = 0.5  # times the height: how far a line is below the one above it where nothing else divides them
_LOWER = 0.2  # times the height: what is so far below a word is in another line
# A word of three characters that begins and ends in type of one size: a digit, or two letters alone, are in it.
_MAY_HAVE_RAISED = re.compile(
    r"(?=.{3})(?:(?=.*\D$).*?\d|.*?(?<![^\W\d_])[A-Za-zα-ω]\s*[a-zα-ω](?![^\W\d_]))",
    re.DOTALL,
)
_NEAR = 0.5  # times the height: a wider gap is between two parts of a line
_OVERLAP = 0.25  # times the height: how far the boxes of two characters beside each other overlap at most
_INSIDE_WORD = 0.125  # times the height: a wider gap is between two words
_WATERMARK = 36.0  # points: the height of a word that is printed aslant across a page, at least


class Word(NamedTuple):
    """A word of a page and its box.

    Attributes:
        first: PDFium's index of its first character, or -1 for the value of a form's field.
        last: That of its last character.
    """

    text: str
    left: float
    right: float
    bottom: float
    top: float
    first: int = -1
    last: int = -1

    @property
    def height(self) -> float:
        """The height of its type, which is the same for all letters of a font."""
        return self.top - self.bottom

    @property
    def box(self) -> Box:
        """Its box."""
        return Box(self.left, self.right, self.bottom, self.top)

    @property
    def is_field(self) -> bool:
        """Whether it is the value of a form's field."""
        return self.first < 0


class _Span(NamedTuple):
    """A word in the text of the page, and the boxes of its first and last character."""

    start: int
    end: int
    begins_line: bool
    head: Box
    tail: Box


def read_lines(
    page: pypdfium2.PdfPage,
    text: PageText,
    joined: JoinedLetters = NONE_JOINED,
) -> list[list[Word]]:
    """Return the words of each line of a page, without watermarks such as `DRAFT` across it.

    A hyphen that may divide a word at the end of a line is `HYPHEN`.

    Args:
        page: The page.
        text: Its text, with the places of characters turned so that lines run from left to right.
        joined: The glyphs of the document that join letters.
    """
    cropped = text.cropped_box(page)
    mended = {**mend_characters(text), **joined.find(text), **order_letters(text)}
    lines: list[list[Word]] = []
    line: list[Word] = []
    printed: set[tuple[str, int, int]] = set()
    for span in _spans(text, mended):
        word = _make_word(text, span, mended)
        if span.begins_line or _is_below(line, word):
            line = []
            lines.append(line)
        if line and word.text.isdigit() and _is_note_apart(text, line[-1], word, span):
            word = word._replace(text=f"[{word.text}]")
        place = (word.text, round(word.left), round(word.bottom))
        has_width = word.right > word.left
        is_again = has_width and place in printed  # for bold type, or under a picture of the page
        is_cut_off = cropped is not None and _is_cut_off(word, *cropped)
        is_watermark = word.height > _WATERMARK and text.is_aslant(span.start)
        if word.text and not (is_again or is_cut_off or is_watermark):
            line.append(word)
            printed.add(place)
    return list(filter(None, lines))


def mark_hyphens(lines: Sequence[list[Word]]) -> None:
    """Mark the hyphens at the ends of lines that PDFium did not see there: of columns, and before a letter's accent."""
    for line, following in pairwise(lines):
        last = line[-1]
        goes_on = following[0].text[0].islower()
        if goes_on and _DIVIDED.search(last.text):
            line[-1] = last._replace(text=last.text[:-1] + HYPHEN)


def _is_note_apart(page: PageText, last: Word, word: Word, span: _Span) -> bool:
    """Return whether a number is that of a note: raised, and apart from the word before it as the French print it."""
    gap = word.left - last.right
    if gap > _NEAR * last.height or not is_raised(word.box, last.box) or page.is_turned(span.start):
        return False
    end_of_last = len(page.text[: span.start].rstrip())
    rise = page.baseline(span.start) - page.baseline(end_of_last - 1)
    is_lifted = rise > _SAME_HEIGHT * last.height  # unlike digits in old style
    return is_lifted and is_note(word.text, last.text, page.text[span.end :])


def _is_cut_off(word: Word, paper: Box, visible: Box) -> bool:
    """Return whether a word is on the paper of a page but beside its visible part; what runs off the paper is text."""
    return _is_in(paper, word) and not _is_in(visible, word)


def _is_in(box: Box, word: Word) -> bool:
    """Return whether a word is in a box, at least in part."""
    is_beside = word.right < box.left or word.left > box.right
    is_above_or_below = word.top < box.bottom or word.bottom > box.top
    return not is_beside and not is_above_or_below


def _is_below(line: list[Word], word: Word) -> bool:
    """Return whether a word begins a line of its own: in columns whose lines are not at the same height, or far below.

    PDFium goes on in one line with a single character under a title.
    """
    if not line:
        return False
    last = line[-1]
    if last.bottom - word.top > _FAR_BELOW * word.height:
        return True
    is_lower = last.bottom - word.bottom > _LOWER * word.height
    return is_lower and word.right < last.left


def _spans(page: PageText, mended: Mapping[int, str]) -> Iterator[_Span]:
    """Yield the words; one that PDFium divides after a raised or a lowered character is whole again."""
    last: _Span | None = None
    for start, end in _bounds(page.text, mended):
        head = page.box(start)
        tail = head
        if end - start > 1:
            tail = page.box(end - 1)
        if last is None:
            last = _Span(
                start=start,
                end=end,
                begins_line=True,
                head=head,
                tail=tail,
            )
            continue
        between = page.text[last.end : start]
        begins_line = not between or "\n" in between
        if begins_line and _goes_on(last.tail, head):
            begins_line = page.is_turned(start)
        gap = head.left - last.tail.right
        is_near = gap < _INSIDE_WORD * head.height
        is_divided = between == "\r\n" and not begins_line
        if is_near and is_divided:
            last = last._replace(end=end, tail=tail)
            continue
        yield last
        last = _Span(
            start=start,
            end=end,
            begins_line=begins_line,
            head=head,
            tail=tail,
        )
    if last:
        yield last


def _goes_on(before: Box, after: Box) -> bool:
    """Return whether a line goes on: one of two characters beside each other is smaller, and raised or lowered."""
    height = max(before.height, after.height)
    smaller = min(before.height, after.height)
    if smaller > _SMALLER * height:
        return False
    common = min(before.top, after.top) - max(before.bottom, after.bottom)
    if common <= 0:
        return False
    gap = after.left - before.right
    return -_OVERLAP * height < gap < _NEAR * height


def _bounds(text: str, mended: Mapping[int, str]) -> Iterator[tuple[int, int]]:
    """Yield start and end of each word. White space that was taken out does not divide a word."""
    word_start = 0
    word_end = 0
    for match in _WORD.finditer(text):
        start, end = match.span()
        if not word_end:
            word_start = start
        elif not _is_removed(mended, word_end, start):
            yield word_start, word_end
            word_start = start
        word_end = end
    if word_end:
        yield word_start, word_end


def _is_removed(mended: Mapping[int, str], end: int, start: int) -> bool:
    """Return whether nothing is left between the end of a part of a word and the start of the next part."""
    if not mended:
        return False
    if end == start:
        return end - 1 in mended  # a glyph in a word that PDFium has no character for
    return all(mended.get(place) == "" for place in range(end, start))


def _make_word(page: PageText, span: _Span, mended: Mapping[int, str]) -> Word:
    places = range(span.start, span.end)
    text = page.text[span.start : span.end]
    if _may_have_raised(text, span):
        mended = {**mended, **set_raised_apart(page, places)}
    if not mended.keys().isdisjoint(places):
        text = "".join([mended.get(place, page.text[place]) for place in places])
    larger = span.tail
    if span.head.height >= span.tail.height:
        larger = span.head
    return Word(
        text=text.replace("\r\n", ""),
        left=min(span.head.left, span.tail.left),
        right=max(span.tail.right, span.head.right),
        bottom=larger.bottom,
        top=larger.top,
        first=page.indexes[span.start],
        last=page.indexes[span.end - 1],
    )


def _may_have_raised(word: str, span: _Span) -> bool:
    """Return whether the boxes of a word's characters must be compared, which takes time."""
    difference = abs(span.head.height - span.tail.height)
    if difference > _SAME_HEIGHT * span.head.height:
        return True
    return _MAY_HAVE_RAISED.match(word) is not None
