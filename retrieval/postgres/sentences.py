"""The sentences of an index in PostgreSQL: compared one by one while they are few, otherwise found in a graph."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from arag.errors import StorageError
from arag.retrieval.backend import Manifest, SentenceMatch, Sentences
from arag.retrieval.exact import MAX_BYTES, ExactVectors
from arag.retrieval.postgres.chroma_graph import ChromaServerGraph
from arag.retrieval.postgres.chunk_store import PostgresChunkPart, PostgresChunks
from arag.retrieval.postgres.connections import Pool, name_failures
from arag.retrieval.postgres.graph import VectorGraph
from arag.retrieval.postgres.location import PostgresLocation
from arag.retrieval.postgres.manifest import PostgresManifest
from arag.retrieval.postgres.pgvector_graph import PgvectorGraph

Kind = Literal["", "pgvector", "chroma"]

_MAX_PART_BYTES = MAX_BYTES // 4  # of vectors that a part keeps in memory: a server may have hundreds of parts
_COMPARED_AT_ONCE = 2_000  # chunks


def choose_graph(location: PostgresLocation, manifest: PostgresManifest) -> Kind:
    """Return which graph an index is to have; empty while it needs none.

    Raises:
        StorageError: The location does not say where the present graph is, which would be left behind.
    """
    if manifest.graph == "chroma" and location.vectors is None:
        raise StorageError(_say_where(location))
    if 4 * manifest.sentences * manifest.dimension <= MAX_BYTES:
        return ""
    return "chroma" if location.vectors else "pgvector"


def open_graph(kind: Kind, pool: Pool, manifest: PostgresManifest) -> VectorGraph | None:
    """Return the graph of an index; None if it has none.

    Raises:
        StorageError: The location does not say where the graph is.
    """
    if kind == "chroma":
        address = pool.location.vectors
        if address is None:
            raise StorageError(_say_where(pool.location))
        return ChromaServerGraph(pool, manifest.dimension, address, collection_name(pool))
    return PgvectorGraph(pool, manifest.dimension) if kind == "pgvector" else None


def collection_name(pool: Pool) -> str:
    """Return the name of an index's collection on a Chroma server: a copy of the database has one of its own."""
    ((place,),) = pool.query(
        "SELECT concat_ws('.', (SELECT system_identifier FROM pg_control_system()), pg_database.oid, "
        "'state'::regclass::oid) FROM pg_database WHERE datname = current_database()"
    )
    return f"arag-{place}"


def _say_where(location: PostgresLocation) -> str:
    return f"the vectors of {location} are on a Chroma server: add vectors=chroma+http://host:port to its address"


def open_sentences(
    graph: VectorGraph | None, chunks: PostgresChunks, manifest: PostgresManifest
) -> ExactVectors | GraphSentences:
    """Return the sentences of a generation."""
    location = str(chunks.statements.location)
    if graph is None:
        return ExactVectors(chunks.placed_vectors(), manifest, location)
    return GraphSentences(graph, chunks, manifest, location)


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
        location: str,
        cut: Collection[int] = (),
    ) -> None:
        self._graph = graph
        self._chunks = chunks
        self._manifest = manifest
        self._location = location
        self._cut = cut

    def part(self, chunks: PostgresChunkPart, manifest: Manifest) -> Sentences:
        """Return the sentences of some chunks: few of them are compared."""
        if 4 * manifest.sentences * manifest.dimension <= _MAX_PART_BYTES:
            return ExactVectors(chunks.placed_vectors(), manifest, self._location)
        return GraphSentences(self._graph, chunks, manifest, self._location, chunks.cut)

    def nearest(
        self, vector: NDArray[np.float32], count: int, *, within: Collection[int] | None = None
    ) -> list[SentenceMatch]:
        """Return the sentences nearest to a vector; see `Sentences.nearest`."""
        if within is not None:
            return self._compare(vector, count, list(within))
        with name_failures(self._chunks.statements.location):
            found = self._graph.nearest(vector, count, self._chunks.seen, visible=self._manifest.sentences)
        if self._cut:
            found = _nearest([*found, *self._compare(vector, count, list(self._cut))], count)
        return found

    def _compare(self, vector: NDArray[np.float32], count: int, numbers: Sequence[int]) -> list[SentenceMatch]:
        """Compare a vector with all sentences of chunks, some chunks at a time."""
        best: list[SentenceMatch] = []
        for start in range(0, len(numbers), _COMPARED_AT_ONCE):
            placed = list(self._chunks.placed_vectors(numbers[start : start + _COMPARED_AT_ONCE]))
            sentences = sum(len(positions) for _, positions, _ in placed)
            vectors = ExactVectors(placed, replace(self._manifest, sentences=sentences), self._location)
            best = _nearest([*best, *vectors.nearest(vector, count)], count)
        return best


def _nearest(matches: Sequence[SentenceMatch], count: int) -> list[SentenceMatch]:
    return heapq.nlargest(count, matches, key=lambda match: match.similarity)
