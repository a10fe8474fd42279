"""The graph of the sentence vectors, once they are too many to compare one by one, and pgvector's graph.

A graph is derived from table `vectors`. It holds shifted vectors (see `arag.retrieval.shift`) of all generations, and
only proposes sentences: which of their chunks a reader sees, and how similar they are, PostgreSQL's tables say.
"""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from pgvector.psycopg.halfvec import register_halfvec_info
from psycopg import Connection, errors
from psycopg.types import TypeInfo
from psycopg_pool import ConnectionPool

from arag.errors import IndexFormatError, StorageError
from arag.retrieval.backend import SentenceMatch, Vectors
from arag.retrieval.exact import make_matches
from arag.retrieval.shift import shifts_of, vector_id

Placed = tuple[int, Sequence[int], Vectors]
_Item = TypeVar("_Item")

# As in the folder; see `arag.retrieval.local.sentence_store`.
NEIGHBOURS, CONSTRUCTION, SEARCH = 32, 100, 400
_WRITERS = 4  # connections
_SENTENCES_PER_WRITE = 500
_CHUNKS_PER_QUERY = 5_000
_COMPARED_AT_ONCE = 500  # chunks
_MARGIN = 1.2  # of sentences asked for, beyond the visible ones' share
_SHIFTED = 10
MAX_FETCHED = 12_000  # sentences that one search asks for

logger = logging.getLogger(__name__)


class VectorGraph(ABC):
    """Finds the sentences nearest to a vector without comparing it with each of them.

    All methods are safe in several threads and processes at once. Errors of psycopg are not caught, apart from those
    that `prepare` names.

    Args:
        pool: Connections whose search path begins with the index's schema. A search takes one at a time; `add` takes
            up to four, and leaves one for what it is given.
        dimension: Length of the vectors.
        table: The table that says which chunks are in the graph, and where their vectors stand in table `vectors`.
    """

    def __init__(self, pool: ConnectionPool, dimension: int, table: str) -> None:
        self._pool = pool
        self._dimension = dimension
        self._table = table

    @abstractmethod
    def prepare(self) -> None:
        """Create the empty graph if there is none. Writers call it first.

        Raises:
            StorageError: It cannot be created; the message says what is missing.
        """

    @abstractmethod
    def count(self) -> int:
        """Return the number of sentences in the graph, counted where they are."""

    @abstractmethod
    def remove(self, numbers: Iterable[int]) -> None:
        """Remove the sentences of chunks, as far as they are there."""

    @abstractmethod
    def close(self) -> None:
        """Close what the graph opened; not the pool."""

    @abstractmethod
    def drop(self) -> None:
        """Delete the graph."""

    def nearest(
        self,
        vector: NDArray[np.float32],
        count: int,
        seen: str,
        parameters: Mapping[str, object] | None = None,
        *,
        visible: int,
    ) -> list[SentenceMatch]:
        """Return the sentences nearest to a vector, nearest first. Equal sentences have equal similarities.

        Args:
            vector: The query's vector, of length one, shape (dimension,).
            count: How many; more may be returned, but never fewer unless there are fewer.
            seen: The SQL condition that chunks in table `chunks` fulfil, such as `added <= 7 AND removed > 7`. It may
                use parameters by name, as `%(name)s`.
            parameters: The values of these parameters; names that begin with `graph_` are taken.
            visible: How many sentences these chunks have, roughly; a wrong number costs time only.

        Raises:
            IndexFormatError: Table `vectors` or the graph is damaged.
            StorageError: The server of the graph cannot be used.
        """
        parameters = parameters or {}
        total = max(self._estimate(), visible, 1)
        # So many must be found for enough of them to be visible, and some more: the shift moves their ranks.
        wanted = math.ceil(count * total / max(visible, 1) * _MARGIN) + _SHIFTED
        if wanted <= min(visible, MAX_FETCHED):
            matches = self._find(vector, count, wanted, seen, parameters)
            if len(matches) >= count:
                return matches
        return self._compare(vector, count, seen, parameters)

    @abstractmethod
    def _estimate(self) -> int:
        """Return about how many sentences are in the graph; it must be quick."""

    @abstractmethod
    def _find(
        self, vector: NDArray[np.float32], count: int, wanted: int, seen: str, parameters: Mapping[str, object]
    ) -> list[SentenceMatch]:
        """Return visible sentences that the graph finds: fewer than `count` if that takes longer than comparing.

        Args:
            vector: The query's vector.
            count: How many.
            wanted: How many of all sentences hold so many visible ones, roughly.
            seen: See `nearest`.
            parameters: See `nearest`.
        """

    @abstractmethod
    def _write(self, chunks: Sequence[Placed]) -> None:
        """Write the sentences of some chunks; what is there already stays as it is."""

    def add(self, placed: Iterable[Placed], on_written: Callable[[int], None] | None = None) -> None:
        """Add the sentences of chunks. If that is interrupted, all but the last chunks are there; see `missing`.

        Args:
            placed: Numbers of chunks, the positions of their embedded sentences, and these sentences' vectors, in the
                order of table `vectors`, shape (sentences, dimension). Only some of them are in memory at a time.
            on_written: Called with the number of sentences written, each time some are.
        """
        writers = max(1, min(_WRITERS, self._pool.max_size - 1))
        running: deque[tuple[int, Future[None]]] = deque()

        def wait(most: int) -> None:
            while len(running) > most:
                sentences, future = running.popleft()
                future.result()
                if on_written is not None:
                    on_written(sentences)

        with ThreadPoolExecutor(writers, thread_name_prefix="vectors") as executor:
            for chunks in _batches(placed):
                wait(writers)
                running.append(
                    (sum(len(positions) for _, positions, _ in chunks), executor.submit(self._write, chunks))
                )
            wait(0)

    def missing(self, seen: str, parameters: Mapping[str, object] | None = None) -> Iterator[int]:
        """Yield the numbers of chunks that are not in the graph, in order.

        Args:
            seen: The SQL condition that these chunks fulfil, such as `removed > 8 AND embedded_sentences > 0`.
            parameters: The values of its parameters.
        """
        query = (
            f"SELECT number FROM (SELECT number FROM chunks WHERE ({seen})) AS c WHERE number > %(graph_after)s AND "
            f"NOT EXISTS (SELECT FROM {self._table} AS p WHERE p.number = c.number AND written) "
            "ORDER BY number LIMIT %(graph_limit)s"
        )
        after = -1
        while True:
            with self._pool.connection() as connection:
                rows = connection.execute(
                    query, {**(parameters or {}), "graph_after": after, "graph_limit": _CHUNKS_PER_QUERY}
                ).fetchall()
            for (after,) in rows:
                yield after
            if len(rows) < _CHUNKS_PER_QUERY:
                return

    @contextmanager
    def _transaction(self) -> Iterator[Connection[Any]]:
        with self._pool.connection() as connection, connection.transaction():
            yield connection

    def _create_table(self, connection: Connection[Any]) -> None:
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {self._table} "
            "(number bigint PRIMARY KEY, positions integer[] NOT NULL, written boolean NOT NULL)"
        )

    def _note(self, connection: Connection[Any], chunks: Sequence[Placed], *, written: bool) -> None:
        """Note which chunks are in the graph, or may be there in part."""
        connection.execute(
            f"INSERT INTO {self._table} (number, positions, written) "
            "SELECT number, positions::integer[], %s FROM unnest(%s::bigint[], %s::text[]) AS c(number, positions) "
            f"ON CONFLICT (number) DO UPDATE SET written = true WHERE excluded.written AND NOT {self._table}.written",
            (
                written,
                [number for number, _, _ in chunks],
                [f"{{{','.join(map(str, positions))}}}" for _, positions, _ in chunks],
            ),
        )

    def _score(
        self,
        connection: Connection[Any],
        proposed: str,
        parameters: Mapping[str, object],
        vector: NDArray[np.float32],
    ) -> list[SentenceMatch]:
        """Compare a vector with the stored vectors of sentences.

        Args:
            connection: The connection.
            proposed: A query for the chunks' numbers and the positions of these sentences.
            parameters: Its parameters.
            vector: The query's vector.
        """
        width = 2 * self._dimension
        with connection.cursor(binary=True) as cursor:
            rows = cursor.execute(
                f"WITH proposed(number, position) AS MATERIALIZED ({proposed}) "
                "SELECT number, position, "
                f"substring(vectors FROM (array_position(positions, position) - 1) * {width} + 1 FOR {width}) "
                f"FROM proposed JOIN {self._table} USING (number) JOIN vectors USING (number)",
                parameters,
            ).fetchall()
        if not rows:
            return []
        places = np.asarray([row[:2] for row in rows], dtype=np.int64)
        return _rank(places, _parse(b"".join(row[2] for row in rows), len(rows), self._dimension), vector)

    def _compare(
        self, vector: NDArray[np.float32], count: int, seen: str, parameters: Mapping[str, object]
    ) -> list[SentenceMatch]:
        """Compare a vector with the sentences of all chunks that fulfil a condition, some at a time."""
        places = np.empty((0, 2), dtype=np.int64)
        vectors = np.empty((0, self._dimension), dtype=np.float32)
        # The cursor stands on the server.
        with (
            self._transaction() as connection,
            connection.cursor("compared", binary=True) as cursor,
        ):
            cursor.itersize = _COMPARED_AT_ONCE
            cursor.execute(
                f"SELECT number, positions, vectors FROM (SELECT number FROM chunks WHERE ({seen})) AS seen "
                f"JOIN {self._table} USING (number) JOIN vectors USING (number) WHERE written ORDER BY number",
                parameters,
            )
            for rows in batches_of(_COMPARED_AT_ONCE, cursor):
                more = [(number, position) for number, positions, _ in rows for position in positions]
                stored = b"".join(blob[: 2 * self._dimension * len(positions)] for _, positions, blob in rows)
                if not more:
                    continue
                places = np.concatenate([places, more])
                vectors = np.concatenate([vectors, _parse(stored, len(more), self._dimension)])
                if len(places) > count:
                    best = np.sort(np.argpartition(vectors @ vector, -count)[-count:])
                    places, vectors = places[best], vectors[best]
        return _rank(places, vectors, vector)


class PgvectorGraph(VectorGraph):
    """The graph in the same database, by the extension pgvector: table `graph` and its HNSW index.

    Args:
        pool: See `VectorGraph`.
        dimension: Length of the vectors.
    """

    def __init__(self, pool: ConnectionPool, dimension: int) -> None:
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
        for some in batches_of(_CHUNKS_PER_QUERY, numbers):
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
                f"USING (number) ORDER BY embedding OPERATOR({schema}.<=>) %(graph_vector)s::{schema}.halfvec "
                "LIMIT %(graph_limit)s",
                {
                    **parameters,
                    "graph_vector": HalfVector(vector).to_text(),
                    "graph_limit": math.ceil(count * _MARGIN) + _SHIFTED,
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
                f"USING hnsw (embedding {_find_schema(connection)}.halfvec_cosine_ops) "
                f"WITH (m = {NEIGHBOURS}, ef_construction = {CONSTRUCTION})"
            )


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


def lock(connection: Connection[Any], what: str) -> None:
    """Keep others from creating the same, until the end of the transaction."""
    connection.execute("SELECT pg_advisory_xact_lock(hashtext(current_schema()), hashtext(%s))", (what,))


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


_EXTENSION = (
    "SELECT quote_ident(nspname), extversion FROM pg_extension JOIN pg_namespace AS n ON n.oid = extnamespace "
    "WHERE extname = 'vector'"
)
_NO_EXTENSION = "the database lacks the extension `vector`, and with it the graph: run `arag verify --repair`"
_UNAVAILABLE = (errors.FeatureNotSupported, errors.UndefinedFile)


def batches_of(size: int, items: Iterable[_Item]) -> Iterator[list[_Item]]:
    """Yield items in lists of a size."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def _batches(placed: Iterable[Placed]) -> Iterator[list[Placed]]:
    batch: list[Placed] = []
    sentences = 0
    for entry in placed:
        batch.append(entry)
        sentences += len(entry[1])
        if sentences >= _SENTENCES_PER_WRITE or len(batch) >= _CHUNKS_PER_QUERY:
            yield batch
            batch, sentences = [], 0
    if batch:
        yield batch


def _parse(stored: bytes, sentences: int, dimension: int) -> Vectors:
    """Return vectors of table `vectors`, brought to length one: stored as float16, they are not quite."""
    if len(stored) != 2 * sentences * dimension:
        raise IndexFormatError("table `vectors` is damaged: run `arag verify --repair`")
    vectors = np.frombuffer(stored, dtype=np.float16).reshape(-1, dimension).astype(np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths, lengths, 1), dtype=np.float32)


def _rank(places: NDArray[np.int64], vectors: Vectors, vector: NDArray[np.float32]) -> list[SentenceMatch]:
    return make_matches(np.arange(len(places)), places, vectors, vectors @ vector)
