"""Words of a PDF whose letters are set apart by spaces: `A N N U A L  R E P O R T`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

from arag.ingest.formats.pdf.words import Word

_MIN_LETTERS = 5  # in a row; fewer may be initials
_NEAR = 0.6  # times the height: columns of single letters are farther from each other
_WIDER = 1.75  # times the gap between letters: two words are so far from each other


def join_spaced_letters(line: list[Word]) -> list[Word]:
    """Return a line with whole words in place of single letters that are near to each other."""
    single = sum(len(word.text) == 1 for word in line)
    if single < _MIN_LETTERS:
        return line
    if single == len(line):
        return _join_letters(line)
    joined: list[Word] = []
    for is_letter, run in groupby(line, key=_is_letter):
        words = list(run)
        joined += _join_letters(words) if is_letter else words
    return joined


def _is_letter(word: Word) -> bool:
    return len(word.text) == 1 and word.text.isalpha()


def _join_letters(line: list[Word]) -> list[Word]:
    """Return single letters as words, if they are near to each other."""
    if not _are_letters(line):
        return line
    gaps = [after.left - before.right for before, after in pairwise(line)]
    gap_between_letters = min(gaps)
    if gap_between_letters > _NEAR * line[0].height:
        return line
    joined = line[:1]
    for gap, letter in zip(gaps, line[1:], strict=True):
        word = joined[-1]
        if gap > _WIDER * gap_between_letters:
            joined.append(letter)
            continue
        joined[-1] = word._replace(
            text=word.text + letter.text,
            right=letter.right,
            last=letter.last,
        )
    return joined


def _are_letters(line: Sequence[Word]) -> bool:
    """Return whether words are single letters, and perhaps a few other signs, which are not a part of an alphabet."""
    text = "".join(word.text for word in line)
    if len(text) > len(line):
        return False
    letters = sum(map(str.isalpha, text))
    if letters < _MIN_LETTERS or 2 * letters < len(text):
        return False
    steps = {ord(after) - ord(before) for before, after in pairwise(text)}
    is_alphabet = steps == {1}
    return not is_alphabet
