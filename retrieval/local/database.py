"""Opens SQLite files that may be damaged, hostile or read-only, replaces them atomically, and sorts SQLite's errors."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from arag.errors import DamagedFileError, IndexFormatError, StorageError
from arag.files import publish_path, sync_path

# SQLite's errors when it may not write or has no room. Readers get these too: SQLite keeps files beside its own.
NO_WRITING = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL}
# The SQL and the schema are our own, so any other error means that the file does not hold what was written.
_NO_DAMAGE = NO_WRITING | {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_NOLFS,
}
_NAMES_ANOTHER = bytes.fromhex("d9d505f920a163d7")  # the end of a journal that names a super-journal
_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master"


class Database:
    """An open SQLite file. If nothing may be written, it is read without its write-ahead log.

    Args:
        file: The file.
        schema: The SQL that made its tables: a file whose schema differs is not used.
        functions: Functions that queries may call, by name, with the number of their arguments. SQLite calls one once
            in a query if its arguments are constant.
        salvage: Open a damaged file to read what is left: the schema is not compared, text may hold any bytes, and
            only tables can be read, not views.

    Attributes:
        connection: The connection.
        inode: The open file's inode; a file that has replaced it has another.
        frozen: The file's state when it was opened as immutable; None otherwise.

    Raises:
        DamagedFileError: The file is not a database with this schema.
    """

    def __init__(
        self,
        file: Path,
        schema: str,
        *,
        functions: Mapping[str, tuple[int, Callable[..., Any]]] | None = None,
        salvage: bool = False,
    ) -> None:
        self._file = file
        self._schema = schema
        self._functions = functions or {}
        self._salvage = salvage
        self.frozen: tuple[int, ...] | None = None
        self.is_closed = False
        self.inode = 0
        self.connection = self._open()

    def close(self) -> None:
        """Close the file."""
        self.is_closed = True
        self.connection.close()

    def refresh(self) -> None:
        """Reopen the file if it was opened as immutable and has changed.

        Raises:
            StorageError: It was closed.
        """
        if self.is_closed:
            raise StorageError(f"{self._file} is closed")
        if self.frozen is not None and (self.frozen != _stamp(self._file) or not log_is_empty(self._file)):
            self.connection.close()
            self.connection = self._open()

    def _open(self) -> sqlite3.Connection:
        while True:
            check_surroundings(self._file)
            self.inode = self._file.stat().st_ino
            connection = self._connection()
            if self._file.stat().st_ino == self.inode:  # it was not replaced meanwhile
                return connection
            connection.close()

    def _connection(self) -> sqlite3.Connection:
        self.frozen = None
        name = self._file.absolute().as_uri()
        try:
            return self._connect(f"{name}?mode=rw")
        except sqlite3.OperationalError as error:
            if error_code(error) not in NO_WRITING or not log_is_empty(self._file):
                raise
            self.frozen = _stamp(self._file)
            try:
                return self._connect(f"{name}?mode=ro&immutable=1")
            except sqlite3.OperationalError:
                raise error from None

    def _connect(self, name: str) -> sqlite3.Connection:
        connection = sqlite3.connect(name, uri=True, check_same_thread=False, isolation_level=None, timeout=30)
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            # Deleted data is overwritten, so that rewriting the file reads none of it into memory.
            connection.execute("PRAGMA secure_delete = ON")
            if self._salvage:
                connection.execute("PRAGMA writable_schema = ON")  # SQLite then skips entries that it cannot read
                connection.text_factory = lambda raw: raw.decode(errors="surrogateescape")
                connection.execute("SELECT 1 FROM sqlite_master").fetchone()  # opening alone reads nothing
                connection.set_authorizer(_allow_tables_only)
            else:
                _check_schema(connection, self._schema)
            for function, (arguments, body) in self._functions.items():
                connection.create_function(function, arguments, body, deterministic=True)
        except BaseException:
            connection.close()
            raise
        return connection


def _check_schema(connection: sqlite3.Connection, schema: str) -> None:
    """Refuse tables, views and triggers that are not ours before anything else is read."""
    expected = _make_schema(schema)
    found = connection.execute(f"{_SCHEMA} LIMIT {len(expected) + 1}").fetchall()
    if frozenset(found) != expected or len(found) != len(expected):
        raise sqlite3.DatabaseError("its tables are not those of an index")


@contextmanager
def new_database(file: Path, schema: str) -> Iterator[sqlite3.Connection]:
    """Make a database that replaces a file atomically when the block ends without an error.

    Only one process at a time may do this. Those that have the old file open keep reading it. The old file must be
    closed here, and its write-ahead log empty, before the block ends.

    Args:
        file: The file.
        schema: The SQL that makes its tables.
    """
    temporary = file.with_name(f"{file.name}.new")
    discard_database(temporary)  # of a run that was killed
    try:
        with closing(sqlite3.connect(temporary, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = OFF")
            connection.executescript(schema)
            connection.execute("BEGIN")
            yield connection
            connection.execute("COMMIT")
            connection.execute("PRAGMA journal_mode = WAL")
        sync_path(temporary)
        # The log belongs to the old file; SQLite would take it for the new one's. A file that was replaced while it
        # was open does not touch the new one's log: SQLite looks at the inode.
        for ending in ("-wal", "-shm"):
            file.with_name(f"{file.name}{ending}").unlink(missing_ok=True)
        publish_path(temporary, file)
    except BaseException:
        discard_database(temporary)
        raise


def discard_database(file: Path) -> None:
    """Delete a database and the files that SQLite keeps beside it."""
    for ending in ("", "-wal", "-shm", "-journal"):
        file.with_name(f"{file.name}{ending}").unlink(missing_ok=True)


def log_is_empty(file: Path) -> bool:
    """Return whether everything written to a database is in its file."""
    try:
        return file.with_name(f"{file.name}-wal").stat().st_size == 0
    except FileNotFoundError:
        return True


def error_code(error: sqlite3.Error) -> int:
    """Return SQLite's primary code of an error; 0 for one of Python's own."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def is_damage(error: Exception) -> bool:
    """Return whether an error means damage, not a full disk, a locked database or a mistake in using sqlite3."""
    if isinstance(error, UnicodeDecodeError):  # SQLite's message quotes the damaged bytes
        return True
    if not isinstance(error, sqlite3.DatabaseError) or isinstance(error, sqlite3.ProgrammingError):
        return False
    return error_code(error) not in _NO_DAMAGE


@contextmanager
def name_failures(file: Path) -> Iterator[None]:
    """Turn SQLite's errors into ours.

    Args:
        file: The database, for the message.

    Raises:
        DamagedFileError: The file is damaged.
        StorageError: It cannot be opened, read or written.
    """
    try:
        yield
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if isinstance(error, sqlite3.ProgrammingError):
            raise
        if is_damage(error):
            raise DamagedFileError(file, str(error)) from error
        unfinished = ": an interrupted writer left it unfinished; run any command on it with write access to the files"
        raise StorageError(
            f"{file} cannot be opened or read ({error}){'' if log_is_empty(file) else unfinished}"
        ) from error


def check_surroundings(file: Path) -> None:
    """Check a database that may come from somebody else, and its companion files, before SQLite opens them.

    A rollback journal may name another one, for transactions over several files, which we never use: SQLite then
    deletes the file of that name, wherever it is. Opening a pipe would block forever.

    Raises:
        IndexFormatError: One of them is not a regular file, or the journal names another.
    """
    for beside in ("", "-journal", "-wal", "-shm"):
        path = file.with_name(file.name + beside)
        try:
            status = path.lstat()
            if not stat.S_ISREG(status.st_mode):
                raise DamagedFileError(path, "it is not a file")
            if beside == "-journal" and status.st_size >= len(_NAMES_ANOTHER):
                with path.open("rb") as journal:
                    journal.seek(-len(_NAMES_ANOTHER), os.SEEK_END)
                    if journal.read() == _NAMES_ANOTHER:
                        raise IndexFormatError(f"{path} names a file for SQLite to delete: do not use this index")
        except FileNotFoundError:
            continue


def _allow_tables_only(action: int, _: str | None, __: str | None, ___: str | None, view: str | None) -> int:
    allowed = action in {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_PRAGMA} and view is None
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


@lru_cache
def _make_schema(sql: str) -> frozenset[tuple[str | None, ...]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(sql)
        return frozenset(connection.execute(_SCHEMA).fetchall())


def _stamp(file: Path) -> tuple[int, ...]:
    try:
        status = file.stat()
    except FileNotFoundError:
        return ()
    return status.st_mtime_ns, status.st_size, status.st_ino
