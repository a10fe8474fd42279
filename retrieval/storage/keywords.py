"""Exact keyword matching in the chunk texts, at query time and without a keyword index (paper, section 3.2).

Score(c, K) = sum over k in K of count(k, T_c) * |k|, where count is the number of case-insensitive, non-overlapping
occurrences of k in the chunk's text T_c, and |k| is its length in characters. White space is collapsed in both: a line
break between two words matches like a space.

One file has all texts, collapsed and in lower case, one after another in the order of the chunks' ids. It is mapped
into memory and searched at memory speed. It is derived from the chunks, and made again if it is missing.
"""

from __future__ import annotations

import mmap
import re
import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import islice, repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stringzilla import Str

from arag.errors import StorageError
from arag.retrieval.storage.records import KeywordRanking, RankedChunk, Ranking
from arag.system.files import written_whole
from arag.text.normalise import collapse_whitespace, searchable
from arag.text.scripts import SPACED, makes_words

# Never occurs in UTF-8: no keyword can match across the boundary of two chunks.
_SEPARATOR = b"\xff"
# After the texts, the file has the end of each text (after its separator), then the mark and the number of chunks.
_MARK = b"ARAGKW06"
_FOOTER = struct.Struct("<8sQ")
_END_BYTES = 8  # of the end of a text, as an integer
# A keyword in more chunks than these is counted inside longer words, too: to check each chunk would take too long.
MAX_CHECKED_CHUNKS = 5_000
_TEXTS_BETWEEN_CHECKS = 1_000  # of the file's size, while texts are read
_K1 = 0.5  # of BM25: the smaller it is, the less repetitions of a keyword add

Integers = NDArray[np.int64]


def write_keywords(file: Path, texts: Iterable[str]) -> None:
    """Write a keyword file from the text of every chunk, in the order of ids; it appears when it is complete."""
    with written_whole(file) as out:
        out.writelines(format_keywords(texts))


def format_keywords(texts: Iterable[str]) -> Iterator[bytes]:
    """Yield the pieces of a keyword file."""
    ends: list[int] = []
    end = 0
    for text in texts:
        piece = _encode(text) + _SEPARATOR
        end += len(piece)
        ends.append(end)
        yield piece
    yield np.asarray(ends, dtype="<i8").tobytes() + _FOOTER.pack(_MARK, len(ends))


class KeywordTexts:
    """Counts keywords in the chunks' texts, and ranks the chunks.

    Args:
        source: The pieces that `format_keywords` yielded: a file, which may be deleted while it is open here, or bytes.
        row_ids: The chunks' row ids, in the order of their ids.

    Raises:
        ValueError: The source holds something else.
        OSError: The file cannot be opened.
    """

    def __init__(self, source: Path | bytes, row_ids: Sequence[int]) -> None:
        self._file: Path | None = None
        self._map: mmap.mmap | None = None
        if isinstance(source, Path):
            self._file = source
            self._map = _map(source)
            data = memoryview(self._map)
        else:
            data = memoryview(source)
        self._size = len(data)
        self._data = data
        self._text: Str = Str(data)
        boundaries = _read_boundaries(data, len(row_ids))
        self._row_ids = np.asarray(row_ids, dtype=np.int64)
        # Single values are read faster from lists than from arrays.
        self._begins: list[int] = boundaries[:-1].tolist()
        self._ends: list[int] = boundaries[1:].tolist()

    def limited_to(self, row_ids: Integers) -> KeywordTexts:
        """Return the texts of some chunks only; they share the file."""
        rows = np.flatnonzero(np.isin(self._row_ids, row_ids))
        limited: KeywordTexts = copy(self)
        limited._row_ids = self._row_ids[rows]
        limited._begins = [self._begins[row] for row in rows.tolist()]
        limited._ends = [self._ends[row] for row in rows.tolist()]
        return limited

    def count_chunks(self, texts: Sequence[str]) -> list[int]:
        """Count the chunks that hold each of some texts."""
        return [int(np.count_nonzero(self.counts(text))) for text in texts]

    def holding_all(self, texts: Sequence[str], limit: int) -> list[int]:
        """Return the row ids of the chunks that hold all of some texts, at most `limit` of them, by chunk id."""
        self._check_size()
        rows = self._rows_with_all([_encode(text) for text in texts])
        row_ids: list[int] = self._row_ids[list(islice(rows, limit))].tolist()
        return row_ids

    def texts(self, row_ids: Sequence[int]) -> Iterator[tuple[int, memoryview]]:
        """Yield row id and text of chunks, in UTF-8."""
        data = self._data
        order = np.argsort(self._row_ids)
        places = np.searchsorted(self._row_ids, row_ids, sorter=order)
        for number, (row_id, row) in enumerate(zip(row_ids, order[places].tolist(), strict=True)):
            if number % _TEXTS_BETWEEN_CHECKS == 0:
                self._check_size()
            yield row_id, data[self._begins[row] : self._ends[row] - len(_SEPARATOR)]

    def holds_word(self, word: str) -> bool:
        """Return whether a text has this word, as a whole word in lower case."""
        self._check_size()
        # The word comes before the look-behind: `re` then jumps from one occurrence to the next.
        literal = re.escape(word)
        whole_word = re.compile(rf"{literal}(?<!\w{literal})(?!\w)")
        return any(whole_word.search(self._read_text(row)) for row in self._rows_with(_encode(word)))

    def counts(self, keyword: str) -> Integers:
        """Count a keyword's occurrences, which do not overlap, in every chunk: shape (chunks,), by chunk id."""
        self._check_size()
        # `map` calls the native function without a step of Python in between: a loop takes much longer.
        counts = map(self._text.count, repeat(_encode(keyword)), self._begins, self._ends)
        return np.fromiter(counts, np.int64, len(self._row_ids))

    def rank(self, keywords: Sequence[str], top_k: int, *, ranking: Ranking = "paper") -> KeywordRanking:
        """Rank the chunks by keywords; see `View.rank`."""
        counts = {keyword: self.counts(keyword) for keyword in keywords}
        words: dict[str, Integers] = {}
        if ranking == "bm25":
            words = {keyword: self._count_words(keyword, counts[keyword]) for keyword in keywords}
        chunks = len(self._row_ids)
        occurrences = Occurrences(
            counts=counts,
            words=words,
            sizes=np.ones(chunks, np.int64),
            row_ids=self._row_ids,
            groups=np.arange(chunks),
        )
        return rank_chunks(occurrences, top_k, chunks)

    def _rows_with_all(self, needles: Sequence[bytes]) -> Iterator[int]:
        """Yield the rows that hold all needles; the longest one proposes rows."""
        longest, *others = sorted(needles, key=len, reverse=True)
        if not others:
            yield from self._rows_with(longest)
            return
        for row in self._rows_with(longest):
            begin, end = self._begins[row], self._ends[row]
            if all(self._text.find(other, begin, end) >= 0 for other in others):
                yield row

    def _rows_with(self, needle: bytes) -> Iterator[int]:
        """Yield the rows that hold a needle, searching all texts at once from one to the next."""
        row = 0
        position = 0
        while row < len(self._begins):
            position = self._text.find(needle, max(position, self._begins[row]), self._ends[-1])
            if position < 0:
                return
            row = bisect_right(self._begins, position) - 1
            # In a limited view, the match may be in a text between its rows.
            if position < self._ends[row]:
                yield row
            row += 1

    def _count_words(self, keyword: str, counts: Integers) -> Integers:
        """Count a keyword where it is not a part of a longer word; a plural still counts."""
        rows = np.flatnonzero(counts)
        if len(rows) > MAX_CHECKED_CHUNKS:
            return counts
        pattern = _word_pattern(keyword)
        if pattern is None:
            return counts
        words = np.zeros_like(counts)
        words[rows] = [len(pattern.findall(self._read_text(row))) for row in rows.tolist()]
        return words

    def _read_text(self, row: int) -> str:
        """Return the text of a row, without its separator."""
        end = self._ends[row] - len(_SEPARATOR)
        return str(self._data[self._begins[row] : end], encoding="utf-8", errors="replace")

    def _check_size(self) -> None:
        """Refuse to read past the end of a file that somebody has truncated: the system would kill the process."""
        if self._map is not None and self._map.size() < self._size:
            raise StorageError(f"{self._file} was truncated while it was open")


@dataclass(frozen=True, slots=True)
class Occurrences:
    """How often chunks hold keywords. Chunks with the same counts may be counted together, as a group."""

    counts: Mapping[str, Integers]  # of each keyword, shape (groups,)
    words: Mapping[str, Integers]  # of each keyword outside of longer words, shape (groups,); empty if not counted
    sizes: Integers  # how many chunks each group has, shape (groups,)
    row_ids: Integers  # of the first chunks of each group, in the order of the chunks' ids
    groups: Integers  # the group of each of these chunks


@dataclass(slots=True)
class _Scores:
    scores: NDArray[Any]  # of each group, shape (groups,)
    document_frequency: dict[str, int] = field(default_factory=dict)  # for each keyword, how many chunks hold it
    as_word: dict[str, int] = field(default_factory=dict)  # how many chunks hold it as a word, if it occurs
    matching: list[NDArray[np.bool_]] = field(default_factory=list)  # the groups that match each keyword that occurs


def rank_chunks(occurrences: Occurrences, top_k: int, chunks: int) -> KeywordRanking:
    """Rank chunks by BM25 if words were counted, else by Score(c, K).

    BM25's term weight has k1 = 0.5 and b = 0, since chunks have about the same length: a keyword adds more if it is
    rare, and little more for repetitions. Each keyword's best chunk is then returned, too.

    Args:
        occurrences: How often chunks hold keywords.
        top_k: How many chunks to return, apart from the keywords' best chunks.
        chunks: How many chunks the index has.

    Returns:
        The best chunks, best first, ties in the order of `occurrences.row_ids`.
    """
    scored = _score_by_bm25(occurrences, chunks) if occurrences.words else _score_as_paper(occurrences)
    chunk_scores = scored.scores[occurrences.groups]
    chosen = [_best(np.flatnonzero(chunk_scores), chunk_scores, top_k)]
    for is_matching in scored.matching:
        matching_rows = np.flatnonzero(is_matching[occurrences.groups])
        chosen.append(_best(matching_rows, chunk_scores, 1))
    best = np.unique(np.concatenate(chosen))
    ranked = []
    for row in _best(best, chunk_scores, len(best)).tolist():
        chunk = RankedChunk(
            row_id=int(occurrences.row_ids[row]),
            score=chunk_scores[row].item(),
            counts=_counts_of_group(occurrences, occurrences.groups[row]),
        )
        ranked.append(chunk)
    has_any = np.any(list(occurrences.counts.values()), axis=0)
    return KeywordRanking(
        chunks=ranked,
        document_frequency=scored.document_frequency,
        as_word=scored.as_word,
        total=int(occurrences.sizes[has_any].sum()),
    )


def _score_as_paper(occurrences: Occurrences) -> _Scores:
    sizes = occurrences.sizes
    scored = _Scores(np.zeros(len(sizes), np.int64))
    for keyword, counts in occurrences.counts.items():
        rows = np.flatnonzero(counts)
        scored.document_frequency[keyword] = int(sizes[rows].sum())
        scored.scores += counts * len(collapse_whitespace(keyword))
    return scored


def _score_by_bm25(occurrences: Occurrences, chunks: int) -> _Scores:
    """Score groups; a keyword that occurs as a word does not count inside longer words."""
    sizes = occurrences.sizes
    scored = _Scores(np.zeros(len(sizes), np.float64))
    for keyword, counts in occurrences.counts.items():
        rows = np.flatnonzero(counts)
        document_frequency = int(sizes[rows].sum())
        scored.document_frequency[keyword] = document_frequency
        if document_frequency == 0:
            continue
        frequencies = counts[rows]
        word_frequencies = occurrences.words[keyword][rows]
        as_word = int(sizes[rows[word_frequencies > 0]].sum())
        scored.as_word[keyword] = as_word
        if as_word:
            frequencies = word_frequencies
            document_frequency = as_word
        scored.scores[rows] += np.log1p(chunks / document_frequency) * frequencies / (frequencies + _K1)
        is_matching = np.zeros(len(sizes), dtype=np.bool_)
        is_matching[rows[frequencies > 0]] = True
        scored.matching.append(is_matching)
    return scored


def _counts_of_group(occurrences: Occurrences, group: int) -> dict[str, int]:
    """Return how often the chunks of a group hold each keyword that they have."""
    present: dict[str, int] = {}
    for keyword, counts in occurrences.counts.items():
        if counts[group]:
            present[keyword] = int(counts[group])
    return present


def _word_pattern(keyword: str) -> re.Pattern[str] | None:
    """Return the pattern of a keyword that is not a part of a longer word, or of its plural.

    None if the text around the keyword does not matter.
    """
    text = searchable(keyword)
    is_word_at_start = makes_words(text[0])
    is_word_at_end = makes_words(text[-1])
    if not is_word_at_start and not is_word_at_end:
        return None
    # The keyword comes before the look-behind: `re` then jumps from one occurrence to the next.
    literal = re.escape(text)
    before = f"(?<![{SPACED}]{literal})" if is_word_at_start else ""
    after = f"(?:e?s)?(?![{SPACED}])" if is_word_at_end else ""
    return re.compile(literal + before + after)


def _map(file: Path) -> mmap.mmap:
    if not file.is_file():  # opening a pipe would block
        raise FileNotFoundError(f"{file} is not a file")
    with file.open("rb") as opened:
        return mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)


def _read_boundaries(data: memoryview, chunks: int) -> Integers:
    """Return 0 and the end of each text, checked: somebody else may have written the file to read other memory."""
    text_bytes = len(data) - _FOOTER.size - _END_BYTES * chunks
    if text_bytes < 0 or _FOOTER.unpack(data[-_FOOTER.size :]) != (_MARK, chunks):
        raise ValueError("it is truncated, or of other chunks")
    ends = np.frombuffer(bytes(data[text_bytes : -_FOOTER.size]), "<i8")
    boundaries = np.concatenate([[0], ends]).astype(np.int64)
    # Differences would overflow for hostile values; comparisons do not.
    if np.any(boundaries[1:] <= boundaries[:-1]) or boundaries[-1] != text_bytes:
        raise ValueError("its texts have impossible borders")
    return boundaries


def _best(rows: Integers, scores: NDArray[Any], top_k: int) -> Integers:
    """Return the rows with the highest scores, best first, ties by row."""
    if len(rows) > top_k:
        # Keep all rows that tie with the last one: their order decides.
        threshold = np.partition(scores[rows], -top_k)[-top_k]
        rows = rows[scores[rows] >= threshold]
    return rows[np.lexsort((rows, -scores[rows]))][:top_k]


def _encode(text: str) -> bytes:
    # A keyword may hold half a surrogate pair, which no stored text does: it then matches nowhere.
    return searchable(text).encode("utf-8", "surrogatepass")
