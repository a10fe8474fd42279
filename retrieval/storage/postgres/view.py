"""One publication of an index in PostgreSQL, whole or limited to some documents.

A few vectors are compared in one matrix, as in a folder. Of many, pgvector proposes sentences, by its graph or, where
that does not pay, by comparing; how similar these are is computed here from the vectors as they are stored.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arag.errors import StorageError
from arag.retrieval.storage.postgres.connection import Pool, Session
from arag.retrieval.storage.postgres.keywords import KeywordTables
from arag.retrieval.storage.postgres.schema import GENERATION, State, shifted, unpack
from arag.retrieval.storage.records import SentenceMatch
from arag.retrieval.storage.vectors import MAX_LIMITED_BYTES, MAX_MATRIX_BYTES, MAX_PROPOSED, SentenceMatrix

_MAX_LISTED = 1_000  # numbers: more are sent as a mask
_BITS_PER_NUMBER = 32  # of a mask that is no longer than the list

_MARGIN = 1.2  # of sentences asked for: the shift, and rounding, move the ranks of those that are about as near
_MORE = 10
_SEARCH, _MAX_SEARCH = 200, 1_000  # of `hnsw.ef_search`
# Without sorting, only the graph remains; and a few rows are looked up, where tables would be read for a hash join.
_GRAPH_SETTINGS = {
    "hnsw.iterative_scan": "relaxed_order",
    "hnsw.max_scan_tuples": "100000",  # takes 0.2 s
    "hnsw.scan_mem_multiplier": "20",
    "enable_sort": "off",
    "enable_hashjoin": "off",
}


class PostgresView(KeywordTables):
    """One publication of an index in PostgreSQL; see `View`.

    Rows live one publication longer than they are seen. So a view stays complete until there are two newer ones.
    """

    def __init__(self, pool: Pool, state: State) -> None:
        super().__init__(pool, state, state.visible())
        self._pool = pool
        self._whole: PostgresView | None = None
        self._numbers: NDArray[np.int64] | None = None  # of the chunks, in a limited view
        self._matrix: SentenceMatrix | None = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """Release the vectors; the connections are the store's."""
        self._matrix = None

    def limited_to(self, document_ids: Collection[str]) -> PostgresView:
        documents = self.query_among(f"SELECT number FROM {self.documents_table}", "id", document_ids)
        chunks = self.query_among(f"SELECT number FROM {self.chunks_table}", "document_id", document_ids)
        limited = PostgresView(self._pool, self._state)
        limited._whole = self._whole or self
        limited._numbers = np.array([number for (number,) in chunks], dtype=np.int64)
        limited.chunks_table = f"(SELECT * FROM chunks WHERE {_number_condition(chunks)}) AS chunks"
        limited.documents_table = f"(SELECT * FROM documents WHERE {_number_condition(documents)}) AS documents"
        limited.settings = limited.counted(self.settings)
        return limited

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        rows, generation = self._pool.run(lambda session: session.query_before(sql, *values, then=GENERATION))
        self._check_age(generation)
        return rows

    def words_of_length(self, shortest: int, longest: int) -> list[str]:
        whole = self._whole
        return super().words_of_length(shortest, longest) if whole is None else whole.words_of_length(shortest, longest)

    def nearest(self, vector: NDArray[np.float32], count: int) -> list[SentenceMatch]:
        whole = self._whole or self
        if whole.settings.vector_bytes <= MAX_MATRIX_BYTES:
            return whole.load_matrix().nearest(vector, count, self._numbers)
        if self._whole is not None and self.settings.vector_bytes <= MAX_LIMITED_BYTES:
            return self.load_matrix().nearest(vector, count)
        proposed, generation = self._pool.run(lambda session: self._propose(session, vector, count))
        self._check_age(generation)
        proposed.sort()  # ties come in the order of the chunks' ids
        vectors = unpack(b"".join(row[3] for row in proposed), self.settings)
        return SentenceMatrix.of([row[1:3] for row in proposed], vectors).nearest(vector, count)

    def load_matrix(self) -> SentenceMatrix:
        """Return all vectors in one matrix, read at the first use."""
        with self._lock:
            if self._matrix is None:
                rows, settings = self.vectors(self.numbers_by_id()), self.settings
                self._matrix = SentenceMatrix.build(rows, settings.dimension, settings.sentences)
                if len(self._matrix) < settings.sentences:
                    raise self.damage("vectors are missing")
            return self._matrix

    def _propose(
        self, session: Session, vector: NDArray[np.float32], count: int
    ) -> tuple[list[tuple[str, int, int, bytes]], int]:
        """Return sentences near to a vector (chunk's id and number, position, vector), and the generation after it."""
        schema, visible = self._state.vector, self.settings.sentences
        select = (
            f"SELECT seen.id, number, position, {schema}.halfvec_send(embedding) FROM sentences "
            f"JOIN (SELECT id, number FROM {self.chunks_table}) AS seen USING (number) ORDER BY"
        )
        limit = f"?::{schema}.halfvec LIMIT {math.ceil(count * _MARGIN) + _MORE}"
        written = f"[{','.join(map(str, vector.tolist()))}]"
        # So many of all must be proposed for enough of them to be visible.
        wanted = math.ceil(count * self._state.settings.sentences / max(visible, 1) * _MARGIN) + _MORE
        if self._state.has_graph and wanted <= min(visible, MAX_PROPOSED):
            settings = {**_GRAPH_SETTINGS, "hnsw.ef_search": str(min(max(_SEARCH, 2 * wanted), _MAX_SEARCH))}
            order = f"{shifted(schema, self.settings.dimension)} OPERATOR({schema}.<->)"
            statement = f"{select} {order} {limit}"
            proposed, generation = session.query_before(statement, written, then=GENERATION, settings=settings)
            if len(proposed) >= min(count, visible):
                return proposed, generation
        return session.query_before(f"{select} embedding OPERATOR({schema}.<#>) {limit}", written, then=GENERATION)

    def _check_age(self, generation: int) -> None:
        """Refuse what may lack rows, given the generation that was read after them."""
        if generation > self._state.generation + 1:
            raise StorageError(f"the index {self._pool.location} was replaced by newer publications during a search")


def _number_condition(rows: Sequence[tuple[int]]) -> str:
    """Return the SQL that tells whether `number` is one of some numbers: a list, or a mask with a bit for each."""
    numbers = np.array([number for (number,) in rows], dtype=np.int64)
    first, last = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    if len(numbers) <= max(_MAX_LISTED, (last - first) // _BITS_PER_NUMBER):
        return f"number = ANY ('{{{','.join(map(str, numbers.tolist()))}}}'::bigint[])"
    bits = np.zeros(last - first + 1, dtype=np.uint8)
    bits[numbers - first] = 1
    mask = np.packbits(bits, bitorder="little").tobytes().hex()
    # The planner takes one bit in three for set; of `= 1`, it would expect few, and look up each.
    return f"number BETWEEN {first} AND {last} AND get_bit('\\x{mask}'::bytea, number - {first}) > 0"
