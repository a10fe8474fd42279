"""The SQLite file of an index: its tables, how it is opened, and what a reader and a writer both read from it."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arag.errors import ARAGError, IndexFormatError, StorageError
from arag.retrieval.storage.batches import batches
from arag.retrieval.storage.records import ChunkVectors, Settings
from arag.retrieval.storage.sql import TableReader, replace_unstorable, storable
from arag.text.normalise import lower

INDEX_FILE = "index.sqlite3"
DRAFT_FILE = "draft.sqlite3"  # the next snapshot, being written

# Short fields are in `chunks`, which is scanned often; texts are in another table. A row id is never used again, so it
# names one version of a chunk. `vectors` has a row of float16 for each sentence of the chunk, and NaN where the
# sentence has no vector: so a position is an offset. Words of removed chunks stay in `words`.
SCHEMA = """
CREATE TABLE settings (
    value TEXT NOT NULL,
    previous TEXT NOT NULL -- the publication that this one was made from
) STRICT;
CREATE TABLE documents (
    id TEXT NOT NULL PRIMARY KEY,
    title TEXT NOT NULL,
    source TEXT NOT NULL,
    metadata TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    chunks INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE chunks (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    document_id TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    first_page INTEGER,
    last_page INTEGER,
    sentences INTEGER NOT NULL,
    UNIQUE (document_id, ordinal)
) STRICT;
CREATE TABLE contents (number INTEGER PRIMARY KEY, text TEXT NOT NULL, places TEXT NOT NULL) STRICT;
CREATE TABLE vectors (number INTEGER PRIMARY KEY, vectors BLOB NOT NULL) STRICT;
CREATE TABLE words (word TEXT NOT NULL PRIMARY KEY, plain TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX words_by_plain ON words (plain);
"""

_NAMES = "SELECT type, name, tbl_name, sql FROM sqlite_master"
_CHUNKS_PER_QUERY = 500  # larger batches take more memory, smaller ones more queries
# Errors that mean that the file is damaged, since the SQL is our own. Errors that Python raises itself have no code.
_DAMAGE_CODES = {0, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_SCHEMA}


def connect(file: Path, *, writing: bool = False) -> sqlite3.Connection:
    """Open an index's file.

    A reader opens no other file and locks nothing: a published file never changes. A journal that somebody has put
    beside it is ignored.

    Args:
        file: The file.
        writing: Whether it is opened for writing.

    Returns:
        The connection, which several threads may use by turns.

    Raises:
        IndexFormatError: The file is missing, or is not an index's.
        StorageError: It cannot be opened.
    """
    mode = "mode=rw" if writing else "mode=ro&immutable=1"
    if not file.is_file():  # opening a pipe would block
        raise make_damage(file, "it is missing, or not a file")
    with _name_failures(file):
        connection = sqlite3.connect(
            f"{file.absolute().as_uri()}?{mode}",
            uri=True,
            check_same_thread=False,
            isolation_level=None,
        )
        try:
            connection.create_function("lower", 1, lower, deterministic=True)  # SQLite's own knows ASCII only
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
            tables = connection.execute(f"{_NAMES} LIMIT {len(_make_schema()) + 1}").fetchall()
            if sorted(tables, key=str) != _make_schema():
                raise sqlite3.DatabaseError("its tables are not those of an index")  # noqa: TRY301
        except BaseException:
            connection.close()
            raise
    return connection


@cache
def _make_schema() -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SCHEMA)
        return sorted(connection.execute(_NAMES).fetchall(), key=str)


class Database(TableReader):
    """The documents and chunks in an index's file. Readers that share the connection share its lock."""

    LOWER = "lower({})"  # the function that `connect` defines
    HOLDS = "instr({}, ?) > 0"

    def __init__(self, connection: sqlite3.Connection, file: Path, lock: threading.RLock | None = None) -> None:
        self.connection = connection
        self._file = file
        self._lock = lock or threading.RLock()
        self.settings = self._read_settings()

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        values_to_bind = replace_unstorable(values, "\ufffd")
        with self._lock, _name_failures(self._file):
            return self.connection.execute(sql, values_to_bind).fetchall()

    def among(self, column: str, values: Iterable[Any]) -> tuple[str, Any]:
        # One JSON array for all values: SQLite limits the number of variables.
        listed = json.dumps(storable(values), default=int)  # `int` converts NumPy's integers
        return f"{column} IN (SELECT value FROM json_each(?))", listed

    def damage(self, what: str) -> IndexFormatError:
        return make_damage(self._file, what)

    def vectors(self, row_ids: Collection[int]) -> Iterator[ChunkVectors]:
        select = f"SELECT number, sentences, vectors FROM {self.chunks_table} LEFT JOIN vectors USING (number)"
        for batch in batches(row_ids, _CHUNKS_PER_QUERY):
            rows = self.query_among(select, "chunks.number", batch)
            stored = {row_id: (embedded, blob) for row_id, embedded, blob in rows}
            for row_id in batch:
                if row_id not in stored:
                    continue
                embedded, blob = stored[row_id]
                vectors = self._parse_vectors(row_id, blob or b"")
                is_embedded = ~np.isnan(vectors[:, 0])
                positions = np.flatnonzero(is_embedded)
                if len(positions) != embedded:
                    raise self.damage(f"chunk {row_id} has {len(positions)} vectors instead of {embedded}")
                yield row_id, positions.tolist(), vectors[positions].astype(np.float32)

    def check_file(self) -> None:
        """Check the file's own structure.

        Raises:
            IndexFormatError: It is damaged.
        """
        faults = [fault for (fault,) in self.query("PRAGMA quick_check(5)") if fault != "ok"]
        if faults:
            raise self.damage("; ".join(faults))

    def chunk_texts(self) -> Iterator[tuple[int, str]]:
        """Yield row id and text of every chunk, in the order of the chunks' ids."""
        for batch in batches(self.ordered_row_ids(), _CHUNKS_PER_QUERY):
            texts = dict(self.query_among("SELECT number, text FROM contents", "number", batch))
            for row_id in batch:
                if row_id not in texts:
                    raise self.damage(f"chunk {row_id} has no text")
                yield row_id, texts[row_id]

    def _read_settings(self) -> Settings:
        rows = self.query("SELECT value FROM settings LIMIT 2")
        if len(rows) != 1:
            raise self.damage("it has no settings")
        return Settings.from_json(rows[0][0], self._file.parent)

    def _parse_vectors(self, row_id: int, blob: bytes) -> NDArray[np.float16]:
        """Read the rows of a chunk in table `vectors`, shape (sentences, dimension)."""
        try:
            return np.frombuffer(blob, np.float16).reshape(-1, self.settings.dimension)
        except ValueError as error:
            raise self.damage(f"the vectors of chunk {row_id}: {error}") from error


def make_damage(file: Path, what: str) -> IndexFormatError:
    """Return the error that an index's file is damaged."""
    return IndexFormatError(f"{file} is damaged ({what}): ingest the documents again into another folder")


@contextmanager
def _name_failures(file: Path) -> Iterator[None]:
    """Turn SQLite's errors into a StorageError, or into an IndexFormatError if the file is damaged."""
    try:
        yield
    except UnicodeDecodeError as error:  # SQLite quotes damaged bytes in its messages
        raise make_damage(file, str(error)) from error
    except sqlite3.Error as error:
        is_of_file = isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.ProgrammingError)
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without its extension
        if is_of_file and code in _DAMAGE_CODES:
            raise make_damage(file, str(error)) from error
        raise StorageError(f"{file} cannot be opened or read: {error}") from error


@contextmanager
def name_write_failures(folder: Path) -> Iterator[None]:
    """Turn errors that occur while an index is written to into a StorageError."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        if isinstance(error, ARAGError | TimeoutError):  # a missing index or the lock, which are OSErrors, too
            raise
        raise StorageError(
            f"the index in {folder} cannot be written to ({error}): what was written is kept; run it again to "
            "go on from there"
        ) from error
