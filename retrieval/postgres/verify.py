"""Finds damage in an index in PostgreSQL, and repairs what everything else is derived from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

from psycopg import errors

from arag.errors import DamageError
from arag.retrieval.backend import Damage, DocumentRecord
from arag.retrieval.postgres.connections import Pool, Session, name_failures
from arag.retrieval.postgres.manifest import NAME, PostgresManifest, read_manifest
from arag.retrieval.postgres.sentences import open_graph
from arag.retrieval.tables.check import CheckedChunk, RowCheck, list_ids
from arag.retrieval.tables.rows import (
    CONTENT_COLUMNS,
    DOCUMENT_COLUMNS,
    FOR_EVER,
    checksum,
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
                self._read_beside([row[0] for row in rows])
            yield from rows
            after = rows[-1][0]

    def _read_beside(self, numbers: Sequence[int]) -> None:
        for table, columns in _BESIDE.items():
            found = self._session.query(f"SELECT number, {columns} FROM {table} WHERE number = ANY (%s)", (numbers,))
            self._beside[table] = {row[0]: row[1:] for row in found}
        self.words = Terms((number, row[2]) for number, row in self._beside["contents"].items()).words()


class _Check(RowCheck):
    """A check that remembers what to keep.

    Args:
        session: The connection.
        manifest: The index's manifest.

    Attributes:
        wrong_texts: Chunks of which what is derived from the text is missing or wrong.
        wrong_members: Whether the lists of documents' chunks are wrong.
        orphans: How many rows belong to no chunk.
    """

    def __init__(self, session: Session, manifest: PostgresManifest) -> None:
        self._session = session
        self._page = _Rows(session)
        self._documents: list[int] = []
        self._chunks: list[int] = []
        self._ids: set[str] = set()  # of chunks that are not removed
        self._changed: list[tuple[int, int]] = []  # checksum and number
        self._pending: list[int] = []
        self._members: set[tuple[str, int]] = set()
        self._marked: list[tuple[DocumentRecord, bool]] = []
        self.wrong_texts: list[int] = []
        super().__init__(self._page, manifest)
        self.wrong_members = self._members != set(session.query("SELECT document_id, number FROM members"))
        self.orphans = sum(
            session.query(f"SELECT count(*) FROM {table} WHERE number NOT IN (SELECT number FROM chunks)")[0][0]
            for table in _BESIDE
        )

    def repair(self) -> None:
        """Delete what cannot be used, and mark what is incomplete."""
        seen = self._not_gone
        execute, each = self._session.execute, self._session.execute_each
        execute(f"DELETE FROM documents WHERE {seen} AND number <> ALL (%s)", (self._documents,))
        execute(f"DELETE FROM chunks WHERE {seen} AND number <> ALL (%s)", (self._chunks,))
        execute("DELETE FROM members")
        self._session.copy("members", "document_id, number", ["text", "int8"], sorted(self._members))
        each("UPDATE contents SET checksum = %s WHERE number = %s", self._changed)
        execute("UPDATE chunks SET pending = TRUE WHERE number = ANY (%s)", (self._pending,))
        for table in ("lowered", "terms"):
            execute(f"DELETE FROM {table} WHERE number = ANY (%s)", (self.wrong_texts,))
        for table in _BESIDE:
            execute(f"DELETE FROM {table} WHERE number NOT IN (SELECT number FROM chunks)")
        for record, is_missing in self._marked:
            row = (record.id, record.title, record.source, record.metadata, "", self.parts[record.id])
            if is_missing:
                execute(
                    f"INSERT INTO documents ({DOCUMENT_COLUMNS}, checksum, added) "
                    "VALUES (%s, %s, %s, %s, %s, %s, %s, 0)",
                    (*row, checksum(row)),
                )
            else:
                known = self._session.query(
                    f"SELECT {DOCUMENT_COLUMNS} FROM documents WHERE id = %s AND removed = {FOR_EVER}", (record.id,)
                )
                row = (*known[0][:4], "", self.parts[record.id])
                execute(
                    "UPDATE documents SET fingerprint = '', chunks = %s, checksum = %s "
                    f"WHERE id = %s AND removed = {FOR_EVER}",
                    (self.parts[record.id], checksum(row), record.id),
                )

    def _keep_document(self, *row: Any) -> None:
        self._documents.append(row[0])

    def _keep_chunk(self, chunk: CheckedChunk) -> bool:
        if chunk.removed == FOR_EVER:
            if chunk.entry[0] in self._ids:
                return False
            self._ids.add(chunk.entry[0])
        number, text = chunk.number, chunk.contents[-1]
        self._chunks.append(number)
        self._members |= {(document_id, number) for document_id in chunk.documents}
        if not chunk.is_sound:
            self._changed.append((checksum([*chunk.entry, *chunk.contents]), number))
        if chunk.vectors is None:
            self._pending.append(number)
        words = self._page.words if chunk.is_sound else Terms([(number, text)]).words()
        expected = ((fold(text).lower(),), (f" {' '.join(words.get(number, []))} ",))
        if expected != (self._page.row("lowered", "lowered", number), self._page.row("terms", "words", number)):
            self.wrong_texts.append(number)
        return True

    def _mark(self, record: DocumentRecord, *, is_missing: bool) -> None:
        self._marked.append((record, is_missing))
