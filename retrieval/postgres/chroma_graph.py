"""The graph of the sentence vectors in a collection on a Chroma server.

Chroma shares no transaction with PostgreSQL. So a chunk is noted in PostgreSQL before its vectors are sent, and again
when the server has taken them: whoever is killed between leaves a note that the next one goes on from.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote, urlsplit

import numpy as np
from numpy.typing import NDArray

from arag.errors import IndexFormatError, StorageError
from arag.models.names import parse_base_url
from arag.retrieval.backend import SentenceMatch
from arag.retrieval.postgres.graph import (
    CONSTRUCTION,
    MAX_FETCHED,
    NEIGHBOURS,
    SEARCH,
    Connections,
    Placed,
    VectorGraph,
    batches_of,
    lock,
)
from arag.retrieval.shift import shifts_of, vector_id

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

_TABLE = "chroma_chunks"
_IDS_PER_CALL = 500
_VERSION = "1."

_Answer = TypeVar("_Answer")


class ChromaServerGraph(VectorGraph):
    """The graph in a collection of its own on a Chroma server.

    Args:
        pool: See `VectorGraph`.
        dimension: Length of the vectors.
        address: The server, as `http://[user:password@]host:port`.
        collection: The collection's name, which no other index uses.
    """

    def __init__(self, pool: Connections, dimension: int, address: str, collection: str) -> None:
        super().__init__(pool, dimension, _TABLE)
        self._server = parse_base_url(address)
        self._name = collection

    def prepare(self) -> None:
        """Create the collection if there is none; see `VectorGraph.prepare`."""
        with self._transaction() as connection, self._name_failures():
            lock(connection, _TABLE)
            collection = self._client.get_or_create_collection(
                self._name,
                configuration={
                    "hnsw": {
                        "space": "cosine",
                        "ef_construction": CONSTRUCTION,
                        "ef_search": SEARCH,
                        "max_neighbors": NEIGHBOURS,
                    }
                },
                embedding_function=None,
            )
            self._create_table(connection)
            # The notes are about this collection, or they mean nothing: the server may be another one, or a new one.
            row = connection.execute("SELECT obj_description(%s::regclass)", (_TABLE,)).fetchone()
            if row != (str(collection.id),):
                connection.execute(f"TRUNCATE {_TABLE}")
                connection.execute(f"COMMENT ON TABLE {_TABLE} IS '{collection.id}'")
            self.__dict__.pop("_collection", None)

    def count(self) -> int:
        """Return the number of sentences in the collection."""
        return int(self._ask(lambda collection: collection.count()))

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove the sentences of chunks, as far as they are there."""
        for some in batches_of(_IDS_PER_CALL, numbers):
            with self._transaction() as connection:
                rows = connection.execute(
                    f"SELECT number, positions FROM {_TABLE} WHERE number = ANY(%s)", (some,)
                ).fetchall()
                for ids in batches_of(_IDS_PER_CALL, (vector_id(n, i) for n, positions in rows for i in positions)):
                    with self._name_failures():
                        self._collection.delete(ids=ids)
                connection.execute(f"DELETE FROM {_TABLE} WHERE number = ANY(%s)", (some,))

    def drop(self) -> None:
        """Delete the collection."""
        from chromadb.errors import NotFoundError

        with self._name_failures(), suppress(NotFoundError):
            self._client.delete_collection(self._name)
        self.__dict__.pop("_collection", None)
        with self._transaction() as connection:
            connection.execute(f"DROP TABLE IF EXISTS {_TABLE}")

    def _estimate(self) -> int:
        return self.count()

    def _find(
        self, vector: NDArray[np.float32], count: int, wanted: int, seen: str, parameters: Mapping[str, object]
    ) -> list[SentenceMatch]:
        while True:
            # Chroma reads all that a filter lets through, so PostgreSQL drops what is not visible.
            found = self._ask(
                lambda collection: collection.query(
                    query_embeddings=vector.reshape(1, -1),
                    n_results=wanted,  # noqa: B023 - asked at once
                    include=[],
                )
            )
            places = [i.split("#") for i in found["ids"][0]]
            with self._transaction() as connection:
                matches = self._score(
                    connection,
                    "SELECT number, position FROM unnest(%(graph_numbers)s::bigint[], %(graph_positions)s::integer[]) "
                    f"AS f(number, position) JOIN (SELECT number FROM chunks WHERE ({seen})) AS seen USING (number)",
                    {
                        **parameters,
                        "graph_numbers": [int(number) for number, _ in places],
                        "graph_positions": [int(position) for _, position in places],
                    },
                    vector,
                )
            if len(matches) >= count or len(places) < wanted or wanted == MAX_FETCHED:
                return matches
            wanted = min(4 * wanted, MAX_FETCHED)

    def _ask(self, question: Callable[[Collection], _Answer]) -> _Answer:
        """Ask the collection; another one may have been made in a repair since it was found."""
        from chromadb.errors import NotFoundError

        with self._name_failures():
            try:
                return question(self._collection)
            except NotFoundError:
                self.__dict__.pop("_collection", None)
                return question(self._collection)

    def close(self) -> None:
        """Close the connections to the server."""
        client = self.__dict__.pop("_client", None)
        if client is not None:
            client.close()

    def _write(self, chunks: Sequence[Placed]) -> None:
        with self._transaction() as connection:
            self._note(connection, chunks, written=False)
        ids = [vector_id(number, position) for number, positions, _ in chunks for position in positions]
        if ids:
            shifted = np.concatenate([vectors for _, positions, vectors in chunks if positions])
            shifted = shifted + shifts_of(ids, self._dimension)
            for start in range(0, len(ids), self._most):
                some = slice(start, start + self._most)
                with self._name_failures():
                    self._collection.upsert(ids=ids[some], embeddings=shifted[some])
        with self._transaction() as connection:
            self._note(connection, chunks, written=True)

    @cached_property
    def _client(self) -> ClientAPI:
        import chromadb
        from chromadb.config import Settings

        address, user = urlsplit(self._server.url), self._server.user
        is_encrypted = address.scheme == "https"
        client = chromadb.HttpClient(
            host=address.hostname or "",
            port=address.port or (443 if is_encrypted else 8000),
            ssl=is_encrypted,
            headers=None if user is None else {"Authorization": f"Basic {b64encode(unquote(user).encode()).decode()}"},
            settings=Settings(anonymized_telemetry=False),
        )
        version = client.get_version()
        if not version.startswith(_VERSION):
            raise StorageError(
                f"the Chroma server at {self._server.url} has version {version}, and {_VERSION}x is needed"
            )
        return client

    @cached_property
    def _collection(self) -> Collection:
        from chromadb.errors import NotFoundError

        try:
            return self._client.get_collection(self._name, embedding_function=None)
        except NotFoundError as error:
            raise IndexFormatError(
                f"the Chroma server at {self._server.url} has no collection {self._name}: run `arag verify --repair`"
            ) from error

    @cached_property
    def _most(self) -> int:
        """How many vectors the server takes at once."""
        return max(1, self._client.get_max_batch_size())

    @contextmanager
    def _name_failures(self) -> Iterator[None]:
        """Name the server in what its client raises."""
        try:
            yield
        except Exception as error:
            if _is_of_chroma(error):
                raise StorageError(f"the Chroma server at {self._server.url} cannot be used: {error}") from error
            raise


def _is_of_chroma(error: Exception) -> bool:
    """Return whether Chroma's client raised an error."""
    import httpx
    from chromadb.errors import ChromaError

    # It makes a ValueError of a server that cannot be reached, and a bare Exception of an answer that is not Chroma's.
    return isinstance(error, ChromaError | httpx.HTTPError | ValueError) or type(error) is Exception
