"""Finds sentences of an index on a page of a PDF: the words that are marked on the picture of the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pypdfium2
from rapidfuzz.distance import Postfix, Prefix
from rapidfuzz.fuzz import partial_ratio_alignment

from arag.ingest.formats.pdf.columns import join_rows, separate_columns
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


def find_sentences(page: pypdfium2.PdfPage, text: str, spans: Sequence[Sequence[int]]) -> list[Found]:
    """Return what a page has of sentences at some places of a text; of a row of a table, the lines with all its values.

    Of equal sentences on a page, each is the one that has most of the text around it.
    """
    text_page = page.get_textpage()  # kept: it is freed when nothing names it, and the words are read from it
    lines = read_lines(page, read_text(text_page))
    columns = separate_columns(lines)
    rows = join_rows(lines)  # a table with prose on one side is separated as if it were columns
    found = []
    for start, end in spans:
        sentence = text[start:end]
        if CELL_BOUNDARY in sentence:
            found.append(_find_row(sentence, columns) or _find_row(sentence, rows) or _find_letters(sentence, columns))
        else:
            found.append(_find_prose(sentence, columns, text[:start], text[end:]))
    return found


def _find_prose(text: str, lines: Sequence[list[Word]], before: str = "", after: str = "") -> Found:
    """Return the word of each letter of a sentence; only letters and digits are compared."""
    letters = ""
    owners: list[Word] = []
    for line in lines:
        for word in line:
            in_word = _letters(word.text)
            letters += in_word
            owners += [word] * len(in_word)
    wanted = _letters(text)
    equal = _find_equal(_letters(before), wanted, _letters(after), letters)
    if equal is not None:
        start, around = equal
        return Found(owners[start : start + len(wanted)], _SAME + around)
    found = partial_ratio_alignment(wanted, letters, score_cutoff=_MIN_ALIKE)
    if found is None:
        return Found([], 0)
    return Found(owners[found.dest_start : found.dest_end], found.score)


def _find_equal(before: str, wanted: str, after: str, letters: str) -> tuple[int, int] | None:
    """Return where the same letters start, and how many letters around them are the same; None if there are none."""
    places = []
    start = letters.find(wanted)
    while wanted and start >= 0:
        same_before = Postfix.similarity(before, letters[:start])
        same_after = Prefix.similarity(after, letters[start + len(wanted) :])
        places.append((start, same_before + same_after))
        start = letters.find(wanted, start + 1)
    return max(places, key=lambda place: place[1], default=None)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, plain(text)))


# --- rows of tables ---


def _find_row(text: str, lines: Sequence[list[Word]]) -> Found | None:
    """Return the words of a row, none of them where it may be one of several; None if no lines have its values.

    The names of the columns, which the index repeats in each row, may be elsewhere on the page.
    """
    values = Counter(words(" ".join(_list_values(text))))
    counted = [_count_words(line) for line in lines]
    wanted = Counter(words(text))
    places = list(_list_places(values, wanted, counted))
    if not places:
        return None
    best = max(places, key=lambda place: place.share)
    alike = (1 + best.share) * _SAME  # more than where a word is missing
    whole = [place for place in places if place.share == 1]
    if len(whole or places) > 1:
        return Found([], alike)
    row: list[Word] = []
    for line in lines[best.first : best.last + 1]:
        row += [word for word in line if wanted.keys() & words(word.text)]
    return Found(row, alike)


def _list_values(row: str) -> list[str]:
    """Return the values of a row, whose cells may begin with the names of their columns."""
    values = []
    for cell in row.split(CELL_BOUNDARY):
        name, _, value = cell.partition(": ")
        values.append(value or name)
    return values


def _find_letters(row: str, lines: Sequence[list[Word]]) -> Found:
    """Return the words of a row that the page divides or spells in another way than the index."""
    values = _list_values(row)
    found = _find_prose(" ".join(values), lines)
    is_certain = found.alike >= _MIN_ALIKE_ROW and _has_values(found.words, values)
    return found if is_certain else Found([], found.alike)


def _has_values(found: Sequence[Word], values: Sequence[str]) -> bool:
    """Return whether each value, or each part of it, is a run of whole words, and none is used twice."""
    left = [_letters(word.text) for word in dict.fromkeys(found)]
    for value in values:
        if not _take(left, value) and not all(_take(left, part) for part in value.split()):
            return False
    return True


def _take(left: list[str], value: str) -> bool:
    """Take the words that have the letters of a value, and no others, from the letters of words that are left."""
    letters = _letters(value)
    if not letters:
        return True
    for first in range(len(left)):
        run = ""
        for last in range(first, len(left)):
            run += left[last]
            if run == letters:
                left[first : last + 1] = [CELL_BOUNDARY]  # no run goes on here
                return True
            if not letters.startswith(run):
                break
    return False


def _list_places(values: Counter[str], wanted: Counter[str], lines: Sequence[Counter[str]]) -> Iterator[_Lines]:
    """Yield the fewest lines that have all values of a row, from wherever they may begin."""
    if not values:
        return
    first = 0
    held: Counter[str] = Counter()  # only words of the values, so that a step takes no longer for more lines
    for last, line in enumerate(lines):
        for word in values:
            held[word] += line[word]
        while values <= held:
            for word in values:
                held[word] -= lines[first][word]
            if not values <= held:
                inside = _add_up(lines[first : last + 1])
                share = _part(inside, wanted)
                if first == last or share >= _MIN_OF_LINES:
                    yield _Lines(first, last, share)
            first += 1


def _add_up(lines: Sequence[Counter[str]]) -> Counter[str]:
    inside: Counter[str] = Counter()
    for line in lines:
        inside.update(line)
    return inside


def _count_words(line: Sequence[Word]) -> Counter[str]:
    counted: Counter[str] = Counter()
    for word in line:
        counted.update(words(word.text))
    return counted


def _part(counted: Counter[str], others: Counter[str]) -> float:
    """Return which part of some words is among others."""
    return (counted & others).total() / max(counted.total(), 1)
