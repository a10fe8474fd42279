"""Connections to the PostgreSQL server of an index, and what its errors mean."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import chain
from typing import Any, Protocol

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool, PoolTimeout

from arag.errors import IndexFormatError, StorageError
from arag.retrieval.postgres.location import PostgresLocation

_DEFAULTS = {
    "connect_timeout": 10,  # seconds
    "application_name": "arag",
    # A server that is gone is noticed within half a minute.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,
}
_READ_TIMEOUT = "5min"  # of a reader's statement
_MAX_CONNECTIONS = 8  # of a reader: as many searches at once
_POOL_TIMEOUT = 15.0  # seconds that a search waits for one of them
_MISSING_TABLE = (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName, psycopg.errors.UndefinedColumn)


class Statements(Protocol):
    """What runs statements: one connection, or several."""

    location: PostgresLocation

    def query(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""


def connect(location: PostgresLocation) -> psycopg.Connection[Any]:
    """Connect to the server of an index, for writing.

    Raises:
        StorageError: It cannot be reached, or refuses.
    """
    with name_failures(location):
        connection = psycopg.connect(location.conninfo, autocommit=True, **_missing(location))
        try:
            # The server notices within half a minute that this machine is gone, and releases its locks.
            for setting, value in (("idle", 10), ("interval", 5), ("count", 4)):
                connection.execute(f"SET tcp_keepalives_{setting} = {value}")
            # A transaction sees what was committed while it waited for a lock.
            connection.execute("SET default_transaction_isolation = 'read committed'")
            configure(connection, location)
        except BaseException:
            connection.close()
            raise
        return connection


def configure(connection: psycopg.Connection[Any], location: PostgresLocation) -> None:
    """Prepare a connection: unqualified names are PostgreSQL's own, or those of the index's schema.

    No other schema is searched, not even those of the extensions: other roles may create functions and tables there.

    Raises:
        StorageError: The database has another encoding than UTF-8.
    """
    if connection.info.parameter_status("server_encoding") != "UTF8":
        raise StorageError(f"the database of {location} does not use UTF-8: make one with ENCODING 'UTF8'")
    # The environment, the role or the database may have set others.
    settings = {
        "search_path": sql.SQL("{}, pg_temp").format(sql.Identifier(location.index)).as_string(connection),
        "client_encoding": "UTF8",
        "default_transaction_isolation": "read committed",  # who waited for a lock sees what is new
        "plan_cache_mode": "force_custom_plan",  # one plan for all keywords reads a whole table to find a rare one
        "jit": "off",  # it compiles longer than these queries run
    }
    setting = "pg_catalog.set_config(%s, %s, false)"
    connection.execute(f"SELECT {', '.join([setting] * len(settings))}", list(chain.from_iterable(settings.items())))


class Session:
    """One connection, which several threads may share.

    Args:
        location: The index.

    Attributes:
        location: The index.

    Raises:
        StorageError: The server cannot be reached, or refuses.
    """

    def __init__(self, location: PostgresLocation) -> None:
        self.location = location
        self._connection = connect(location)
        self._lock = threading.RLock()

    def close(self) -> None:
        """Close the connection; the server releases its locks."""
        self._connection.close()

    def query(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self._lock, name_failures(self.location):
            return self._connection.execute(statement, parameters, binary=True).fetchall()

    def execute(self, statement: str | sql.Composed, parameters: Sequence[Any] | None = None) -> None:
        """Run a statement."""
        with self._lock, name_failures(self.location):
            self._connection.execute(statement, parameters)

    def execute_each(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement for each of some rows of values."""
        with self._lock, name_failures(self.location), self._connection.cursor() as cursor:
            cursor.executemany(statement, rows)

    def copy(self, table: str, columns: str, types: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Insert rows in bulk."""
        statement = f"COPY {table} ({columns}) FROM STDIN (FORMAT binary)"
        with (
            self._lock,
            name_failures(self.location),
            self._connection.cursor() as cursor,
            cursor.copy(statement) as copy,
        ):
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run everything inside as one transaction."""
        with self._lock, name_failures(self.location), self._connection.transaction():
            yield

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction has begun."""
        return self._connection.info.transaction_status != TransactionStatus.IDLE


class Pool:
    """Connections for reading, from several threads at once, also in a process that was forked.

    Args:
        location: The index.

    Attributes:
        location: The index.
        max_size: How many connections there may be.
    """

    max_size = _MAX_CONNECTIONS

    def __init__(self, location: PostgresLocation) -> None:
        self.location = location
        self._lock = threading.Lock()
        self._pool: ConnectionPool[psycopg.Connection[Any]] | None = None
        self._process = os.getpid()
        self._closed = False

    def connection(self) -> AbstractContextManager[psycopg.Connection[Any]]:
        """Return a context in which a connection is lent. Errors of psycopg are not caught."""
        return self._open().connection()

    def _open(self) -> ConnectionPool[psycopg.Connection[Any]]:
        """Return the pool, opened at its first use."""
        with self._lock:
            if self._closed:
                raise StorageError(f"the index {self.location} is closed")
            if self._process != os.getpid():  # the connections are the other process's
                self._pool, self._process = None, os.getpid()
            if self._pool is None:
                connect(self.location).close()  # the pool would only say that it took too long
                self._pool = ConnectionPool(
                    self.location.conninfo,
                    kwargs={"autocommit": True, **_missing(self.location)},
                    min_size=0,
                    max_size=self.max_size,
                    timeout=_POOL_TIMEOUT,
                    reconnect_timeout=_POOL_TIMEOUT,  # longer, and a search would wait for the next of rare attempts
                    configure=self._configure,
                    open=True,
                )
            return self._pool

    def query(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query. If the connection is lost, it is asked again, twice.

        Raises:
            StorageError: The server cannot be reached, or refuses.
        """
        with name_failures(self.location):
            for _ in range(2):
                with self.connection() as connection:
                    try:
                        return connection.execute(statement, parameters, binary=True).fetchall()
                    except psycopg.OperationalError:
                        if not connection.broken:
                            raise
                self._open().check()  # a server that was started again has lost all of them
            with self.connection() as connection:
                return connection.execute(statement, parameters, binary=True).fetchall()

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            self._closed = True
            if self._pool is not None and self._process == os.getpid():
                self._pool.close()
            self._pool = None

    def _configure(self, connection: psycopg.Connection[Any]) -> None:
        configure(connection, self.location)
        row = connection.execute("SELECT current_setting('statement_timeout')").fetchone()
        if row == ("0",):  # the location or the role may have set another one
            connection.execute(f"SET statement_timeout = '{_READ_TIMEOUT}'")


@contextmanager
def name_failures(location: PostgresLocation) -> Iterator[None]:
    """Say what the server's errors mean for an index.

    Raises:
        IndexFormatError: A table is missing.
        StorageError: The server cannot be reached, refuses, or has no room.
    """
    try:
        yield
    except PoolTimeout:
        raise StorageError(
            f"the index {location}: no connection was free for {_POOL_TIMEOUT:.0f} seconds, or the server is gone"
        ) from None
    except _MISSING_TABLE as error:
        raise IndexFormatError(f"the index {location} is incomplete ({_first_line(error)}): ingest it again") from error
    except psycopg.Error as error:
        raise StorageError(_explain(error, location)) from error


def _explain(error: psycopg.Error, location: PostgresLocation) -> str:
    said = _first_line(error)
    match error:
        case psycopg.errors.InsufficientPrivilege():
            return f"the role that opened {location} may not do this ({said}): see the documentation's page on servers"
        case psycopg.errors.QueryCanceled():
            return f"the server of {location} stopped a statement ({said}): raise statement_timeout for this role"
        case psycopg.errors.DiskFull():
            return f"the server of {location} has no room left ({said}). What was written is kept."
        case psycopg.errors.ReadOnlySqlTransaction():
            return f"the server of {location} takes no writes ({said}): it may be a standby"
        case psycopg.OperationalError() if error.sqlstate is None or error.sqlstate.startswith(
            ("08", "57P", "28", "3D")
        ):
            return f"the server of {location} cannot be used ({said})"
        case _:
            return f"the index {location} cannot be used ({said})"


def _first_line(error: psycopg.Error) -> str:
    return " ".join(str(error).split("\n")[0].split()) or type(error).__name__


def _missing(location: PostgresLocation) -> dict[str, Any]:
    """Return the connection settings that the location leaves open."""
    given = conninfo_to_dict(location.conninfo)
    return {name: value for name, value in _DEFAULTS.items() if name not in given}
