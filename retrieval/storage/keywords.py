"""Exact keyword matching in the chunk texts, at query time and without a keyword index (paper, section 3.2).

Score(c, K) = sum over k in K of count(k, T_c) * |k|, where count is the number of case-insensitive, non-overlapping
occurrences of k in the chunk's text T_c, and |k| is its length in characters. White space is folded in both: a line
break between two words matches like the space that it stands for.

The texts, folded and in lower case, stand one after another in one file, in the order of the chunks' ids. It is mapped
into memory and searched at memory speed. It is derived from the chunks, and made again if it is missing.
"""

from __future__ import annotations

import mmap
import re
import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from itertools import islice, repeat
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from stringzilla import Str

from arag.errors import StorageError
from arag.retrieval.storage.contract import KeywordRanking, RankedChunk, Ranking
from arag.system.files import written_whole
from arag.text.normalise import collapse_whitespace, searchable

# Never occurs in UTF-8: no keyword can match across the border of two chunks.
_SEPARATOR = b"\xff"
# After the texts: where each of them ends, behind its separator; then the mark, and the number of chunks.
_MARK = b"ARAGKW06"
_FOOTER = struct.Struct("<8sQ")
MAX_CHECKED_CHUNKS = 5_000  # with a keyword: in more of them, every occurrence counts, in longer words too
SPACED_SCRIPTS = 0x2E80  # scripts from here on (Chinese, Japanese...) do not separate words

Integers = NDArray[np.int64]


def write_keywords(file: Path, texts: Iterable[str]) -> None:
    """Write a keyword file from the text of every chunk, in the order of ids; it appears when it is complete."""
    with written_whole(file) as out:
        out.writelines(format_keywords(texts))


def format_keywords(texts: Iterable[str]) -> Iterator[bytes]:
    """Yield the pieces of a keyword file."""
    ends = [0]
    for text in texts:
        piece = _encode(text) + _SEPARATOR
        ends.append(ends[-1] + len(piece))
        yield piece
    yield np.asarray(ends[1:], dtype="<i8").tobytes() + _FOOTER.pack(_MARK, len(ends) - 1)


class KeywordTexts:
    """Counts keywords in the chunks' texts, and ranks the chunks, whose numbers come in the order of their ids.

    The source is what `format_keywords` yielded: a file, which may be deleted while it is open here, or its bytes. A
    ValueError says that it holds something else.
    """

    def __init__(self, source: Path | bytes, numbers: Sequence[int]) -> None:
        self._map = _map(source) if isinstance(source, Path) else None
        self._source = source if isinstance(source, Path) else ""
        data = memoryview(source if isinstance(source, bytes) else self._map or b"")
        self._size = len(data)
        self._text: Str = Str(data)
        self._bytes = np.frombuffer(data, np.uint8)
        borders = _read_borders(data, len(numbers))
        self._numbers = np.asarray(numbers, dtype=np.int64)
        # Single values are read faster from lists than from arrays.
        self._begins: list[int] = borders[:-1].tolist()
        self._ends: list[int] = borders[1:].tolist()

    def limited_to(self, numbers: Integers) -> KeywordTexts:
        """Return the texts of some chunks only; they share the file."""
        limited = copy(self)
        inside = np.flatnonzero(np.isin(self._numbers, numbers))
        begins, ends = ([places[row] for row in inside.tolist()] for places in (self._begins, self._ends))
        vars(limited).update(_numbers=self._numbers[inside], _begins=begins, _ends=ends)
        return limited

    def count_chunks(self, texts: Sequence[str]) -> list[int]:
        """Count the chunks that hold each of some texts."""
        return [int(np.count_nonzero(self.counts(text))) for text in texts]

    def holding_all(self, texts: Sequence[str], limit: int) -> list[int]:
        """Return the numbers of the chunks that hold all of some texts, at most `limit` of them, by chunk id."""
        self._check_size()
        longest, *others = sorted(map(_encode, texts), key=len, reverse=True)
        rows = (
            row
            for row in self._rows_with(longest)
            if all(self._text.find(other, self._begins[row], self._ends[row]) >= 0 for other in others)
        )
        return [int(self._numbers[row]) for row in islice(rows, limit)]

    def holds_word(self, word: str) -> bool:
        """Return whether a text has this word, as a whole word in lower case."""
        self._check_size()
        literal = re.escape(word)  # first: `re` then jumps from one occurrence to the next
        whole = re.compile(rf"{literal}(?<!\w{literal})(?!\w)")
        texts = (self._bytes[self._begins[row] : self._ends[row]] for row in self._rows_with(_encode(word)))
        return any(whole.search(text.tobytes().decode(errors="replace")) for text in texts)

    def _rows_with(self, needle: bytes) -> Iterator[int]:
        """Yield the rows that hold a needle, searching all texts at once from one to the next."""
        row = at = 0
        while row < len(self._begins):
            at = self._text.find(needle, max(at, self._begins[row]), self._ends[-1])
            if at < 0:
                return
            row = bisect_right(self._begins, at) - 1
            if at < self._ends[row]:  # else it is in a text between them, outside a limit
                yield row
            row += 1

    def counts(self, keyword: str) -> Integers:
        """Count a keyword's occurrences, which do not overlap, in every chunk: shape (chunks,), by chunk id."""
        self._check_size()
        counts = map(self._text.count, repeat(_encode(keyword)), self._begins, self._ends)
        return np.fromiter(counts, np.int64, len(self._numbers))

    def rank(self, keywords: Sequence[str], top_k: int, *, ranking: Ranking = "paper") -> KeywordRanking:
        """Rank the chunks by Score(c, K), ties by chunk id; see `View.rank`."""
        chunks = len(self._numbers)
        counts = {keyword: self.counts(keyword) for keyword in keywords}
        words = (
            {keyword: self._count_words(keyword, counts[keyword]) for keyword in keywords} if ranking == "bm25" else {}
        )
        occurrences = Occurrences(counts, words, np.ones(chunks, np.int64), self._numbers, np.arange(chunks))
        return rank_chunks(occurrences, top_k, chunks)

    def _count_words(self, keyword: str, counts: Integers) -> Integers:
        """Count a keyword where it is not a part of a longer word; a plural still counts."""
        text, rows = searchable(keyword), np.flatnonzero(counts)
        starts, ends = (c.isalnum() and ord(c) < SPACED_SCRIPTS for c in (text[0], text[-1]))
        if not (starts or ends) or len(rows) > MAX_CHECKED_CHUNKS:
            return counts
        literal = re.escape(_encode(keyword))  # first, again
        # The letters are ASCII's and those of two bytes in UTF-8: Latin, Greek, Cyrillic, Hebrew, Arabic...
        before = rb"(?<![0-9a-z]" + literal + rb")(?<![\xc3-\xdf][\x80-\xbf]" + literal + rb")" if starts else b""
        after = rb"(?:e?s)?(?![0-9a-z\xc3-\xdf])" if ends else b""
        word = re.compile(literal + before + after)
        data = self._bytes.data
        words = np.zeros_like(counts)
        words[rows] = [len(word.findall(data, self._begins[row], self._ends[row])) for row in rows.tolist()]
        return words

    def _check_size(self) -> None:
        """Refuse to read past the end of a file that somebody has truncated: the system would kill the process."""
        if self._map is not None and self._map.size() < self._size:
            raise StorageError(f"{self._source} was truncated while it was open")


class Occurrences(NamedTuple):
    """How often chunks hold keywords. Chunks with the same counts may be counted together, as a group."""

    counts: Mapping[str, Integers]  # of each keyword, shape (groups,)
    words: Mapping[str, Integers]  # likewise, but for what is a part of longer words; empty if that does not matter
    sizes: Integers  # how many chunks each group has, shape (groups,)
    numbers: Integers  # of the first chunks of each group, all in the order of their ids
    groups: Integers  # of these chunks, likewise


def rank_chunks(occurrences: Occurrences, top_k: int, chunks: int) -> KeywordRanking:
    """Rank chunks by coverage if words were counted, else by Score(c, K).

    A keyword adds to the coverage BM25's term weight with k1 = 0.5 and b = 0 (chunks have about the same length): more
    if it is rare, and little more for repetitions. Each keyword's best chunk is then returned, too.
    """
    by_keyword, words, sizes, numbers, groups = occurrences
    scores: NDArray[Any] = np.zeros(len(sizes), np.float64 if words else np.int64)
    holding: dict[str, int] = {}
    as_word: dict[str, int] = {}
    candidates: list[NDArray[np.bool_]] = []  # for each keyword's best chunk
    for keyword, counts in by_keyword.items():
        rows = np.flatnonzero(counts)
        holding[keyword] = int(sizes[rows].sum())
        if not words:
            scores += counts * len(collapse_whitespace(keyword))
        elif len(rows):
            whole = words[keyword][rows]
            as_word[keyword] = int(sizes[rows[whole > 0]].sum())
            used = whole if as_word[keyword] else counts[rows]
            scores[rows] += np.log1p(chunks / (as_word[keyword] or holding[keyword])) * used / (used + 0.5)
            has_keyword = np.zeros(len(scores), dtype=np.bool_)
            has_keyword[rows[used > 0]] = True
            candidates.append(has_keyword)
    chunk_scores = scores[groups]
    best = _best(np.flatnonzero(chunk_scores), chunk_scores, top_k)
    firsts = [_best(np.flatnonzero(has_keyword[groups]), chunk_scores, 1) for has_keyword in candidates]
    best = np.unique(np.concatenate([best, *firsts]))
    ranked = []
    for row in _best(best, chunk_scores, len(best)).tolist():
        group = groups[row]
        present = {keyword: int(counts[group]) for keyword, counts in by_keyword.items() if counts[group]}
        ranked.append(RankedChunk(int(numbers[row]), chunk_scores[row].item(), present))
    total = int(sizes[np.any(list(by_keyword.values()), axis=0)].sum())
    return KeywordRanking(ranked, holding, as_word, total)


def _map(file: Path) -> mmap.mmap:
    if not file.is_file():  # opening a pipe would block
        raise FileNotFoundError(f"{file} is not a file")
    with file.open("rb") as opened:
        return mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)


def _read_borders(data: memoryview, chunks: int) -> Integers:
    """Return 0 and where each text ends, checked: the file may be from somebody else, and other memory is not read."""
    text_bytes = len(data) - _FOOTER.size - 8 * chunks
    if text_bytes < 0 or _FOOTER.unpack(data[-_FOOTER.size :]) != (_MARK, chunks):
        raise ValueError("it is truncated, or of other chunks")
    ends = np.frombuffer(bytes(data[text_bytes : -_FOOTER.size]), "<i8")
    borders = np.concatenate([[0], ends]).astype(np.int64)
    if np.any(borders[1:] <= borders[:-1]) or borders[-1] != text_bytes:  # differences of hostile ones may overflow
        raise ValueError("its texts have impossible borders")
    return borders


def _best(rows: Integers, scores: NDArray[Any], top_k: int) -> Integers:
    """Return the rows with the highest scores, best first, ties by row."""
    if len(rows) > top_k:
        # Keep everything that ties with the last place: the rows decide.
        threshold = np.partition(scores[rows], -top_k)[-top_k]
        rows = rows[scores[rows] >= threshold]
    return rows[np.lexsort((rows, -scores[rows]))][:top_k]


def _encode(text: str) -> bytes:
    # A keyword may hold half a surrogate pair, which no stored text does: it then matches nowhere.
    return searchable(text).encode("utf-8", "surrogatepass")
