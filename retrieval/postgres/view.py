"""One publication of an index in PostgreSQL, whole or limited to some documents."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arag.errors import StorageError
from arag.retrieval.postgres.connection import Pool
from arag.retrieval.postgres.keywords import KeywordTables
from arag.retrieval.postgres.schema import GENERATION, State
from arag.retrieval.postgres.vectors import find_nearest, read_vectors
from arag.retrieval.storage import SentenceMatch, Settings, Vectors
from arag.retrieval.vectors import MAX_MATRIX_BYTES, SentenceMatrix

_MAX_LIMITED_BYTES = MAX_MATRIX_BYTES // 4  # of vectors that a limited view keeps: a server may have hundreds of them
_MAX_LISTED = 1_000  # numbers: more are sent as a mask
_BITS_PER_NUMBER = 32  # of a mask that is no longer than the list


class PostgresView(KeywordTables):
    """One publication of an index in PostgreSQL; see `View`.

    Rows live one publication longer than they are seen. So a view stays complete until there are two newer ones.
    """

    def __init__(self, pool: Pool, state: State) -> None:
        super().__init__(pool, f"added <= {state.generation} AND removed > {state.generation}")
        self.settings: Settings = state.settings
        self._pool = pool
        self._state = state
        self._whole: PostgresView | None = None
        self._numbers: NDArray[np.int64] | None = None  # of the chunks, in a limited view
        self._matrix: SentenceMatrix | None = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """Release the vectors; the connections are the store's."""
        self._matrix = None

    def limited_to(self, document_ids: Collection[str]) -> PostgresView:
        """Return this view limited to some of its documents."""
        condition, value = self.among("id", document_ids)
        documents = self.query(f"SELECT number FROM {self.documents_table} AS documents WHERE {condition}", value)
        condition, value = self.among("document_id", document_ids)
        chunks = self.query(f"SELECT number FROM {self.chunks_table} AS chunks WHERE {condition}", value)
        limited = PostgresView(self._pool, self._state)
        limited._whole = self._whole or self
        limited._numbers = np.array([number for (number,) in chunks], dtype=np.int64)
        limited.chunks_table = f"(SELECT * FROM chunks WHERE {_hold(chunks)})"
        limited.documents_table = f"(SELECT * FROM documents WHERE {_hold(documents)})"
        limited.settings = limited.counted(self.settings)
        return limited

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query; see `TableReader.query`."""
        rows, generation = self._pool.run(lambda session: session.query_before(sql, *values, then=GENERATION))
        self._check_age(generation)
        return rows

    def vectors(self, numbers: Collection[int]) -> Iterator[tuple[int, list[int], Vectors]]:
        """Yield the vectors of chunks; see `View.vectors`."""
        yield from read_vectors(self, self._state, numbers)

    def nearest(self, vector: NDArray[np.float32], count: int) -> list[SentenceMatch]:
        """Return the sentences nearest to a vector; see `View.nearest`."""
        whole = self._whole or self
        if _count_bytes(whole.settings) <= MAX_MATRIX_BYTES:
            return whole.load_matrix().nearest(vector, count, self._numbers)
        if self._whole is not None and _count_bytes(self.settings) <= _MAX_LIMITED_BYTES:
            return self.load_matrix().nearest(vector, count)
        visible = self.chunks_table, self.settings.sentences
        found, generation = self._pool.run(lambda s: find_nearest(s, self._state, *visible, vector, count))
        self._check_age(generation)
        return found

    def load_matrix(self) -> SentenceMatrix:
        """Return all vectors in one matrix, read at the first use."""
        with self._lock:
            if self._matrix is None:
                rows = self.vectors(
                    [number for (number,) in self.query(f"SELECT number FROM {self._chunks} ORDER BY id")]
                )
                self._matrix = SentenceMatrix.build(rows, self.settings.sentences, self.settings.dimension)
                if len(self._matrix) < self.settings.sentences:
                    raise self.damage("vectors are missing")
            return self._matrix

    def _check_age(self, generation: int) -> None:
        """Refuse what may lack rows, given the generation that was read after them."""
        if generation > self._state.generation + 1:
            raise StorageError(f"the index {self._pool.location} was replaced by newer publications during a search")


def _count_bytes(settings: Settings) -> int:
    return 4 * settings.sentences * settings.dimension


def _hold(rows: Sequence[tuple[int]]) -> str:
    """Return the SQL that tells whether `number` is one of some numbers: a list, or a mask with a bit for each."""
    numbers = np.array([number for (number,) in rows], dtype=np.int64)
    first, last = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    if len(numbers) <= max(_MAX_LISTED, (last - first) // _BITS_PER_NUMBER):
        return f"number = ANY ('{{{','.join(map(str, numbers.tolist()))}}}'::bigint[])"
    bits = np.zeros(last - first + 1, dtype=np.uint8)
    bits[numbers - first] = 1
    mask = np.packbits(bits, bitorder="little").tobytes().hex()
    return f"number BETWEEN {first} AND {last} AND get_bit('\\x{mask}'::bytea, number - {first}) = 1"
