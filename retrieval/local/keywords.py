"""Exact keyword matching in the chunk texts, at query time and without a keyword index (paper, section 3.2).

Score(c, K) = sum over k in K of count(k, T_c) * |k|, where count is the number of case-insensitive,
non-overlapping occurrences of k in the chunk's text T_c, and |k| is its length in characters. White space is folded
in both: a line break between two words matches like the space that it stands for.

The texts, folded and in lower case, are stored one after another in one file that is mapped into memory and searched
at memory speed. The file is derived from the chunk store, and written again for every generation of the index.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from stringzilla import Str

from arag.errors import DamagedFileError, IndexFormatError
from arag.files import written_whole
from arag.retrieval.backend import RankedChunk
from arag.retrieval.text import fold

# Never occurs in UTF-8: no keyword can match across the border of two chunks.
_SEPARATOR = b"\xff"
# A file holds the texts, each followed by a separator; then the arrays: where each text begins and the last one ends,
# the chunks' numbers, and their places in the order of chunk ids; then a footer: the mark, the number of chunks, the
# size of the texts in bytes, and the CRC-32 of the arrays. The texts have no checksum here: computing it for hundreds
# of megabytes would slow every opening. The manifest has one for the whole file, which `verify` compares.
_MARK = b"ARAGKW02"
_FOOTER = struct.Struct("<8sQQI")
_BLOCK_BYTES = 1 << 20  # compared at once: fits the processor's cache

Integers = NDArray[np.int64]


def write_keyword_file(file: Path, texts: Iterable[tuple[int, str]], numbers_by_id: Sequence[int]) -> None:
    """Write the texts that keywords are searched in; the file appears when it is complete.

    Args:
        file: The file to write.
        texts: Number and text of every chunk, by number.
        numbers_by_id: The same numbers, in the order of the chunks' ids.

    Raises:
        IndexFormatError: A chunk has no text.
    """
    numbers: list[int] = []
    borders = [0]
    with written_whole(file) as out:
        for number, text in texts:
            written = searchable(text) + _SEPARATOR
            numbers.append(number)
            borders.append(borders[-1] + len(written))
            out.write(written)
        if len(numbers) != len(numbers_by_id):
            lost = len(numbers_by_id) - len(numbers)
            raise IndexFormatError(f"{lost:,} chunks have no text: run `arag verify --index {file.parent} --repair`")
        order = np.asarray(numbers, dtype=np.int64)
        places = np.empty_like(order)
        places[np.searchsorted(order, np.asarray(numbers_by_id, dtype=np.int64))] = np.arange(len(order))
        arrays = np.concatenate([np.asarray(borders, dtype=np.int64), order, places]).tobytes()
        out.write(arrays)
        out.write(_FOOTER.pack(_MARK, len(numbers), borders[-1], zlib.crc32(arrays)))


class KeywordMatcher:
    """Counts keywords in the chunk texts of a keyword file, and ranks the chunks.

    Nobody writes to a keyword file once it is complete. If something truncates it anyway, the next search raises an
    error; if that happens during the milliseconds of a search, the system kills the process (SIGBUS).

    Args:
        file: The keyword file; it may be deleted while it is open here.

    Raises:
        IndexFormatError: The file is missing or damaged.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            with file.open("rb") as opened:
                self._size = os.fstat(opened.fileno()).st_size
                self._borders, self._numbers, self._places = self._read_arrays(opened)
                self._map = mmap.mmap(opened.fileno(), self._size, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:  # truncated while it was opened
            raise DamagedFileError(file, str(error)) from error
        self._bytes = np.frombuffer(self._map, np.uint8, int(self._borders[-1]))
        self._text = Str(memoryview(self._map))
        self._spans = self._borders[:-1].tolist(), (self._borders[1:] - 1).tolist()
        # Sums of the smallest type that holds any count are three times as fast as those of int64.
        self._count_type = np.min_scalar_type(np.diff(self._borders).max(initial=0))

    def _read_arrays(self, opened: BinaryIO) -> tuple[Integers, Integers, Integers]:
        """Read the texts' borders, the chunks' numbers and their places from the end of the file, and check them."""
        opened.seek(max(0, self._size - _FOOTER.size))
        footer = opened.read()
        if len(footer) < _FOOTER.size or not footer.startswith(_MARK):
            raise DamagedFileError(self._file, "it is truncated, or not a keyword file of this version")
        _, chunks, text_bytes, checksum = _FOOTER.unpack(footer)
        array_bytes = 8 * (3 * chunks + 1)
        if text_bytes + array_bytes + _FOOTER.size != self._size:
            raise DamagedFileError(self._file, "its sizes do not add up")
        opened.seek(text_bytes)
        data = opened.read(array_bytes)
        if len(data) != array_bytes or zlib.crc32(data) != checksum:
            raise DamagedFileError(self._file, "its checksum is wrong")
        borders, numbers, places = np.split(np.frombuffer(data, np.int64), [chunks + 1, 2 * chunks + 1])
        # A file from somebody else may have a valid checksum too: nothing may be read outside the texts.
        if borders[0] != 0 or borders[-1] != text_bytes or np.any(borders[1:] <= borders[:-1]):
            raise DamagedFileError(self._file, "its texts have impossible borders")
        return borders, numbers, places

    def __len__(self) -> int:
        """Return the number of chunks."""
        return len(self._numbers)

    def counts(self, keyword: str) -> Integers:
        """Count a keyword in every chunk.

        Returns:
            Non-overlapping, case-insensitive occurrences, white space folded, shape (chunks,).

        Raises:
            DamagedFileError: The file was truncated since it was opened.
        """
        needle = searchable(keyword)
        if not needle:
            raise ValueError("a blank keyword matches nowhere")
        if self._map.size() < self._size:  # the size of the file: reading past its end would kill the process
            raise DamagedFileError(self._file, "it was truncated while it was open")
        if len(needle) == 1 or (len(needle) == 2 and needle[0] != needle[1]):
            return self._count_letters(needle)
        # A call per chunk costs no more than searching its four thousand bytes.
        return np.fromiter(map(self._text.count, repeat(needle), *self._spans), np.int64, len(self))

    def _count_letters(self, needle: bytes) -> Integers:
        """Count one byte, or two that differ, by comparing them with every byte of the texts.

        A search takes time for every hit, and letters have very many. These hits never overlap, so all of them count.
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
        """Rank the chunks by Score(c, K), ties by chunk id; see `Keywords.rank`."""
        scores = np.zeros(len(self), dtype=np.int64)
        found: dict[str, tuple[Integers, Integers]] = {}  # the chunks that hold a keyword, and how often
        for keyword in keywords:
            counts = self.counts(keyword)
            scores += counts * len(fold(keyword))
            holding = np.flatnonzero(counts)
            found[keyword] = holding, counts[holding]
        matching = np.flatnonzero(scores)
        if len(matching) > top_k:
            # Keep everything that ties with the last place: the ids decide.
            threshold = np.partition(scores[matching], -top_k)[-top_k]
            candidates = matching[scores[matching] >= threshold]
        else:
            candidates = matching
        best = candidates[np.lexsort((self._places[candidates], -scores[candidates]))][:top_k]
        ranked = [RankedChunk(int(self._numbers[i]), int(scores[i]), _pick_counts(found, i)) for i in best]
        return ranked, {keyword: len(holding) for keyword, (holding, _) in found.items()}, len(matching)


def searchable(text: str) -> bytes:
    """Return a text, or a keyword, as it is matched: white space folded, in lower case."""
    # A keyword may hold half a surrogate pair, which no stored text does: it then matches nowhere.
    return fold(text).lower().encode("utf-8", "surrogatepass")


def _pick_counts(found: Mapping[str, tuple[Integers, Integers]], chunk: int) -> dict[str, int]:
    """Return the count of each keyword that a chunk holds."""
    counts = {}
    for keyword, (holding, occurrences) in found.items():
        place = int(np.searchsorted(holding, chunk))
        if place < len(holding) and holding[place] == chunk:
            counts[keyword] = int(occurrences[place])
    return counts
