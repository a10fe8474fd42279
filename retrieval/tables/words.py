"""The words of an index, for suggestions."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
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

    def listed(self, words: Collection[str]) -> set[str]:
        """Return which of some words the chunks may hold; see `Words.listed`."""
        return self._chunks.listed_words(words)

    def of_length(self, shortest: int, longest: int) -> list[str]:
        """Return the listed words whose lengths lie between two bounds, both included."""
        words = self._load()
        return words[bisect_left(words, shortest, key=len) : bisect_right(words, longest, key=len)]

    def holding_all(
        self, groups: Sequence[Collection[str]], limit: int, within: Collection[int] | None = None
    ) -> list[list[int]]:
        """Return the chunks that hold all words of each of some groups; see `Words.holding_all`."""
        return self._chunks.holding_all(groups, limit, within)

    def spellings(self, phrases: Sequence[Phrase], limit: int) -> list[list[str]]:
        """Return the spellings of phrases in the chunks; see `Words.spellings`."""
        return self._chunks.spellings(phrases, limit)


def by_length(words: Iterable[str]) -> list[str]:
    """Return words in the order of their lengths, and of the alphabet."""
    return sorted(words, key=lambda word: (len(word), word))
