"""Joins the lines of paragraphs where a line's end divides a word: after a hyphen, and in scripts without spaces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

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
_EDGE = 2.0  # times the size: how far a line that goes on may end from the right edge
_WORD_EDGE = 4.0  # the same for scripts whose lines end between words: the next word may have this length
_INDENT = 1.2  # times the size: a line that is set in so far begins a paragraph


def join_texts(texts: Iterable[str]) -> str:
    """Return the lines of one cell or title as one text."""
    joined = ""
    for text in texts:
        if joined:
            joined = _join(joined, text, " ")
        else:
            joined = text
    return joined


def join_lines(lines: Sequence[Line]) -> list[Line]:
    """Return the lines of a page, with those as one that divide a word."""
    joined: list[Line] = []
    last: Line | None = None  # the last line as it is on the page
    has_unspaced = any(_UNSPACED_END.search(line.text) for line in lines)
    latin_space = _latin_space(lines) if has_unspaced else " "
    for line in lines:
        between = None
        if last is not None:
            between = _between(last, line, lines if has_unspaced else [], latin_space)
        if between is None:
            joined.append(line)
        else:
            joined[-1] = joined[-1]._replace(text=_join(joined[-1].text, line.text, between), bottom=line.bottom)
        last = line
    return [line._replace(text=line.text.replace(HYPHEN, "-")) for line in joined]


def _join(text: str, following: str, between: str) -> str:
    if _DIVIDED.search(text) and _BEGINS_LOWER.match(following):
        return text[:-1] + following
    if text.endswith(HYPHEN):
        return text + following
    if _UNSPACED_END.search(text) and _UNSPACED_START.match(following):
        return text + following
    return f"{text}{between}{following}"


def _between(line: Line, following: Line, lines: Sequence[Line], latin_space: str) -> str | None:
    """Return what stands between two lines that are one; nothing if they are two."""
    if CELL_BOUNDARY in line.text or CELL_BOUNDARY in following.text or not following.text:
        return None
    if line.text.endswith(HYPHEN):
        return ""
    if _DIVIDED.search(line.text) and _BEGINS_LOWER.match(following.text):
        return ""
    if not lines or not _is_unspaced(line.text, following.text) or not _goes_on(line, following, lines):
        return None
    is_latin = _WORD_END.search(line.text) or _WORD_START.match(following.text)
    if not is_latin:
        return ""
    has_east_asian = _EAST_ASIAN.match(line.text[-1]) or _EAST_ASIAN.match(following.text[0])
    return latin_space if has_east_asian else " "


def _is_unspaced(text: str, following: str) -> bool:
    """Return whether one side of a line's end is in a script without spaces, and the other one, too, or Latin."""
    ends = _UNSPACED_END.search(text) is not None
    starts = _UNSPACED_START.match(following) is not None
    if ends and starts:
        return True
    return (ends and _WORD_START.match(following) is not None) or (starts and _WORD_END.search(text) is not None)


def _goes_on(line: Line, following: Line, lines: Sequence[Line]) -> bool:
    """Return whether a paragraph goes on in the next line: this one is full, and the next one is not set in."""
    size = line.size or following.size
    if following.size != line.size or (line.font and following.font and line.font != following.font):
        return False
    if not 0 < line.bottom - following.bottom < _MAX_PITCH * size or following.left > line.left + _INDENT * size:
        return False
    if _ITEM.match(following.text) or _SENTENCE_END.search(line.text):
        return False
    beside = [
        other.right
        for other in lines
        if other.size == line.size and other.left < line.right and other.right > line.left
    ]
    edge = _WORD_EDGE if _BREAKS_BETWEEN_WORDS.match(following.text) else _EDGE
    return line.right > max(beside) - edge * size


def _latin_space(lines: Sequence[Line]) -> str:
    """Return what stands between Chinese or Japanese and Latin words inside the lines of a page."""
    text = "\n".join(line.text for line in lines)
    return " " if len(_APART_FROM_LATIN.findall(text)) > len(_CLOSE_TO_LATIN.findall(text)) else ""
