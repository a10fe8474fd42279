"""Searches by meaning in an index in PostgreSQL.

A few vectors are compared in one matrix, as in a folder. Of many, pgvector proposes sentences, by its graph or, where
that does not pay, by comparing; how similar these are is computed here from the vectors as they are stored.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arag.retrieval.postgres.connection import Session
from arag.retrieval.postgres.schema import GENERATION, State, shifted
from arag.retrieval.storage import SentenceMatch, Vectors
from arag.retrieval.tables import TableReader
from arag.retrieval.vectors import SentenceMatrix

# A value of pgvector's halfvec: its dimension, an unused number, and its elements, in network byte order.
_HEAD_BYTES = 4
_CHUNKS_PER_QUERY = 1_000
_MARGIN = 1.2  # of sentences asked for: the shift, and rounding, move the ranks of those that are about as near
_MORE = 10
_MAX_PROPOSED = 12_000  # sentences that the graph is asked for, of all publications
_SEARCH, _MAX_SEARCH = 400, 1_000  # of `hnsw.ef_search`
# Without sorting, only the graph remains; and a few rows are looked up, where tables would be read for a hash join.
_GRAPH_SETTINGS = {
    "hnsw.iterative_scan": "relaxed_order",
    "hnsw.max_scan_tuples": "100000",  # takes 0.2 s
    "hnsw.scan_mem_multiplier": "20",
    "enable_sort": "off",
    "enable_hashjoin": "off",
}


def pack(vectors: Vectors) -> list[bytes]:
    """Return vectors as values of a column, in PostgreSQL's binary format."""
    head = np.array([vectors.shape[1], 0], dtype=">i2").tobytes()
    return [head + row.tobytes() for row in vectors.astype(">f2")]


def read_vectors(
    reader: TableReader, state: State, numbers: Collection[int], *, at_once: int = _CHUNKS_PER_QUERY
) -> Iterator[tuple[int, list[int], Vectors]]:
    """Yield the vectors of chunks; see `View.vectors`."""
    ordered = list(numbers)
    for start in range(0, len(ordered), at_once):
        some = ordered[start : start + at_once]
        condition, value = reader.among("chunks.number", some)
        rows = reader.query(
            "SELECT chunks.number, array_agg(position ORDER BY position) FILTER (WHERE position IS NOT NULL), "
            f"string_agg({state.vector}.halfvec_send(embedding), ''::bytea ORDER BY position) "
            f"FROM {reader.chunks_table} AS chunks LEFT JOIN sentences ON sentences.number = chunks.number "
            f"WHERE {condition} GROUP BY chunks.number",
            value,
        )
        found = {number: (positions or [], blob or b"") for number, positions, blob in rows}
        for number in filter(found.__contains__, some):
            positions, blob = found[number]
            yield number, positions, _unpack(blob, state.settings.dimension)


def find_nearest(
    session: Session, state: State, chunks_table: str, visible: int, vector: NDArray[np.float32], count: int
) -> tuple[list[SentenceMatch], int]:
    """Return the sentences nearest to a vector, among so many visible ones; and the generation after the search."""
    halfvec = f"{state.vector}.halfvec"
    select = (
        f"SELECT seen.id, number, position, {halfvec}_send(embedding) FROM sentences "
        f"JOIN (SELECT id, number FROM {chunks_table} AS chunks) AS seen USING (number) ORDER BY"
    )
    limit = f"?::{halfvec} LIMIT {math.ceil(count * _MARGIN) + _MORE}"
    written = f"[{','.join(map(str, vector.tolist()))}]"
    # So many of all must be found for enough of them to be visible.
    wanted = math.ceil(count * state.settings.sentences / max(visible, 1) * _MARGIN) + _MORE
    proposed: list[tuple[Any, ...]] = []
    generation = 0
    if state.has_graph and wanted <= min(visible, _MAX_PROPOSED):
        settings = {**_GRAPH_SETTINGS, "hnsw.ef_search": str(min(max(_SEARCH, 2 * wanted), _MAX_SEARCH))}
        order = f"{shifted(state.vector, state.settings.dimension)} OPERATOR({state.vector}.<->)"
        statement = f"{select} {order} {limit}"
        proposed, generation = session.query_before(statement, written, then=GENERATION, settings=settings)
    if len(proposed) < min(count, visible):
        order = f"embedding OPERATOR({state.vector}.<#>)"
        proposed, generation = session.query_before(f"{select} {order} {limit}", written, then=GENERATION)
    # Ties come in the order of the chunks' ids.
    rows = [
        (number, [position], _unpack(blob, state.settings.dimension)) for _, number, position, blob in sorted(proposed)
    ]
    return SentenceMatrix.build(rows, len(rows), state.settings.dimension).nearest(vector, count), generation


def _unpack(blob: bytes, dimension: int) -> Vectors:
    values = np.frombuffer(blob, np.uint8).reshape(-1, _HEAD_BYTES + 2 * dimension)[:, _HEAD_BYTES:]
    return np.ascontiguousarray(values).view(">f2").astype(np.float32)
