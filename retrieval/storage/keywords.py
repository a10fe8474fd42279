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
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from itertools import islice, repeat
from pathlib import Path

import numpy as np
from stringzilla import Str

from arag.errors import StorageError
from arag.retrieval.storage.ranking import MAX_CHECKED_CHUNKS, Integers, gather, rank_chunks
from arag.retrieval.storage.records import KeywordRanking, Ranking
from arag.retrieval.storage.words.index import WordIndex
from arag.retrieval.storage.words.rows import Held, WordRows
from arag.system.files import written_whole
from arag.text.normalise import searchable
from arag.text.scripts import SPACED, makes_words

# Never occurs in UTF-8: no keyword can match across the boundary of two chunks.
_SEPARATOR = b"\xff"
# After the texts, the file has the end of each text (after its separator), then the mark and the number of chunks.
_MARK = b"ARAGKW06"
_FOOTER = struct.Struct("<8sQ")
_END_BYTES = 8  # of the end of a text, as an integer
_TEXTS_BETWEEN_CHECKS = 1_000  # of the file's size, while texts are read
_MAX_POSTINGS = 10  # for each chunk, in bytes: to read more takes longer than to scan the texts
_FEW_POSTINGS = 50_000  # in bytes: to find the first chunks with a common text, scanning is faster


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
        words: The index of their words, which saves scanning the texts.

    Raises:
        ValueError: The source holds something else.
        OSError: The file cannot be opened.
    """

    def __init__(self, source: Path | bytes, row_ids: Sequence[int], words: WordIndex | None = None) -> None:
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
        self.words = WordRows(words, lambda: self._row_ids)
        # Single values are read faster from lists than from arrays.
        self._begins: list[int] = boundaries[:-1].tolist()
        self._ends: list[int] = boundaries[1:].tolist()

    def limited_to(self, row_ids: Integers) -> KeywordTexts:
        """Return the texts of some chunks only; they share the file."""
        rows = np.flatnonzero(np.isin(self._row_ids, row_ids))
        limited: KeywordTexts = copy(self)
        limited._row_ids = self._row_ids[rows]
        limited.words = WordRows(self.words.index, lambda: limited._row_ids)
        limited._begins = [self._begins[row] for row in rows.tolist()]
        limited._ends = [self._ends[row] for row in rows.tolist()]
        return limited

    def count_chunks(self, texts: Sequence[str]) -> list[int]:
        """Count the chunks that hold each of some texts."""
        return [len(self._count(text).rows) for text in texts]

    def holding_all(self, texts: Sequence[str], limit: int) -> list[int]:
        """Return the row ids of the chunks that hold all of some texts, at most `limit` of them, by chunk id."""
        self._check_size()
        rows = self._rows_with_all(list(map(searchable, texts)), max(_FEW_POSTINGS, _MAX_POSTINGS * limit))
        row_ids: list[int] = self._row_ids[list(islice(rows, limit))].tolist()
        return row_ids

    def texts(self, row_ids: Sequence[int]) -> Iterator[tuple[int, memoryview]]:
        """Yield row id and text of chunks, in UTF-8."""
        data = self._data
        rows = self.words.rows_of(row_ids).tolist()
        for number, (row_id, row) in enumerate(zip(row_ids, rows, strict=True)):
            if number % _TEXTS_BETWEEN_CHECKS == 0:
                self._check_size()
            yield row_id, data[self._begins[row] : self._ends[row] - len(_SEPARATOR)]

    def holds_word(self, word: str) -> bool:
        """Return whether a text has this word, as a whole word in lower case."""
        self._check_size()
        # The word comes before the look-behind: `re` then jumps from one occurrence to the next.
        literal = re.escape(word)
        whole_word = re.compile(rf"{literal}(?<!\w{literal})(?!\w)")
        if self.words.find(word, _FEW_POSTINGS) is None:
            return any(whole_word.search(self._read_text(row)) for row in self._scan(_encode(word)))
        return len(self._count(word, whole_word).rows) > 0

    def rank(self, keywords: Sequence[str], top_k: int, *, ranking: Ranking = "paper") -> KeywordRanking:
        """Rank the chunks by keywords; see `View.rank`."""
        held = {keyword: self._count(keyword) for keyword in keywords}
        as_words: dict[str, Held] = {}
        if ranking == "bm25":
            as_words = {keyword: self._count_words(keyword, held[keyword]) for keyword in keywords}
        return rank_chunks(gather(held, as_words, self._row_ids), top_k, len(self._row_ids))

    def _count_words(self, keyword: str, held: Held) -> Held:
        """Count a keyword where it is not a part of a longer word; a plural still counts."""
        pattern = word_pattern(keyword)
        if pattern is None or len(held.rows) > MAX_CHECKED_CHUNKS:
            return held
        return self._count(keyword, pattern, held.rows)

    def _count(self, keyword: str, pattern: re.Pattern[str] | None = None, rows: Integers | None = None) -> Held:
        """Count a keyword's occurrences, which do not overlap, in every chunk, or in the rows that hold it.

        If there is a pattern, count what it matches: the keyword with what is around it in a word.
        """
        self._check_size()
        needle = searchable(keyword)
        most = _MAX_POSTINGS * len(self._row_ids)
        found = self.words.find(needle, most)
        if found is None:
            candidates = self.words.propose(needle, most) if rows is None else rows
            return self._count_in_texts(candidates, needle, pattern)
        in_words = self.words.count(found, needle, pattern)
        if not len(self.words.others):
            return in_words
        in_texts = self._count_in_texts(self.words.others, needle, pattern)
        rows = np.append(in_words.rows, in_texts.rows)
        order = np.argsort(rows)
        return Held(rows[order], np.append(in_words.counts, in_texts.counts)[order])

    def _count_in_texts(self, rows: Integers | None, needle: str, pattern: re.Pattern[str] | None) -> Held:
        """Count a text, or what a pattern matches, in the texts of some rows, or of all."""
        begins, ends = self._begins, self._ends
        if rows is None:
            rows = np.arange(len(begins))
        else:
            begins = [begins[row] for row in rows.tolist()]
            ends = [ends[row] for row in rows.tolist()]
        if pattern is None:
            # `map` calls the native function without a step of Python in between: a loop takes much longer.
            in_texts = map(self._text.count, repeat(_encode(needle)), begins, ends)
            counts = np.fromiter(in_texts, np.int64, len(rows))
        else:
            counts = np.array([len(pattern.findall(self._read_text(row))) for row in rows.tolist()], np.int64)
        held = np.flatnonzero(counts)
        return Held(rows[held], counts[held])

    def _rows_with_all(self, needles: Sequence[str], most: int) -> Iterator[int]:
        """Yield the rows that hold all needles; the longest one proposes rows."""
        encoded = sorted(map(_encode, needles), key=len, reverse=True)
        proposed = self.words.propose(max(needles, key=len), most)
        rows = self._scan(encoded[0]) if proposed is None else proposed.tolist()
        for row in rows:
            begin, end = self._begins[row], self._ends[row]
            if all(self._text.find(needle, begin, end) >= 0 for needle in encoded):
                yield row

    def _scan(self, needle: bytes) -> Iterator[int]:
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

    def _read_text(self, row: int) -> str:
        """Return the text of a row, without its separator."""
        end = self._ends[row] - len(_SEPARATOR)
        return str(self._data[self._begins[row] : end], encoding="utf-8", errors="replace")

    def _check_size(self) -> None:
        """Refuse to read past the end of a file that somebody has truncated: the system would kill the process."""
        if self._map is not None and self._map.size() < self._size:
            raise StorageError(f"{self._file} was truncated while it was open")


def word_pattern(keyword: str) -> re.Pattern[str] | None:
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


def _encode(text: str) -> bytes:
    # A keyword may hold half a surrogate pair, which no stored text does: it then matches nowhere.
    return searchable(text).encode("utf-8", "surrogatepass")
