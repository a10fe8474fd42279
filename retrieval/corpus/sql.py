"""Queries over all tables of a corpus, in SQL."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from rapidfuzz.distance import OSA

from arag.errors import InputError, StorageError
from arag.retrieval.corpus.statements import (
    as_written,
    find_compared,
    find_sources,
    first_word,
    may_make_column,
    resolve_names,
    with_origins,
    without_fence,
)
from arag.retrieval.corpus.table_database import open_database
from arag.retrieval.corpus.tables import (
    CATALOGUE,
    CATALOGUE_COLUMNS,
    CHUNK_ID,
    ORIGINS,
    ColumnTexts,
    ComparedUnit,
    CorpusTable,
    TableDatabase,
)
from arag.retrieval.corpus.values import Value, read_number
from arag.retrieval.search.reading import find_meant
from arag.retrieval.storage.contract import View
from arag.system.worker_pool import WorkerPool
from arag.system.worker_process import RaisedInWorkerError, WorkerError
from arag.text.normalise import shorten
from arag.text.surrogates import replace_surrogates

MAX_ROWS = 1_000  # that a query returns; further ones are counted
MAX_SQL_CHARACTERS = 10_000

_SECONDS = 5.0  # of one query
_SECONDS_TO_ANSWER = 8.0  # after which the process is ended: SQLite cannot be interrupted everywhere
_SECONDS_TO_LOAD = 60.0
_MEMORY_BYTES = 2_000_000_000  # of a process: a database arrives in several copies
_MAX_RUNNING = 2  # processes: more queries at once take more memory, and fewer wait for each other
_MAX_DOCUMENTS = 1_000  # that `within` may name
_MAX_SHOWN = 100  # characters of what a message quotes
_MAX_LISTED = 40  # names in a message
_MAX_CLOSEST = 3
_MAX_EDITS = 0.4  # of a name's letters, for another to be close
_ADDS = re.compile(r"\b(?:sum|avg|count|total)\s*\(", re.IGNORECASE)
_COMPARES = re.compile(
    r"[<>]|!=|\bbetween\b|\border\s+by\b|\b(?:min|max|avg|median|percentile)\s*\(", re.IGNORECASE
)  # texts with numbers
# Values that differ from run to run, or that a view without some rows does not have.
_CANNOT_BE_COMPARED = re.compile(r"\b(?:random\w*|now|current_\w+|_?rowid_?|oid)\b", re.IGNORECASE)
_MAX_SECONDS_TO_COMPARE = 1.0  # of a query that is run again without some rows; they are noted for a slower one
_WORD = re.compile(r"\w+")
_QUERIES = frozenset(["SELECT", "WITH", "VALUES", "EXPLAIN", "("])  # what a statement that reads begins with
_NOT_ALLOWED = re.compile(r"not authorized|prohibited|not a query|one statement at a time|readonly|query_only")

_POOL = WorkerPool(
    "arag.retrieval.corpus.sql_worker", memory_bytes=_MEMORY_BYTES, running=_MAX_RUNNING, idle=_MAX_RUNNING
)


@dataclass(frozen=True, slots=True)
class TableResults:
    """The result of a query over the tables of a corpus; without a query, its tables."""

    sql: str
    """The query; empty if there was none."""
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    """At most 1,000 rows."""
    chunk_ids: tuple[tuple[str, ...], ...]
    """For each row, the chunks that it is from, as far as they are known."""
    total: int
    """How many rows there are; at least so many, if it is not complete."""
    is_complete: bool
    """Whether all rows were counted within the time limit."""
    tables: tuple[CorpusTable, ...]
    """The tables that the query read; without a query, all tables."""
    counted_totals: tuple[CorpusTable, ...] = ()
    """Those of them whose rows of totals change a sum, a mean or a number that the query asks for."""
    compared_texts: tuple[ColumnTexts, ...] = ()
    """The texts in columns of numbers that change the result of a comparison, an order or a mean."""

    compared_units: tuple[ComparedUnit, ...] = ()
    """The texts with units that it compares with numbers, such as `'12 kg'`: no number is equal to them."""

    @property
    def truncated(self) -> bool:
        """Whether there are more rows than these."""
        return not self.is_complete or len(self.rows) < self.total


def query_tables(view: View, sql: str, within: str) -> TableResults:
    """Run a query; see `Index.query_tables`."""
    document_ids = _find_documents(view, within)
    database = open_database(view)
    sql = without_fence(sql)
    if not sql:
        return TableResults(
            sql="",
            columns=(),
            rows=(),
            chunk_ids=(),
            total=0,
            is_complete=True,
            tables=database.list_tables(document_ids),
        )
    if len(sql) > MAX_SQL_CHARACTERS:
        raise InputError(f"the query has {len(sql):,} characters: give at most {MAX_SQL_CHARACTERS:,}")
    resolved = resolve_names(replace_surrogates(sql).replace("\0", ""), database.tables)
    statements = [*with_origins(resolved), resolved]
    start = time.monotonic()
    answer = _run(database, statements, document_ids, left_out={})
    seconds = time.monotonic() - start
    if "error" in answer:
        raise InputError(_explain(answer["error"], resolved, database.tables))
    is_as_written = answer["statement"] == len(statements) - 1
    results = _make_results(sql, answer, database, view, has_origins=not is_as_written)
    results = replace(results, compared_units=_find_compared_units(results.tables, resolved))
    if _CANNOT_BE_COMPARED.search(sql):
        return results

    def differs_without(left_out: Mapping[str, Sequence[int]]) -> bool:
        if seconds >= _MAX_SECONDS_TO_COMPARE:
            return True
        other = _run(database, [statements[answer["statement"]]], document_ids, left_out)
        is_same: bool = other.get("rows") == answer["rows"]
        return not is_same

    return replace(
        results,
        counted_totals=_find_counted_totals(results, database, differs_without),
        compared_texts=_find_compared_texts(results, database, resolved, differs_without),
    )


def _find_compared_units(tables: Sequence[CorpusTable], statement: str) -> tuple[ComparedUnit, ...]:
    """Return the texts with units that a query compares with columns of numbers."""
    units: dict[str, str] = {}
    for table in tables:
        for column in table.columns:
            units[column.name] = units.get(column.name) or column.unit
    found: list[ComparedUnit] = []
    for name, text in find_compared(statement, units):
        unit = units.get(name)
        if unit and _has_unit(text, unit):
            found.append(ComparedUnit(name, unit, text))
    return tuple(found)


def _has_unit(text: str, unit: str) -> bool:
    """Return whether a text is a unit, or a number with any one; `%` around it is a wildcard if it is not the unit."""
    if unit != "%":
        text = text.strip("%")
    number = read_number(text)
    if number is None:
        return text.strip().casefold() == unit.casefold()
    return bool(number.unit)


def _find_counted_totals(
    results: TableResults, database: TableDatabase, differs_without: Callable[[Mapping[str, Sequence[int]]], bool]
) -> tuple[CorpusTable, ...]:
    """Return the tables without whose rows of totals a query gives other rows."""
    if not _ADDS.search(results.sql):
        return ()
    totals = {table.name: database.total_rows[table.name] for table in results.tables if table.totals}
    with_totals = tuple(table for table in results.tables if table.totals)
    if not totals or not differs_without(totals):
        return ()
    if len(totals) == 1:
        return with_totals
    return tuple(table for table in with_totals if differs_without({table.name: totals[table.name]}))


def _find_compared_texts(
    results: TableResults,
    database: TableDatabase,
    statement: str,
    differs_without: Callable[[Mapping[str, Sequence[int]]], bool],
) -> tuple[ColumnTexts, ...]:
    """Return the texts in columns of numbers without which a query that names the column gives other rows."""
    if not _COMPARES.search(statement):
        return ()
    tables = {table.name for table in results.tables}
    words = set(_WORD.findall(statement.lower()))
    named = [texts for texts in database.texts if texts.table in tables and texts.column in words]
    return tuple(texts for texts in named if differs_without({texts.table: texts.rows}))


def _find_documents(view: View, within: str) -> list[str] | None:
    """Return the documents that a call names; None for all."""
    if not within.strip():
        return None
    document_ids = find_meant(view, within, _MAX_DOCUMENTS + 1)
    shown = shorten(repr(within), _MAX_SHOWN)
    if len(document_ids) > _MAX_DOCUMENTS:
        raise InputError(f"more than {_MAX_DOCUMENTS:,} documents have {shown} in title or id: give more words")
    if not document_ids:
        raise InputError(f"no document has {shown} in its title or id")
    return list(document_ids)


def _run(
    database: TableDatabase,
    statements: Sequence[str],
    document_ids: list[str] | None,
    left_out: Mapping[str, Sequence[int]],
) -> dict[str, Any]:
    """Run a statement in a process for queries, which may have to be sent the database; some rows are left out."""
    arguments = (database.key, list(statements), document_ids, left_out, MAX_ROWS, _SECONDS)
    try:
        with _POOL.worker() as worker:
            answer: dict[str, Any] = worker.call("run_query", *arguments, seconds=_SECONDS_TO_ANSWER)
            if "is_missing" in answer:
                image = np.frombuffer(database.image, np.uint8)
                worker.call("load_database", database.key, image, seconds=_SECONDS_TO_LOAD)
                answer = worker.call("run_query", *arguments, seconds=_SECONDS_TO_ANSWER)
    except WorkerError as error:
        raise InputError(f"the query failed: {error}. Make it simpler") from error
    except RaisedInWorkerError as error:
        raise StorageError(f"the tables cannot be queried: {error}") from error
    return answer


def _make_results(
    sql: str, answer: Mapping[str, Any], database: TableDatabase, view: View, *, has_origins: bool
) -> TableResults:
    columns: list[str] = answer["columns"]
    rows: list[list[Value]] = answer["rows"]
    width = len(columns) - 1 if has_origins else len(columns)
    places = [place for place, column in enumerate(columns) if column.lower() == CHUNK_ID or place == width]
    if may_make_column(sql, CHUNK_ID):  # a model's own words are from no chunk
        places = []
    chunk_ids_by_row: list[list[str]] = []
    for row in rows:
        chunk_ids: list[str] = []
        for place in places:
            chunk_ids += _read_origins(row[place])
        chunk_ids_by_row.append(chunk_ids)
    return TableResults(
        sql=sql,
        columns=tuple(as_written(column, sql, database.tables) for column in columns[:width]),
        rows=tuple(tuple(row[:width]) for row in rows),
        chunk_ids=_only_known(chunk_ids_by_row, view),
        total=answer["total"],
        is_complete=answer["is_complete"],
        tables=tuple(database.tables[name] for name in answer["tables"]),
    )


def _read_origins(value: Any) -> list[str]:
    """Return the chunks that a value names: a JSON list, or one chunk."""
    try:
        return [str(chunk_id) for chunk_id in json.loads(value)]
    except (TypeError, ValueError, RecursionError):  # a query may name any value like the chunk
        return [str(value)]


def _only_known(chunk_ids_by_row: Sequence[Sequence[str]], view: View) -> tuple[tuple[str, ...], ...]:
    """Return the chunk ids of each row, each once: cells may have any text, but only chunks of the view are named."""
    known = view.row_ids(set().union(*chunk_ids_by_row))
    known_by_row: list[tuple[str, ...]] = []
    for chunk_ids in chunk_ids_by_row:
        distinct = dict.fromkeys(chunk_ids)
        known_by_row.append(tuple(chunk_id for chunk_id in distinct if chunk_id in known))
    return tuple(known_by_row)


# --- messages ---


def _explain(error: str, sql: str, tables: Mapping[str, CorpusTable]) -> str:
    """Return what is wrong with a query, and what is valid."""
    if error == "interrupted":
        return f"the query took more than {_SECONDS:.0f} seconds: make it simpler, or join fewer rows"
    if error in {"out of memory", "string or blob too big"}:
        return "the query needs too much memory: make it simpler"
    first = first_word(sql)
    why_refused = f" ({error})" if _NOT_ALLOWED.search(error) else ""
    if first.upper() not in _QUERIES:
        why_refused = f", and this begins with {shorten(first, _MAX_SHOWN)}"
    if why_refused:
        return f"only one SELECT over the tables is allowed{why_refused}; the table `{CATALOGUE}` lists them"
    problem, _, name = error.partition(": ")
    if problem == "no such table":
        return _explain_table(name.removeprefix("main."), tables)
    if problem == "no such column":
        return _explain_column(name, sql, tables)
    return f"SQLite says: {shorten(error, _MAX_SHOWN)}"


def _explain_table(unknown: str, tables: Mapping[str, CorpusTable]) -> str:
    valid = "there are no tables at all"
    if tables:
        valid = f"tables: {_list(tables)}"
    return f"there is no table {shorten(unknown, _MAX_SHOWN)}{_closest(unknown, [*tables, CATALOGUE])}; {valid}"


def _explain_column(unknown: str, sql: str, tables: Mapping[str, CorpusTable]) -> str:
    columns_by_table = {table.name: [column.name for column in table.columns] for table in tables.values()}
    columns_by_table[CATALOGUE] = list(CATALOGUE_COLUMNS)
    sources = find_sources(sql, columns_by_table)
    owner, _, name = unknown.rpartition(".")
    named = set(sources.values())
    if owner.lower() in sources:  # only its columns are valid
        named = {sources[owner.lower()]}
    columns: dict[str, None] = {}
    for table, its_columns in columns_by_table.items():
        if table in named:
            columns.update(dict.fromkeys(its_columns))
    if named != {CATALOGUE}:
        columns.update(dict.fromkeys(ORIGINS))
    hint = _closest(name, columns)
    having = [table for table, its_columns in columns_by_table.items() if name.lower() in its_columns]
    if having:  # the column is of another table, or a query within this one does not select it
        hint = f" here, but in {_list(having, _MAX_CLOSEST)}"
    of = f" of {_list(sorted(named), _MAX_CLOSEST)}" if named else ""
    shown = shorten(unknown, _MAX_SHOWN)
    return f"there is no column {shown}{hint}; columns{of}: {_list(columns)}. Texts need single quotes"


def _closest(name: str, valid: Collection[str]) -> str:
    """Return the names that may be meant, as a part of a message."""
    name = name.lower().strip('"`')
    near: list[tuple[int, str]] = []
    for other in valid:
        edits = OSA.distance(name, other)
        if edits <= _MAX_EDITS * len(name) or name in other:
            near.append((edits, other))
    if not near:
        return ""
    closest = [other for _, other in sorted(near)]
    return f" (closest: {', '.join(closest[:_MAX_CLOSEST])})"


def _list(names: Collection[str], most: int = _MAX_LISTED) -> str:
    listed = list(names)
    more = len(listed) - most
    if more > 0:
        return f"{', '.join(listed[:most])} and {more:,} more"
    return ", ".join(listed)
