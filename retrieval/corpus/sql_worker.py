"""A process that runs queries over the tables of a corpus, with limits on time and memory.

SQLite's limit on memory holds for a whole process, and a query may keep a processor busy: so queries have a process of
their own. It runs statements that read, and nothing else.
"""

from __future__ import annotations

import math
import re
import sqlite3
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

_HEAP_BYTES = 640_000_000  # that SQLite may use: for the databases, and as much again for a query
_MAX_IMAGES_BYTES = 256_000_000  # of the databases that are kept
_MAX_ROW_CHARACTERS = 2_000_000  # of the rows that are returned
_OPERATIONS_BETWEEN_CHECKS = 10_000  # of the time: a few milliseconds
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 1_000_000,  # bytes of a value
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 50_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 1_000,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 100,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 200_000,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 100,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1_000,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 0,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_FUNCTIONS = frozenset(
    "abs acos acosh asin asinh atan atan2 atanh avg ceil ceiling char coalesce concat concat_ws cos cosh count "
    "cume_dist current_date current_time current_timestamp date datetime degrees dense_rank exp first_value floor "
    "format glob group_concat hex ifnull iif instr json json_array json_array_length json_each json_extract "
    "json_group_array json_group_object json_object json_tree json_type json_valid julianday lag last_value lead "
    "length like likelihood likely ln log log10 log2 lower ltrim max median min mod nth_value ntile nullif "
    "octet_length percent_rank percentile pi pow power printf quote radians random rank replace round row_number "
    "rtrim sign sin sinh sqrt strftime string_agg substr substring sum tan tanh time timediff total trim trunc typeof "
    "unhex unicode unixepoch unlikely upper -> ->>".split()
)
_VIRTUAL_TABLES = frozenset(["json_each", "json_tree"])
_SYSTEM_TABLE = re.compile(r"sqlite_|pragma_|fts|rtree|dbstat|bytecode|tables_used", re.IGNORECASE)
_INFINITE = frozenset([math.inf, -math.inf])
_WITHIN = "within_documents"
_LEFT_OUT = "left out"  # no table of a corpus has a space in its name
_ALLOWED = frozenset([sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE])


class _Database:
    """An open database, and the names of its tables."""

    def __init__(self, image: bytes) -> None:
        self.size = len(image)
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.text_factory = _decode
        self.connection.deserialize(image)
        rows = self.connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        self.tables = {name for (name,) in rows}
        self.readable = {*self.tables, *_VIRTUAL_TABLES, _WITHIN, _LEFT_OUT}
        self.with_documents = self.tables - {"tables"}  # which lists the others
        self.limited: Collection[str] = ()  # the tables of which queries see some rows only
        self.connection.execute("PRAGMA temp_store = MEMORY")
        for name in _VIRTUAL_TABLES:  # which SQLite makes at their first use, and that is not a query
            self.connection.execute(f"SELECT * FROM {name}('[]')")
        self.connection.execute("PRAGMA query_only = ON")
        for limit, value in _LIMITS.items():
            self.connection.setlimit(limit, value)

    def limit_to(self, document_ids: list[str] | None, left_out: Mapping[str, list[int]]) -> None:
        """Let queries see only the rows of some documents, without some rows of tables, until the next call."""
        execute = self.connection.execute
        self.connection.set_authorizer(None)
        execute("PRAGMA query_only = OFF")
        for name in self.limited:
            execute(f'DROP VIEW temp."{name}"')
        execute(f"DROP TABLE IF EXISTS temp.{_WITHIN}")
        execute(f'DROP TABLE IF EXISTS temp."{_LEFT_OUT}"')
        self.limited = self.with_documents if document_ids is not None else left_out.keys()
        is_within = "TRUE"
        if document_ids is not None:
            is_within = f"document IN (SELECT id FROM temp.{_WITHIN})"
            execute(f"CREATE TEMP TABLE {_WITHIN} (id TEXT PRIMARY KEY) WITHOUT ROWID")
            self.connection.executemany(f"INSERT INTO {_WITHIN} VALUES (?)", zip(document_ids, strict=True))
        execute(
            f'CREATE TEMP TABLE "{_LEFT_OUT}" (name TEXT, number INTEGER, PRIMARY KEY (name, number)) WITHOUT ROWID'
        )
        for name, numbers in left_out.items():
            rows = [(name, number) for number in numbers]
            self.connection.executemany(f'INSERT INTO "{_LEFT_OUT}" VALUES (?, ?)', rows)
        for name in self.limited:
            is_left_out = f"""_rowid_ IN (SELECT number FROM temp."{_LEFT_OUT}" WHERE name = '{name}')"""
            shown = f'SELECT * FROM main."{name}" WHERE {is_within} AND NOT {is_left_out}'
            execute(f'CREATE TEMP VIEW "{name}" AS {shown}')
        execute("PRAGMA query_only = ON")


_databases: OrderedDict[str, _Database] = OrderedDict()


def load_database(key: str, image: NDArray[np.uint8]) -> None:
    """Keep a database for queries; those that were used last are kept as well."""
    _limit_heap()
    while sum(database.size for database in _databases.values()) + image.size > _MAX_IMAGES_BYTES:
        _, oldest = _databases.popitem(last=False)
        oldest.connection.close()
    _databases[key] = _Database(image.tobytes())


def run_query(
    key: str,
    statements: list[str],
    document_ids: list[str] | None,
    left_out: dict[str, list[int]],
    max_rows: int,
    seconds: float,
) -> dict[str, Any]:
    """Run the first of some statements that can be run.

    Args:
        key: The database's.
        statements: Forms of one statement, the best first.
        document_ids: The documents whose rows it sees; None for all.
        left_out: The numbers of the rows of tables that it does not see.
        max_rows: How many rows are returned at most; further ones are counted.
        seconds: The time limit for all of it.

    Returns:
        `statement` (which one was run), `columns`, `rows`, `total` (rows that were counted), `is_complete` (whether all
        were), `tables` (that it read); or `error`, SQLite's message; or `is_missing`, if the database is not kept.
    """
    database = _databases.get(key)
    if database is None:
        return {"is_missing": True}
    _databases.move_to_end(key)
    database.limit_to(document_ids, left_out)
    end = time.monotonic() + seconds
    result: dict[str, Any] = {}
    for number, statement in enumerate(statements):
        result = _run(database, statement, max_rows, end)
        if "error" not in result:
            return result | {"statement": number}
    return result


@dataclass
class _Rows:
    """The rows of a result: all are counted, and the first are kept."""

    columns: list[str] = field(default_factory=list)
    kept: list[list[Any]] = field(default_factory=list)
    total: int = 0

    def read(self, cursor: sqlite3.Cursor, max_rows: int) -> None:
        """Read a result to its end."""
        if cursor.description is None:
            raise sqlite3.ProgrammingError("not a query")
        self.columns = [name for name, *_ in cursor.description]
        characters = 0
        for row in cursor:
            self.total += 1
            if self.total > max_rows or characters >= _MAX_ROW_CHARACTERS:
                continue
            values = [_plain(value) for value in row]
            self.kept.append(values)
            characters += len(str(values))


def _run(database: _Database, statement: str, max_rows: int, end: float) -> dict[str, Any]:
    connection = database.connection
    read_tables: set[str] = set()
    rows = _Rows()
    error = ""
    connection.set_authorizer(_authorizer(database.readable, database.limited, read_tables))
    connection.set_progress_handler(lambda: time.monotonic() > end, _OPERATIONS_BETWEEN_CHECKS)
    try:
        rows.read(connection.execute(statement), max_rows)
    except (sqlite3.Error, sqlite3.Warning) as caught:  # Python 3.11 warns of a second statement
        error = str(caught)
    except MemoryError:
        error = "out of memory"
    finally:
        connection.set_progress_handler(None, 0)
    is_cut = error == "interrupted" and rows.total > 0
    if error and not is_cut:
        return {"error": error}
    return {
        "columns": rows.columns,
        "rows": rows.kept,
        "total": rows.total,
        "is_complete": not is_cut,
        "tables": sorted(read_tables & database.with_documents),
    }


def _authorizer(
    readable: Collection[str],
    limited: Collection[str],
    read_tables: set[str],
) -> Callable[..., int]:
    """Return the function that allows SQLite to read tables, and nothing else; it notes which are read.

    Of limited tables, the rows are seen through views only: `main.dues` would be all rows.
    """

    def authorize(action: int, first: str | None, second: str | None, schema: str | None, view: str | None) -> int:
        passes_view = first in limited and schema == "main" and view != first
        if passes_view:
            return sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_READ and first is not None:
            read_tables.add(first)
            # A statement may count the rows of a table that it defines itself: then no column is read.
            is_own = not second and not _SYSTEM_TABLE.match(first)
            is_allowed = is_own or first in readable
        elif action == sqlite3.SQLITE_FUNCTION:
            is_allowed = str(second).lower() in _FUNCTIONS
        else:
            is_allowed = action in _ALLOWED
        return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY

    return authorize


def _limit_heap() -> None:
    with sqlite3.connect(":memory:") as connection:
        connection.execute(f"PRAGMA hard_heap_limit = {_HEAP_BYTES}")


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _plain(value: Any) -> Any:
    """Return a value that JSON has."""
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if value in _INFINITE:
        return str(value)
    return value


SERVED = (load_database, run_query)
