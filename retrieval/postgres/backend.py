"""An index in PostgreSQL, behind the ports of `arag.retrieval.backend`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial

from arag.errors import StorageError
from arag.retrieval.backend import Damage, Draft, Manifest, Sentences
from arag.retrieval.exact import ExactVectors
from arag.retrieval.keyword_file import KeywordMatcher
from arag.retrieval.postgres.chunk_store import PostgresChunkPart, PostgresChunks
from arag.retrieval.postgres.connections import Pool, Session
from arag.retrieval.postgres.draft import PostgresDraft, begin_index
from arag.retrieval.postgres.graph import VectorGraph
from arag.retrieval.postgres.keyword_cache import open_keyword_file
from arag.retrieval.postgres.keywords import PostgresKeywords
from arag.retrieval.postgres.location import PostgresLocation
from arag.retrieval.postgres.manifest import NAME, PostgresManifest, no_index, read_manifest
from arag.retrieval.postgres.schema import has_tables, make_tables
from arag.retrieval.postgres.sentences import GraphSentences, collection_name, open_graph, open_sentences
from arag.retrieval.postgres.verify import find_damage, repair
from arag.retrieval.postgres.workers import Worker
from arag.retrieval.tables.words import TableWords


class PostgresBackend:
    """An index in PostgreSQL: a schema with tables for documents, chunks, keywords and vectors.

    Args:
        location: The index.
    """

    def __init__(self, location: PostgresLocation) -> None:
        self.location = str(location)
        self._place = location
        self._worker: Worker | None = None  # while the lock is held

    def exists(self) -> bool:
        """Return whether the schema holds an index, or a part of one."""
        with closing(Session(self._place)) as session:
            return has_tables(session)

    def manifest(self) -> PostgresManifest:
        """Read the manifest."""
        with closing(Session(self._place)) as session:
            if not has_tables(session):
                raise no_index(self._place)
            return read_manifest(session)

    def size(self) -> int:
        """Return the bytes of all tables and their indexes."""
        with closing(Session(self._place)) as session:
            ((size,),) = session.query(
                "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class "
                "WHERE relnamespace = to_regnamespace(quote_ident(%s)) AND relkind IN ('r', 'p')",
                (self._place.index,),
            )
            return int(size)

    def reader(self) -> PostgresReader:
        """Open the index for searching."""
        return PostgresReader(self._place)

    def make(self) -> None:
        """Create the schema and its tables, or bring them up to date."""
        with closing(Session(self._place)) as session:
            make_tables(session)

    @contextmanager
    def lock(self, *, shared: bool = False) -> Iterator[None]:
        """Become one of those who write; see `Backend.lock`."""
        self._worker = Worker(self._place, alone=not shared)
        try:
            yield
        finally:
            worker, self._worker = self._worker, None
            worker.close()

    @contextmanager
    def draft(self, begin: Callable[[], Manifest]) -> Iterator[Draft]:
        """Open the next generation for writing; the caller holds the lock."""
        worker = self._held()
        begin_index(worker.session, begin)
        yield PostgresDraft(worker)

    def find_damage(self, *, locked: bool = True) -> list[Damage]:  # noqa: ARG002 - nothing is written
        """Look for damage in all tables."""
        if self._worker is not None:
            return find_damage(self._worker.session)
        with closing(Session(self._place)) as session:
            return find_damage(session)

    def repair(self, found: Sequence[Damage]) -> int:  # noqa: ARG002 - all is looked at again
        """Repair the tables; see `Backend.repair`."""
        return repair(self._held().session)

    def _held(self) -> Worker:
        """Return the worker of the lock that is held."""
        if self._worker is None:
            raise StorageError(f"the index {self.location} is not locked")
        return self._worker


class PostgresReader:
    """An index in PostgreSQL, open for searching.

    Args:
        location: The index.
    """

    def __init__(self, location: PostgresLocation) -> None:
        self._pool = Pool(location)
        self._lock = threading.Lock()
        self._graphs: dict[tuple[str, str], VectorGraph | None] = {}  # by where they are

    def stamp(self) -> str | None:
        """Return the manifest's text."""
        rows = self._pool.query("SELECT value FROM state WHERE name = %s", (NAME,))
        return str(rows[0][0]) if rows else None

    def generation(self) -> PostgresGeneration:
        """Open the generation that was published last."""
        manifest = read_manifest(self._pool)
        return PostgresGeneration(self._pool, manifest, partial(self._open_graph, manifest))

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            for graph in self._graphs.values():
                if graph is not None:
                    graph.close()
            self._graphs.clear()
        self._pool.close()

    def _open_graph(self, manifest: PostgresManifest) -> VectorGraph | None:
        """Return the graph, which generations share."""
        with self._lock:
            place = manifest.graph, collection_name(self._pool) if manifest.graph == "chroma" else ""
            if place not in self._graphs:
                self._graphs[place] = open_graph(manifest.graph, self._pool, manifest)
            return self._graphs[place]


class PostgresGeneration:
    """One generation of an index in PostgreSQL.

    Args:
        pool: The connections.
        manifest: The generation's manifest.
        open_graph: Opens the graph of the vectors, if there is one.
    """

    def __init__(self, pool: Pool, manifest: PostgresManifest, open_graph: Callable[[], VectorGraph | None]) -> None:
        self.manifest = manifest
        self.pool = pool
        self._open_graph = open_graph
        self.chunks = PostgresChunks(pool, manifest.generation)
        self._lock = threading.Lock()
        self._words = TableWords(self.chunks, self.chunks.vocabulary)
        self._file: KeywordMatcher | None = None
        self._sentences: ExactVectors | GraphSentences | None = None

    def keywords(self) -> PostgresKeywords | KeywordMatcher:
        """Return the keyword search: the server's, or that of a copy of the texts."""
        return self.keyword_file() or PostgresKeywords(self.pool, self.chunks, self.manifest.chunks)

    def keyword_file(self) -> KeywordMatcher | None:
        """Return the search in a copy of the texts, if there is to be one."""
        folder = self.pool.location.keyword_cache
        if folder is None:
            return None
        with self._lock:
            if self._file is None:
                self._file = open_keyword_file(folder, self.manifest, self.chunks)
            return self._file

    def words(self) -> TableWords:
        """Return the corpus's words."""
        return self._words

    def sentences(self) -> ExactVectors | GraphSentences:
        """Return the sentences' vectors: in one matrix if they are few, else a graph."""
        with self._lock:
            if self._sentences is None:
                self._sentences = open_sentences(self._open_graph(), self.chunks, self.manifest)
            return self._sentences

    def part(self, document_ids: Collection[str]) -> PostgresPart:
        """Return the generation limited to some documents; see `Generation.part`."""
        return PostgresPart(self, document_ids)


class PostgresPart:
    """A part of a generation; it shares the generation's connections.

    Args:
        whole: The generation.
        document_ids: The documents that are left.
    """

    def __init__(self, whole: PostgresGeneration, document_ids: Collection[str]) -> None:
        self._whole = whole
        self.chunks = PostgresChunkPart(whole.chunks, document_ids)
        counts = self.chunks.counts()
        self.manifest = replace(
            whole.manifest, documents=counts.documents, chunks=counts.chunks, sentences=counts.sentences
        )
        self._lock = threading.Lock()
        self._keywords: KeywordMatcher | None = None
        self._sentences: Sentences | None = None

    def keywords(self) -> PostgresKeywords | KeywordMatcher:
        """Return the keyword search."""
        file = self._whole.keyword_file()
        if file is None:
            return PostgresKeywords(self._whole.pool, self.chunks, self.manifest.chunks, self.chunks.cut)
        with self._lock:
            if self._keywords is None:
                cut = {number: chunk.text for number, chunk in self.chunks.cut.items()}
                self._keywords = file.part(self.chunks.inside, cut, self.chunks.numbers_by_id() if cut else ())
            return self._keywords

    def words(self) -> TableWords:
        """Return the words of the chunks."""
        return self._whole.words().part(self.chunks)

    def sentences(self) -> Sentences:
        """Return the sentences' vectors."""
        with self._lock:
            if self._sentences is None:
                whole = self._whole.sentences()
                if isinstance(whole, ExactVectors):
                    self._sentences = whole.part(self.chunks.inside, self.chunks.kept)
                else:
                    self._sentences = whole.part(self.chunks, self.manifest)
            return self._sentences

    def part(self, document_ids: Collection[str]) -> PostgresPart:
        """Return the generation limited to some of these documents."""
        return self._whole.part(document_ids)
