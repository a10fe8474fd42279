"""The word index of a view's chunks, by their rows: their places in the order of the chunks' ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from arag.retrieval.storage.words.index import Counted, Found, WordIndex
from arag.retrieval.storage.words.segment import Integers
from arag.retrieval.storage.words.spans import find_words, is_in_word
from arag.text.normalise import lower

_WORDS_TRIED = 3  # of a text, the longest: each takes milliseconds, and a short one is hardly the rarest


@dataclass(frozen=True, slots=True)
class Held:
    """The rows that hold something, and how often each does."""

    rows: Integers  # rising
    counts: Integers

    def among(self, rows: Integers) -> Integers:
        """Return the counts of some rows, which have all of these among them."""
        counts = np.zeros(len(rows), np.int64)
        counts[np.searchsorted(rows, self.rows)] = self.counts
        return counts


class WordRows:
    """The word index of some chunks.

    Args:
        index: The index, with other chunks in it, too; None if there is none.
        read_row_ids: Returns the chunks' row ids, in the order of their ids; called at the first use.
    """

    def __init__(self, index: WordIndex | None, read_row_ids: Callable[[], Integers]) -> None:
        self.index = index
        self._read_row_ids = read_row_ids

    @cached_property
    def row_ids(self) -> Integers:
        """The chunks' row ids, in the order of their ids."""
        return self._read_row_ids()

    def rows_of(self, row_ids: Sequence[int] | Integers) -> Integers:
        """Return the rows of chunks, and -1 for each that is not among these chunks."""
        sorted_ids, order = self._sorted
        places = np.searchsorted(sorted_ids, row_ids)
        places[places == len(sorted_ids)] = 0
        if not len(sorted_ids):
            return places - 1
        return np.where(sorted_ids[places] == row_ids, order[places], -1)

    @cached_property
    def _sorted(self) -> tuple[Integers, Integers]:
        """The row ids, rising, and the row of each."""
        order = np.argsort(self.row_ids)
        return self.row_ids[order], order

    @cached_property
    def others(self) -> Integers:
        """The rows of the chunks that are not in the index."""
        if self.index is None:
            return np.arange(len(self.row_ids))
        return np.flatnonzero(~self.index.has(self.row_ids))

    def find(self, text: str, most: int | None = None) -> Found | None:
        """Find the words that hold a text, given in lower case.

        None if the text may also be elsewhere, or if the words have more than `most` postings, in bytes.
        """
        if self.index is None or not is_in_word(text):
            return None
        found = self.index.find([[text]])
        if found is None or (most is not None and found.size() > most):
            return None
        return found

    def count(self, found: Found, text: str, pattern: re.Pattern[str] | None = None) -> Held:
        """Count a text, or what a pattern matches in place of it, in words that hold it, in the rows of the index."""
        return self._place(
            found.count(lambda word: word.count(text) if pattern is None else len(pattern.findall(word)))
        )

    def _place(self, counted: Counted) -> Held:
        rows = self.rows_of(counted.row_ids)
        order = np.argsort(rows)
        order = order[np.searchsorted(rows[order], 0) :]  # without the chunks that are not among these
        return Held(rows[order], counted.counts[order])

    def propose(self, text: str, most: int) -> Integers | None:
        """Return the rows that may hold a text, which may have several words: those with the rarest long one.

        None if that may be any, or if even this word has more than `most` postings, in bytes.
        """
        rarest: Found | None = None
        longest = sorted(filter(None, find_words(text)), key=len, reverse=True)[:_WORDS_TRIED]
        for word in longest:
            found = self.find(word, most)
            if found is None:
                continue
            found = found.where(_make_test(word, text))
            if rarest is None or found.size() < rarest.size():
                rarest = found
        if rarest is None:
            return None
        return np.sort(np.append(self._place(rarest.count(bool)).rows, self.others))


def _make_test(word: str, text: str) -> Callable[[str], bool]:
    """Return the function that says of a word of the index whether a word of a text may be in it."""
    start = "" if text.startswith(word) else "^"
    end = "" if text.endswith(word) else "$"
    pattern = re.compile(f"{start}{re.escape(word)}{end}")
    return lambda found: pattern.search(lower(found)) is not None
