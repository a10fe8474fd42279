"""The next generation of an index in PostgreSQL, which any number of processes write to at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import fields, replace
from itertools import chain
from typing import Any

from arag.errors import InputError
from arag.retrieval.backend import DocumentRecord, Manifest, Vectors
from arag.retrieval.postgres.chunk_store import PostgresChunks
from arag.retrieval.postgres.connections import Pool, Session, name_failures
from arag.retrieval.postgres.graph import VectorGraph, batches_of
from arag.retrieval.postgres.manifest import CHANGE, NAME, PostgresManifest, manifest_json, publish_again, read_manifest
from arag.retrieval.postgres.schema import ALL_TABLES, LONGEST_WORD, WORDS, make_text_indexes
from arag.retrieval.postgres.sentences import Kind, choose_graph, open_graph
from arag.retrieval.postgres.workers import Worker, live_workers
from arag.retrieval.tables.chunks import vector_rows
from arag.retrieval.tables.rows import (
    CONTENT_COLUMNS,
    DOCUMENT_COLUMNS,
    ENTRY_COLUMNS,
    FOR_EVER,
    checksum,
    chunk_rows,
    document_row,
)
from arag.retrieval.tables.terms import Terms
from arag.retrieval.text import fold
from arag.retrieval.types import Chunk

_PAUSE = 0.5  # seconds between looks at what other workers do
_DELETED_AT_ONCE = 2_000  # rows
_ADDED_AT_ONCE = 500  # chunks, to a graph
_LONGEST_ID = 2_000  # bytes
_MAX_KNOWN_WORDS = 1_000_000  # that are not sent again
_INT, _TEXT = "int8", "text"
_ENTRY_TYPES = (_TEXT, _TEXT, _INT, _INT, _INT, _INT, _INT)  # of ENTRY_COLUMNS


class DraftChunks(PostgresChunks):
    """The chunks of the next generation.

    Args:
        worker: The process that writes.
    """

    def __init__(self, worker: Worker) -> None:
        super().__init__(worker.session)
        self._worker = worker
        self._session = worker.session
        self._known_words: set[str] = set()
        self._has_changed = False  # by the transaction

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run all writes inside as one transaction, while no other worker inserts or publishes."""
        if self._session.in_transaction:
            yield
            return
        with self._session.transaction():
            self._worker.hold_insertion()
            # Another worker may have published since the last transaction.
            self.writes = read_manifest(self._session).generation + 1
            self._has_changed = False
            try:
                yield
            except BaseException:
                self._known_words.clear()  # they may not be in the vocabulary
                raise
            if self._has_changed:
                self._session.execute(f"UPDATE state SET value = (value::bigint + 1)::text WHERE name = '{CHANGE}'")

    def claim(self, limit: int, after: int = -1) -> list[tuple[int, Chunk]]:
        """Return chunks whose vectors are not written yet, and that no other worker that is alive has claimed."""
        rows = self._session.query(
            "UPDATE chunks SET worker = %s WHERE number IN (SELECT number FROM chunks "
            f"WHERE pending AND removed = {FOR_EVER} AND number > %s "
            f"AND (worker IS NULL OR worker = %s OR worker NOT IN ({live_workers()})) "
            "ORDER BY number LIMIT %s FOR UPDATE SKIP LOCKED) RETURNING number",
            (self._worker.number, after, self._worker.number, limit),
        )
        return sorted(self.numbered([number for (number,) in rows]).items())

    def set_vectors(self, vectors: Iterable[tuple[int, Vectors]]) -> None:
        """Write the vectors of chunks; see `WritableChunks.set_vectors`."""
        rows = vector_rows(vectors)
        with self._session.transaction():  # insertions need not wait for it
            # The chunk may have been removed, and may be deleted now, by another worker.
            self._session.execute_each(
                "INSERT INTO vectors (number, vectors, checksum) "
                "SELECT number, %s, %s FROM chunks WHERE number = %s FOR KEY SHARE "
                "ON CONFLICT (number) DO UPDATE SET vectors = excluded.vectors, checksum = excluded.checksum",
                [(blob, checksum, number) for number, blob, checksum in rows],
            )
            self._session.execute(
                "UPDATE chunks SET pending = FALSE WHERE number IN "
                "(SELECT number FROM chunks WHERE number = ANY (%s) FOR UPDATE SKIP LOCKED)",
                ([number for number, _, _ in rows],),
            )

    def add_embedded(self, chunks: Sequence[tuple[Chunk, Vectors]]) -> None:
        """Add chunks whose ids are new, together with their vectors."""
        with self.transaction():
            numbers = self._insert([chunk for chunk, _ in chunks], pending=False)
            vectors = zip(numbers, (vectors for _, vectors in chunks), strict=True)
            self._session.copy("vectors", "number, vectors, checksum", [_INT, "bytea", _INT], vector_rows(vectors))

    def add_documents(self, documents: Iterable[DocumentRecord]) -> None:
        """Add documents' entries."""
        rows = [document_row(document) for document in documents]
        for row in rows:
            self._check_texts(f"document {row[0]!r}", row)
        with self.transaction():
            self._has_changed = self._has_changed or bool(rows)
            self._session.copy(
                "documents",
                f"{DOCUMENT_COLUMNS}, checksum, added",
                [_TEXT, _TEXT, _TEXT, _TEXT, _TEXT, _INT, _INT, _INT],
                ((*row, checksum(row), self.writes) for row in rows),
            )

    def delete_gone(self, generation: int, graph: VectorGraph | None) -> None:
        """Delete the chunks that a generation no longer has, some at a time, from the graph, too."""
        numbers = [-1]
        while numbers:
            with self._session.transaction():
                # The rows of `chunks` are locked first. One that another worker holds is left to a later call.
                rows = self._session.query(
                    f"SELECT number FROM chunks WHERE removed <= {generation} LIMIT {_DELETED_AT_ONCE} "
                    "FOR UPDATE SKIP LOCKED"
                )
                numbers = [number for (number,) in rows]
                if graph is not None:
                    graph.remove(numbers)
                for table in ("chunks", "contents", "vectors", "members", "lowered", "terms"):
                    self._session.execute(f"DELETE FROM {table} WHERE number = ANY (%s)", (numbers,))

    def _execute(self, sql: str, rows: Iterable[Sequence[Any]] = ((),)) -> None:
        values = list(rows)
        self._has_changed = self._has_changed or bool(values)
        self._session.execute_each(sql.replace("?", "%s"), values)

    def _insert(self, chunks: Sequence[Chunk], *, pending: bool = True) -> list[int]:
        if not chunks:
            return []
        self._has_changed = True
        numbers = [
            number
            for (number,) in self._session.query(
                "SELECT nextval(pg_get_serial_sequence('chunks', 'number')) FROM generate_series(1, %s)", (len(chunks),)
            )
        ]
        rows = [(number, chunk, *chunk_rows(chunk)) for number, chunk in zip(numbers, chunks, strict=True)]
        for _, chunk, entry, contents in rows:
            self._check_texts(f"chunk {chunk.id!r}", [*entry, *contents])
        self._session.copy(
            "chunks",
            f"number, {ENTRY_COLUMNS}, pending, added",
            [_INT, *_ENTRY_TYPES, "bool", _INT],
            ((number, *entry, pending, self.writes) for number, _, entry, _ in rows),
        )
        self._session.copy(
            "contents",
            f"number, {CONTENT_COLUMNS}, checksum",
            [_INT, _TEXT, _TEXT, _TEXT, _INT],
            ((number, *contents, checksum([*entry, *contents])) for number, _, entry, contents in rows),
        )
        members = {(section.document_id, number) for number, chunk, *_ in rows for section in chunk.sections}
        self._session.copy("members", "document_id, number", [_TEXT, _INT], sorted(members))
        self._insert_texts([(number, chunk.text) for number, chunk, *_ in rows])
        return numbers

    def _check_texts(self, what: str, values: Iterable[object]) -> None:
        """Refuse what the server cannot store: some characters, and long ids, of which `what` ends in one.

        Raises:
            InputError: There is such a character or id.
        """
        if len(what.encode("utf-8", "replace")) > _LONGEST_ID:
            raise InputError(
                f"the id of the {what[:100]}... is longer than the {_LONGEST_ID:,} bytes that fit an index"
            )
        for value in values:
            if isinstance(value, str) and (found := self.UNSTORABLE.search(value)):
                raise InputError(
                    f"the {what} holds the character U+{ord(found[0]):04X}, which PostgreSQL cannot store: "
                    "ingest its document again without it"
                )

    def fill_texts(self) -> None:
        """Write what is derived from the texts of chunks where it is missing."""
        for table in ("lowered", "terms"):
            while numbers := self._query(f"SELECT number FROM contents EXCEPT SELECT number FROM {table} LIMIT 500"):
                some = [number for (number,) in numbers]
                texts = self._query("SELECT number, text FROM contents WHERE number = ANY (?)", (some,))
                with self.transaction():
                    self._execute("DELETE FROM lowered WHERE number = ANY (?)", [(some,)])
                    self._execute("DELETE FROM terms WHERE number = ANY (?)", [(some,)])
                    self._insert_texts([(number, text) for number, text in texts])

    def _insert_texts(self, texts: Sequence[tuple[int, str]]) -> None:
        """Insert what is derived from the texts of chunks."""
        self._session.copy("lowered", "number, lowered", [_INT, _TEXT], ((n, fold(t).lower()) for n, t in texts))
        words = Terms(texts).words()
        lists = ((number, f" {' '.join(words.get(number, []))} ") for number, _ in texts)
        self._session.copy("terms", "number, words", [_INT, _TEXT], lists)
        self._add_words({word for found in words.values() for word in found if len(word) <= LONGEST_WORD})

    def _add_words(self, words: set[str]) -> None:
        """Add words to the vocabulary, in order, so that two workers never wait for each other."""
        new = sorted(words - self._known_words)
        self._session.execute("INSERT INTO vocabulary SELECT unnest(%s::text[]) ON CONFLICT (word) DO NOTHING", (new,))
        if len(self._known_words) > _MAX_KNOWN_WORDS:
            self._known_words.clear()
        self._known_words.update(new)


class PostgresDraft:
    """The next generation of an index in PostgreSQL.

    Args:
        worker: The process that writes.

    Attributes:
        manifest: The manifest that was published last.
        chunks: The chunks of the next generation.
        published: The chunks that readers see.
    """

    publishes_early = False  # a run is published as a whole

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._session = worker.session
        self.chunks = DraftChunks(worker)
        self._follow()

    def waits_for_others(self) -> bool:
        """See `Draft.waits_for_others`."""
        if self._worker.is_last() and not self._is_pending():
            return False
        time.sleep(_PAUSE)
        return True

    def prepare(self, sentences: int) -> None:
        """Nothing is prepared."""

    def publish(
        self, manifest: Manifest, *, rebuild: bool = False, on_written: Callable[[int, int], None] | None = None
    ) -> bool:
        """Let readers see what was written; see `Draft.publish`."""
        try:
            while True:
                change, counts = self._read_change(), self.chunks.counts()
                current = read_manifest(self._session)
                set_here = {
                    "documents": counts.documents,
                    "chunks": counts.chunks,
                    "sentences": counts.sentences,
                    "generation": current.generation,
                }
                wanted = replace(current, **_settings(manifest) | set_here, change=change)
                if wanted == current and not rebuild:
                    break  # another worker has published it, or a killed one
                wanted = replace(
                    wanted,
                    generation=current.generation + 1,
                    publications=publish_again(current.publications),
                    graph=self._derive(wanted, rebuild=rebuild, on_written=on_written),
                )
                with self._session.transaction():
                    self._worker.hold_publication()
                    if self._is_pending():
                        return False
                    if self._read_change() == change and read_manifest(self._session) == current:
                        write_manifest(self._session, wanted)
                        break
            self._delete_gone(current, wanted)
            return True
        finally:
            self._follow()

    def renew(self) -> None:
        """Rewrite all tables without what was removed, which keeps readers waiting meanwhile."""
        with self._session.transaction():
            self._session.execute("TRUNCATE vocabulary")
            self._session.execute(f"INSERT INTO vocabulary {WORDS}")
        for table in ALL_TABLES:
            self._session.execute(f"VACUUM (FULL, ANALYZE) {table}")

    def _follow(self) -> None:
        self.manifest = read_manifest(self._session)
        self.published = PostgresChunks(self._session, self.manifest.generation)

    def _is_pending(self) -> bool:
        return bool(self._session.query(f"SELECT FROM chunks WHERE pending AND removed = {FOR_EVER} LIMIT 1"))

    def _read_change(self) -> int:
        ((change,),) = self._session.query(f"SELECT value::bigint FROM state WHERE name = '{CHANGE}'")
        return int(change)

    def _derive(
        self, manifest: PostgresManifest, *, rebuild: bool, on_written: Callable[[int, int], None] | None
    ) -> Kind:
        """Bring what is derived from the chunks up to date, one worker at a time; return where the graph is."""
        kind = choose_graph(self._session.location, manifest)
        with self._worker.deriving():
            if rebuild:
                self.chunks.fill_texts()
            make_text_indexes(self._session)
            if manifest.generation == 0 or rebuild:
                self._session.execute(f"ANALYZE {', '.join(ALL_TABLES)}")
            with self._open_graph(kind, manifest) as graph:
                if graph is not None:
                    graph.prepare()
                    self._add_to(graph, on_written)
                    if rebuild and graph.count() < manifest.sentences:  # not what was written to it
                        graph.drop()
                        graph.prepare()
                        self._add_to(graph, on_written)
        return kind

    def _add_to(self, graph: VectorGraph, on_written: Callable[[int, int], None] | None) -> None:
        """Add the chunks that a graph lacks."""
        ((total,),) = self._session.query(
            "SELECT coalesce(sum(embedded_sentences), 0)::bigint FROM chunks "
            f"WHERE removed = {FOR_EVER} AND added > %s",
            (self.manifest.generation if self.manifest.graph else -1,),
        )
        written = 0

        def add_up(more: int) -> None:
            nonlocal written
            written += more
            if on_written is not None:
                on_written(written, max(total, written))  # a killed run may have left more

        missing = graph.missing(f"removed = {FOR_EVER} AND embedded_sentences > 0")
        graph.add(chain.from_iterable(map(self.chunks.placed_vectors, batches_of(_ADDED_AT_ONCE, missing))), add_up)

    def _delete_gone(self, before: PostgresManifest, now: PostgresManifest) -> None:
        """Delete what a publication has removed, from the graph, too."""
        with self._open_graph(before.graph, now) as graph:
            if graph is not None and before.graph != now.graph:
                graph.drop()
        with self._open_graph(now.graph, now) as graph:
            self.chunks.delete_gone(now.generation, graph)
        self._session.execute(f"DELETE FROM documents WHERE removed <= {now.generation}")

    @contextmanager
    def _open_graph(self, kind: Kind, manifest: PostgresManifest) -> Iterator[VectorGraph | None]:
        with name_failures(self._session.location), closing(Pool(self._session.location)) as pool:
            graph = open_graph(kind, pool, manifest)
            try:
                yield graph
            finally:
                if graph is not None:
                    graph.close()


def write_manifest(session: Session, manifest: PostgresManifest) -> None:
    """Replace the manifest."""
    session.execute("UPDATE state SET value = %s WHERE name = %s", (manifest_json(manifest), NAME))


def begin_index(session: Session, begin: Callable[[], Manifest]) -> None:
    """Write the manifest of a new index, unless another worker has."""
    if session.query("SELECT FROM state WHERE name = %s", (NAME,)):
        return
    manifest = PostgresManifest(**_settings(begin()), publications=publish_again())
    with session.transaction():
        for name, value in ((CHANGE, "0"), (NAME, manifest_json(manifest))):
            session.execute(
                "INSERT INTO state (name, value) VALUES (%s, %s) ON CONFLICT (name) DO NOTHING", (name, value)
            )


def _settings(manifest: Manifest) -> dict[str, Any]:
    return {field.name: getattr(manifest, field.name) for field in fields(Manifest)}
