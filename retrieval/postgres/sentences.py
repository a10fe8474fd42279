"""The sentences of an index in PostgreSQL that are too many to be compared one by one: found in a graph."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from arag.retrieval.backend import Manifest, SentenceMatch
from arag.retrieval.exact import ExactVectors
from arag.retrieval.postgres.chunk_store import PostgresChunks
from arag.retrieval.postgres.graph import VectorGraph
from arag.retrieval.postgres.location import PostgresLocation

_COMPARED_AT_ONCE = 2_000  # chunks


class GraphSentences:
    """The sentences of a generation's chunks, or of a part of them.

    Args:
        graph: The graph.
        chunks: The chunks, which have the vectors, too.
        manifest: The manifest of the generation, or of the part.
        location: The index, for messages.
        cut: Numbers of chunks that are a part of what is stored: these are compared.
    """

    is_exact = False

    def __init__(
        self,
        graph: VectorGraph,
        chunks: PostgresChunks,
        manifest: Manifest,
        location: PostgresLocation,
        cut: Collection[int] = (),
    ) -> None:
        self._graph = graph
        self._chunks = chunks
        self._manifest = manifest
        self._location = location
        self._cut = cut

    def nearest(
        self, vector: NDArray[np.float32], count: int, *, within: Collection[int] | None = None
    ) -> list[SentenceMatch]:
        """Return the sentences nearest to a vector; see `Sentences.nearest`."""
        if within is not None:
            return self._compare(vector, count, list(within))
        found = self._graph.nearest(vector, count, self._chunks.seen)
        if self._cut:
            found = _nearest([*found, *self._compare(vector, count, list(self._cut))], count)
        return found

    def _compare(self, vector: NDArray[np.float32], count: int, numbers: Sequence[int]) -> list[SentenceMatch]:
        """Compare a vector with all sentences of chunks, some chunks at a time."""
        best: list[SentenceMatch] = []
        for start in range(0, len(numbers), _COMPARED_AT_ONCE):
            placed = list(self._chunks.placed_vectors(numbers[start : start + _COMPARED_AT_ONCE]))
            sentences = sum(len(positions) for _, positions, _ in placed)
            vectors = ExactVectors(placed, replace(self._manifest, sentences=sentences), str(self._location))
            best = _nearest([*best, *vectors.nearest(vector, count)], count)
        return best


def _nearest(matches: Sequence[SentenceMatch], count: int) -> list[SentenceMatch]:
    return heapq.nlargest(count, matches, key=lambda match: match.similarity)
