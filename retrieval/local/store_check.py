"""The chunk store read row by row: what is wrong with it, and a new one made of all that can be read.

Documents, chunks, contents, vectors and the copy of the manifest are what was written. Everything else in the file is
made from them, and made again in a new file.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from arag.errors import DamagedFileError, IndexFormatError, StorageError
from arag.retrieval.backend import DocumentRecord
from arag.retrieval.local.chunk_rows import (
    CONTENT_COLUMNS,
    DOCUMENT_COLUMNS,
    ENTRY_COLUMNS,
    FOR_EVER,
    SCHEMA,
    checksum,
    document_row,
    parse_chunk,
    parse_document,
)
from arag.retrieval.local.chunk_store import FILE_NAME, ChunkStore
from arag.retrieval.local.database import Database, is_damage, named_failures, new_database
from arag.retrieval.local.manifest import FILE_NAME as MANIFEST_FILE
from arag.retrieval.local.manifest import LocalManifest

_LENGTH = 1e-3  # vectors are of length one but for this, or zero
_MOST_NAMED = 10  # documents of one damage
_LAST = 2**63 - 1  # SQLite's highest row number
_FAILURES = (sqlite3.DatabaseError, UnicodeDecodeError)
_OLD_DOCUMENT_COLUMNS = "id, title, source, metadata, fingerprint, 0"  # of format version 3


class CheckedStore(ChunkStore):
    """A chunk store whose derived tables can be checked."""

    def table_faults(self, *, may_write: bool = True) -> Iterator[str]:
        """Yield what is wrong with the file's pages, its indexes and the table of words."""
        for (fault,) in self._query("PRAGMA integrity_check (5)"):
            if fault != "ok":
                yield str(fault)
        self._query("SELECT term FROM vocabulary LIMIT 1")
        try:
            if may_write:  # which this question takes
                self._query("INSERT INTO terms (terms, rank) VALUES ('integrity-check', 1)")
        except DamagedFileError as error:
            yield f"the table of words does not fit the texts ({error.reason})"
        except StorageError as error:
            yield str(error)


class StoreRows:
    """The rows of a chunk store of this format version or the one before, also of a damaged one.

    Args:
        folder: The index's folder.

    Attributes:
        file: The chunk store's file.
        is_old: Whether it is of format version 3.

    Raises:
        IndexFormatError: The file is missing.
        DamagedFileError: It holds no table that can be read.
    """

    def __init__(self, folder: Path) -> None:
        self.file = folder / FILE_NAME
        if not self.file.exists():
            raise IndexFormatError(f"{self.file} is missing")
        with named_failures(self.file):
            self._connection = Database(self.file, SCHEMA, salvage=True).connection
            columns = {table: self._columns(table) for table in ("documents", "chunks", "contents")}
        if not any(columns.values()):
            self.close()
            raise DamagedFileError(self.file, "it holds no table of an index")
        self.is_old = bool(columns["documents"]) and "checksum" not in columns["documents"]

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def empty_log(self) -> None:
        """Write all that stands in the write-ahead log into the file itself."""
        self._connection.set_authorizer(None)
        (busy, _, _) = self._connection.execute("PRAGMA wal_checkpoint (TRUNCATE)").fetchone()
        if busy:
            raise sqlite3.OperationalError("database is locked")

    def is_empty(self) -> bool:
        """Tell whether there is neither a document nor a chunk."""
        return not any(next(self.rows(table, "1"), None) for table in ("documents", "chunks", "contents"))

    def kept_manifest(self) -> str | None:
        """Return the copy of the manifest, or None."""
        try:
            row = self._connection.execute("SELECT value FROM state WHERE name = ?", (MANIFEST_FILE,)).fetchone()
            return str(row[0]).encode().decode() if row else None
        except (*_FAILURES, UnicodeEncodeError) as error:
            if isinstance(error, sqlite3.DatabaseError):
                _raise_unless_damage(error)
            return None

    def row(self, table: str, columns: str, number: int) -> tuple[Any, ...] | None:
        """Return a row, or None where it is not there or cannot be read."""
        sql = f"SELECT {columns} FROM {table} WHERE number = ?"
        try:
            return self._connection.execute(sql, (number,)).fetchone()  # type: ignore[no-any-return]
        except _FAILURES as error:
            _raise_unless_damage(error)
            return None

    def rows(self, table: str, columns: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows' numbers and columns, by number, but for those that cannot be read."""
        after = -1
        while after < _LAST:
            try:
                for row in self._connection.execute(_select(table, columns), (after,)):
                    if row[0] <= after:
                        break  # the pages lead back to themselves
                    after = row[0]
                    yield row
                else:
                    return
            except _FAILURES as error:
                _raise_unless_damage(error)
            after = self._next_readable(table, columns, after)

    def members(self) -> set[tuple[Any, ...]] | None:
        """Return all rows of `members`, or None where they cannot be read."""
        try:
            return set(self._connection.execute("SELECT document_id, number FROM members"))
        except _FAILURES as error:
            _raise_unless_damage(error)
            return None

    def _next_readable(self, table: str, columns: str, after: int) -> int:
        """Return the lowest number, as far as can be told, behind which the next row can be read."""
        step = 1
        while after + step < _LAST and not self._is_readable(table, columns, after + step):
            step *= 2
        low, high = after + step // 2, min(after + step, _LAST)
        while high - low > 1:
            middle = (low + high) // 2
            if self._is_readable(table, columns, middle):
                high = middle
            else:
                low = middle
        return high

    def _is_readable(self, table: str, columns: str, after: int) -> bool:
        try:
            row = self._connection.execute(f"{_select(table, columns)} LIMIT 1", (after,)).fetchone()
        except _FAILURES as error:
            _raise_unless_damage(error)
            return False
        return row is None or row[0] > after

    def _columns(self, table: str) -> set[str]:
        try:
            return {row[1] for row in self._connection.execute(f"PRAGMA table_info ({table})")}
        except _FAILURES as error:
            _raise_unless_damage(error)
            return set()


class StoreCheck:
    """A look at all rows of a chunk store.

    Args:
        rows: The rows.
        manifest: The index's manifest.
        new: A database to write all that can be read to, as it was or, where it is damaged, as it can be used.

    Attributes:
        faults: What is wrong, in words.
        to_ingest_again: The documents of which an earlier repair has lost a part.
        unnamed: How many documents are lost whose ids are lost, too.
    """

    def __init__(self, rows: StoreRows, manifest: LocalManifest, new: sqlite3.Connection | None = None) -> None:
        self.to_ingest_again: list[str] = []
        self._rows = rows
        self._generation = manifest.generation
        self._dimension = manifest.dimension
        self._new = new
        self._columns = _OLD_DOCUMENT_COLUMNS if rows.is_old else DOCUMENT_COLUMNS
        self._entries: dict[str, int] = {}  # the documents whose entries are sound, and how many chunks they have
        self._changed_entries: list[tuple[Any, ...]] = []
        self._parts: Counter[str] = Counter()  # how many chunks were found of each document
        self._members: set[tuple[str, int]] = set()
        self._gone: set[int] = set()
        self._lost: set[str] = set()  # the ids of documents of which something is lost
        self._documents = self._unreadable = self._changed = self._waiting = self._spoilt = 0
        self._look_at_entries()
        self._look_at_chunks()
        self._lost |= self._incomplete()
        self._nameless = [i for i in self._parts if i not in self._entries]
        self.faults = list(self._told())
        if new is not None:
            self._write_documents(new)
        self.unnamed = max(0, manifest.documents - self._documents - len(self._nameless))

    def _incomplete(self) -> set[str]:
        """Return the documents of which not all chunks were found."""
        if not self._rows.is_old:
            return {i for i, chunks in self._entries.items() if chunks != self._parts[i]}
        missing = {i for i, number in (self._rows.members() or set()) - self._members if number not in self._gone}
        return self._entries.keys() & (missing | (self._entries.keys() - self._parts.keys()))

    def _look_at_entries(self) -> None:
        for _, *row, told, added, removed in self._document_rows():
            if self._is_gone(removed):
                continue
            record = self._parsed(row, told, added, removed)
            if record is None:
                self._changed_entries.append(tuple(row))
                continue
            self._documents += added <= self._generation
            if removed == FOR_EVER:
                self._entries[record.id] = record.chunks
                if not record.fingerprint:
                    self.to_ingest_again.append(record.id)

    def _look_at_chunks(self) -> None:
        columns = f"{ENTRY_COLUMNS}, pending, added, removed"
        # First the sound ones: one that was changed may have the id of another.
        changed = [row for row in self._rows.rows("chunks", columns) if not self._take(row)]
        for row in changed:
            self._take(row, changed=True)

    def _take(self, row: tuple[Any, ...], *, changed: bool = False) -> bool:
        """Take a chunk as it is, or tell that it is not as it was written; then take it if it can be used at all."""
        number, *entry, pending, added, removed = row
        if self._is_gone(removed):
            self._gone.add(number)
            return True
        *contents, told = self._rows.row("contents", f"{CONTENT_COLUMNS}, checksum", number) or (None,) * 4
        try:
            chunk = parse_chunk([*entry, *contents])
            found = _old_checksum(*contents) if self._rows.is_old else checksum([*entry, *contents])
        except ValueError:
            chunk, found = None, None
        documents = {section.document_id for section in chunk.sections} if chunk else set()
        if chunk is None or found != told or not self._is_of_now(added, removed):
            if not changed:
                return False
            if chunk is None or not self._is_of_now(added, removed) or not documents <= self._entries.keys():
                self._unreadable += 1
                return True
            self._changed += 1
            self._lost |= documents
        vectors = self._vectors(number, entry[-1])
        if added <= self._generation:
            self._spoilt += vectors is None and pending == 0
            self._waiting += pending != 0
        members = {(document_id, number) for document_id in documents}
        values = (number, entry, contents, vectors, (added, removed))
        if self._new is not None and not _write(self._new, *values, members):
            return True  # its documents lack a chunk, which is noticed
        if removed == FOR_EVER:
            self._parts.update(documents)
        self._members |= members
        return True

    def _vectors(self, number: int, sentences: int) -> bytes | None:
        """Return the bytes of a chunk's vectors; None where they are not there or not those that were written."""
        blob, told = self._rows.row("vectors", "vectors, checksum", number) or (None, None)
        if not isinstance(blob, bytes) or zlib.crc32(blob) != told or len(blob) != 4 * self._dimension * sentences:
            return None
        lengths = np.linalg.norm(np.frombuffer(blob, np.float32).reshape(sentences, self._dimension), axis=1)
        # What is not finite is neither.
        return blob if (np.isclose(lengths, 1, rtol=0, atol=_LENGTH) | (lengths == 0)).all() else None

    def _told(self) -> Iterator[str]:
        for count, what in (
            (self._unreadable, "chunks cannot be read"),
            (self._changed, "chunks are not as they were written"),
            (len(self._changed_entries), "documents' entries are not as they were written"),
            (self._spoilt, "chunks have no vectors, or damaged ones"),
            (self._waiting, "chunks wait for vectors"),
        ):
            if count:
                yield f"{count:,} {what}"
        if self._lost:
            yield f"{len(self._lost):,} documents are not complete, or changed: {named(self._lost)}"
        if self._nameless:
            yield f"{len(self._nameless):,} documents have no entry: {named(self._nameless)}"
        if self._new is None and not self._rows.is_old:
            held = self._rows.members()
            if held is None or not self._members <= held or any(n not in self._gone for _, n in held - self._members):
                yield "the lists of the chunks that hold a document's parts are wrong"

    def _write_documents(self, new: sqlite3.Connection) -> None:
        for _, *row, told, added, removed in self._document_rows():
            record = None if self._is_gone(removed) else self._parsed(row, told, added, removed)
            if record is not None:
                live = removed == FOR_EVER
                fingerprint = "" if live and record.id in self._lost else record.fingerprint
                record = replace(record, fingerprint=fingerprint, chunks=self._parts[record.id] if live else 0)
                _insert(new, record, added, removed)
        kept = {str(row[0]): row for row in self._changed_entries}
        for document_id in self._nameless:
            try:
                record = parse_document(kept[document_id])
                checksum(kept[document_id])  # fails if damage left bytes that are not UTF-8
            except (KeyError, ValueError):
                record = DocumentRecord(document_id, "", "", "{}", "", 0)
            record = replace(record, fingerprint="", chunks=self._parts[document_id])
            _insert(new, record, 0, FOR_EVER)
        kept_manifest = self._rows.kept_manifest()
        if kept_manifest is not None:
            new.execute("INSERT INTO state VALUES (?, ?)", (MANIFEST_FILE, kept_manifest))
        new.execute("INSERT INTO terms (terms) VALUES ('rebuild')")

    def _document_rows(self) -> Iterator[tuple[Any, ...]]:
        told = "0" if self._rows.is_old else "checksum"
        return self._rows.rows("documents", f"{self._columns}, {told}, added, removed")

    def _parsed(self, row: list[Any], told: Any, added: Any, removed: Any) -> DocumentRecord | None:
        try:
            record = parse_document(row)
            is_sound = self._rows.is_old or checksum(row) == told
        except ValueError:
            return None
        return record if is_sound and self._is_of_now(added, removed) else None

    def _is_gone(self, removed: Any) -> bool:
        return isinstance(removed, int) and removed <= self._generation

    def _is_of_now(self, added: Any, removed: Any) -> bool:
        """Tell whether a row may have these generations: the one that readers see, or the one being written."""
        next_one = self._generation + 1
        return isinstance(added, int) and 0 <= added <= next_one and removed in (next_one, FOR_EVER)


def renew_store(folder: Path, manifest: LocalManifest, *, salvage: bool = False) -> int:
    """Put a new chunk store in the place of an index's: of this format version, without what was removed.

    Args:
        folder: The index's folder, whose lock the caller holds.
        manifest: The index's manifest.
        salvage: Leave out what cannot be read. Documents of which something is lost are marked to be ingested again,
            chunks without vectors wait for new ones.

    Returns:
        How many documents are lost whose ids are lost, too.

    Raises:
        DamagedFileError: Nothing can be read, or something is damaged and is not to be left out.
    """
    file = folder / FILE_NAME
    with new_database(file, SCHEMA) as new, closing(StoreRows(folder)) as rows:
        check = StoreCheck(rows, manifest, new)
        if check.faults and not salvage:
            raise DamagedFileError(file, check.faults[0])
        rows.empty_log()
    return check.unnamed


def upgrade_store(folder: Path, manifest: LocalManifest) -> None:
    """Bring a chunk store to this format version, unless a run that was killed has already done so.

    Raises:
        DamagedFileError: Something in it is damaged.
    """
    with closing(StoreRows(folder)) as rows:
        is_old = rows.is_old
    if is_old:
        renew_store(folder, manifest)


def named(document_ids: set[str] | list[str]) -> str:
    """Return the first ids of some documents."""
    names = ", ".join(map(repr, sorted(document_ids)[:_MOST_NAMED]))
    more = len(document_ids) - _MOST_NAMED
    return f"{names} and {more:,} more" if more > 0 else names


def _write(
    new: sqlite3.Connection,
    number: int,
    entry: list[Any],
    contents: list[Any],
    vectors: bytes | None,
    life: tuple[int, int],
    members: set[tuple[str, int]],
) -> bool:
    wrote = new.execute(
        f"INSERT OR IGNORE INTO chunks (number, {ENTRY_COLUMNS}, pending, added, removed) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (number, *entry, int(vectors is None), *life),
    )
    if not wrote.rowcount:  # the id or the place of another
        return False
    new.execute(
        f"INSERT INTO contents (number, {CONTENT_COLUMNS}, checksum) VALUES (?, ?, ?, ?, ?)",
        (number, *contents, checksum([*entry, *contents])),
    )
    new.executemany("INSERT INTO members (document_id, number) VALUES (?, ?)", members)
    if vectors is not None:
        new.execute("INSERT INTO vectors VALUES (?, ?, ?)", (number, vectors, zlib.crc32(vectors)))
    return True


def _insert(new: sqlite3.Connection, record: DocumentRecord, added: int, removed: int) -> None:
    row = document_row(record)
    new.execute(
        f"INSERT OR IGNORE INTO documents ({DOCUMENT_COLUMNS}, checksum, added, removed) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*row, checksum(row), added, removed),
    )


def _old_checksum(sections: str, sentences: str, text: str) -> int:
    return zlib.crc32(b"\n".join((sections.encode(), sentences.encode(), text.encode())))


def _select(table: str, columns: str) -> str:
    return f"SELECT number, {columns} FROM {table} NOT INDEXED WHERE number > ? ORDER BY number"


def _raise_unless_damage(error: Exception) -> None:
    if not is_damage(error):
        raise error
