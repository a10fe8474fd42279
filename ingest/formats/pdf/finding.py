"""Finds sentences of an index on a page of a PDF: the words that are marked on the picture of the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pypdfium2
from rapidfuzz.fuzz import partial_ratio_alignment

from arag.ingest.formats.pdf.columns import separate_columns
from arag.ingest.formats.pdf.glyphs import read_text
from arag.ingest.formats.pdf.words import Word, read_lines
from arag.text.normalise import CELL_BOUNDARY, plain, words

_MIN_ALIKE = 75  # percent of the letters: the index has hyphens and headings in another form
_MIN_ALIKE_ROW = 90  # percent: rows of one table differ in little
_SAME = 100
_MIN_OF_LINES = 0.5  # of the words of several lines: where fewer are a row's, other rows are between them


class Found(NamedTuple):
    """The words of a sentence on a page. `alike` says how well the page has it, even where no words are certain."""

    words: list[Word]
    alike: float


class _Lines(NamedTuple):
    """Lines of a page that have all values of a row: which part of their words is the row's."""

    first: int
    last: int
    share: float


def find_sentences(page: pypdfium2.PdfPage, texts: Sequence[str]) -> list[Found]:
    """Return what a page has of each of some sentences; of a row of a table, the lines that have all its values."""
    text_page = page.get_textpage()  # kept: it is freed when nothing names it, and the words are read from it
    lines = separate_columns(read_lines(page, read_text(text_page)))
    found = []
    for text in texts:
        find = _find_row if CELL_BOUNDARY in text else _find_prose
        found.append(find(text, lines))
    return found


def _find_prose(text: str, lines: Sequence[list[Word]]) -> Found:
    """Return the word of each letter of a sentence; only letters and digits are compared."""
    letters = ""
    owners: list[Word] = []
    for line in lines:
        for word in line:
            in_word = _letters(word.text)
            letters += in_word
            owners += [word] * len(in_word)
    found = partial_ratio_alignment(_letters(text), letters, score_cutoff=_MIN_ALIKE)
    if found is None:
        return Found([], 0)
    return Found(owners[found.dest_start : found.dest_end], found.score)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, plain(text)))


# --- rows of tables ---


def _find_row(text: str, lines: Sequence[list[Word]]) -> Found:
    """Return the words of a row; none where it may be one of several.

    The names of the columns, which the index repeats in each row, may be elsewhere on the page.
    """
    values = " ".join(_without_name(cell) for cell in text.split(CELL_BOUNDARY))
    counted = [_count_words(line) for line in lines]
    wanted = Counter(words(text))
    places = list(_list_places(Counter(words(values)), wanted, counted))
    if not places:
        return _find_letters(values, lines)
    best = max(places, key=lambda place: place.share)
    alike = (1 + best.share) * _SAME  # more than where a word is missing
    whole = [place for place in places if place.share == 1]
    if len(whole or places) > 1:
        return Found([], alike)
    row: list[Word] = []
    for line in lines[best.first : best.last + 1]:
        row += [word for word in line if wanted.keys() & words(word.text)]
    return Found(row, alike)


def _without_name(cell: str) -> str:
    name, _, value = cell.partition(": ")
    return value or name


def _find_letters(values: str, lines: Sequence[list[Word]]) -> Found:
    """Return the words of a row that the page divides or spells in another way than the index."""
    found = _find_prose(values, lines)
    letters = "".join(_letters(word.text) for word in dict.fromkeys(found.words))
    is_certain = found.alike >= _MIN_ALIKE_ROW and all(_letters(word) in letters for word in words(values))
    return found if is_certain else Found([], found.alike)


def _list_places(values: Counter[str], wanted: Counter[str], lines: Sequence[Counter[str]]) -> Iterator[_Lines]:
    """Yield the fewest lines that have all values of a row, from wherever they may begin."""
    if not values:
        return
    first = 0
    inside: Counter[str] = Counter()
    for last, line in enumerate(lines):
        inside += line
        while values <= inside:
            shorter = inside - lines[first]
            if not values <= shorter:
                share = _part(inside, wanted)
                if first == last or share >= _MIN_OF_LINES:
                    yield _Lines(first, last, share)
            inside = shorter
            first += 1


def _count_words(line: Sequence[Word]) -> Counter[str]:
    counted: Counter[str] = Counter()
    for word in line:
        counted.update(words(word.text))
    return counted


def _part(counted: Counter[str], others: Counter[str]) -> float:
    """Return which part of some words is among others."""
    return (counted & others).total() / max(counted.total(), 1)
