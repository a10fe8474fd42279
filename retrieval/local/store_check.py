"""Reads the chunk store row by row, finds what is wrong with it, and makes a new one from everything readable.

Documents, chunks, contents, vectors and the copy of the manifest are original data; each row has a checksum.
Everything else in the file is derived from them, and rebuilt in a new file.
"""

from __future__ import annotations

import sqlite3
import zlib
from bisect import bisect
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from arag.errors import DamagedFileError, IndexFormatError
from arag.retrieval.backend import DocumentRecord
from arag.retrieval.local.chunk_store import FILE_NAME
from arag.retrieval.local.database import Database, error_code, is_damage, name_failures, new_database
from arag.retrieval.local.manifest import FILE_NAME as MANIFEST_FILE
from arag.retrieval.local.manifest import LocalManifest, manifest_json, parse_manifest
from arag.retrieval.local.schema import SCHEMA
from arag.retrieval.tables.check import CheckedChunk, RowCheck
from arag.retrieval.tables.rows import (
    FOR_EVER,
    checksum,
    document_row,
    vectors_blob,
)

_LAST = 2**63 - 1  # SQLite's highest row number


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


class StoreCheck(RowCheck):
    """A check of all rows of a chunk store.

    Args:
        rows: The rows.
        manifest: The index's manifest.
        new: A database to write everything usable to. Incomplete documents are marked there, so that the next
            ingestion writes them again; chunks without vectors are marked as pending.
    """

    def __init__(self, rows: StoreRows, manifest: LocalManifest, new: sqlite3.Connection | None = None) -> None:
        self._new = new
        if new is not None:
            new.create_function("checksum", -1, lambda *values: checksum(values))
        super().__init__(rows, manifest)

    def _keep_document(self, *row: Any) -> None:
        self._write("documents", *row)

    def _keep_chunk(self, chunk: CheckedChunk) -> bool:
        columns = (*chunk.entry, int(chunk.vectors is None), chunk.added, chunk.removed)
        if not self._write("chunks", chunk.number, *columns):  # another row has its id
            return False
        self._write("contents", chunk.number, *chunk.contents, checksum([*chunk.entry, *chunk.contents]))
        if chunk.vectors is not None:
            blob = vectors_blob(chunk.vectors)
            self._write("vectors", chunk.number, blob, zlib.crc32(blob))
        for document_id in chunk.documents:
            self._write("members", document_id, chunk.number)
        return True

    def _mark(self, record: DocumentRecord, *, is_missing: bool) -> None:
        if self._new is None:
            return
        if is_missing:
            self._write("documents", None, *document_row(record), 0, 0, FOR_EVER)
        self._new.execute(
            "UPDATE documents SET fingerprint = '', chunks = ?1, "
            "checksum = checksum(id, title, source, metadata, '', ?1) "
            f"WHERE id = ?2 AND removed = {FOR_EVER}",
            (self.parts[record.id], record.id),
        )

    def _write(self, table: str, *values: Any) -> bool:
        """Write a row to the new store, if there is one; return whether no other row is in its way."""
        if self._new is None:
            return True
        marks = ", ".join("?" * len(values))
        return self._new.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", values).rowcount > 0


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


@contextmanager
def _skip_damage() -> Iterator[None]:
    """Ignore errors that mean damage; raise others, such as that of a locked file."""
    try:
        yield
    except (sqlite3.DatabaseError, UnicodeError) as error:
        if not is_damage(error) and not isinstance(error, UnicodeError):
            raise
