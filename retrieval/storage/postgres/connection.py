"""Connections to the PostgreSQL server of an index, and the errors that its answers become."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from itertools import chain
from typing import Any, TypeVar

import psycopg
from psycopg import errors, sql
from psycopg_pool import ConnectionPool

from arag.errors import IndexFormatError, StorageError
from arag.retrieval.storage.postgres.location import PostgresLocation
from arag.retrieval.storage.sql import replace_unstorable
from arag.text.normalise import collapse_whitespace

_DEFAULTS = {
    "connect_timeout": "10",  # seconds
    "application_name": "arag",
    "keepalives_idle": "10",  # a server that is gone is noticed within half a minute
    "keepalives_interval": "5",
    "keepalives_count": "4",
    "tcp_user_timeout": "30000",
}
# The environment, the role or the database may have set others.
_SETTINGS = {
    "client_encoding": "UTF8",
    "standard_conforming_strings": "on",
    "default_transaction_isolation": "read committed",  # after a wait for a lock, new rows are seen
    "plan_cache_mode": "force_custom_plan",  # one plan for all keywords reads a whole table to find a rare one
    "jit": "off",  # it compiles longer than these queries run
    "enable_parallel_append": "off",  # starts processes for many small parts of a query
}
_WRITER_SETTINGS = {
    "idle_in_transaction_session_timeout": "60s",  # a writer that hangs, or whose machine is gone, releases its locks
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "4",
    "statement_timeout": "0",
}
# Of a reader's statement, unless the address or the role has a time-out.
_LIMIT_READING = (
    "pg_catalog.set_config('statement_timeout', "
    "coalesce(nullif(pg_catalog.current_setting('statement_timeout'), '0'), '5min'), false)"
)
# Of a reader, unless the server gives more. With PostgreSQL's 4 MB, the rows that an index proposes for a frequent word
# are remembered by pages only, and all texts in these are split again: 15 s for 80,000 chunks instead of 0.5 s.
_GIVE_MEMORY = (
    "pg_catalog.set_config('work_mem', greatest(pg_catalog.pg_size_bytes(pg_catalog.current_setting('work_mem')), "
    f"{64 << 20}) / 1024 || 'kB', false)"
)
_MAX_CONNECTIONS = 8  # of readers in a process, and so of searches at the same time
_ROWS_AT_ONCE = 10_000  # of a statement whose rows are streamed
_MAX_TRIES = 3  # of a read: a connection may be lost
_POOL_TIMEOUT = 15.0  # seconds that a search waits for one of them
_NOT_OURS = (errors.UndefinedTable, errors.InvalidSchemaName, errors.UndefinedColumn, errors.UndefinedFunction)

Connection = psycopg.Connection[Any]
_Result = TypeVar("_Result")


class Session:
    """A connection to the server of an index, at `location`. Errors of psycopg are not caught."""

    def __init__(self, location: PostgresLocation, connection: Connection) -> None:
        self.location = location
        self._connection = connection

    def query(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a statement, in which `?` stands for a value."""
        return self._start(statement, values).fetchall()

    def stream(self, statement: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a statement, of which the server sends some at a time; in a transaction only."""
        with self._connection.cursor(name="arag_rows", binary=True) as cursor:
            cursor.itersize = _ROWS_AT_ONCE
            yield from cursor.execute(statement.encode())

    def query_before(
        self, statement: str, *values: Any, then: str, settings: Mapping[str, str] | None = None
    ) -> tuple[list[tuple[Any, ...]], Any]:
        """Run a statement and then another one, in one round trip.

        Args:
            statement: The first statement.
            values: Its values.
            then: The second statement, which has one row with one value.
            settings: The server's settings for the first statement.

        Returns:
            The rows of the first statement, and the value of the second one.
        """
        with self._connection.pipeline():
            with self._connection.transaction() if settings else nullcontext():
                if settings:
                    changes = ", ".join(["set_config(?, ?, true)"] * len(settings))
                    self._start(f"SELECT {changes}", _flatten(settings))
                first = self._start(statement, values)
            second = self._start(then, ())
            rows = first.fetchall()
            ((value,),) = second.fetchall()
        return rows, value

    def _start(self, statement: str, values: Sequence[Any]) -> psycopg.Cursor[Any]:
        text = statement.replace("%", "%%").replace("?", "%s").encode()
        values_to_bind = replace_unstorable(values, "\uffff")
        return self._connection.execute(text, values_to_bind, binary=True)

    def execute(self, statement: str, *values: Any) -> None:
        """Run a statement, or several without values."""
        text = statement.replace("%", "%%").replace("?", "%s") if values else statement
        self._connection.execute(text.encode(), values or None)

    def copy(self, table: str, types: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Insert rows in bulk.

        Args:
            table: The table with its columns.
            types: The columns' types. Values of type `bytea` are sent unchanged: they have the column's binary format.
            rows: The rows.
        """
        statement = f"COPY {table} FROM STDIN (FORMAT binary)".encode()
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)

    def transaction(self) -> AbstractContextManager[object]:
        """Run the statements inside as one transaction, or as a part of one that can fail alone."""
        return self._connection.transaction()


@contextmanager
def open_session(location: PostgresLocation, settings: Mapping[str, str] = _WRITER_SETTINGS) -> Iterator[Session]:
    """Connect to the server of an index. All locks are released at the end.

    Args:
        location: The index.
        settings: The server's settings for this session, in addition to the usual ones.

    Yields:
        The session. Errors of psycopg become the project's own.

    Raises:
        IndexFormatError: The server has no such tables.
        StorageError: The server cannot be reached, or refuses a statement.
    """
    with translate_errors(location), closing(psycopg.connect(**_connect_arguments(location))) as connection:
        _configure(connection, location, settings)
        yield Session(location, connection)


class Pool:
    """Connections for reading, opened when needed. Several threads may use it at once, also in a forked process."""

    def __init__(self, location: PostgresLocation) -> None:
        self.location = location
        self._lock = threading.Lock()
        self._pool: ConnectionPool[Connection] | None = None
        self._process = os.getpid()

    def run(self, work: Callable[[Session], _Result]) -> _Result:
        """Call a function with a connection, and return its result.

        Args:
            work: The function. If its connection is lost, it is called again.

        Returns:
            The result.
        """
        with translate_errors(self.location):
            tries = 0
            while True:
                tries += 1
                connection = None
                try:
                    with self._open().connection() as connection:  # which ends the transaction, too
                        return work(Session(self.location, connection))
                except psycopg.OperationalError:
                    is_lost = connection is not None and connection.broken
                    if not is_lost or tries == _MAX_TRIES:
                        raise
                self._open().check()  # a server that was started again has lost all connections

    def query(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query, in which `?` stands for a value."""
        return self.run(lambda session: session.query(statement, *values))

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            if self._pool is not None and self._process == os.getpid():
                self._pool.close()
            self._pool = None

    def _open(self) -> ConnectionPool[Connection]:
        with self._lock:
            if self._process != os.getpid():  # after a fork, the connections belong to the parent process
                self._pool = None
                self._process = os.getpid()
            if self._pool is None:
                with open_session(self.location):
                    pass  # this raises a clear error; the pool would only say that it took too long
                self._pool = ConnectionPool(
                    kwargs=_connect_arguments(self.location),
                    min_size=0,
                    max_size=_MAX_CONNECTIONS,
                    timeout=_POOL_TIMEOUT,
                    reconnect_timeout=_POOL_TIMEOUT,  # with a longer one, attempts become rare and searches wait
                    configure=lambda connection: _configure(connection, self.location, {}),
                    open=True,
                )
            return self._pool


@contextmanager
def translate_errors(location: PostgresLocation) -> Iterator[None]:
    """Turn the server's errors into the project's own, with the server's message."""
    try:
        yield
    except _NOT_OURS as error:
        raise IndexFormatError(
            f"the index {location} is incomplete, or was made by another version of arag ({_first_line(error)}): "
            "ingest the documents again, into an index with another name"
        ) from error
    except psycopg.Error as error:
        raise StorageError(f"the index {location} cannot be used on its server: {_first_line(error)}") from error


def _connect_arguments(location: PostgresLocation) -> dict[str, Any]:
    return {**_DEFAULTS, **location.parameters, "autocommit": True}


def _configure(connection: Connection, location: PostgresLocation, settings: Mapping[str, str]) -> None:
    """Prepare a connection: unqualified names are PostgreSQL's own, or those of the index's schema.

    No other schema is searched, not even those of the extensions: other roles may create functions and tables there.
    """
    if connection.info.parameter_status("server_encoding") != "UTF8":
        raise StorageError(f"the database of {location} does not use UTF-8: make one with ENCODING 'UTF8'")
    path = sql.SQL("{}, pg_temp").format(sql.Identifier(location.index)).as_string(connection)
    values = {"search_path": path, **_SETTINGS, **settings}
    changes = ["pg_catalog.set_config(%s, %s, false)"] * len(values)
    if not settings:
        changes += [_LIMIT_READING, _GIVE_MEMORY]
    connection.execute(f"SELECT {', '.join(changes)}".encode(), _flatten(values))


def _flatten(settings: Mapping[str, str]) -> list[str]:
    """Return each name followed by its value."""
    return list(chain.from_iterable(settings.items()))


def _first_line(error: psycopg.Error) -> str:
    first_line = str(error).split("\n")[0]
    return collapse_whitespace(first_line) or type(error).__name__
