"""Exact keyword matching in the chunk texts, at query time and without an index (paper, section 3.2).

Score(c, K) = sum over k in K of count(k, T_c) * |k|, where count is the number of case-insensitive,
non-overlapping occurrences of k in the chunk's text T_c, and |k| is its length in characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Never part of UTF-8: no keyword can match across the border of two chunks.
_SEPARATOR = b"\xff"

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RankedChunk:
    """A chunk and its score.

    Attributes:
        chunk_id: The chunk.
        score: Score(c, K).
        counts: Occurrences of each keyword that the chunk holds.
    """

    chunk_id: str
    score: int
    counts: dict[str, int]


class KeywordMatcher:
    """All chunk texts, lower-cased, in one buffer.

    Args:
        texts: Id and text of every chunk.
    """

    def __init__(self, texts: Iterable[tuple[str, str]]) -> None:
        ids: list[str] = []
        buffer = bytearray()
        starts: list[int] = []
        for chunk_id, text in texts:
            ids.append(chunk_id)
            starts.append(len(buffer))
            buffer += _lowered(text)
            buffer += _SEPARATOR
        self._ids = ids
        self._buffer = bytes(buffer)
        self._starts = np.asarray(starts, dtype=np.int64)

    def __len__(self) -> int:
        """Return the number of chunks."""
        return len(self._ids)

    def counts(self, keyword: str) -> Counts:
        """Count a keyword in every chunk.

        Returns:
            Non-overlapping, case-insensitive occurrences, shape (chunks,).
        """
        needle = _lowered(keyword)
        if not needle:
            raise ValueError("an empty keyword matches nowhere")
        places: list[int] = []
        at = self._buffer.find(needle)
        while at >= 0:
            places.append(at)
            at = self._buffer.find(needle, at + len(needle))
        owners = np.searchsorted(self._starts, np.asarray(places, dtype=np.int64), side="right") - 1
        return np.bincount(owners, minlength=len(self._ids)).astype(np.int64, copy=False)

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
        counts = {keyword: self.counts(keyword) for keyword in keywords}
        scores = np.zeros(len(self._ids), dtype=np.int64)
        for keyword, occurrences in counts.items():
            scores += occurrences * len(keyword)
        matching = np.flatnonzero(scores)
        if len(matching) > top_k:
            # Everything that ties with the last place stays in until the ids have decided.
            threshold = np.partition(scores[matching], -top_k)[-top_k]
            candidates = matching[scores[matching] >= threshold]
        else:
            candidates = matching
        best = sorted(candidates.tolist(), key=lambda i: (-scores[i], self._ids[i]))[:top_k]
        ranked = [
            RankedChunk(
                self._ids[i],
                int(scores[i]),
                {keyword: int(occurrences[i]) for keyword, occurrences in counts.items() if occurrences[i]},
            )
            for i in best
        ]
        holding = {keyword: int(np.count_nonzero(occurrences)) for keyword, occurrences in counts.items()}
        return ranked, holding, len(matching)


def _lowered(text: str) -> bytes:
    # A keyword may hold half a surrogate pair, which no stored text does: it then matches nowhere.
    return text.lower().encode("utf-8", "surrogatepass")
