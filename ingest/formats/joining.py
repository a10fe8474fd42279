"""Joins the lines of paragraphs where a line's end divides a word: after a hyphen, and in scripts without spaces."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import neg

from arag.ingest.formats.typography import Line
from arag.text.normalise import CELL_BOUNDARY
from arag.text.scripts import BURMESE, CHINESE_OR_JAPANESE, KHMER, LAO, THAI, UNSPACED

HYPHEN = "\ufffe"  # as PDFium marks a hyphen at the end of a line
OWN_HYPHEN = "\uffff"  # one that is known to be the word's own

_LOWER = r"[^\W\d_A-Z]"
# Between these letters, a hyphen divides a word. The third is Armenian; old programs write the fourth.
_DIVIDED = re.compile(rf"(?<={_LOWER})[{HYPHEN}\u2010\u058a¬]$")
_BEGINS_LOWER = re.compile(_LOWER)
# Before it, the hyphen stands for the rest of a compound, as in `pre- and post-war`. Words may end in the last ones.
JOINS_COMPOUNDS = re.compile(
    r"(?:(?:und|oder|bzw|beziehungsweise|sowie|and|och|eller|или|[yeoui])(?![^\s.])"
    r"|(?:or|en|of|et|ou|og) \w+-\w)"
)
_ADDRESS = re.compile(r".*://|\W*(?:www\.|[~.]{0,2}/)|[\w.-]+/[\w.-]+/")  # begins the name of a page or a file

_WIDE_MARKS = "、，。．！？；：・～（）「」『』《》〈〉【】〔〕"
_MARKS = "…—“”‘’"  # beside a letter of these scripts, they are its marks; beside a Latin one, they are not
_UNSPACED_END = re.compile(f"(?:[{UNSPACED}{_WIDE_MARKS}]|[{UNSPACED}][{_MARKS}]{{1,2}})$")
_UNSPACED_START = re.compile(f"[{UNSPACED}{_WIDE_MARKS}]|[{_MARKS}]{{1,2}}[{UNSPACED}]")
_SENTENCE_END = re.compile(r"[。！？!?：:；;။។៕][”’」』）)]*$")
_ENTRY_END = re.compile(r"(?:[.…·] ?){4,}\s*\w{1,5}$")  # of an entry of contents: the number of a page
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
_FEW = 0.2  # of the lines: they may stick out of the others,
_MIN_FULL = 4  # at least so many of which end at the same place
_MIN_WIDTH = 8  # times the size: shorter lines are those of a list of words
_INDENT = 1.2  # times the size: a line that is set in so far begins a paragraph
_INDENT_OF_ITEM = 3.0  # below its mark, an item goes on where its text began


@dataclass(frozen=True)
class _Page:
    """The lines of a page, and what their ends say of it."""

    lines: Sequence[Line]
    has_unspaced: bool  # whether a line ends in a script without spaces
    latin_space: str  # what is between Chinese or Japanese and Latin words

    def is_full(self, line: Line, following: Line) -> bool:
        """Return whether a line is about as long as the others of its column that have type of its size."""
        width = line.right - line.left
        if width <= _MIN_WIDTH * line.size:
            return False
        right_edge = self._right_edge(line)
        is_between_words = _BREAKS_BETWEEN_WORDS.match(following.text) is not None
        sizes = _WORD_EDGE if is_between_words else _EDGE
        missing = right_edge - line.right
        return missing < sizes * line.size

    def _right_edge(self, line: Line) -> float:
        """Return where full lines of a line's column and size end; a few may stick out, such as addresses."""
        edges = [line.right]
        for other in self.lines:
            is_in_column = other.left < line.right and other.right > line.left
            if other.size == line.size and is_in_column:
                edges.append(other.right)
        edges.sort(reverse=True)
        for place, edge in enumerate(edges):
            shorter = bisect_left(edges, line.size - edge, key=neg)
            if shorter - place >= max(_MIN_FULL, _FEW * len(edges)):
                return edge
        return edges[0]


def join_texts(texts: Iterable[str]) -> str:
    """Return the lines of one cell or title as one text."""
    joined = ""
    for text in texts:
        if not joined:
            joined = text
            continue
        between = _space_between(joined, text)
        joined = _join(joined, text, between)
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
        last = joined[-1]
        text = _join(last.text, following.text, between)
        joined[-1] = last._replace(
            text=text,
            bottom=following.bottom,
        )
    return list(map(_with_plain_hyphens, joined))


def _with_plain_hyphens(line: Line) -> Line:
    text = line.text.replace(HYPHEN, "-").replace(OWN_HYPHEN, "-")
    return line._replace(text=text)


def _make_page(lines: Sequence[Line]) -> _Page:
    texts = [line.text for line in lines]
    has_unspaced = any(map(_UNSPACED_END.search, texts))
    latin_space = " "
    if has_unspaced:
        latin_space = _latin_space("\n".join(texts))
    return _Page(
        lines=lines,
        has_unspaced=has_unspaced,
        latin_space=latin_space,
    )


def _latin_space(text: str) -> str:
    """Return what is mostly between Chinese or Japanese and Latin words in a text: a space, or nothing."""
    apart = len(_APART_FROM_LATIN.findall(text))
    close = len(_CLOSE_TO_LATIN.findall(text))
    return " " if apart > close else ""


def _join(text: str, following: str, between: str) -> str:
    if _divides_word(text, following):
        return text[:-1] + following
    return f"{text}{between}{following}"


def _space_between(text: str, following: str) -> str:
    """Return what stands between two lines that are known to be one text."""
    if text.endswith((HYPHEN, OWN_HYPHEN)):
        return " " if JOINS_COMPOUNDS.match(following) else ""
    is_unspaced = _ends_unspaced(text) and _starts_unspaced(following)
    return "" if is_unspaced else " "


def _ends_unspaced(text: str) -> bool:
    """Return whether a text ends in a script without spaces."""
    return _UNSPACED_END.search(text) is not None


def _starts_unspaced(text: str) -> bool:
    """Return whether a text begins in a script without spaces."""
    return _UNSPACED_START.match(text) is not None


def _divides_word(text: str, following: str) -> bool:
    """Return whether a hyphen at the end of a text divides a word, and is not part of the text."""
    ends_with_hyphen = _DIVIDED.search(text) is not None
    begins_small = _BEGINS_LOWER.match(following) is not None
    if not ends_with_hyphen or not begins_small or JOINS_COMPOUNDS.match(following):
        return False
    last_word = text.rsplit(maxsplit=1)[-1]
    begins_name = last_word[-2].islower() and following[0].isupper()  # such as Saint-Étienne
    is_option = last_word.startswith("-")  # such as --compare-versions
    return not begins_name and not is_option and not _ADDRESS.match(last_word)


def _between(line: Line, following: Line, page: _Page) -> str | None:
    """Return what stands between two lines that are one; nothing if they are two."""
    is_row = CELL_BOUNDARY in line.text or CELL_BOUNDARY in following.text
    if is_row or not following.text:
        return None
    if line.text.endswith((HYPHEN, OWN_HYPHEN)):
        return _space_between(line.text, following.text)
    if _divides_word(line.text, following.text):
        return ""
    if not page.has_unspaced or not _is_unspaced(line.text, following.text):
        return None
    if not _goes_on(line, following, page):
        return None
    return _between_words(line.text, following.text, page.latin_space)


def _between_words(text: str, following: str, latin_space: str) -> str:
    """Return what stands between two lines one of which may end or begin with a Latin word."""
    ends_latin = _WORD_END.search(text)
    begins_latin = _WORD_START.match(following)
    if not ends_latin and not begins_latin:
        return ""
    around = text[-1] + following[0]
    is_east_asian = _EAST_ASIAN.search(around) is not None
    return latin_space if is_east_asian else " "


def _is_unspaced(text: str, following: str) -> bool:
    """Return whether one side of a line's end is in a script without spaces, and the other one, too, or Latin."""
    ends = _ends_unspaced(text)
    starts = _starts_unspaced(following)
    if ends and starts:
        return True
    if ends:
        return _WORD_START.match(following) is not None
    ends_latin = _WORD_END.search(text) is not None
    return starts and ends_latin


def _goes_on(line: Line, following: Line, page: _Page) -> bool:
    """Return whether a paragraph goes on in the next line."""
    begins_item = _ITEM.match(following.text)
    ends_sentence = _SENTENCE_END.search(line.text)
    ends_entry = _ENTRY_END.search(line.text)
    if begins_item or ends_sentence or ends_entry:
        return False
    if not _is_below(line, following):
        return False
    return page.is_full(line, following)


def _is_below(line: Line, following: Line) -> bool:
    """Return whether a line is in the type of the one above it, near to it, and not set in."""
    if line.size != following.size or not may_be_same_font(line, following):
        return False
    pitch = line.bottom - following.bottom
    max_pitch = _MAX_PITCH * line.size
    if not 0 < pitch < max_pitch:
        return False
    indent = following.left - line.left
    max_indent = _INDENT_OF_ITEM if _ITEM.match(line.text) else _INDENT
    return indent <= max_indent * line.size


def may_be_same_font(line: Line, following: Line) -> bool:
    """Return whether two lines have one font; a line of several fonts has no name of one."""
    fonts = {line.font, following.font}
    return len(fonts - {""}) < 2
