"""The source of truth of an index in a folder: documents and full chunks in one SQLite file."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from arag.errors import DamagedFileError, IndexFormatError
from arag.retrieval.backend import Phrase
from arag.retrieval.local.database import Database, name_failures, new_database
from arag.retrieval.local.number_sets import MASK, NumberSet, find_mask
from arag.retrieval.local.schema import SCHEMA
from arag.retrieval.tables.chunks import LATEST, TableChunks
from arag.retrieval.tables.part import ChunkPart
from arag.retrieval.tables.rows import CONTENT_COLUMNS, ENTRY_COLUMNS, checksum, chunk_rows
from arag.retrieval.tables.terms import HIGHLIGHTED, match_all, match_query, read_spellings
from arag.retrieval.types import Chunk

FILE_NAME = "chunks.sqlite3"


class ChunkStore(TableChunks):
    """Full chunks by id, with their documents, as one generation of the index has them.

    One connection serves all threads, one at a time; the file is in write-ahead mode, so a writer does not block
    readers in other processes. If the files are read-only or the disk is full, the file is read without its
    write-ahead log, as long as the log is empty.

    Args:
        folder: The index's folder.
        generation: The generation to read; what is written belongs to `writes`.
        create: Whether to create the file if it does not exist.

    Attributes:
        file: The SQLite file.

    Raises:
        IndexFormatError: The file is missing or damaged, or is not a chunk store.
        StorageError: The file cannot be opened.
    """

    def __init__(self, folder: Path, *, generation: int = LATEST, create: bool = False) -> None:
        super().__init__(generation)
        self.file = folder / FILE_NAME
        if not self.file.exists():
            if not create:
                raise IndexFormatError(f"{self.file} is missing: the index is incomplete; ingest the documents again")
            with new_database(self.file, SCHEMA):
                pass
        self._lock = threading.RLock()
        with name_failures(self.file):
            self._opened = Database(self.file, SCHEMA, functions={MASK: (1, find_mask)})

    def was_replaced(self) -> bool:
        """Return whether the open file is no longer the one in the folder, or can be opened in a better way."""
        try:
            return self._opened.frozen is not None or self.file.stat().st_ino != self._opened.inode
        except FileNotFoundError:
            return True

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._opened.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run all writes inside as one transaction: either all are kept, or none."""
        with self._lock:
            if self._connection.in_transaction:
                yield
                return
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # a full disk has rolled back by itself
                    self._connection.execute("ROLLBACK")
                raise

    def titled(self, titles: Sequence[str], limit: int) -> Iterator[list[tuple[str, str]]]:
        """Yield id and title of documents by each of some titles; see `Chunks.titled`."""
        for title in titles:
            yield self._query(
                f"SELECT CAST(id AS TEXT), CAST(title AS TEXT) FROM documents WHERE {self._documents_seen} "
                "AND (title = ?1 COLLATE NOCASE "
                "OR (title >= ?1 || ' (' COLLATE NOCASE AND title < ?1 || ' )' COLLATE NOCASE)) "
                "ORDER BY title, id LIMIT ?2",
                (self.UNSTORABLE.sub("\ufffd", title), limit),
            )

    def words(self) -> list[str]:
        """Return the corpus's words: lower case, without diacritics."""
        return [word for (word,) in self._query("SELECT term FROM vocabulary")]

    def holds_word(self, word: str) -> bool:
        """Return whether a word (lower case, without diacritics) is in the corpus."""
        return bool(self.listed_words([word]))

    def listed_words(self, words: Collection[str]) -> set[str]:
        """Return which of some words the corpus may hold; see `Words.listed`."""
        return {
            word for (word,) in self._each("SELECT term FROM vocabulary WHERE term IN ({marks})", list(words), "TRUE")
        }

    def holding_all(
        self, groups: Sequence[Collection[str]], limit: int, within: Collection[int] | None = None
    ) -> list[list[int]]:
        """Return the numbers of the chunks that hold all words of each of some groups; see `Words.holding_all`."""
        inside = None if within is None else self.number_set(within)
        seen = self._seen if inside is None else f"{self._seen} AND {inside.holds('chunks.number')}"
        sql = (
            "SELECT chunks.number FROM terms JOIN chunks ON chunks.number = terms.rowid "
            f"WHERE terms MATCH ? AND {seen} LIMIT ?"
        )
        return [[number for (number,) in self._query(sql, (match_all(words), limit))] for words in groups]

    def number_set(self, numbers: Collection[int]) -> NumberSet:
        """Return a set of row numbers for conditions."""
        return NumberSet(numbers)

    @property
    def _connection(self) -> sqlite3.Connection:
        return self._opened.connection

    def _query(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._lock, name_failures(self.file):
            self._opened.refresh()
            return self._connection.execute(sql, parameters).fetchall()

    def _execute(self, sql: str, rows: Iterable[Sequence[Any]] = ((),)) -> None:
        self._connection.executemany(sql, rows)

    def _insert(self, chunks: Sequence[Chunk]) -> list[int]:
        numbers = []
        for chunk in chunks:
            entry, contents = chunk_rows(chunk)
            row = self._connection.execute(
                f"INSERT INTO chunks ({ENTRY_COLUMNS}, added) VALUES (?, ?, ?, ?, ?, ?, ?, {self.writes})", entry
            )
            number = row.lastrowid or 0
            self._connection.execute(
                f"INSERT INTO contents (number, {CONTENT_COLUMNS}, checksum) VALUES (?, ?, ?, ?, ?)",
                (number, *contents, checksum([*entry, *contents])),
            )
            self._connection.execute("INSERT INTO terms (rowid, text) VALUES (?, ?)", (number, chunk.text))
            self._connection.executemany(
                "INSERT OR IGNORE INTO members (document_id, number) VALUES (?, ?)",
                [(section.document_id, number) for section in chunk.sections],
            )
            numbers.append(number)
        return numbers

    def delete_gone(self, generation: int) -> None:
        """Delete the rows that a generation no longer has."""
        numbers = f"(SELECT number FROM chunks WHERE removed <= {generation})"
        with self.transaction():
            self._connection.execute(
                "INSERT INTO terms (terms, rowid, text) "
                f"SELECT 'delete', number, text FROM contents WHERE number IN {numbers}"
            )
            for table in ("contents", "vectors", "members"):
                self._connection.execute(f"DELETE FROM {table} WHERE number IN {numbers}")
            for table in ("chunks", "documents"):
                self._connection.execute(f"DELETE FROM {table} WHERE removed <= {generation}")

    def _spelled(self, phrases: Sequence[Phrase], limit: int) -> list[list[tuple[int, list[str]]]]:
        """Return each phrase's spellings in the first chunks that hold it, with the chunks' numbers."""
        sql = (
            f"SELECT chunks.number, {HIGHLIGHTED} FROM terms JOIN chunks ON chunks.number = terms.rowid "
            f"WHERE terms MATCH ? AND {self._seen} LIMIT ?"
        )
        return [read_spellings(self._query(sql, (match_query(phrase), limit))) for phrase in phrases]

    def _damage(self, what: str) -> DamagedFileError:
        return DamagedFileError(self.file, what)


class LocalChunkPart(ChunkPart, ChunkStore):
    """A part of a chunk store in a folder."""
