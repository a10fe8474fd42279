"""The words of a page of a PDF, with their places, line by line as PDFium orders them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

import pypdfium2
from pypdfium2 import raw

from arag.ingest.formats.joining import HYPHEN
from arag.ingest.formats.pdf_characters import Box, fill_box, is_turned, mend_characters, set_raised_apart

_SPACES = r" \t\r\n\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_WORD = re.compile(rf"[^{_SPACES}{HYPHEN}]+{HYPHEN}?|{HYPHEN}")
_SMALLER = 0.87  # times the height of the type beside it: that of raised and lowered characters
_LOWER = 0.2  # times the height: what is so far below a word is in another line
_NEAR = 0.5  # times the height: a wider gap is between two parts of a line


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


def read_lines(page: pypdfium2.PdfTextPage) -> list[list[Word]]:
    """Return the words of each line of a page. A hyphen that may divide a word at the end of a line is `HYPHEN`."""
    text = page.get_text_range(errors="surrogatepass")  # else characters are missing, and all later places are wrong
    indexes = _character_indexes(page, text)
    mended = mend_characters(page.raw, text, indexes)
    lines: list[list[Word]] = []
    printed: set[tuple[str, int, int]] = set()
    for span in _spans(page.raw, text, indexes, mended):
        word = _make_word(page.raw, text, indexes, span, mended)
        if not lines or span.begins_line or (lines[-1] and _is_below(lines[-1][-1], word)):
            lines.append([])
        place = (word.text, round(word.left), round(word.bottom))
        is_again = place in printed and word.right > word.left  # for bold type, or under a picture of the page
        if word.text and not is_again:
            lines[-1].append(word)
            printed.add(place)
    return [line for line in lines if line]


def _is_below(last: Word, word: Word) -> bool:
    """Return whether a word begins a line of its own, in columns whose lines are not at the same height."""
    return word.right < last.left and last.bottom - word.bottom > _LOWER * word.height


def _character_indexes(page: pypdfium2.PdfTextPage, text: str) -> Sequence[int]:
    """Return PDFium's index of each character: it counts in UTF-16, and also characters that are not in the text."""
    if len(text) == page.count_chars():
        return range(len(text) + 1)
    widths = (2 if character > "\uffff" else 1 for character in text)
    offsets = accumulate(widths, initial=0)
    return [raw.FPDFText_GetCharIndexFromTextIndex(page, offset) for offset in offsets]


def _spans(
    page: raw.FPDF_TEXTPAGE,
    text: str,
    indexes: Sequence[int],
    mended: Mapping[int, str],
) -> Iterator[_Span]:
    """Yield the words; one that PDFium divides after a raised or a lowered character is whole again."""
    span: _Span | None = None
    for start, end in _bounds(text, mended):
        head = fill_box(page, indexes[start])
        tail = fill_box(page, indexes[end - 1]) if end - start > 1 else head
        if span is None:
            span = _Span(start, end, True, head, tail)
            continue
        between = text[span.end : start]
        begins_line = "\n" in between or not between
        if begins_line and _goes_on(span.tail, head) and not is_turned(page, indexes[start]):
            begins_line = False
            if between == "\r\n" and head.left - span.tail.right < _NEAR / 4 * head.height:
                span = span._replace(end=end, tail=tail)
                continue
        yield span
        span = _Span(start, end, begins_line, head, tail)
    if span:
        yield span


def _bounds(text: str, mended: Mapping[int, str]) -> Iterator[tuple[int, int]]:
    """Yield start and end of each word. White space that was taken out does not divide a word."""
    last: tuple[int, int] | None = None
    for match in _WORD.finditer(text):
        start, end = match.span()
        if last and _is_removed(mended, last[1] - 1, start):
            last = (last[0], end)
            continue
        if last:
            yield last
        last = (start, end)
    if last:
        yield last


def _is_removed(mended: Mapping[int, str], end: int, start: int) -> bool:
    """Return whether nothing is left between the last character of a part of a word and the next part."""
    if end + 1 == start:
        return end in mended  # a glyph in a word that PDFium has no character for
    return all(mended.get(place) == "" for place in range(end + 1, start))


def _goes_on(before: Box, after: Box) -> bool:
    """Return whether a line goes on: one of two characters beside each other is smaller, and raised or lowered."""
    height = max(before.height, after.height)
    if min(before.height, after.height) > _SMALLER * height or not height:
        return False
    is_beside = min(before.top, after.top) > max(before.bottom, after.bottom)
    return is_beside and -_NEAR * height / 2 < after.left - before.right < _NEAR * height


def _make_word(
    page: raw.FPDF_TEXTPAGE,
    text: str,
    indexes: Sequence[int],
    span: _Span,
    mended: Mapping[int, str],
) -> Word:
    start, end, _, head, tail = span
    part = text[start:end]
    is_mixed = abs(head.height - tail.height) > 0.05 * head.height
    has_inner_digit = not part[-1].isdigit() and len(part) > 2 and any(map(str.isdigit, part))
    if is_mixed or has_inner_digit:
        mended = {**mended, **set_raised_apart(page, text, indexes, range(start, end))}
    if mended:
        part = "".join(mended.get(place, text[place]) for place in range(start, end))
    return Word(
        text=part.replace("\r\n", ""),
        left=head.left,
        right=max(tail.right, head.right),
        bottom=head.bottom if head.height >= tail.height else tail.bottom,
        top=head.top if head.height >= tail.height else tail.top,
        first=indexes[start],
        last=indexes[end - 1],
    )
