"""The words of an index, for suggestions."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from functools import cache

from arag.retrieval.backend import Phrase
from arag.retrieval.tables.chunks import TableChunks


class TableWords:
    """The words of a generation's chunks, or of a part of them.

    Args:
        chunks: The chunks.
        load: Returns the words of the generation, as `by_length` sorts them; some may be gone.
    """

    def __init__(self, chunks: TableChunks, load: Callable[[], list[str]]) -> None:
        self._chunks = chunks
        self._load = cache(load)  # shared with the parts

    def part(self, chunks: TableChunks) -> TableWords:
        """Return the words of some chunks."""
        return TableWords(chunks, self._load)

    def holds(self, word: str) -> bool:
        """Return whether the chunks hold a word."""
        return self._chunks.holds_word(word)

    def of_length(self, shortest: int, longest: int) -> list[str]:
        """Return the words whose lengths lie between two bounds, both included; see `Words.of_length`."""
        words = self._load()
        return words[bisect_left(words, shortest, key=len) : bisect_right(words, longest, key=len)]

    def spellings(self, phrase: Phrase, limit: int) -> list[str]:
        """Return the spellings of a phrase in the chunks."""
        return self._chunks.spellings(phrase, limit)


def by_length(words: Iterable[str]) -> list[str]:
    """Return words in the order of their lengths, and of the alphabet."""
    return sorted(words, key=lambda word: (len(word), word))
