"""Sentences in Chroma's graph, and parts of them."""

from __future__ import annotations

import heapq
import math
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from arag.retrieval.backend import Manifest, SentenceMatch
from arag.retrieval.exact import ExactVectors
from arag.retrieval.local.chunk_store import ChunkStore
from arag.retrieval.local.sentence_store import SentenceStore

_MARGIN = 1.2  # of sentences asked for, beyond a part's share of them
_MAX_FETCHED = 12_000  # from the graph for a part: takes a second
_MAX_COMPARED_BYTES = 20_000_000  # of vectors that a part keeps in memory: a server may have hundreds of parts
_COMPARED_AT_ONCE = 2_000  # chunks


class SentenceGraph:
    """All sentences, in a graph; a search within some chunks compares with every vector of theirs.

    Args:
        store: The graph.
        chunks: The chunks, which have the vectors, too.
        manifest: The generation's manifest.
        location: The index, for messages.
    """

    is_exact = False

    def __init__(self, store: SentenceStore, chunks: ChunkStore, manifest: Manifest, location: Path) -> None:
        self._store = store
        self._chunks = chunks
        self._manifest = manifest
        self._location = location

    def nearest(
        self, vector: NDArray[np.float32], count: int, *, within: Collection[int] | None = None
    ) -> list[SentenceMatch]:
        """Return the sentences nearest to a vector; see `Sentences.nearest`."""
        if within is None:
            return self._store.nearest(vector, count)
        return self.compare(within).nearest(vector, count)

    def nearest_inside(self, vector: NDArray[np.float32], count: int, chunks: NDArray[np.int64]) -> list[SentenceMatch]:
        """Return those of the sentences nearest to a vector that are in some chunks; fewer than `count`."""
        return self._store.nearest_inside(vector, count, chunks)

    def compare(self, chunks: Collection[int]) -> ExactVectors:
        """Return the vectors of some chunks, to be compared one by one."""
        placed = list(self._chunks.placed_vectors(chunks))
        sentences = sum(len(positions) for _, positions, _ in placed)
        return ExactVectors(placed, replace(self._manifest, sentences=sentences), self._location)

    def part(self, chunks: NDArray[np.int64], kept: Mapping[int, Sequence[int]]) -> PartOfGraph:
        """Return the sentences of some chunks; see `ExactVectors.part`."""
        return PartOfGraph(self, chunks, kept, self._manifest)


class PartOfGraph:
    """The sentences of some chunks: for a large part, those that the graph finds; a small one is compared.

    Args:
        whole: The graph.
        chunks: The chunks' numbers, in order, shape (n,).
        kept: For chunks that are cut, the positions of the sentences that are left, in order.
        manifest: The manifest of the whole generation.
    """

    def __init__(
        self, whole: SentenceGraph, chunks: NDArray[np.int64], kept: Mapping[int, Sequence[int]], manifest: Manifest
    ) -> None:
        self._whole = whole
        self._chunks = chunks
        self._kept = kept
        self._places = {n: {position: i for i, position in enumerate(positions)} for n, positions in kept.items()}
        self._sentences = manifest.sentences
        self._share = len(chunks) / max(manifest.chunks, 1)
        self.is_exact = 4 * manifest.sentences * manifest.dimension * self._share <= _MAX_COMPARED_BYTES
        self._lock = threading.Lock()
        self._few: ExactVectors | None = None

    def nearest(
        self, vector: NDArray[np.float32], count: int, *, within: Collection[int] | None = None
    ) -> list[SentenceMatch]:
        """Return the sentences nearest to a vector; see `Sentences.nearest`."""
        if within is not None:
            inside = np.fromiter(within, np.int64, len(within))
            return self._compare_all(vector, count, inside[np.isin(inside, self._chunks)])
        if self.is_exact:
            with self._lock:
                self._few = self._few or self._compare(self._chunks)
            return self._few.nearest(vector, count)
        wanted = math.ceil(count / self._share * _MARGIN)
        while wanted <= min(_MAX_FETCHED, self._sentences):
            found = self._place(self._whole.nearest_inside(vector, wanted, self._chunks))
            if len(found) >= count:
                return found
            wanted *= 4
        return self._compare_all(vector, count, self._chunks)  # what is nearest lies outside

    def _compare_all(self, vector: NDArray[np.float32], count: int, chunks: NDArray[np.int64]) -> list[SentenceMatch]:
        """Compare a vector with all sentences of chunks, some chunks at a time."""
        best: list[SentenceMatch] = []
        for start in range(0, len(chunks), _COMPARED_AT_ONCE):
            best += self._compare(chunks[start : start + _COMPARED_AT_ONCE]).nearest(vector, count)
            best = heapq.nlargest(count, best, key=lambda match: match.similarity)
        return best

    def _compare(self, chunks: NDArray[np.int64]) -> ExactVectors:
        numbers = chunks.tolist()
        return self._whole.compare(numbers).part(chunks, {n: self._kept[n] for n in numbers if n in self._kept})

    def _place(self, matches: Sequence[SentenceMatch]) -> list[SentenceMatch]:
        """Return the matches with their places in this part; in a chunk that is cut, some are left out."""
        placed = []
        for match in matches:
            places = self._places.get(match.chunk)
            if places is None:
                placed.append(match)
            elif match.position in places:
                placed.append(replace(match, position=places[match.position]))
        return placed
