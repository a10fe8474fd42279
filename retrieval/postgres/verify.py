"""Finds damage in an index in PostgreSQL, and repairs what everything else is derived from."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from typing import Any

from psycopg import errors

from arag.errors import DamageError
from arag.retrieval.backend import Damage, DocumentRecord
from arag.retrieval.postgres.connections import Pool, Session, name_failures
from arag.retrieval.postgres.manifest import NAME, PostgresManifest, read_manifest
from arag.retrieval.postgres.schema import MISSING_WORDS
from arag.retrieval.postgres.sentences import open_graph
from arag.retrieval.tables.check import CheckedChunk, RowCheck, list_ids
from arag.retrieval.tables.rows import (
    CONTENT_COLUMNS,
    DOCUMENT_COLUMNS,
    FOR_EVER,
    checksum,
    document_row,
)
from arag.retrieval.tables.terms import Terms
from arag.retrieval.text import fold

_PAGE = 500  # rows read at a time
_BESIDE = {
    "contents": f"{CONTENT_COLUMNS}, checksum",
    "vectors": "vectors, checksum",
    "lowered": "lowered",
    "terms": "words",
}
_OF_NO_CHUNK = "number NOT IN (SELECT number FROM chunks)"
_DERIVED = "derived texts"  # tables `lowered` and `terms`
_TABLES = "tables"
_GRAPH = "graph of the vectors"
_UNFINISHED = "the first ingestion was interrupted: run the same `arag ingest` again to finish it"


def find_damage(session: Session) -> list[Damage]:
    """Look for damage in all tables; see `Backend.find_damage`."""
    try:
        manifest = read_manifest(session)
    except DamageError as error:
        return [Damage(NAME, f"{error.reason}: ingest the documents again into another index", repairable=False)]
    return list(_find_all(session, manifest))


def repair(session: Session) -> int:
    """Repair the tables of an index that nobody else writes to; see `Backend.repair`."""
    check = _Check(session, read_manifest(session))
    with session.transaction():
        check.repair()
    return check.unnamed


def _find_all(session: Session, manifest: PostgresManifest) -> Iterator[Damage]:
    if manifest.generation == 0 and manifest.documents == 0:
        yield Damage(NAME, _UNFINISHED, repairable=False)
    check = _Check(session, manifest)
    for fault in check.faults:
        yield Damage(_TABLES, fault)
    for name, there in check.counts.items():
        if not check.faults and there != getattr(manifest, name):
            yield Damage(NAME, f"it lists {getattr(manifest, name):,} {name}, the tables hold {there:,}")
    if check.wrong_texts:
        yield Damage(_DERIVED, f"those of {len(check.wrong_texts):,} chunks are missing or wrong")
    if check.wrong_members:
        yield Damage(_TABLES, "the lists of each document's chunks are wrong")
    if check.missing_words:
        yield Damage(_DERIVED, f"{check.missing_words:,} words are missing in the vocabulary")
    if check.orphans:
        yield Damage(_TABLES, f"{check.orphans:,} rows belong to no chunk")
    yield from _check_graph(session, manifest)
    if check.to_ingest_again:
        again = check.to_ingest_again
        what = f"ingest again the documents that have lost a part ({len(again):,}): {list_ids(again)}"
        yield Damage(_TABLES, what, repairable=False)


def _check_graph(session: Session, manifest: PostgresManifest) -> Iterator[Damage]:
    with closing(Pool(session.location)) as pool, name_failures(session.location):
        graph = open_graph(manifest.graph, pool, manifest)
        if graph is None:
            return
        try:
            seen = f"added <= {manifest.generation} AND removed > {manifest.generation} AND embedded_sentences > 0"
            there, lacks = graph.count(), any(True for _ in graph.missing(seen))
            if lacks or there < manifest.sentences:
                what = f"it has {there:,} sentences, but not all of the {manifest.sentences:,} that it should have"
                yield Damage(_GRAPH, what)
        except errors.UndefinedTable:
            yield Damage(_GRAPH, "it is missing")
        finally:
            graph.close()


class _Rows:
    """The rows of an index's tables; those of other tables that belong to chunks are read with these.

    Args:
        session: The connection.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._beside: dict[str, dict[int, tuple[Any, ...]]] = {}
        self.words: dict[int, list[str]] = {}
        self.members: dict[int, set[str]] = {}

    def row(self, table: str, columns: str, number: int) -> tuple[Any, ...] | None:
        """Return a row; None if it is missing."""
        if number in self._beside.get(table, {}):
            return self._beside[table][number]
        rows = self._session.query(f"SELECT {columns} FROM {table} WHERE number = %s", (number,))
        return rows[0] if rows else None

    def rows(self, table: str, columns: str, where: str = "TRUE") -> Iterator[tuple[Any, ...]]:
        """Yield number and columns of every row that meets a condition, by number."""
        query = f"SELECT number, {columns} FROM {table} WHERE number > %s AND {where} ORDER BY number LIMIT {_PAGE}"
        after = -1
        while rows := self._session.query(query, (after,)):
            if table == "chunks":
                self.read_beside([row[0] for row in rows])
            yield from rows
            after = rows[-1][0]

    def read_beside(self, numbers: Sequence[int]) -> None:
        """Read what belongs to chunks."""
        for table, columns in _BESIDE.items():
            found = self._session.query(f"SELECT number, {columns} FROM {table} WHERE number = ANY (%s)", (numbers,))
            self._beside[table] = {row[0]: row[1:] for row in found}
        self.words = Terms((number, row[2]) for number, row in self._beside["contents"].items()).words()
        self.members = {}
        for document_id, number in self._session.query(
            "SELECT document_id, number FROM members WHERE number = ANY (%s)", (numbers,)
        ):
            self.members.setdefault(number, set()).add(document_id)


class _Check(RowCheck):
    """A check that remembers what has to be repaired.

    Args:
        session: The connection.
        manifest: The index's manifest.

    Attributes:
        wrong_texts: Chunks of which what is derived from the text is missing or wrong.
        wrong_members: Chunks whose documents are listed wrongly, and these documents.
        orphans: How many rows belong to no chunk.
        missing_words: How many words the vocabulary lacks.
    """

    def __init__(self, session: Session, manifest: PostgresManifest) -> None:
        self._session = session
        self._page = _Rows(session)
        self._dropped_documents: list[int] = []
        self._dropped_chunks: list[int] = []
        self._changed: list[tuple[int, int]] = []  # checksum and number
        self._pending: list[int] = []
        self._marked: list[tuple[DocumentRecord, bool]] = []
        self.wrong_texts: list[int] = []
        self.wrong_members: dict[int, Collection[str]] = {}
        super().__init__(self._page, manifest)
        self.orphans = sum(self._count(f"{table} WHERE {_OF_NO_CHUNK}") for table in (*_BESIDE, "members"))
        self.missing_words = self._count(f"({MISSING_WORDS}) AS missing")

    def repair(self) -> None:
        """Delete what cannot be used, and mark what is incomplete."""
        execute, each = self._session.execute, self._session.execute_each
        execute("DELETE FROM documents WHERE number = ANY (%s)", (self._dropped_documents,))
        execute("DELETE FROM chunks WHERE number = ANY (%s)", (self._dropped_chunks,))
        execute("DELETE FROM members WHERE number = ANY (%s)", (list(self.wrong_members),))
        members = [(i, number) for number, document_ids in self.wrong_members.items() for i in sorted(document_ids)]
        self._session.copy("members", "document_id, number", ["text", "int8"], members)
        each("UPDATE contents SET checksum = %s WHERE number = %s", self._changed)
        execute("UPDATE chunks SET pending = TRUE WHERE number = ANY (%s)", (self._pending,))
        for table in ("lowered", "terms"):
            execute(f"DELETE FROM {table} WHERE number = ANY (%s)", (self.wrong_texts,))
        for table in (*_BESIDE, "members"):
            execute(f"DELETE FROM {table} WHERE {_OF_NO_CHUNK}")
        execute(f"INSERT INTO vocabulary {MISSING_WORDS} ON CONFLICT DO NOTHING")
        for record, is_missing in self._marked:
            self._mark_incomplete(record, is_missing=is_missing)

    def _mark_incomplete(self, record: DocumentRecord, *, is_missing: bool) -> None:
        chunks = self.parts[record.id]
        if is_missing:
            row = (*document_row(record)[:4], "", chunks)
            self._session.execute(
                f"INSERT INTO documents ({DOCUMENT_COLUMNS}, checksum, added) VALUES (%s, %s, %s, %s, %s, %s, %s, 0)",
                (*row, checksum(row)),
            )
            return
        there = f"id = %s AND removed = {FOR_EVER}"
        ((*known, _, _),) = self._session.query(f"SELECT {DOCUMENT_COLUMNS} FROM documents WHERE {there}", (record.id,))
        self._session.execute(
            f"UPDATE documents SET fingerprint = '', chunks = %s, checksum = %s WHERE {there}",
            (chunks, checksum((*known, "", chunks)), record.id),
        )

    def _count(self, rows: str) -> int:
        return int(self._session.query(f"SELECT count(*) FROM {rows}")[0][0])

    def _drop_document(self, number: int) -> None:
        self._dropped_documents.append(number)

    def _drop_chunk(self, number: int) -> None:
        self._dropped_chunks.append(number)

    def _keep_chunk(self, chunk: CheckedChunk) -> bool:
        number, text = chunk.number, chunk.contents[-1]
        if not chunk.is_sound:  # these are taken last, when other pages have been read
            self._page.read_beside([number])
            self._changed.append((checksum([*chunk.entry, *chunk.contents]), number))
        if chunk.vectors is None:
            self._pending.append(number)
        if self._page.members.get(number, set()) != set(chunk.documents):
            self.wrong_members[number] = chunk.documents
        expected = ((fold(text).lower(),), (f" {' '.join(self._page.words.get(number, []))} ",))
        if expected != (self._page.row("lowered", "lowered", number), self._page.row("terms", "words", number)):
            self.wrong_texts.append(number)
        return True

    def _mark(self, record: DocumentRecord, *, is_missing: bool) -> None:
        self._marked.append((record, is_missing))
