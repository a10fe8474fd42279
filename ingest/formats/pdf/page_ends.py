"""Joins paragraphs that go on from one page of a PDF to the next one, so that no page's end cuts a sentence in two."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from arag.ingest.boundaries import CLOSERS, ENDS
from arag.ingest.formats.content import BLANK_LINE
from arag.ingest.formats.headings import Line
from arag.ingest.formats.joining import ends_unspaced, starts_unspaced
from arag.text.normalise import CELL_BOUNDARY

_HYPHEN = re.compile(r"(?<=[^\W\d_A-Z])[-\u2010\u00ad]$")
_SENTENCE_END = re.compile(rf"[{re.escape(ENDS)}:;][{re.escape(CLOSERS)}]*$")
_MIN_WIDTH = 15  # times the size of the type: shorter lines may be those of a list
_EDGE = 3.0  # times the size: how far from the right edge a full line may end
_INDENT = 0.8  # times the size: a line that is set in so far begins a paragraph


def end_pages(texts: Sequence[str], pages: Sequence[Sequence[Line]]) -> Iterator[str]:
    """Yield the text of each page with what stands between it and the next one.

    That is a blank line, or a line end within a paragraph, or nothing within a word, whose hyphen is left out.

    Args:
        texts: The texts of the pages.
        pages: Their lines. The first and the last one of a page may not be those of its text.
    """
    for (text, following), (page, next_page) in zip(pairwise(texts), pairwise(pages), strict=True):
        if not page or not next_page:
            yield text + BLANK_LINE
            continue
        last, first = page[-1], next_page[0]
        is_whole = text.endswith(last.text) and following.startswith(first.text)
        if not is_whole or not _goes_on(page, next_page):
            yield text + BLANK_LINE
        elif _HYPHEN.search(text):
            is_divided_word = first.text[0].islower()
            yield text[:-1] if is_divided_word else text
        elif ends_unspaced(text) and starts_unspaced(following):
            yield text
        else:
            yield f"{text}\n"
    yield from texts[-1:]


def _goes_on(page: Sequence[Line], next_page: Sequence[Line]) -> bool:
    """Return whether the paragraph at the end of a page goes on at the start of the next one."""
    last, first = page[-1], next_page[0]
    is_prose = _may_be_prose(last) and _may_be_prose(first) and last.size == first.size
    if not is_prose or _SENTENCE_END.search(last.text) or not _is_full(last, page):
        return False
    begins_inside = first.text[0].islower() or _HYPHEN.search(last.text) is not None
    return begins_inside or _is_further_line(first, next_page)


def _may_be_prose(line: Line) -> bool:
    """Return whether a line may be within a paragraph: it is no title, no entry of contents and no row."""
    is_apart = line.level > 0 or line.is_bold_title or line.is_entry or line.begins_paragraph
    return not is_apart and CELL_BOUNDARY not in line.text and line.text[:1].isalpha()


def _is_full(line: Line, page: Sequence[Line]) -> bool:
    """Return whether a line is wide, and ends about where others of its size and its column do."""
    if line.right - line.left < _MIN_WIDTH * line.size:
        return False
    right_edge = max(other.right for other in _list_column(line, page))
    return right_edge - line.right < _EDGE * line.size


def _is_further_line(line: Line, page: Sequence[Line]) -> bool:
    """Return whether a line that begins with a capital letter is full, and not set in."""
    left_edge = min(other.left for other in _list_column(line, page))
    return line.left - left_edge < _INDENT * line.size and _is_full(line, page)


def _list_column(line: Line, page: Sequence[Line]) -> list[Line]:
    """Return the lines of a line's size and column, with the line itself."""
    return [other for other in page if other.size == line.size and other.left < line.right and other.right > line.left]
