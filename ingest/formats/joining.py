"""Joins the lines of paragraphs where a line's end divides a word: after a hyphen, and in scripts without spaces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from arag.ingest.formats.headings import Line
from arag.text.normalise import CELL_BOUNDARY
from arag.text.scripts import BURMESE, CHINESE_OR_JAPANESE, KHMER, LAO, THAI, UNSPACED

HYPHEN = "\ufffe"  # as PDFium marks a hyphen at the end of a line

_LOWER = r"[^\W\d_A-Z]"
# Between lower-case letters, a hyphen divides a word. The third is Armenian; old programs write the fourth.
_DIVIDED = re.compile(rf"(?<={_LOWER})[{HYPHEN}\u2010\u058a¬]$")
_BEGINS_LOWER = re.compile(_LOWER)

_WIDE_MARKS = "、，。．！？；：・～（）「」『』《》〈〉【】〔〕"
_MARKS = "…—“”‘’"  # beside a letter of these scripts, they are its marks; beside a Latin one, they are not
_UNSPACED_END = re.compile(f"(?:[{UNSPACED}{_WIDE_MARKS}]|[{UNSPACED}][{_MARKS}]{{1,2}})$")
_UNSPACED_START = re.compile(f"[{UNSPACED}{_WIDE_MARKS}]|[{_MARKS}]{{1,2}}[{UNSPACED}]")
_SENTENCE_END = re.compile(r"[。！？!?：:；;။។៕][”’」』）)]*$")
_WORD_END = re.compile(r"[A-Za-z0-9\u00c0-\u024f)%]$")
_WORD_START = re.compile(r"[A-Za-z0-9\u00c0-\u024f(]")
_BREAKS_BETWEEN_WORDS = re.compile(f"[{THAI}{LAO}{BURMESE}{KHMER}]")
_EAST_ASIAN = re.compile(f"[{CHINESE_OR_JAPANESE}]")
_CLOSE_TO_LATIN = re.compile(f"[{CHINESE_OR_JAPANESE}][A-Za-z0-9]|[A-Za-z0-9][{CHINESE_OR_JAPANESE}]")
_APART_FROM_LATIN = re.compile(f"[{CHINESE_OR_JAPANESE}] [A-Za-z0-9]|[A-Za-z0-9] [{CHINESE_OR_JAPANESE}]")
_ITEM = re.compile(
    r"[-*+•‣◦·・●○■□◆◇▪※☆★▶→]"
    r"|[(（\[【]?(?:\d{1,3}|[一二三四五六七八九十百]{1,4}|[๐-๙]{1,3}|[A-Za-z])[.)）、．\]】:：]"
    r"|[①-⓿㈠-㊰]|第\s?[\d一二三四五六七八九十百零〇]{1,5}\s?[章节節条條款項项編编部回課课]"
    r"|[（(][一二三四五六七八九十\d]{1,3}[)）]"
)
_MAX_PITCH = 2.2  # times the size of the type, from one line to the next of a paragraph
_EDGE = 2.5  # times the size, more than two characters: how far a line that goes on may end from the right edge
_WORD_EDGE = 4.0  # the same for scripts whose lines end between words: the next word may have this length
_MIN_WIDTH = 8  # times the size: shorter lines are those of a list of words
_INDENT = 1.2  # times the size: a line that is set in so far begins a paragraph


@dataclass(frozen=True)
class _Page:
    """The lines of a page, and what their ends say of it."""

    lines: Sequence[Line]
    has_unspaced: bool  # whether a line ends in a script without spaces
    latin_space: str  # what is between Chinese or Japanese and Latin words

    def is_full(self, line: Line, following: Line) -> bool:
        """Return whether a line is about as long as the others of its column that have type of its size."""
        longest = line.right
        for other in self.lines:
            is_in_column = other.left < line.right and other.right > line.left
            if other.size == line.size and is_in_column:
                longest = max(longest, other.right)
        is_between_words = _BREAKS_BETWEEN_WORDS.match(following.text) is not None
        edge = _WORD_EDGE if is_between_words else _EDGE
        is_wide = line.right - line.left > _MIN_WIDTH * line.size
        return is_wide and line.right > longest - edge * line.size


def join_texts(texts: Iterable[str]) -> str:
    """Return the lines of one cell or title as one text."""
    joined = ""
    for text in texts:
        joined = _join(joined, text, _space_between(joined, text)) if joined else text
    return joined


def join_lines(lines: Sequence[Line]) -> list[Line]:
    """Return the lines of a page, with those as one that divide a word."""
    page = _make_page(lines)
    joined = list(lines[:1])
    for line, following in pairwise(lines):
        between = _between(line, following, page)
        if between is None:
            joined.append(following)
            continue
        text = _join(joined[-1].text, following.text, between)
        joined[-1] = joined[-1]._replace(text=text, bottom=following.bottom)
    return [line._replace(text=line.text.replace(HYPHEN, "-")) for line in joined]


def _make_page(lines: Sequence[Line]) -> _Page:
    has_unspaced = any(_UNSPACED_END.search(line.text) for line in lines)
    if not has_unspaced:
        return _Page(lines, has_unspaced, latin_space=" ")
    text = "\n".join(line.text for line in lines)
    apart = len(_APART_FROM_LATIN.findall(text))
    close = len(_CLOSE_TO_LATIN.findall(text))
    latin_space = " " if apart > close else ""
    return _Page(lines, has_unspaced, latin_space)


def _join(text: str, following: str, between: str) -> str:
    if _divides_word(text, following):
        return text[:-1] + following
    return f"{text}{between}{following}"


def _space_between(text: str, following: str) -> str:
    """Return what stands between two lines that are known to be one text."""
    is_unspaced = _UNSPACED_END.search(text) is not None and _UNSPACED_START.match(following) is not None
    return "" if is_unspaced or text.endswith(HYPHEN) else " "


def _divides_word(text: str, following: str) -> bool:
    return _DIVIDED.search(text) is not None and _BEGINS_LOWER.match(following) is not None


def _between(line: Line, following: Line, page: _Page) -> str | None:
    """Return what stands between two lines that are one; nothing if they are two."""
    is_row = CELL_BOUNDARY in line.text or CELL_BOUNDARY in following.text
    if is_row or not following.text:
        return None
    if line.text.endswith(HYPHEN) or _divides_word(line.text, following.text):
        return ""
    if not page.has_unspaced or not _is_unspaced(line.text, following.text):
        return None
    if not _goes_on(line, following, page):
        return None
    if not _WORD_END.search(line.text) and not _WORD_START.match(following.text):
        return ""
    is_east_asian = _EAST_ASIAN.search(line.text[-1] + following.text[0]) is not None
    return page.latin_space if is_east_asian else " "


def _is_unspaced(text: str, following: str) -> bool:
    """Return whether one side of a line's end is in a script without spaces, and the other one, too, or Latin."""
    ends = _UNSPACED_END.search(text) is not None
    starts = _UNSPACED_START.match(following) is not None
    if ends and starts:
        return True
    if ends:
        return _WORD_START.match(following) is not None
    return starts and _WORD_END.search(text) is not None


def _goes_on(line: Line, following: Line, page: _Page) -> bool:
    """Return whether a paragraph goes on in the next line."""
    if not _is_below(line, following):
        return False
    if _ITEM.match(following.text) or _SENTENCE_END.search(line.text):
        return False
    return page.is_full(line, following)


def _is_below(line: Line, following: Line) -> bool:
    """Return whether a line is in the type of the one above it, near to it, and not set in."""
    is_same_font = line.font == following.font or not line.font or not following.font
    if line.size != following.size or not is_same_font:
        return False
    pitch = line.bottom - following.bottom
    if not 0 < pitch < _MAX_PITCH * line.size:
        return False
    return following.left <= line.left + _INDENT * line.size
