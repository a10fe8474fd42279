"""Exact search in sentence vectors, for corpora where it is about as fast as a graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from arag.retrieval.storage.contract import ChunkVectors, SentenceMatch, Vectors

MAX_MATRIX_BYTES = 80_000_000  # of vectors: 52,000 sentences with the default embedder
MAX_LIMITED_BYTES = MAX_MATRIX_BYTES // 4  # of those that a limited view keeps: a server may have hundreds of views
MAX_PROPOSED = 12_000  # sentences that a graph is asked for: takes a second

_MARGIN = 1e-5  # of similarities in float32, in which candidates are chosen
_DIGITS = 9  # of similarities: sums in float64 differ less, whatever their order
_NORMALIZED_AT_ONCE = 4_096


class SentenceMatrix:
    """Sentence vectors in one matrix, shape (n, dimension), brought to length one in place. Those with NaN never match.

    `chunks` and `positions`, shape (n,), are the numbers of the sentences' chunks, and their places in these.
    """

    def __init__(self, chunks: NDArray[np.int64], positions: NDArray[np.int64], vectors: Vectors) -> None:
        self._chunks = chunks
        self._positions = positions
        self._vectors = vectors
        # Stored as float16, they are not quite of length one.
        for start in range(0, len(vectors), _NORMALIZED_AT_ONCE):
            rows = vectors[start : start + _NORMALIZED_AT_ONCE]
            lengths = np.sqrt(np.square(rows, dtype=np.float64).sum(axis=1))[:, np.newaxis]
            with np.errstate(invalid="ignore"):  # damaged vectors
                rows /= np.where(lengths > 0, lengths, 1).astype(np.float32)

    @classmethod
    def build(cls, rows: Iterable[ChunkVectors], dimension: int, sentences: int | None = None) -> SentenceMatrix:
        """Make a matrix from the vectors of chunks. If `sentences` says how many, no more are read, one by one."""
        if sentences is None:
            rows = list(rows)
            sentences = sum(len(places) for _, places, _ in rows)
        chunks, positions = np.empty((2, sentences), dtype=np.int64)
        vectors = np.empty((sentences, dimension), dtype=np.float32)
        filled = 0
        for number, places, some in rows:
            count = min(len(places), sentences - filled)
            chunks[filled : filled + count] = number
            positions[filled : filled + count] = places[:count]
            vectors[filled : filled + count] = some[:count]
            filled += count
        return cls(chunks[:filled], positions[:filled], vectors[:filled])

    @classmethod
    def of(cls, places: Sequence[tuple[int, int]], vectors: Vectors) -> SentenceMatrix:
        """Make a matrix of sentences, given by their chunks' numbers and their positions, and their vectors."""
        chunks, positions = np.array(places, dtype=np.int64).reshape(-1, 2).T
        return cls(chunks, positions, vectors)

    def __len__(self) -> int:
        return len(self._chunks)

    def nearest(
        self, vector: NDArray[np.float32], count: int, numbers: NDArray[np.int64] | None = None
    ) -> list[SentenceMatch]:
        """Return the `count` sentences nearest to a vector of length one, nearest first, ties in the order of the rows.

        Only the chunks with these numbers are searched in, or all. Equal vectors have the same similarity, to the last
        bit.
        """
        similarities = self._vectors @ vector
        similarities[np.isnan(similarities)] = -np.inf
        if numbers is not None:
            similarities[~np.isin(self._chunks, numbers)] = -np.inf
        if count < len(similarities):
            least = np.partition(similarities, -count)[-count] - _MARGIN if count > 0 else np.inf
        else:
            least = -np.inf
        rows = np.flatnonzero((similarities >= least) & (similarities > -np.inf))
        products = self._vectors[rows].astype(np.float64) * vector.astype(np.float64)
        exact = np.round(products.sum(axis=1), _DIGITS)
        order = np.lexsort((rows, -exact))[:count]
        return [
            SentenceMatch(int(self._chunks[row]), int(self._positions[row]), similarity)
            for row, similarity in zip(rows[order].tolist(), exact[order].tolist(), strict=True)
        ]
