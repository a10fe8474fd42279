"""Exact keyword matching in the chunk texts, at query time and without a keyword index (paper, section 3.2).

Score(c, K) = sum over k in K of count(k, T_c) * |k|, where count is the number of case-insensitive,
non-overlapping occurrences of k in the chunk's text T_c, and |k| is its length in characters.

The texts stand lower-cased, one behind the other, in one file that is mapped into memory and searched at memory
speed. The file is derived from the chunk store, and made anew for every generation of the index.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from stringzilla import Str

from arag.retrieval.errors import IndexFormatError
from arag.retrieval.files import written_whole

# Never part of UTF-8: no keyword can match across the border of two chunks.
_SEPARATOR = b"\xff"
# A file is: the texts, each with a separator behind it, filled up to a multiple of 8 bytes; where each text begins,
# and where the last ends; the chunks' numbers; their places in the order of chunk ids; and at the end its mark, the
# bytes of the texts, and the number of chunks.
_MARK = b"ARAGKW01"
_END = struct.Struct("<8sQQ")
_BLOCK_BYTES = 1 << 20  # compared at once: fits the processor's cache

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RankedChunk:
    """A chunk and its score.

    Attributes:
        number: The chunk's number in the chunk store.
        score: Score(c, K).
        counts: Occurrences of each keyword that the chunk holds.
    """

    number: int
    score: int
    counts: dict[str, int]


def write_keyword_file(file: Path, texts: Iterable[tuple[int, str]], numbers_by_id: Sequence[int]) -> None:
    """Write the texts that keywords are searched in; the file appears when it is complete.

    Args:
        file: Where to.
        texts: Number and text of every chunk, by number.
        numbers_by_id: The same numbers, in the order of the chunks' ids.

    Raises:
        IndexFormatError: A chunk has no text.
    """
    numbers: list[int] = []
    borders = [0]
    with written_whole(file) as out:
        for number, text in texts:
            lowered = lower(text) + _SEPARATOR
            numbers.append(number)
            borders.append(borders[-1] + len(lowered))
            out.write(lowered)
        if len(numbers) != len(numbers_by_id):
            lost = len(numbers_by_id) - len(numbers)
            raise IndexFormatError(f"{lost:,} chunks have no text: run `arag verify --index {file.parent} --repair`")
        out.write(b"\0" * _filling(borders[-1]))
        order = np.asarray(numbers, dtype=np.int64)
        places = np.empty_like(order)
        places[np.searchsorted(order, np.asarray(numbers_by_id, dtype=np.int64))] = np.arange(len(order))
        for array in (np.asarray(borders, dtype=np.int64), order, places):
            out.write(array.tobytes())
        out.write(_END.pack(_MARK, borders[-1], len(numbers)))


class KeywordMatcher:
    """Counts keywords in the chunk texts of a keyword file, and ranks the chunks.

    Args:
        file: The keyword file; it may be deleted while it is open here.

    Raises:
        IndexFormatError: The file is missing or damaged.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            with file.open("rb") as opened:
                self._map = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:  # an empty file cannot be mapped
            raise IndexFormatError(self._broken(str(error))) from error
        size = len(self._map)
        if size < _END.size:
            raise IndexFormatError(self._broken("it is cut off"))
        mark, text_bytes, chunks = _END.unpack_from(self._map, size - _END.size)
        arrays_at = text_bytes + _filling(text_bytes)
        if mark != _MARK or arrays_at + 8 * (3 * chunks + 1) + _END.size != size:
            raise IndexFormatError(self._broken("it is cut off, or no keyword file"))
        arrays = np.frombuffer(self._map, np.int64, 3 * chunks + 1, arrays_at)
        self._borders, self._numbers, self._places = np.split(arrays, [chunks + 1, 2 * chunks + 1])
        self._bytes = np.frombuffer(self._map, np.uint8, text_bytes)
        self._text = Str(memoryview(self._map))
        self._spans = self._borders[:-1].tolist(), (self._borders[1:] - 1).tolist()
        # Sums of the smallest type that holds any count are three times as fast as those of int64.
        self._count_type = np.min_scalar_type(np.diff(self._borders).max(initial=0))

    def __len__(self) -> int:
        """Return the number of chunks."""
        return len(self._numbers)

    def counts(self, keyword: str) -> Integers:
        """Count a keyword in every chunk.

        Returns:
            Non-overlapping, case-insensitive occurrences, shape (chunks,).
        """
        needle = lower(keyword)
        if not needle:
            raise ValueError("an empty keyword matches nowhere")
        if len(needle) == 1 or (len(needle) == 2 and needle[0] != needle[1]):
            return self._counts_of_letters(needle)
        # A call for each chunk costs no more than the search in its four thousand bytes.
        return np.fromiter(map(self._text.count, repeat(needle), *self._spans), np.int64, len(self))

    def _counts_of_letters(self, needle: bytes) -> Integers:
        """Count one byte, or two that differ, by comparing them with every byte of the texts.

        A search pays for every hit, and letters have very many. Such hits never overlap, so that all of them count.
        """
        counts = np.zeros(len(self), dtype=np.int64)
        for start in range(0, len(self._bytes), _BLOCK_BYTES):
            block = self._bytes[start : start + _BLOCK_BYTES + len(needle) - 1]
            hits = block[: len(block) - len(needle) + 1] == needle[0]
            if len(needle) == 2:
                hits &= block[1:] == needle[1]
            if not len(hits):
                break
            first = int(np.searchsorted(self._borders, start, "right")) - 1  # the chunk that the block begins in
            last = int(np.searchsorted(self._borders[:-1], start + len(hits)))
            inside = np.maximum(self._borders[first:last] - start, 0)
            counts[first:last] += np.add.reduceat(hits, inside, dtype=self._count_type)
        return counts

    def chunks_holding(self, keyword: str) -> int:
        """Count the chunks that hold a keyword."""
        return int(np.count_nonzero(self.counts(keyword)))

    def rank(self, keywords: Sequence[str], top_k: int) -> tuple[list[RankedChunk], dict[str, int], int]:
        """Rank the chunks by Score(c, K), ties by chunk id.

        Args:
            keywords: Keywords, none empty and none twice.
            top_k: How many chunks to return at most.

        Returns:
            The best chunks, best first; for each keyword how many chunks hold it; how many chunks hold any.
        """
        scores = np.zeros(len(self), dtype=np.int64)
        found: dict[str, tuple[Integers, Integers]] = {}  # the chunks that hold a keyword, and how often
        for keyword in keywords:
            counts = self.counts(keyword)
            scores += counts * len(keyword)
            holding = np.flatnonzero(counts)
            found[keyword] = holding, counts[holding]
        matching = np.flatnonzero(scores)
        if len(matching) > top_k:
            # Everything that ties with the last place stays in until the ids have decided.
            threshold = np.partition(scores[matching], -top_k)[-top_k]
            candidates = matching[scores[matching] >= threshold]
        else:
            candidates = matching
        best = candidates[np.lexsort((self._places[candidates], -scores[candidates]))][:top_k]
        ranked = [RankedChunk(int(self._numbers[i]), int(scores[i]), _counts_at(found, i)) for i in best]
        return ranked, {keyword: len(holding) for keyword, (holding, _) in found.items()}, len(matching)

    def _broken(self, reason: str) -> str:
        folder = self._file.parent
        return f"{self._file} cannot be used ({reason}): run `arag verify --index {folder} --repair`"


def lower(text: str) -> bytes:
    """Return a text as it stands in a keyword file."""
    # A keyword may hold half a surrogate pair, which no stored text does: it then matches nowhere.
    return text.lower().encode("utf-8", "surrogatepass")


def _counts_at(found: Mapping[str, tuple[Integers, Integers]], chunk: int) -> dict[str, int]:
    """Return how often a chunk holds each of the keywords that it holds."""
    counts = {}
    for keyword, (holding, occurrences) in found.items():
        place = int(np.searchsorted(holding, chunk))
        if place < len(holding) and holding[place] == chunk:
            counts[keyword] = int(occurrences[place])
    return counts


def _filling(size: int) -> int:
    return -size % 8
