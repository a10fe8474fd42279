"""One snapshot of an index in PostgreSQL, whole or limited to some documents.

A few vectors are compared in one matrix, as in a folder. If there are many, pgvector proposes sentences: by its graph,
or by comparing all vectors where the graph does not pay. Their similarities are computed here from the stored vectors.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arag.errors import StorageError
from arag.retrieval.storage.postgres.connection import Pool, Session
from arag.retrieval.storage.postgres.keywords import KeywordTables
from arag.retrieval.storage.postgres.schema import GENERATION, State, shifted, unpack
from arag.retrieval.storage.postgres.words import WordSegments
from arag.retrieval.storage.records import SentenceMatch
from arag.retrieval.storage.vectors import MAX_LIMITED_BYTES, MAX_MATRIX_BYTES, MAX_PROPOSED, SentenceMatrix
from arag.retrieval.storage.words.index import WordIndex

_MAX_LISTED = 1_000  # row ids in a condition: more are sent as a mask
_BITS_PER_ROW_ID = 32  # a mask with so many bits for each row id is about as long as the list

# The server is asked for more sentences than are wanted, since the shift and rounding change the ranks of those that
# are about equally near: for so many times as many, and for some more.
_MARGIN = 1.2
_MORE = 10
# `hnsw.ef_search`: of the 15 nearest among 58,550 sentences of manuals in ten languages, 200 find 99.6%, and 400 all,
# which takes 1.5 times as long.
_SEARCH = 400
_MAX_SEARCH = 1_000  # pgvector's limit for it
# Without sorting, the planner can only use the graph; without hash joins, it looks up a few rows and reads no table.
_GRAPH_SETTINGS = {
    "hnsw.iterative_scan": "relaxed_order",
    "hnsw.max_scan_tuples": "100000",  # takes 0.2 s
    "hnsw.scan_mem_multiplier": "20",
    "enable_sort": "off",
    "enable_hashjoin": "off",
}


class PostgresView(KeywordTables):
    """One snapshot of an index in PostgreSQL; see `View`.

    Rows are kept for one snapshot after their last one. So a view stays complete until there are two newer ones.
    """

    def __init__(self, pool: Pool, state: State, words: WordSegments) -> None:
        super().__init__(pool, state, state.visible())
        self._pool = pool
        self._words = words
        self._whole: PostgresView | None = None
        self._row_ids: NDArray[np.int64] | None = None  # in a limited view, those of its chunks
        self._matrix: SentenceMatrix | None = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """Release the vectors; the connections belong to the store."""
        self._matrix = None

    def limited_to(self, document_ids: Collection[str]) -> PostgresView:
        documents = self.query_among(f"SELECT number FROM {self.documents_table}", "id", document_ids)
        chunks = self.query_among(f"SELECT number FROM {self.chunks_table}", "document_id", document_ids)
        limited = PostgresView(self._pool, self._state, self._words)
        limited._whole = self._whole or self
        limited._row_ids = np.array([row_id for (row_id,) in chunks], dtype=np.int64)
        limited.chunks_table = f"(SELECT * FROM chunks WHERE {_number_condition(chunks)}) AS chunks"
        limited.documents_table = f"(SELECT * FROM documents WHERE {_number_condition(documents)}) AS documents"
        limited.settings = limited.counted(self.settings)
        return limited

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        rows, generation = self._pool.run(lambda session: session.query_before(sql, *values, then=GENERATION))
        self._check_age(generation)
        return rows

    def words_of_length(self, shortest: int, longest: int) -> list[str]:
        if self._whole is not None:
            return self._whole.words_of_length(shortest, longest)
        return super().words_of_length(shortest, longest)

    def word_index(self) -> WordIndex | None:
        return self._word_index if self._whole is None else self._whole.word_index()

    @cached_property
    def _word_index(self) -> WordIndex | None:
        return self._words.read(self._state)

    def nearest(self, vector: NDArray[np.float32], count: int) -> list[SentenceMatch]:
        whole = self._whole or self
        if whole.settings.vector_bytes <= MAX_MATRIX_BYTES:
            return whole.load_matrix().nearest(vector, count, self._row_ids)
        if self._whole is not None and self.settings.vector_bytes <= MAX_LIMITED_BYTES:
            return self.load_matrix().nearest(vector, count)
        proposed, generation = self._pool.run(lambda session: self._propose(session, vector, count))
        self._check_age(generation)
        proposed.sort()  # so that ties are in the order of the chunks' ids
        places = [(row_id, position) for _, row_id, position, _ in proposed]
        vectors = unpack(b"".join(value for *_, value in proposed), self.settings)
        return SentenceMatrix.of(places, vectors).nearest(vector, count)

    def load_matrix(self) -> SentenceMatrix:
        """Return all vectors in one matrix, read at the first use."""
        with self._lock:
            if self._matrix is None:
                rows = self.vectors(self.ordered_row_ids())
                sentences = self.settings.sentences
                self._matrix = SentenceMatrix.build(rows, self.settings.dimension, sentences)
                if len(self._matrix) < sentences:
                    raise self.damage("vectors are missing")
            return self._matrix

    def _propose(
        self, session: Session, vector: NDArray[np.float32], count: int
    ) -> tuple[list[tuple[str, int, int, bytes]], int]:
        """Propose sentences near to a vector.

        Returns:
            The sentences (chunk's id and row id, position, vector), and the generation that was read after them.
        """
        schema = self._state.vector
        visible = self.settings.sentences
        select = (
            f"SELECT seen.id, number, position, {schema}.halfvec_send(embedding) FROM sentences "
            f"JOIN (SELECT id, number FROM {self.chunks_table}) AS seen USING (number) ORDER BY"
        )
        limit = f"?::{schema}.halfvec LIMIT {math.ceil(count * _MARGIN) + _MORE}"
        elements = ",".join(str(element) for element in vector.tolist())
        value = f"[{elements}]"
        # The graph has all sentences: so many must be proposed for enough of them to be visible.
        asked = math.ceil(count * self._state.settings.sentences / max(visible, 1) * _MARGIN) + _MORE
        if self._state.has_graph and asked <= min(visible, MAX_PROPOSED):
            search = min(max(_SEARCH, 2 * asked), _MAX_SEARCH)
            proposed, generation = session.query_before(
                f"{select} {shifted(schema, self.settings.dimension)} OPERATOR({schema}.<->) {limit}",
                value,
                then=GENERATION,
                settings={**_GRAPH_SETTINGS, "hnsw.ef_search": str(search)},
            )
            if len(proposed) >= min(count, visible):
                return proposed, generation
        return session.query_before(
            f"{select} embedding OPERATOR({schema}.<#>) {limit}",
            value,
            then=GENERATION,
        )

    def _check_age(self, generation: int) -> None:
        """Refuse rows that may be incomplete, given the generation that was read after them."""
        if generation > self._state.generation + 1:
            raise StorageError(f"the index {self._pool.location} was replaced by newer snapshots during a search")


def _number_condition(rows: Sequence[tuple[int]]) -> str:
    """Return the SQL for whether `number` is one of some row ids: a list, or a mask with a bit for each."""
    row_ids = np.array([row_id for (row_id,) in rows], dtype=np.int64)
    first = int(row_ids.min()) if len(row_ids) else 0
    last = int(row_ids.max()) if len(row_ids) else 0
    if len(row_ids) <= max(_MAX_LISTED, (last - first) // _BITS_PER_ROW_ID):
        listed = ",".join(str(row_id) for row_id in row_ids.tolist())
        return f"number = ANY ('{{{listed}}}'::bigint[])"
    bits = np.zeros(last - first + 1, dtype=np.uint8)
    bits[row_ids - first] = 1
    mask = np.packbits(bits, bitorder="little").tobytes().hex()
    # With `> 0`, the planner expects every third bit to be set. With `= 1`, it would expect few, and look up each.
    return f"number BETWEEN {first} AND {last} AND get_bit('\\x{mask}'::bytea, number - {first}) > 0"
