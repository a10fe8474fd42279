"""Exact search in sentence vectors, for corpora where it is about as fast as a vector index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from arag.retrieval.storage.records import ChunkVectors, SentenceMatch, Vectors

# Bytes of vectors that are all compared, which takes about 20 ms: 260,000 sentences with the default embedder. A graph
# of so many is no faster to open, takes more memory, and never finds some of them, however many it looks at.
MAX_MATRIX_BYTES = 400_000_000
MAX_LIMITED_BYTES = 20_000_000  # that a limited view keeps: a server may have hundreds of views
SIMILARITY_DIGITS = 9  # sums in float64 differ less than this, whatever their order
MAX_PROPOSED = 12_000  # sentences that a vector index is asked for: takes a second

_MARGIN = 1e-5  # more than the rounding error of a similarity in float32, by which candidates are chosen
_ROWS_PER_STEP = 4_096  # vectors normalized at once: more take more memory, fewer more steps


class SentenceMatrix:
    """Sentence vectors in one matrix.

    Args:
        chunks: The row ids of the sentences' chunks, shape (n,).
        positions: The sentences' positions in their chunks, shape (n,).
        vectors: The vectors, shape (n, dimension). They are normalized in place. Vectors with NaN never match.
    """

    def __init__(self, chunks: NDArray[np.int64], positions: NDArray[np.int64], vectors: Vectors) -> None:
        self._chunks = chunks
        self._positions = positions
        self._vectors = vectors
        # Rounded to float16 in the index, vectors are not exactly of length one.
        for start in range(0, len(vectors), _ROWS_PER_STEP):
            rows = vectors[start : start + _ROWS_PER_STEP]
            lengths = np.sqrt(np.square(rows, dtype=np.float64).sum(axis=1))[:, np.newaxis]
            with np.errstate(invalid="ignore"):  # damaged vectors
                rows /= np.where(lengths > 0, lengths, 1).astype(np.float32)

    @classmethod
    def build(cls, rows: Iterable[ChunkVectors], dimension: int, sentences: int | None = None) -> SentenceMatrix:
        """Make a matrix from the vectors of chunks.

        Args:
            rows: The vectors of each chunk.
            dimension: The length of the vectors.
            sentences: How many vectors to take at most. If it is given, the rows are read one by one.

        Returns:
            The matrix.
        """
        if sentences is None:
            rows = list(rows)
            sentences = sum(len(chunk_positions) for _, chunk_positions, _ in rows)
        chunks = np.empty(sentences, dtype=np.int64)
        positions = np.empty(sentences, dtype=np.int64)
        vectors = np.empty((sentences, dimension), dtype=np.float32)
        filled = 0
        for row_id, chunk_positions, chunk_vectors in rows:
            count = min(len(chunk_positions), sentences - filled)
            chunks[filled : filled + count] = row_id
            positions[filled : filled + count] = chunk_positions[:count]
            vectors[filled : filled + count] = chunk_vectors[:count]
            filled += count
        return cls(chunks[:filled], positions[:filled], vectors[:filled])

    @classmethod
    def of(cls, places: Sequence[tuple[int, int]], vectors: Vectors) -> SentenceMatrix:
        """Make a matrix of single sentences.

        Args:
            places: The row id of each sentence's chunk, and the sentence's position in it.
            vectors: The sentences' vectors.

        Returns:
            The matrix.
        """
        chunks, positions = np.array(places, dtype=np.int64).reshape(-1, 2).T
        return cls(chunks, positions, vectors)

    def __len__(self) -> int:
        return len(self._chunks)

    def nearest(
        self, vector: NDArray[np.float32], count: int, row_ids: NDArray[np.int64] | None = None
    ) -> list[SentenceMatch]:
        """Return the sentences nearest to a vector.

        Equal vectors have the same similarity, to the last bit.

        Args:
            vector: A vector of length one.
            count: How many sentences to return at most.
            row_ids: The row ids of the chunks to search in, or None for all.

        Returns:
            The sentences, nearest first, ties in the order of the rows.
        """
        similarities = self._vectors @ vector
        similarities[np.isnan(similarities)] = -np.inf
        if row_ids is not None:
            similarities[~np.isin(self._chunks, row_ids)] = -np.inf
        # Candidates are chosen in float32, and then compared in float64.
        least = _least_similarity(similarities, count)
        rows = np.flatnonzero((similarities >= least) & (similarities > -np.inf))
        products = self._vectors[rows].astype(np.float64) * vector.astype(np.float64)
        exact = np.round(products.sum(axis=1), SIMILARITY_DIGITS)
        order = np.lexsort((rows, -exact))[:count]
        matches = []
        for row, similarity in zip(rows[order].tolist(), exact[order].tolist(), strict=True):
            match = SentenceMatch(int(self._chunks[row]), int(self._positions[row]), similarity)
            matches.append(match)
        return matches


def _least_similarity(similarities: NDArray[np.float32], count: int) -> float:
    """Return the least similarity that one of the `count` nearest sentences may have."""
    if count <= 0:
        return np.inf
    if count >= len(similarities):
        return -np.inf
    return float(np.partition(similarities, -count)[-count] - _MARGIN)
