"""The word index of some chunks: counts words, or parts of them, and lines that have them, without the texts.

It is made of segments. Chunks that no segment has are not counted here: they are scanned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from stringzilla import Str

from arag.errors import IndexFormatError
from arag.retrieval.storage.words.segment import Segment, decode
from arag.text.normalise import lower

Integers = NDArray[np.int64]
_MAX_WORDS = 3_000  # that hold a text: to look at more takes longer than to scan the texts
_FEW = 64  # of so many lines or chunks, it is faster to sort one than to look at all

ReadPostings = Callable[[Sequence[tuple[int, int]]], Sequence[bytes | memoryview]]


@dataclass(frozen=True, slots=True)
class Counted:
    """Chunks, by row id, and how often each has something, at least once."""

    row_ids: Integers
    counts: Integers

    @classmethod
    def of(cls, parts: Sequence[Counted]) -> Counted:
        """Put the chunks of segments together."""
        return cls(
            np.concatenate([np.empty(0, np.int64), *(part.row_ids for part in parts)]),
            np.concatenate([np.empty(0, np.int64), *(part.counts for part in parts)]),
        )


class WordIndex:
    """The word index of an index's chunks, those of other snapshots among them."""

    def __init__(self, segments: Sequence[StoredSegment]) -> None:
        self._segments = segments

    def has(self, row_ids: Integers) -> NDArray[np.bool_]:
        """Return which chunks it has."""
        known = [segment.row_ids for segment in self._segments]
        return np.isin(row_ids, np.concatenate([np.empty(0, np.int64), *known]))

    def find(self, alternatives: Iterable[Sequence[str]]) -> Found | None:
        """Find the words that hold all texts, in lower case, of one of some alternatives; None if they are too many."""
        words: list[tuple[StoredSegment, list[int]]] = []
        for segment in self._segments:
            numbers: set[int] = set()
            for texts in alternatives:
                numbers.update(segment.find_words(texts))
                if len(numbers) > _MAX_WORDS:
                    return None
            if numbers:
                words.append((segment, sorted(numbers)))
        return Found(words)


class Found:
    """Words, by their segments and numbers."""

    def __init__(self, words: Sequence[tuple[StoredSegment, Sequence[int]]]) -> None:
        self._words = words

    def size(self) -> int:
        """Return about how many lines have these words: the bytes of their postings."""
        return sum(int(segment.sizes[numbers].sum()) for segment, numbers in self._words)

    def where(self, accepts: Callable[[str], bool]) -> Found:
        """Return the words that a function of a word accepts."""
        kept: list[tuple[StoredSegment, Sequence[int]]] = []
        for segment, numbers in self._words:
            accepted = [number for number in numbers if accepts(segment.word(number))]
            if accepted:
                kept.append((segment, accepted))
        return Found(kept)

    def count(self, times: Callable[[str], int]) -> Counted:
        """Count, in each chunk, something that is in each word so many times, given the word in lower case."""
        parts: list[Counted] = []
        for segment, numbers in self._words:
            in_words = {number: times(lower(segment.word(number))) for number in numbers}
            held = [number for number in numbers if in_words[number]]
            if held:
                parts.append(segment.count(held, [in_words[number] for number in held]))
        return Counted.of(parts)

    def count_lines(self) -> Counted:
        """Count the lines of each chunk that have one of these words, without the hidden ones."""
        return Counted.of([segment.count_lines(numbers) for segment, numbers in self._words])


class StoredSegment:
    """A segment whose postings are read when they are asked for.

    Args:
        segment: The segment.
        read: Reads parts of its postings, given where each starts and ends.
    """

    def __init__(self, segment: Segment, read: ReadPostings) -> None:
        self.row_ids = segment.row_ids
        self.sizes = segment.sizes
        self._segment = segment
        self._read = read
        self._first_lines = np.append(0, np.cumsum(segment.line_counts))
        self._posting_ends = np.cumsum(segment.sizes)
        self._words = _Lines(segment.words)
        # Lower case may have more bytes, or fewer.
        self._lowered = _Lines(lower(segment.words.decode()).encode())

    def find_words(self, texts: Sequence[str]) -> list[int]:
        """Return the numbers of the first words that hold all of some texts, in lower case."""
        first, *others = sorted((text.encode("utf-8", "surrogatepass") for text in texts), key=len, reverse=True)
        return self._lowered.find(first, others, _MAX_WORDS + 1)

    def word(self, number: int) -> str:
        """Return a word."""
        return self._words.line(number)

    def count(self, numbers: Sequence[int], times: Sequence[int]) -> Counted:
        """Count, in each chunk, something that is in each of some words so many times."""
        lines, counts = self._read_lines(numbers)
        return self._count_by_chunk(lines, np.repeat(np.asarray(times, np.int64), counts))

    def count_lines(self, numbers: Sequence[int]) -> Counted:
        """Count the lines of each chunk that have one of some words, without the hidden ones."""
        lines, _ = self._read_lines(numbers)
        all_lines = int(self._first_lines[-1])
        if _FEW * len(lines) < all_lines:
            lines = distinct(lines)
            lines = lines[~np.isin(lines, self._segment.hidden)]
        else:
            has_word = np.zeros(all_lines, np.bool_)
            has_word[lines] = True
            has_word[self._segment.hidden] = False
            lines = np.flatnonzero(has_word)
        return self._count_by_chunk(lines, np.ones(len(lines), np.int64))

    def _read_lines(self, numbers: Sequence[int]) -> tuple[Integers, Integers]:
        """Return the lines of words, one word after another, and how many each word has."""
        ends = self._posting_ends[numbers]
        starts = ends - self.sizes[numbers]
        postings = self._read(list(zip(starts.tolist(), ends.tolist(), strict=True)))
        try:
            return decode(postings, int(self._first_lines[-1]))
        except ValueError as error:
            raise IndexFormatError(
                f"the index's list of words is damaged ({error}): run `arag verify --repair`, which makes it again"
            ) from error

    def _count_by_chunk(self, lines: Integers, weights: Integers) -> Counted:
        """Add the weights of lines, chunk by chunk."""
        if _FEW * len(lines) < len(self.row_ids):
            rows = np.searchsorted(self._first_lines, lines, side="right") - 1
            order = np.argsort(rows, kind="stable")
            rows, weights = rows[order], weights[order]
            firsts = np.flatnonzero(np.diff(rows, prepend=-1))
            return Counted(self.row_ids[rows[firsts]], np.add.reduceat(weights, firsts))
        counts = np.bincount(self._rows[lines], weights, len(self.row_ids)).astype(np.int64)
        held = np.flatnonzero(counts)
        return Counted(self.row_ids[held], counts[held])

    @cached_property
    def _rows(self) -> NDArray[np.int32]:
        """The place of each line's chunk."""
        return np.repeat(np.arange(len(self.row_ids), dtype=np.int32), self._segment.line_counts)


def distinct(numbers: Integers) -> Integers:
    """Return numbers from 0 on in order, each once; NumPy's own function takes ten times as long for many."""
    numbers = np.sort(numbers)
    return numbers[np.flatnonzero(np.diff(numbers, prepend=-1))]


class _Lines:
    """The lines of a text in UTF-8."""

    def __init__(self, text: bytes) -> None:
        self._text: Str = Str(text)
        newlines = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
        self._starts = np.append(0, newlines + 1)
        self._ends = np.append(newlines, len(text))

    def line(self, number: int) -> str:
        return str(self._text[int(self._starts[number]) : int(self._ends[number])])

    def find(self, text: bytes, others: Sequence[bytes], limit: int) -> list[int]:
        """Return the numbers of the first `limit` lines that hold a text and all others."""
        found: list[int] = []
        position = self._text.find(text)
        while position >= 0 and len(found) < limit:
            number = int(np.searchsorted(self._ends, position))
            start, end = int(self._starts[number]), int(self._ends[number])
            if all(self._text.find(other, start, end) >= 0 for other in others):
                found.append(number)
            position = self._text.find(text, end)
        return found
