"""Sentences in Chroma's graph, and parts of them."""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from arag.retrieval.backend import Manifest, SentenceMatch
from arag.retrieval.exact import MAX_BYTES, ExactVectors
from arag.retrieval.local.chunk_store import ChunkStore
from arag.retrieval.local.sentence_store import SentenceStore

_MARGIN = 1.2  # of sentences asked for, beyond a part's share of them
_MAX_FETCHED = 12_000  # from the graph for a part: takes a second


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

    def compare(self, chunks: Collection[int]) -> ExactVectors:
        """Return the vectors of some chunks, to be compared one by one."""
        placed = list(self._chunks.placed_vectors(chunks))
        sentences = sum(len(positions) for _, positions, _ in placed)
        return ExactVectors(placed, replace(self._manifest, sentences=sentences), self._location)

    def part(self, chunks: Collection[int], kept: Mapping[int, Sequence[int]]) -> PartOfGraph:
        """Return the sentences of some chunks; see `ExactVectors.part`."""
        return PartOfGraph(self, chunks, kept, self._manifest)


class PartOfGraph:
    """The sentences of some chunks: for a large part, those that the graph finds; a small one is compared.

    Args:
        whole: The graph.
        chunks: The chunks' numbers.
        kept: For chunks that are cut, the positions of the sentences that are left, in order.
        manifest: The manifest of the whole generation.
    """

    def __init__(
        self, whole: SentenceGraph, chunks: Collection[int], kept: Mapping[int, Sequence[int]], manifest: Manifest
    ) -> None:
        self._whole = whole
        self._chunks = frozenset(chunks)
        self._kept = kept
        self._places = {n: {position: i for i, position in enumerate(positions)} for n, positions in kept.items()}
        self._share = len(self._chunks) / max(manifest.chunks, 1)
        self.is_exact = 4 * manifest.sentences * manifest.dimension * self._share <= MAX_BYTES
        self._lock = threading.Lock()
        self._few: ExactVectors | None = None

    def nearest(
        self, vector: NDArray[np.float32], count: int, *, within: Collection[int] | None = None
    ) -> list[SentenceMatch]:
        """Return the sentences nearest to a vector; see `Sentences.nearest`."""
        if within is not None:
            return self._compare(self._chunks.intersection(within)).nearest(vector, count)
        if self.is_exact:
            with self._lock:
                self._few = self._few or self._compare(self._chunks)
            return self._few.nearest(vector, count)
        wanted = math.ceil(count / self._share * _MARGIN)
        while wanted <= _MAX_FETCHED:
            found = [kept for match in self._whole.nearest(vector, wanted) if (kept := self._keep(match)) is not None]
            if len(found) >= count:
                return found
            wanted *= 4
        return self._compare(self._chunks).nearest(vector, count)

    def _compare(self, chunks: Collection[int]) -> ExactVectors:
        return self._whole.compare(chunks).part(chunks, {n: self._kept[n] for n in chunks if n in self._kept})

    def _keep(self, match: SentenceMatch) -> SentenceMatch | None:
        """Return a match with its place in this part, or None if it is not in it."""
        if match.chunk not in self._chunks:
            return None
        places = self._places.get(match.chunk)
        if places is None:
            return match
        return replace(match, position=places[match.position]) if match.position in places else None
