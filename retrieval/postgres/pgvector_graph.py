"""The graph of the sentence vectors in the index's own database, by the extension pgvector."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from pgvector.psycopg.halfvec import register_halfvec_info
from psycopg import Connection, errors
from psycopg.types import TypeInfo

from arag.errors import IndexFormatError, StorageError
from arag.retrieval.backend import SentenceMatch
from arag.retrieval.postgres.graph import (
    CHUNKS_PER_QUERY,
    CONSTRUCTION,
    MARGIN,
    NEIGHBOURS,
    SEARCH,
    SHIFTED,
    Connections,
    Placed,
    VectorGraph,
    batches_of,
    lock,
)
from arag.retrieval.shift import shifts_of, vector_id

_MAX_DIMENSION = 4_000
_MAX_VISITED = 100_000  # sentences, by one search: takes 0.2 s
_MAX_SEARCH = 1_000  # of `hnsw.ef_search`
_VERSION = (0, 8)  # the first with iterative scans
_MAX_BUILD_BYTES = 2 << 30  # an index that needs more takes longer; a server may be set to more
_BYTES_PER_ELEMENT = 2_000  # of the graph in memory, beside its vector, with 32 neighbours
# Without sorting, only the index remains; and a few rows are looked up, where tables would be read for a hash join.
# The order is loose, because the sentences are ranked by their own vectors.
_SETTINGS = f"""SELECT
    set_config('hnsw.ef_search', %s, true),
    set_config('hnsw.iterative_scan', 'relaxed_order', true),
    set_config('hnsw.max_scan_tuples', '{_MAX_VISITED}', true),
    set_config('hnsw.scan_mem_multiplier', '20', true),
    set_config('enable_sort', 'off', true),
    set_config('enable_hashjoin', 'off', true),
    set_config('jit', 'off', true)"""
_EXTENSION = (
    "SELECT quote_ident(nspname), extversion FROM pg_extension JOIN pg_namespace AS n ON n.oid = extnamespace "
    "WHERE extname = 'vector'"
)
_NO_EXTENSION = "the database lacks the extension `vector`, and with it the graph: run `arag verify --repair`"
_UNAVAILABLE = (errors.FeatureNotSupported, errors.UndefinedFile)

logger = logging.getLogger(__name__)


class PgvectorGraph(VectorGraph):
    """The graph in the same database, by the extension pgvector: table `graph` and its HNSW index.

    All its vectors have length one, so that the Euclidean distance gives the order of the cosine. The cosine distance
    of float16 vectors is not exact enough to tell copies of a vector apart, and most of them would be unfindable.

    Args:
        pool: See `VectorGraph`.
        dimension: Length of the vectors.
    """

    def __init__(self, pool: Connections, dimension: int) -> None:
        super().__init__(pool, dimension, "graph_chunks")

    def prepare(self) -> None:
        """Create the tables if there are none; see `VectorGraph.prepare`."""
        if self._dimension > _MAX_DIMENSION:
            raise StorageError(
                f"pgvector indexes at most {_MAX_DIMENSION:,} dimensions, and the embedder's vectors have "
                f"{self._dimension:,}: keep the vectors on a Chroma server, with vectors=chroma+http://host:port"
            )
        with self._transaction() as connection:
            lock(connection, "graph")
            _create_extension(connection)
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS graph (number bigint, position integer, "
                f"embedding {_find_schema(connection)}.halfvec({self._dimension}) NOT NULL, "
                "PRIMARY KEY (number, position))"
            )
            self._create_table(connection)

    def add(self, placed: Iterable[Placed], on_written: Callable[[int], None] | None = None) -> None:
        """Add the sentences of chunks; see `VectorGraph.add`.

        The first time, the index is made when all are there: that takes a tenth of the time.
        """
        super().add(placed, on_written)
        try:
            self._create_index("current_setting('max_parallel_workers')")
        except errors.DiskFull as error:
            # Parallel workers share memory, of which a container has little (64 MB by Docker's default).
            logger.warning("the index of the vectors is made by one process, which takes longer: %s", error)
            self._create_index("'0'")

    def count(self) -> int:
        """Return the number of sentences in the graph."""
        with self._pool.connection() as connection:
            row = connection.execute("SELECT count(*) FROM graph").fetchone()
        return int(row[0]) if row else 0

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove the sentences of chunks, as far as they are there."""
        for some in batches_of(CHUNKS_PER_QUERY, numbers):
            with self._transaction() as connection:
                connection.execute("DELETE FROM graph WHERE number = ANY(%s)", (some,))
                connection.execute("DELETE FROM graph_chunks WHERE number = ANY(%s)", (some,))

    def drop(self) -> None:
        """Delete the graph."""
        with self._transaction() as connection:
            connection.execute("DROP TABLE IF EXISTS graph, graph_chunks")

    def _estimate(self) -> int:
        with self._pool.connection() as connection:
            row = connection.execute("SELECT reltuples FROM pg_class WHERE oid = 'graph'::regclass").fetchone()
        return int(row[0]) if row else 0

    def _find(
        self, vector: NDArray[np.float32], count: int, wanted: int, seen: str, parameters: Mapping[str, object]
    ) -> list[SentenceMatch]:
        schema = self._schema
        with self._transaction() as connection:
            connection.execute(_SETTINGS, (str(min(max(SEARCH, wanted), _MAX_SEARCH)),))
            return self._score(
                connection,
                f"SELECT number, position FROM graph JOIN (SELECT number FROM chunks WHERE ({seen})) AS seen "
                f"USING (number) ORDER BY embedding OPERATOR({schema}.<->) %(graph_vector)s::{schema}.halfvec "
                "LIMIT %(graph_limit)s",
                {
                    **parameters,
                    "graph_vector": HalfVector(vector).to_text(),
                    "graph_limit": math.ceil(count * MARGIN) + SHIFTED,
                },
                vector,
            )

    def close(self) -> None:
        """Do nothing: the connections are the pool's."""

    def _write(self, chunks: Sequence[Placed]) -> None:
        places = [(number, position) for number, positions, _ in chunks for position in positions]
        schema, halfvec = self._schema, self._type
        with self._transaction() as connection:
            if places:
                shifts = shifts_of([vector_id(*place) for place in places], self._dimension)
                shifted = np.concatenate([vectors for _, positions, vectors in chunks if positions]) + shifts
                shifted /= np.linalg.norm(shifted, axis=1, keepdims=True)
                register_halfvec_info(connection, halfvec)
                connection.execute(
                    "INSERT INTO graph SELECT * FROM "
                    f"unnest(%s::bigint[], %s::integer[], %b::{schema}.halfvec[]) ON CONFLICT DO NOTHING",
                    (
                        [number for number, _ in places],
                        [position for _, position in places],
                        list(map(HalfVector, shifted.astype(np.float16))),
                    ),
                )
            self._note(connection, chunks, written=True)

    @cached_property
    def _schema(self) -> str:
        with self._transaction() as connection:
            return _find_schema(connection)

    @cached_property
    def _type(self) -> TypeInfo:
        name = f"{self._schema}.halfvec"
        with self._transaction() as connection:
            found = TypeInfo.fetch(connection, name)
        if found is None:
            raise IndexFormatError(_NO_EXTENSION)
        return found

    def _create_index(self, workers: str) -> None:
        """Make the index if there is none.

        Args:
            workers: SQL for the number of processes that help.
        """
        with self._transaction() as connection:
            lock(connection, "index of the graph")
            if connection.execute(
                "SELECT 1 FROM pg_indexes WHERE schemaname = current_schema() AND indexname = 'graph_by_vector'"
            ).fetchone():
                return
            needed = f"count(*) * {2 * self._dimension + _BYTES_PER_ELEMENT}"
            connection.execute(
                "SELECT set_config('statement_timeout', '0', true), "
                f"set_config('max_parallel_maintenance_workers', {workers}, true), "
                "set_config('maintenance_work_mem', greatest("
                "pg_size_bytes(current_setting('maintenance_work_mem')), "
                f"least({needed}, {_MAX_BUILD_BYTES})) / 1024 || 'kB', true) FROM graph"
            )
            connection.execute(
                "CREATE INDEX graph_by_vector ON graph "
                f"USING hnsw (embedding {_find_schema(connection)}.halfvec_l2_ops) "
                f"WITH (m = {NEIGHBOURS}, ef_construction = {CONSTRUCTION})"
            )


def _create_extension(connection: Connection[Any]) -> None:
    if not connection.execute(_EXTENSION).fetchone():
        try:
            connection.execute("CREATE EXTENSION vector SCHEMA public")
        except (errors.InsufficientPrivilege, errors.InvalidSchemaName, *_UNAVAILABLE) as error:
            first = "install pgvector on the server; then " if isinstance(error, _UNAVAILABLE) else ""
            reason = str(error).partition("\n")[0]
            raise StorageError(
                f"the database lacks the extension `vector`, and this role cannot create it ({reason}): "
                f"{first}an administrator runs `CREATE EXTENSION vector` in that database"
            ) from error
    row = connection.execute(_EXTENSION).fetchone()
    version = row[1] if row else "0.0"
    if tuple(map(int, version.split(".")[:2])) < _VERSION:
        raise StorageError(
            f"the database has version {version} of the extension `vector`, and 0.8 or a later one is needed: "
            "an administrator runs `ALTER EXTENSION vector UPDATE` in that database"
        )


def _find_schema(connection: Connection[Any]) -> str:
    """Return the schema that the extension is in, quoted. It may not be in the search path."""
    row = connection.execute(_EXTENSION).fetchone()
    if row is None:
        raise IndexFormatError(_NO_EXTENSION)
    return str(row[0])
