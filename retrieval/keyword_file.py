"""Exact keyword matching in the chunk texts, at query time and without a keyword index (paper, section 3.2).

Score(c, K) = sum over k in K of count(k, T_c) * |k|, where count is the number of case-insensitive,
non-overlapping occurrences of k in the chunk's text T_c, and |k| is its length in characters. White space is folded
in both: a line break between two words matches like the space that it stands for.

The texts, folded and in lower case, are stored one after another in one file that is mapped into memory and searched
at memory speed. In a large file, a filter tells which blocks of text cannot hold a keyword; they are skipped. The file
is derived from the chunk store, and written again for every generation of the index.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from bisect import bisect, bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, compress, islice, pairwise, repeat
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from stringzilla import Str

from arag.errors import DamagedFileError, IndexFormatError
from arag.files import written_whole
from arag.retrieval.backend import KeywordRanking, RankedChunk, keyword_weight
from arag.retrieval.keyword_filter import GROUP, GROUP_BYTES, find_blocks, make_filter, read_filter
from arag.retrieval.text import fold

# Never occurs in UTF-8: no keyword can match across the border of two chunks.
_SEPARATOR = b"\xff"
# A file holds the texts, each followed by a separator; then the filter of all whole groups of blocks; then the arrays:
# where each text begins and the last one ends, the chunks' numbers, and their places in the order of chunk ids; then a
# footer: the mark, the number of chunks, the size of the texts in bytes, and the CRC-32 of the arrays. Texts and filter
# have no checksum here: computing it for hundreds of megabytes would slow every opening. The manifest has one for the
# whole file, which `verify` compares.
_MARK = b"ARAGKW03"
_MARK_WITHOUT_FILTER = b"ARAGKW02"  # of earlier versions
_FOOTER = struct.Struct("<8sQQI")
_BLOCK_BYTES = 5 << 16  # a block is the chunks that begin within this many bytes; it fits the processor's cache
_COMPARED_BYTES = 1 << 20  # compared at once: fits the processor's cache
MAX_CHECKED = 5_000  # chunks that hold a keyword: of more, every occurrence counts, in longer words too
SPACED_SCRIPTS = 0x2E80  # scripts from here on (Chinese, Japanese...) do not separate words
_NEAR = 8  # spans with fewer chunks between them are counted as one

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
        begins = np.asarray(borders, dtype=np.int64)
        _write_filter(out, begins)
        arrays = np.concatenate([begins, order, places]).tobytes()
        out.write(arrays)
        out.write(_FOOTER.pack(_MARK, len(numbers), borders[-1], zlib.crc32(arrays)))


def _write_filter(out: BinaryIO, borders: Integers) -> None:
    """Write the filter of the texts that were written to a file."""
    blocks = GROUP * _count_groups(int(borders[-1]))
    sizes = np.diff(borders[_first_chunks(borders)[: blocks + 1]])
    out.flush()
    with Path(out.name).open("rb") as texts:
        out.writelines(make_filter(texts.read(size) for size in sizes.tolist()))


def _count_groups(text_bytes: int) -> int:
    """Return how many groups of blocks are whole: these have a filter, the blocks after them are always searched."""
    return text_bytes // (_BLOCK_BYTES * GROUP)


def _first_chunks(borders: Integers) -> Integers:
    """Return the first chunk of each block, and after them the number of chunks."""
    return np.searchsorted(borders[:-1], np.append(np.arange(0, borders[-1], _BLOCK_BYTES), borders[-1]))


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
                self._borders, self._numbers, self._places, filter_bytes = self._read_arrays(opened)
                self._map = mmap.mmap(opened.fileno(), self._size, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:  # truncated while it was opened
            raise DamagedFileError(file, str(error)) from error
        self._bytes = np.frombuffer(self._map, np.uint8)
        self._text = Str(memoryview(self._map))
        self._begins: list[int] = self._borders.tolist()  # single values are read faster from a list than from an array
        self._blocks: list[int] = _first_chunks(self._borders).tolist()
        text_bytes = self._begins[-1]
        self._filter = read_filter(memoryview(self._map)[text_bytes : text_bytes + filter_bytes])
        # Sums of the smallest type that holds any count are three times as fast as those of int64.
        self._count_type = np.min_scalar_type(np.diff(self._borders).max(initial=0))

    def _read_arrays(self, opened: BinaryIO) -> tuple[Integers, Integers, Integers, int]:
        """Read and check the texts' borders, the chunks' numbers and their places, and the size of the filter."""
        opened.seek(max(0, self._size - _FOOTER.size))
        footer = opened.read()
        if len(footer) < _FOOTER.size or not footer.startswith((_MARK, _MARK_WITHOUT_FILTER)):
            raise DamagedFileError(self._file, "it is truncated, or not a keyword file of this version")
        mark, chunks, text_bytes, checksum = _FOOTER.unpack(footer)
        filter_bytes = GROUP_BYTES * _count_groups(text_bytes) if mark == _MARK else 0
        array_bytes = 8 * (3 * chunks + 1)
        if text_bytes + filter_bytes + array_bytes + _FOOTER.size != self._size:
            raise DamagedFileError(self._file, "its sizes do not add up")
        opened.seek(text_bytes + filter_bytes)
        data = opened.read(array_bytes)
        if len(data) != array_bytes or zlib.crc32(data) != checksum:
            raise DamagedFileError(self._file, "its checksum is wrong")
        borders, numbers, places = np.split(np.frombuffer(data, np.int64), [chunks + 1, 2 * chunks + 1])
        # A file from somebody else may have a valid checksum too: nothing may be read outside the texts.
        if borders[0] != 0 or borders[-1] != text_bytes or np.any(borders[1:] <= borders[:-1]):
            raise DamagedFileError(self._file, "its texts have impossible borders")
        return borders, numbers, places, filter_bytes

    def __len__(self) -> int:
        """Return the number of chunks."""
        return len(self._numbers)

    def texts(self, numbers: Sequence[int]) -> dict[int, str]:
        """Return the texts, as they are searched, of those of some chunks that the file has."""
        places = np.searchsorted(self._numbers, numbers)
        found = {}
        for number, place in zip(numbers, places.tolist(), strict=True):
            if place < len(self._numbers) and self._numbers[place] == number:
                found[number] = self._map[self._begins[place] : self._begins[place + 1] - len(_SEPARATOR)].decode()
        return found

    def counts(self, keyword: str) -> Integers:
        """Count a keyword in every chunk.

        Returns:
            Non-overlapping, case-insensitive occurrences, white space folded, shape (chunks,).

        Raises:
            DamagedFileError: The file was truncated since it was opened.
        """
        chunks, occurrences = self._find(keyword)
        counts = np.zeros(len(self._numbers), dtype=np.int64)
        counts[chunks] = occurrences
        return counts

    def _find(self, keyword: str) -> tuple[Integers, Integers]:
        """Return the chunks that hold a keyword, in ascending order, and how often each of them holds it."""
        needle = searchable(keyword)
        if not needle:
            raise ValueError("a blank keyword matches nowhere")
        if self._map.size() < self._size:  # the size of the file: reading past its end would kill the process
            raise DamagedFileError(self._file, "it was truncated while it was open")
        if len(needle) == 1:
            counts = self._count_letter(needle[0])
            chunks = np.flatnonzero(counts)
            return chunks, counts[chunks]
        return self._search(needle)

    def _search(self, needle: bytes) -> tuple[Integers, Integers]:
        """Find the first hit in each block that may hold a needle, and count from there to the end of the block."""
        begins = self._begins
        spans = [(0, 0)]  # of chunks
        for first, end in self._blocks_to_search(needle):
            hit = self._text.find(needle, begins[first], begins[end])
            if hit < 0:
                continue
            holding = bisect(begins, hit, first, end) - 1
            if holding - spans[-1][1] < _NEAR:
                spans[-1] = spans[-1][0], end
            else:
                spans.append((holding, end))
        chunks, occurrences = [], []
        for first, end in spans:
            borders = begins[first : end + 1]
            # A call per chunk costs no more than searching its four thousand bytes.
            calls = map(self._text.count, repeat(needle), borders, islice(borders, 1, None))
            counts = np.fromiter(calls, np.int64, end - first)
            inside = np.flatnonzero(counts)
            chunks.append(first + inside)
            occurrences.append(counts[inside])
        return np.concatenate(chunks), np.concatenate(occurrences)

    def _blocks_to_search(self, needle: bytes) -> Iterable[tuple[int, int]]:
        """Return the first chunk, and the one after the last, of each block that may hold a needle."""
        blocks = pairwise(self._blocks)
        if not len(self._filter):
            return blocks
        return compress(blocks, chain(find_blocks(self._filter, needle).tolist(), repeat(True)))

    def _count_letter(self, letter: int) -> Integers:
        """Count a byte by comparing it with every byte of the texts.

        A search takes time for every hit, and a letter has very many.
        """
        counts = np.zeros(len(self._numbers), dtype=np.int64)
        for start in range(0, self._begins[-1], _COMPARED_BYTES):
            hits = self._bytes[start : min(start + _COMPARED_BYTES, self._begins[-1])] == letter
            first = bisect(self._begins, start) - 1  # the chunk that the block begins in
            last = bisect_left(self._begins, start + len(hits), hi=len(self._numbers))
            inside = np.maximum(self._borders[first:last] - start, 0)
            counts[first:last] += np.add.reduceat(hits, inside, dtype=self._count_type)
        return counts

    def part(self, numbers: Integers, cut: Mapping[int, str], numbers_by_id: Sequence[int]) -> KeywordPart:
        """Return the search in some chunks.

        Args:
            numbers: Their numbers, shape (n,).
            cut: The texts of those that are cut, by number.
            numbers_by_id: The same numbers in the order of the chunks' ids, if some are cut: that changes ids.
        """
        return KeywordPart(self, numbers, cut, numbers_by_id)

    def chunks_holding(self, keywords: Sequence[str]) -> list[int]:
        """Count the chunks that hold each of some keywords."""
        return [len(self._find(keyword)[0]) for keyword in keywords]

    def rank(
        self, keywords: Sequence[str], top_k: int, *, within: Collection[int] | None = None, by_coverage: bool = False
    ) -> KeywordRanking:
        """Rank the chunks by Score(c, K), ties by chunk id; see `Keywords.rank`."""
        inside = None if within is None else np.isin(self._numbers, np.fromiter(within, np.int64, len(within)))
        size = len(self) if inside is None else int(inside.sum())
        scores: NDArray[Any] = np.zeros(len(self._numbers), dtype=np.float64 if by_coverage else np.int64)
        found: dict[str, tuple[Integers, Integers]] = {}  # the chunks that hold a keyword, and how often
        as_word: dict[str, int] = {}
        holding: dict[str, int] = {}
        any_held = np.zeros(len(self._numbers), dtype=np.bool_)
        firsts = []
        for keyword in keywords:
            chunks, occurrences = self._find(keyword)
            if inside is not None:
                kept = inside[chunks]
                chunks, occurrences = chunks[kept], occurrences[kept]
            holding[keyword] = len(chunks)
            if by_coverage and len(chunks):
                words = self._count_words(keyword, chunks, occurrences)
                as_word[keyword] = int(np.count_nonzero(words))
                counted = words if as_word[keyword] else occurrences
                scores[chunks] += keyword_weight(counted, as_word[keyword] or len(chunks), size)
                firsts.append(chunks[counted > 0])
            elif not by_coverage:
                scores[chunks] += occurrences * len(fold(keyword))
            found[keyword] = chunks, occurrences
            any_held[chunks] = True
        best = self._best(np.flatnonzero(scores), scores, top_k)
        # Each keyword's best chunk, by all keywords.
        best = np.unique(np.concatenate([best, *(self._best(chunks, scores, 1) for chunks in firsts)]))
        best = self._best(best, scores, len(best))
        ranked = [RankedChunk(int(self._numbers[i]), scores[i].item(), _pick_counts(found, i)) for i in best]
        return KeywordRanking(ranked, holding, as_word, int(np.count_nonzero(any_held)))

    def _best(self, chunks: Integers, scores: NDArray[Any], top_k: int) -> Integers:
        """Return the chunks with the highest scores, best first, ties by chunk id."""
        if len(chunks) > top_k:
            # Keep everything that ties with the last place: the ids decide.
            threshold = np.partition(scores[chunks], -top_k)[-top_k]
            chunks = chunks[scores[chunks] >= threshold]
        return chunks[np.lexsort((self._places[chunks], -scores[chunks]))][:top_k]

    def _count_words(self, keyword: str, chunks: Integers, occurrences: Integers) -> Integers:
        """Count a keyword in chunks that hold it, where it is not a part of a longer word; a plural still counts."""
        folded = fold(keyword).lower()
        starts, ends = (c.isalnum() and ord(c) < SPACED_SCRIPTS for c in (folded[0], folded[-1]))
        if not (starts or ends) or len(chunks) > MAX_CHECKED:
            return occurrences
        needle = searchable(keyword)
        counts = (self._count_words_in(chunk, needle, starts=starts, ends=ends) for chunk in chunks.tolist())
        return np.fromiter(counts, np.int64, len(chunks))

    def _count_words_in(self, chunk: int, needle: bytes, *, starts: bool, ends: bool) -> int:
        """Count a needle in a chunk where no letter comes before it, if it `starts` with one, and none after it."""
        text, begin, end = self._place(chunk)
        count, at = 0, text.find(needle, begin, end)
        while at >= 0:
            after = at + len(needle)
            if ends and text[after] in b"es":
                after += next((len(e) for e in (b"es", b"s") if text[after : after + len(e)] == e), 0)
            is_word = not (ends and _begins_letter(text, after)) and not (starts and _ends_letter(text, at))
            count += is_word
            at = text.find(needle, after if is_word else at + 1, end)
        return count

    def _place(self, chunk: int) -> tuple[mmap.mmap | bytes, int, int]:
        """Return what holds a chunk's text, where it begins there, and where its separator ends."""
        return self._map, self._begins[chunk], self._begins[chunk + 1]


class KeywordPart(KeywordMatcher):
    """The keyword search in some chunks of a keyword file; see `KeywordMatcher.part`."""

    def __init__(
        self, whole: KeywordMatcher, numbers: Integers, cut: Mapping[int, str], numbers_by_id: Sequence[int]
    ) -> None:
        self.__dict__ |= whole.__dict__
        places = np.searchsorted(self._numbers, numbers)
        self._length = len(numbers)
        self._is_whole = np.zeros(len(self._numbers), dtype=np.bool_)
        self._is_whole[places] = True
        # By the chunk's place in the file, so in the order of the numbers.
        self._cut = {
            int(np.searchsorted(self._numbers, number)): searchable(cut[number]) + _SEPARATOR for number in sorted(cut)
        }
        self._cut_places = np.fromiter(self._cut, np.int64, len(self._cut))
        self._is_whole[self._cut_places] = False
        if cut:
            self._places = self._places.copy()
            by_id = np.searchsorted(self._numbers, np.asarray(numbers_by_id, dtype=np.int64))
            self._places[by_id] = np.arange(len(by_id))

    def __len__(self) -> int:
        """Return the number of chunks."""
        return self._length

    def _find(self, keyword: str) -> tuple[Integers, Integers]:
        """Return the chunks that hold a keyword, in ascending order, and how often each of them holds it."""
        chunks, occurrences = super()._find(keyword)
        kept = self._is_whole[chunks]
        chunks, occurrences = chunks[kept], occurrences[kept]
        if not self._cut:
            return chunks, occurrences
        needle = searchable(keyword)
        counts = np.fromiter((text.count(needle) for text in self._cut.values()), np.int64, len(self._cut))
        chunks = np.concatenate([chunks, self._cut_places[counts > 0]])
        order = np.argsort(chunks)
        return chunks[order], np.concatenate([occurrences, counts[counts > 0]])[order]

    def _place(self, chunk: int) -> tuple[mmap.mmap | bytes, int, int]:
        text = self._cut.get(chunk)
        return super()._place(chunk) if text is None else (text, 0, len(text))


def _begins_letter(text: mmap.mmap | bytes, at: int) -> bool:
    """Return whether a letter or digit of a script that separates words begins at an offset."""
    if text[at] == _SEPARATOR[0]:
        return False
    character = text[at : at + 4].decode("utf-8", "ignore")[:1]
    return character.isalnum() and ord(character) < SPACED_SCRIPTS


def _ends_letter(text: mmap.mmap | bytes, at: int) -> bool:
    """Return whether such a letter ends before an offset."""
    start = at - 1
    while start > 0 and 0x80 <= text[start] < 0xC0:
        start -= 1
    return start >= 0 and _begins_letter(text, start)


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
