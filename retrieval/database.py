"""Opening a SQLite file, also where nothing may be written, and telling its errors apart."""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path

from arag.retrieval.errors import DamagedFileError, IndexFormatError

# What SQLite answers where it may not write, or has no room to: also to who reads, as it keeps a file beside.
NO_WRITING = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL}

_NAMES_ANOTHER = bytes.fromhex("d9d505f920a163d7")  # the end of a journal that names a super-journal


class Database:
    """A SQLite file that is open; where nothing may be written, it is read without the log of writes beside it.

    Args:
        file: The file.
        schema: The tables to make in it where they are not there, for writing; None to open what is there.
        holds: A table that is there, or else the file is not opened.

    Attributes:
        connection: The connection.
        frozen: What the file was like, where it is read as one that nobody writes to; None else.
    """

    def __init__(self, file: Path, *, schema: str | None, holds: str) -> None:
        check_surroundings(file)
        self._file = file
        self._holds = holds
        self.frozen: tuple[int, ...] | None = None
        self.connection = self._reader() if schema is None else self._connect(str(file), schema=schema)

    def refresh(self) -> None:
        """Open the file anew where it was taken for one that nobody writes to, and was written to."""
        if self.frozen is not None and (self.frozen != _stamp(self._file) or not log_is_empty(self._file)):
            self.connection.close()
            self.connection = self._reader()

    def _reader(self) -> sqlite3.Connection:
        self.frozen = None
        name = self._file.absolute().as_uri()
        try:
            return self._connect(f"{name}?mode=rw", uri=True)
        except sqlite3.OperationalError as error:
            if error_code(error) not in NO_WRITING or not log_is_empty(self._file):
                raise
            self.frozen = _stamp(self._file)
            try:
                return self._connect(f"{name}?mode=ro&immutable=1", uri=True)
            except sqlite3.OperationalError:
                raise error from None

    def _connect(self, name: str, *, uri: bool = False, schema: str | None = None) -> sqlite3.Connection:
        connection = sqlite3.connect(name, uri=uri, check_same_thread=False, isolation_level=None, timeout=30)
        try:
            if schema is not None:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.executescript(schema)
            connection.execute(f"SELECT 1 FROM {self._holds} LIMIT 1").fetchone()  # opening alone reads nothing
        except BaseException:
            connection.close()
            raise
        return connection


def _stamp(file: Path) -> tuple[int, ...]:
    try:
        status = file.stat()
    except FileNotFoundError:
        return ()
    return status.st_mtime_ns, status.st_size, status.st_ino


def log_is_empty(file: Path) -> bool:
    """Tell whether all that was written to a database stands in its file."""
    try:
        return file.with_name(f"{file.name}-wal").stat().st_size == 0
    except FileNotFoundError:
        return True


def error_code(error: sqlite3.Error) -> int:
    """Return SQLite's primary code of an error; 0 for one of Python's own."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def is_damage(error: sqlite3.Error) -> bool:
    """Tell damage from a disk that is full, a database that is locked, and the like, which are of subclasses."""
    signs = ("no such table", "no such column", "malformed", "Could not decode to UTF-8")
    return type(error) is sqlite3.DatabaseError or any(sign in str(error) for sign in signs)


def check_surroundings(file: Path) -> None:
    """Check a database that may come from somebody else, and what SQLite opens along with it, before SQLite does.

    A rollback journal may name another one, for transactions over several files, which ours never are: SQLite then
    deletes the file of that name, wherever it is. To open a pipe would be to wait for ever.

    Raises:
        IndexFormatError: One of them is no regular file, or the journal names another.
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
