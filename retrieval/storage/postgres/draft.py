"""The next snapshot of an index in PostgreSQL, which any number of processes write to at once.

A document is stored in one transaction with its chunks and vectors, for the next snapshot, whichever process
publishes it. So a writer that was killed leaves whole documents or nothing, and the next one publishes them.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, replace
from typing import Any

from psycopg import errors

from arag.errors import InputError
from arag.retrieval.storage.contract import Draft
from arag.retrieval.storage.postgres.connection import Session
from arag.retrieval.storage.postgres.schema import (
    FOR_EVER,
    GENERATION,
    RUN,
    TABLES,
    Tables,
    document_key,
    lock,
    make_indexes,
    pack,
    read_state,
)
from arag.retrieval.storage.postgres.words import update_words
from arag.retrieval.storage.records import EmbeddedDocument, Settings, Vectors
from arag.retrieval.storage.rows import CHUNK_COLUMNS, DOCUMENT_COLUMNS, MAX_WORD_CHARACTERS, chunk_row, format_places
from arag.retrieval.types import Chunk
from arag.text.normalise import plain, searchable, words

_MAX_ID_BYTES = 2_000  # of a chunk's or a document's id: an entry of a server's index has at most 2,704
_TEXT_COLUMNS = {"id", "title", "source", "metadata", "fingerprint", "document_id"}


class PostgresDraft(Tables, Draft):
    """The next snapshot of an index in PostgreSQL.

    It has a session of its own. The server frees its claims when the session ends, for whatever reason.
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session, read_state(session), f"removed = {FOR_EVER}")
        self._session = session
        self._claimed: set[str] = set()

    def claim(self, document_ids: Collection[str]) -> set[str]:
        asked = sorted(set(document_ids) - self._claimed)
        rows = self.query(
            f"SELECT id FROM unnest(?::text[]) AS asked (id) WHERE pg_try_advisory_lock({document_key('id')})",
            asked,
        )
        self._claimed |= {document_id for (document_id,) in rows}
        return self._claimed & set(document_ids)

    def put(self, documents: Sequence[EmbeddedDocument]) -> dict[str, str]:
        try:
            return super().put(documents)
        except errors.UniqueViolation:  # another writer has stored a chunk's id meanwhile
            return super().put(documents)

    def _store(self, documents: Sequence[EmbeddedDocument]) -> None:
        for document in documents:
            _check_ids(document)
        document_ids = [document.record.id for document in documents]
        document_rows = [astuple(document.record) for document in documents]
        new_words: set[str] = set()
        for document in documents:
            for chunk in document.chunks:
                new_words.update(words(chunk.text))
        with self._session.transaction():
            chunk_rows = self._insert_texts(documents)  # takes long, so it is done before other writers must wait
            with self._next_generation() as generation:
                self._mark_removed(document_ids, generation)
                self._insert("documents", DOCUMENT_COLUMNS, document_rows, generation)
                self._insert("chunks", f"number, {CHUNK_COLUMNS}", chunk_rows, generation)
                self._session.execute(
                    "INSERT INTO words SELECT * FROM unnest(?::text[], ?::text[]) ON CONFLICT DO NOTHING",
                    *columns(word_rows(new_words), 2),
                )
        self._free(document_ids)

    def _update_sources(self, sources: Mapping[str, str]) -> None:
        self._session.execute(
            "UPDATE documents SET source = new.source FROM unnest(?::text[], ?::text[]) AS new (id, source) "
            f"WHERE documents.id = new.id AND removed = {FOR_EVER}",
            list(sources),
            list(sources.values()),
        )

    def remove(self, document_ids: Collection[str]) -> None:
        with self._session.transaction(), self._next_generation() as generation:
            self._mark_removed(document_ids, generation)
        self._free(document_ids)

    def publish(self, settings: Settings) -> Settings:
        """Let readers see the changes of all writers; see `Draft.publish`."""
        make_indexes(self._session, self.counted(settings))
        update_words(self._session, self)
        with self._session.transaction(), self._next_generation() as generation:
            self.settings = read_state(self._session).settings
            ((is_first, has_changed),) = self.query(
                "SELECT token = '', EXISTS (SELECT FROM documents WHERE added = ? OR removed = ?) FROM state",
                generation,
                generation,
            )
            published = replace(self.counted(settings), token=self.settings.token)
            if is_first or has_changed or published != self.settings:
                published = replace(published, token=secrets.token_hex(16))
                update = "UPDATE state SET generation = ?, token = ?, settings = ?"
                self._session.execute(update, generation, published.token, published.to_json())
        self.settings = published
        if is_first:
            self._session.execute(f"ANALYZE {', '.join(TABLES)}")
        self._delete_gone()
        return published

    @contextmanager
    def _next_generation(self) -> Iterator[int]:
        """Yield the next generation. Other writers change nothing until the transaction around this ends."""
        lock(self._session, "snapshot")
        ((generation,),) = self.query(GENERATION)
        yield generation + 1

    def _insert_texts(self, documents: Sequence[EmbeddedDocument]) -> list[tuple[Any, ...]]:
        """Insert the wide rows of documents' chunks; return the narrow ones."""
        chunks: list[Chunk] = []
        vectors: list[Vectors] = []
        for document in documents:
            chunks += document.chunks
            vectors += document.vectors
        next_number = "nextval(pg_get_serial_sequence('chunks', 'number'))"
        numbered = self.query(f"SELECT {next_number} FROM generate_series(1, ?)", len(chunks))
        contents: list[tuple[int, str, str]] = []
        lowered: list[tuple[int, str]] = []
        sentences: list[tuple[int, int, bytes]] = []
        rows: list[tuple[Any, ...]] = []
        for (row_id,), chunk, chunk_vectors in zip(numbered, chunks, vectors, strict=True):
            contents.append((row_id, chunk.text, format_places(chunk.sentences)))
            lowered.append((row_id, searchable(chunk.text)))
            for position, vector in zip(chunk.embedded_positions(), pack(chunk_vectors), strict=True):
                sentences.append((row_id, position, vector))
            rows.append((row_id, *chunk_row(chunk)))
        self._session.copy("contents (number, text, places)", ["int8", "text", "text"], contents)
        self._session.copy("lowered (number, lowered)", ["int8", "text"], lowered)
        self._session.copy("sentences (number, position, embedding)", ["int8", "int4", "bytea"], sentences)
        return rows

    def _insert(self, table: str, names: str, rows: Sequence[Sequence[Any]], generation: int) -> None:
        """Insert rows in one statement, so that a writer that hangs in between keeps no other writer waiting."""
        arrays: list[str] = []
        for name in names.split(", "):
            column_type = "text" if name in _TEXT_COLUMNS else "bigint"
            arrays.append(f"?::{column_type}[]")
        self._session.execute(
            f"INSERT INTO {table} ({names}, added) "
            f"OVERRIDING SYSTEM VALUE SELECT *, ? FROM unnest({', '.join(arrays)})",
            generation,
            *columns(rows, len(arrays)),
        )

    def _mark_removed(self, document_ids: Collection[str], generation: int) -> None:
        for table, column in (("documents", "id"), ("chunks", "document_id")):
            self._session.execute(
                f"UPDATE {table} SET removed = ? WHERE {column} = ANY (?) AND removed = {FOR_EVER}",
                generation,
                list(document_ids),
            )

    def _delete_gone(self) -> None:
        """Delete rows that neither the last snapshot nor the one before it has."""
        ((generation,),) = self.query(GENERATION)
        self._session.execute("DELETE FROM documents WHERE removed < ?", generation)
        self._session.execute("DELETE FROM word_segments WHERE removed < ?", generation)
        with self._session.transaction():
            # Rows that another writer is deleting are skipped.
            gone = "SELECT number FROM chunks WHERE removed < ? FOR UPDATE SKIP LOCKED"
            rows = self.query(f"DELETE FROM chunks WHERE number IN ({gone}) RETURNING number", generation)
            row_ids = [row_id for (row_id,) in rows]
            for table in ("contents", "lowered", "sentences"):
                self._session.execute(f"DELETE FROM {table} WHERE number = ANY (?)", row_ids)

    def _free(self, document_ids: Iterable[str]) -> None:
        """Give up claims of documents that the server has now."""
        freed = sorted(self._claimed.intersection(document_ids))
        self._claimed.difference_update(freed)
        self.query(f"SELECT pg_advisory_unlock({document_key('id')}) FROM unnest(?::text[]) AS freed (id)", freed)


def word_rows(distinct: Iterable[str]) -> list[tuple[str, str]]:
    """Return the rows of table `words` for words, in order.

    The runs of ASCII's letters and digits in very long words are listed, too, without a plain form.
    """
    rows: set[tuple[str, str]] = set()
    for word in distinct:
        if len(word) <= MAX_WORD_CHARACTERS:
            rows.add((word, plain(word)))
            continue
        for run in RUN.findall(word):
            if len(run) <= MAX_WORD_CHARACTERS:
                rows.add((run, ""))
    return sorted(rows)


def columns(rows: Sequence[Sequence[Any]], count: int) -> list[list[Any]]:
    """Transpose rows to `count` columns, which may be empty."""
    return [[row[column] for row in rows] for column in range(count)]


def _check_ids(document: EmbeddedDocument) -> None:
    """Refuse ids that are too long for the server's indexes."""
    for record_id in (document.record.id, *(chunk.id for chunk in document.chunks)):
        if len(record_id.encode()) > _MAX_ID_BYTES:
            raise InputError(f"the id {record_id[:100]!r}... has more than {_MAX_ID_BYTES:,} bytes")
