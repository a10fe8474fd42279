"""The graph of the sentence vectors, once they are too many to compare one by one: what all places for it share.

A graph is derived from table `vectors`. It holds shifted vectors (see `arag.retrieval.shift`) of all generations, and
only proposes sentences: which of their chunks a reader sees, and how similar they are, PostgreSQL's tables say.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from psycopg import Connection

from arag.errors import IndexFormatError
from arag.retrieval.backend import SentenceMatch, Vectors
from arag.retrieval.exact import make_matches

Placed = tuple[int, Sequence[int], Vectors]
_Item = TypeVar("_Item")

# As in the folder; see `arag.retrieval.local.chroma_folder`.
NEIGHBOURS, CONSTRUCTION, SEARCH = 32, 100, 400
_WRITERS = 4  # connections
_SENTENCES_PER_WRITE = 500
CHUNKS_PER_QUERY = 5_000
_COMPARED_AT_ONCE = 500  # chunks
MARGIN = 1.2  # of sentences asked for, beyond the visible ones' share
SHIFTED = 10  # more, because the shift moves the ranks of those that are about as near
MAX_FETCHED = 12_000  # sentences that one search asks for


class Connections(Protocol):
    """Connections to the database, for several threads at once."""

    @property
    def max_size(self) -> int:
        """How many connections there may be."""

    def connection(self) -> AbstractContextManager[Connection[Any]]:
        """Return a context in which a connection is lent."""


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

    def __init__(self, pool: Connections, dimension: int, table: str) -> None:
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
        wanted = math.ceil(count * total / max(visible, 1) * MARGIN) + SHIFTED
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
                    query, {**(parameters or {}), "graph_after": after, "graph_limit": CHUNKS_PER_QUERY}
                ).fetchall()
            for (after,) in rows:
                yield after
            if len(rows) < CHUNKS_PER_QUERY:
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
        return _rank(places, _parse(b"".join(row[2] or b"" for row in rows), len(rows), self._dimension), vector)

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


def lock(connection: Connection[Any], what: str) -> None:
    """Keep others from creating the same, until the end of the transaction."""
    connection.execute("SELECT pg_advisory_xact_lock(hashtext(current_schema()), hashtext(%s))", (what,))


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
        if sentences >= _SENTENCES_PER_WRITE or len(batch) >= CHUNKS_PER_QUERY:
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
