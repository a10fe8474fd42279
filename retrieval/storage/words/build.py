"""Makes segments of the word index from the lines of chunks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np
from numpy.typing import NDArray

from arag.retrieval.storage.batches import batches
from arag.retrieval.storage.records import ChunkText
from arag.retrieval.storage.words.segment import Integers, Segment, encode, find_gaps, keep_chunks
from arag.retrieval.storage.words.spans import SEPARATOR, find_words, keeps_case

ReadTexts = Callable[[Sequence[int]], Sequence[ChunkText]]

_CHUNKS_AT_ONCE = 1_000  # that are read and sorted together: more take more memory
_MAX_CHUNKS = 100_000  # of a segment: more take more memory
_MERGED = 2  # a segment is small if it has at most so many times as many chunks as there are new ones


def find_new(known: Sequence[Integers], row_ids: Integers) -> tuple[int, Integers]:
    """Return how many of an index's first segments stay, and which chunks need a new one.

    New chunks are put together with those of the last segments if these are small: so there are never many segments.

    Args:
        known: The row ids of the segments' chunks.
        row_ids: The row ids of all chunks.
    """
    kept = len(known)
    while True:
        others = np.concatenate([np.empty(0, np.int64), *known[:kept]])
        new = np.setdiff1d(row_ids, others)
        if kept == 0 or len(known[kept - 1]) > _MERGED * len(new):
            return kept, new
        kept -= 1


def build_segments(row_ids: Integers, read: ReadTexts) -> Iterator[Segment]:
    """Make the segments of some chunks, apart from those whose words are not the words of their lines.

    Args:
        row_ids: The chunks' row ids, rising.
        read: Returns the texts of chunks, by their row ids.
    """
    for part in batches(row_ids.tolist(), _MAX_CHUNKS):
        builder = _Builder()
        for some in batches(part, _CHUNKS_AT_ONCE):
            builder.add(read(some))
        segment = builder.finish()
        if segment is not None:
            yield segment


def is_right(segment: Segment, row_ids: Integers, read: ReadTexts) -> bool:
    """Return whether a segment is what is made of those of its chunks that are left."""
    is_kept = np.isin(segment.row_ids, row_ids)
    if not is_kept.any():
        return True
    expected = next(build_segments(segment.row_ids[is_kept], read), None)
    found = segment if is_kept.all() else keep_chunks(segment, is_kept)
    return expected is not None and expected.postings == found.postings and expected.head() == found.head()


@dataclass(frozen=True, slots=True)
class _Batch:
    """The postings of some chunks."""

    words: Integers  # the numbers of the words that occur, rising
    sizes: Integers  # of each word's postings, in bytes
    postings: NDArray[np.uint8]


@dataclass(slots=True)
class _Builder:
    numbers: defaultdict[str, int] = field(default_factory=lambda: defaultdict(count().__next__))  # of words
    last_lines: Integers = field(default_factory=lambda: np.empty(0, np.int64))  # of each word, so far
    row_ids: list[int] = field(default_factory=list)
    line_counts: list[int] = field(default_factory=list)
    hidden: list[int] = field(default_factory=list)
    lines: int = 0
    batches: list[_Batch] = field(default_factory=list)

    def add(self, chunks: Sequence[ChunkText]) -> None:
        """Add chunks, apart from those whose words are not the words of their lines."""
        texts: list[str] = []
        first_line = self.lines
        for chunk in chunks:
            lines = _split(chunk)
            if lines is None:
                continue
            if chunk.begins_with_title():
                self.hidden.append(self.lines)
            if len(lines) > len(chunk.starts):
                self.hidden.append(self.lines + len(lines) - 1)
            self.row_ids.append(chunk.row_id)
            self.line_counts.append(len(lines))
            self.lines += len(lines)
            texts += lines
        if not texts:
            return
        words = find_words(SEPARATOR.join(texts))
        numbers = np.fromiter(map(self.numbers.__getitem__, words), np.int64, len(words))
        is_end = numbers == self.numbers[SEPARATOR]
        numbers_of_lines = first_line + np.cumsum(is_end)
        is_word = ~(is_end | (numbers == self.numbers[""]))
        self._add_postings(numbers[is_word], numbers_of_lines[is_word])

    def _add_postings(self, numbers: Integers, lines: Integers) -> None:
        """Add the words of lines, given their numbers."""
        if not len(numbers):
            return
        order = np.argsort(numbers, kind="stable")
        numbers, lines = numbers[order], lines[order]
        gaps, firsts = find_gaps(numbers, lines)
        words = numbers[firsts]
        missing = len(self.numbers) - len(self.last_lines)
        self.last_lines = np.append(self.last_lines, np.zeros(missing, np.int64))
        gaps[firsts] -= self.last_lines[words]
        self.last_lines[words] = lines[np.append(firsts[1:], len(lines)) - 1]
        postings, sizes = encode(gaps)
        self.batches.append(_Batch(words, np.add.reduceat(sizes, firsts), postings))

    def finish(self) -> Segment | None:
        if not self.row_ids:
            return None
        words = [word for word in self.numbers if word not in {"", SEPARATOR}]
        words.sort()
        sizes = np.zeros(len(self.numbers), np.int64)
        for batch in self.batches:
            sizes[batch.words] += batch.sizes
        order = np.fromiter(map(self.numbers.__getitem__, words), np.int64, len(words))
        places = np.zeros_like(sizes)  # where the next postings of each word go
        places[order] = np.cumsum(sizes[order]) - sizes[order]
        postings = np.empty(sizes.sum(), np.uint8)
        while self.batches:
            batch = self.batches.pop(0)
            shifts = places[batch.words] - (np.cumsum(batch.sizes) - batch.sizes)
            postings[np.repeat(shifts, batch.sizes) + np.arange(len(batch.postings))] = batch.postings
            places[batch.words] += batch.sizes
        return Segment(
            row_ids=np.array(self.row_ids, np.int64),
            line_counts=np.array(self.line_counts, np.int64),
            hidden=np.array(self.hidden, np.int64),
            words="\n".join(words).encode(),
            sizes=sizes[order],
            postings=postings.data,
        )


def _split(chunk: ChunkText) -> list[str] | None:
    """Return the lines of a chunk, and, if it has words between them, these as one more line.

    None if its words are not those of its lines: a word may be cut between two lines, or lower case depend on both.
    """
    text = chunk.text
    starts, ends = chunk.starts.tolist(), chunk.ends.tolist()
    if SEPARATOR in text or not keeps_case(text):
        return None
    lines = list(map(text.__getitem__, map(slice, starts, ends)))
    between = list(map(text.__getitem__, map(slice, [0, *ends], [*starts, len(text)])))
    if all(map(str.isspace, between[1:-1])) and not between[0].strip() and not between[-1].strip():
        return lines
    pieces = [between[0]]
    for line, following in zip(lines, between[1:], strict=True):
        pieces += [line, following]
    words = [word for word in find_words(SEPARATOR.join(pieces)) if word != SEPARATOR]
    if words != find_words(text):
        return None
    rest = " ".join(between)
    if any(find_words(rest)):
        lines.append(rest)
    return lines
