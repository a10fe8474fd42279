"""Reads the chunk store row by row, finds what is wrong with it, and makes a new one from everything readable.

Documents, chunks, contents, vectors and the copy of the manifest are original data; each row has a checksum.
Everything else in the file is derived from them, and rebuilt in a new file.
"""

from __future__ import annotations

import sqlite3
import zlib
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from arag.errors import DamagedFileError, IndexFormatError
from arag.retrieval.backend import DocumentRecord, Vectors
from arag.retrieval.local.chunk_store import FILE_NAME
from arag.retrieval.local.database import Database, error_code, is_damage, name_failures, new_database
from arag.retrieval.local.manifest import FILE_NAME as MANIFEST_FILE
from arag.retrieval.local.manifest import LocalManifest, manifest_json, parse_manifest
from arag.retrieval.local.schema import SCHEMA
from arag.retrieval.tables.rows import (
    CONTENT_COLUMNS,
    DOCUMENT_COLUMNS,
    ENTRY_COLUMNS,
    FOR_EVER,
    checksum,
    document_row,
    parse_chunk,
    parse_document,
    parse_vectors,
    vectors_blob,
)
from arag.retrieval.types import Chunk

_LENGTH_TOLERANCE = 1e-3  # vectors have length one, within this, or zero
_MAX_NAMED = 10  # documents in one message
_LAST = 2**63 - 1  # SQLite's highest row number

_Parsed = TypeVar("_Parsed", Chunk, DocumentRecord)


class StoreRows:
    """The rows of a chunk store that may be damaged, or made by somebody else.

    Args:
        folder: The index's folder.

    Attributes:
        file: The chunk store's file.

    Raises:
        IndexFormatError: The file is missing, or none of an index's tables can be read in it.
    """

    def __init__(self, folder: Path) -> None:
        self.file = folder / FILE_NAME
        try:
            with name_failures(self.file):
                self._connection = Database(self.file, SCHEMA, salvage=True).connection
            self._check_tables()
        except (DamagedFileError, FileNotFoundError) as error:
            reason = getattr(error, "reason", "it is missing")
            raise IndexFormatError(
                f"the documents of the index in {folder} are lost ({FILE_NAME}: {reason}): "
                "ingest them again into another folder"
            ) from error

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def empty_log(self) -> None:
        """Move everything in the write-ahead log into the file itself."""
        self._connection.set_authorizer(None)
        (busy, _, _) = self._connection.execute("PRAGMA wal_checkpoint (TRUNCATE)").fetchone()
        if busy:
            raise sqlite3.OperationalError("database is locked")

    def is_empty(self) -> bool:
        """Return whether the store has neither documents nor chunks."""
        return not any(next(self.rows(table, "1"), None) for table in ("documents", "chunks", "contents"))

    def kept_manifest(self) -> LocalManifest | None:
        """Return the copy of the manifest; None if it is missing or cannot be read."""
        with _skip_damage(), suppress(IndexFormatError):
            row = self._connection.execute("SELECT value FROM state WHERE name = ?", (MANIFEST_FILE,)).fetchone()
            return parse_manifest(str(row[0]).encode().decode(), self.file) if row else None
        return None

    def row(self, table: str, columns: str, number: int) -> tuple[Any, ...] | None:
        """Return a row; None if it is missing or cannot be read."""
        with _skip_damage():
            found = self._connection.execute(f"SELECT {columns} FROM {table} WHERE number = ?", (number,))
            return found.fetchone()  # type: ignore[no-any-return]
        return None

    def rows(self, table: str, columns: str, where: str = "TRUE") -> Iterator[tuple[Any, ...]]:
        """Yield number and columns of every readable row that meets a condition, by number."""
        query = f"SELECT number, {columns} FROM {table} NOT INDEXED WHERE number > ? AND {where} ORDER BY number"
        after = -1
        while after < _LAST:
            with _skip_damage():
                for row in self._connection.execute(query, (after,)):
                    if row[0] <= after:
                        break  # the pages form a cycle
                    after = row[0]
                    yield row
                else:
                    return
            step = 1
            while after + step < _LAST and not self._is_readable(query, after + step):
                step *= 2
            # Nothing seems readable within half a step; something is after a whole one.
            between = range(after + step // 2 + 1, min(after + step, _LAST))
            after = between.start + bisect(between, False, key=lambda number: self._is_readable(query, number))

    def _is_readable(self, query: str, after: int) -> bool:
        with _skip_damage():
            row = self._connection.execute(f"{query} LIMIT 1", (after,)).fetchone()
            return row is None or row[0] > after
        return False

    def _check_tables(self) -> None:
        for table in ("documents", "chunks", "contents"):
            with _skip_damage():
                if self._connection.execute(f"PRAGMA table_info ({table})").fetchone():
                    return
        self.close()
        raise DamagedFileError(self.file, "it has none of an index's tables")


class StoreCheck:
    """A check of all rows of a chunk store.

    Args:
        rows: The rows.
        manifest: The index's manifest.
        new: A database to write everything usable to. Incomplete documents are marked there, so that the next
            ingestion writes them again; chunks without vectors are marked as pending.

    Attributes:
        faults: What is wrong, in words.
        to_ingest_again: The documents that an earlier repair left incomplete.
        unnamed: How many documents are lost together with their ids.
        parts: How many chunks hold a part of each document.
        counts: How many documents, chunks and sentences readers see.
    """

    def __init__(self, rows: StoreRows, manifest: LocalManifest, new: sqlite3.Connection | None = None) -> None:
        self.to_ingest_again: list[str] = []
        self.parts: Counter[str] = Counter()
        self.counts = Counter(documents=0, chunks=0, sentences=0)
        self._rows = rows
        self._generation = manifest.generation
        self._not_gone = f"removed > {manifest.generation}"
        self._dimension = manifest.dimension
        self._new = new
        self._found: Counter[str] = Counter()  # what is wrong, and how often
        self._entries: dict[str, int] = {}  # the documents, and how many chunks they should have
        self._changed_entries: dict[str, DocumentRecord] = {}
        self._lost: set[str] = set()  # documents that have lost something
        self._read_documents()
        self._read_chunks()
        self._lost |= {i for i, chunks in self._entries.items() if chunks != self.parts[i]}
        nameless = self.parts.keys() - self._entries.keys()
        self.unnamed = max(0, manifest.documents - self.counts["documents"] - len(nameless))
        self.faults = [f"{count:,} {what}" for what, count in self._found.items()]
        if self._lost:
            self.faults.append(f"incomplete or changed documents ({len(self._lost):,}): {list_ids(self._lost)}")
        if nameless:
            self.faults.append(f"documents without an entry ({len(nameless):,}): {list_ids(nameless)}")
        if new is not None:
            new.create_function("checksum", -1, lambda *values: checksum(values))
            for document_id in self._lost | nameless:
                self._mark(new, document_id)

    def _read_documents(self) -> None:
        columns = f"{DOCUMENT_COLUMNS}, checksum, added, removed"
        for number, *row, told, added, removed in self._rows.rows("documents", columns, self._not_gone):
            record, is_sound = _parse(parse_document, row, told)
            if record is None or not is_sound or not self._is_of_now(added, removed):
                self._found["document entries have changed since they were written"] += 1
                if record is not None:
                    self._changed_entries[record.id] = record
                continue
            self.counts["documents"] += added <= self._generation
            self._write("documents", number, *row, told, added, removed)
            if removed == FOR_EVER:
                self._entries[record.id] = record.chunks
                if not record.fingerprint:
                    self.to_ingest_again.append(record.id)

    def _read_chunks(self) -> None:
        changed = []
        for row in self._rows.rows("chunks", f"{ENTRY_COLUMNS}, pending, added, removed", self._not_gone):
            number, *entry, _, added, removed = row
            *contents, told = self._rows.row("contents", f"{CONTENT_COLUMNS}, checksum", number) or (None,) * 4
            chunk, is_sound = _parse(parse_chunk, [*entry, *contents], told)
            if chunk is None or not self._is_of_now(added, removed):
                self._found["chunks cannot be read"] += 1
            elif is_sound:
                self._take(row, contents, chunk)
            else:
                changed.append((row, contents, chunk))
        for row, contents, chunk in changed:  # last: one may have the id of an intact one
            self._found["chunks have changed since they were written"] += 1
            documents = {section.document_id for section in chunk.sections}
            if documents <= self._entries.keys():
                self._lost |= documents
                self._take(row, contents, chunk)

    def _take(self, row: tuple[Any, ...], contents: Sequence[Any], chunk: Chunk) -> None:
        """Count a chunk, and write it to the new store, if there is one."""
        number, *entry, pending, added, removed = row
        vectors = self._vectors(number, entry[-1])
        if added <= self._generation:
            self.counts.update(chunks=1, sentences=entry[-1])
            if pending or vectors is None:
                self._found["chunks have no vectors yet" if pending else "chunks have missing or damaged vectors"] += 1
        if not self._write("chunks", number, *entry, int(vectors is None), added, removed):  # another row has its id
            return
        self._write("contents", number, *contents, checksum([*entry, *contents]))
        if vectors is not None:
            blob = vectors_blob(vectors)
            self._write("vectors", number, blob, zlib.crc32(blob))
        documents = {section.document_id for section in chunk.sections}
        for document_id in documents:
            self._write("members", document_id, number)
        if removed == FOR_EVER:
            self.parts.update(documents)

    def _vectors(self, number: int, sentences: int) -> Vectors | None:
        """Return a chunk's vectors; None if they are missing or not what was written."""
        blob, told = self._rows.row("vectors", "vectors, checksum", number) or (None, None)
        if not isinstance(blob, bytes) or zlib.crc32(blob) != told:
            return None
        try:
            vectors = parse_vectors(blob, sentences)
        except ValueError:
            return None
        lengths = np.linalg.norm(vectors, axis=1)
        # A vector that is not finite is neither.
        is_sound = np.isclose(lengths, 1, rtol=0, atol=_LENGTH_TOLERANCE) | (lengths == 0)
        return vectors if is_sound.all() and vectors.shape[1] == (self._dimension if sentences else 0) else None

    def _write(self, table: str, *values: Any) -> bool:
        """Write a row to the new store, if there is one; return whether no other row is in its way."""
        if self._new is None:
            return True
        marks = ", ".join("?" * len(values))
        return self._new.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", values).rowcount > 0

    def _mark(self, new: sqlite3.Connection, document_id: str) -> None:
        """Mark a document in the new store, so that it is ingested again; one that has no entry gets one."""
        if document_id not in self._entries:
            record = self._changed_entries.get(document_id) or DocumentRecord(document_id, "", "", "{}", "", 0)
            self._write("documents", None, *document_row(record), 0, 0, FOR_EVER)
        new.execute(
            "UPDATE documents SET fingerprint = '', chunks = ?1, "
            "checksum = checksum(id, title, source, metadata, '', ?1) "
            f"WHERE id = ?2 AND removed = {FOR_EVER}",
            (self.parts[document_id], document_id),
        )

    def _is_of_now(self, added: Any, removed: Any) -> bool:
        """Return whether a row may have these generations: the one that readers see, or the one being written."""
        next_one = self._generation + 1
        return isinstance(added, int) and 0 <= added <= next_one and removed in (next_one, FOR_EVER)


def find_table_faults(file: Path, parts: Counter[str], *, may_write: bool) -> Iterator[str]:
    """Yield what is wrong with a chunk store's pages, its indexes and its derived tables.

    Args:
        file: The chunk store's file.
        parts: How many chunks hold a part of each document.
        may_write: Whether the table of words can be checked, which needs write access.

    Raises:
        DamagedFileError: The file cannot be read to the end, or has tables that are not ours.
        StorageError: It cannot be opened or read.
    """
    with name_failures(file), closing(Database(file, SCHEMA).connection) as connection:
        yield from (str(fault) for (fault,) in connection.execute("PRAGMA integrity_check (5)") if fault != "ok")
        members = connection.execute(
            "SELECT members.document_id, count(*) FROM members JOIN chunks ON chunks.number = members.number "
            f"WHERE removed = {FOR_EVER} GROUP BY members.document_id"
        )
        if dict(members.fetchall()) != parts:
            yield "the lists of each document's chunks are wrong"
        connection.execute("SELECT term FROM vocabulary LIMIT 1").fetchone()
        try:
            if may_write:
                connection.execute("INSERT INTO terms (terms, rank) VALUES ('integrity-check', 1)")
        except sqlite3.DatabaseError as error:
            if not is_damage(error) and error_code(error) != sqlite3.SQLITE_READONLY:  # the file's header says so
                raise
            yield f"the word table does not match the texts ({error})"


def renew_store(folder: Path, manifest: LocalManifest, *, salvage: bool = False) -> int:
    """Replace an index's chunk store with a new one, without what was removed.

    Args:
        folder: The index's folder, whose lock the caller holds.
        manifest: The index's manifest.
        salvage: Leave out what cannot be read.

    Returns:
        How many documents are lost together with their ids.

    Raises:
        DamagedFileError: Nothing can be read, or something is damaged and `salvage` is false.
    """
    file = folder / FILE_NAME
    with new_database(file, SCHEMA) as new, closing(StoreRows(folder)) as rows:
        check = StoreCheck(rows, manifest, new)
        if check.faults and not salvage:
            raise DamagedFileError(file, check.faults[0])
        new.execute("INSERT INTO state VALUES (?, ?)", (MANIFEST_FILE, manifest_json(manifest)))
        new.execute("INSERT INTO terms (terms) VALUES ('rebuild')")
        rows.empty_log()
    return check.unnamed


def list_ids(document_ids: Collection[str]) -> str:
    """Return the first ids of some documents."""
    names = ", ".join(map(repr, sorted(document_ids)[:_MAX_NAMED]))
    more = len(document_ids) - _MAX_NAMED
    return f"{names} and {more:,} more" if more > 0 else names


def _parse(parse: Callable[[Sequence[Any]], _Parsed], row: Sequence[Any], told: Any) -> tuple[_Parsed | None, bool]:
    """Return the parsed row, None if it cannot be read, and whether it is what was written."""
    try:
        return parse(row), checksum(row) == told
    except ValueError:
        return None, False


@contextmanager
def _skip_damage() -> Iterator[None]:
    """Ignore errors that mean damage; raise others, such as that of a locked file."""
    try:
        yield
    except (sqlite3.DatabaseError, UnicodeError) as error:
        if not is_damage(error) and not isinstance(error, UnicodeError):
            raise
