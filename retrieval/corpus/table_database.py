"""Writes the tables of a corpus as one SQLite database, and keeps it."""

from __future__ import annotations

import sqlite3
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from secrets import token_hex
from weakref import WeakKeyDictionary

from arag.errors import InputError
from arag.retrieval.corpus.table_names import find_shared_words, free_name, sql_name
from arag.retrieval.corpus.table_rows import SourceTable, find_tables
from arag.retrieval.corpus.tables import (
    CATALOGUE,
    CHUNK_ID,
    DOCUMENT,
    ORIGINS,
    SHEET,
    ColumnTexts,
    CorpusTable,
    TableColumn,
    TableDatabase,
    TablePart,
    describe,
)
from arag.retrieval.corpus.totals import role_of
from arag.retrieval.corpus.values import ColumnFormat, Value, find_format, share_marks
from arag.retrieval.storage.batches import batches
from arag.retrieval.storage.contract import View
from arag.retrieval.types import Chunk

MAX_DATABASE_BYTES = 256_000_000  # about two million rows; the process that queries it needs as much again

_MAX_COLUMNS = 500  # of a table, further ones are left out: SQLite's own limit is 2,000
_NAMING_COLUMNS = 2  # that a table is named by if nothing else names it
_DOCUMENTS_PER_QUERY = 50
_PAGE_BYTES = 4_096


@dataclass
class _Group:
    """Tables with the same columns, whose rows wait in a table of texts until all have been read."""

    waiting: str
    labels: list[str]
    is_named: bool
    documents: dict[str, None] = field(default_factory=dict)
    headings: dict[str, None] = field(default_factory=dict)
    titles: dict[str, None] = field(default_factory=dict)


def build_database(view: View) -> TableDatabase:
    """Read the tables of a view's documents.

    Raises:
        InputError: The tables are too large.
    """
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        database.execute(f"PRAGMA max_page_count = {MAX_DATABASE_BYTES // _PAGE_BYTES}")
        database.execute("ATTACH '' AS waiting")  # which may be on disk
        database.execute("PRAGMA waiting.journal_mode = OFF")
        groups = _read_documents(view, database)
        try:
            tables, parts, total_rows, texts = _write_tables(database, groups)
        except sqlite3.OperationalError as error:
            if "full" not in str(error):
                raise
            raise InputError(
                f"the tables take more than {MAX_DATABASE_BYTES // 1_000_000} MB: limit the index to fewer documents"
            ) from error
        return TableDatabase(token_hex(16), tables, parts, total_rows, texts, image=database.serialize())


def _read_documents(view: View, database: sqlite3.Connection) -> list[_Group]:
    """Read the rows of all tables."""
    groups: dict[frozenset[str], _Group] = {}
    for ids in batches(_documents_with_bars(view), _DOCUMENTS_PER_QUERY):
        chunks_by_document: dict[str, list[Chunk]] = {}
        for chunk in view.chunks_of(ids):
            chunks_by_document.setdefault(chunk.document_id, []).append(chunk)
        for document_id, chunks in chunks_by_document.items():
            for table in find_tables(chunks):
                group = _add_table(table, document_id, groups, database)
                group.titles[chunks[0].title] = None
    return list(groups.values())


def _documents_with_bars(view: View) -> list[str]:
    """Return the ids of the documents that may have tables."""
    rows = view.query(
        f"SELECT DISTINCT document_id FROM {view.chunks_table} JOIN contents ON contents.number = chunks.number "
        "WHERE contents.text LIKE ?",
        "%|%",
    )
    return sorted(document_id for (document_id,) in rows)


def _add_table(
    table: SourceTable, document_id: str, groups: dict[frozenset[str], _Group], database: sqlite3.Connection
) -> _Group:
    """Add the rows of a table to those with the same columns."""
    labels: dict[str, str] = {}
    for label in islice(table.columns, _MAX_COLUMNS):
        labels.setdefault(label.casefold(), label)
    key = frozenset(labels)
    group = groups.get(key)
    if group is None:
        group = _Group(f"waiting.rows_{len(groups)}", list(labels.values()), table.is_named)
        groups[key] = group
        columns = ", ".join([*ORIGINS, *_numbered_columns(group)])
        database.execute(f"CREATE TABLE {group.waiting} ({columns})")
    group.documents[document_id] = None
    places = {label.casefold(): place for place, label in enumerate(group.labels)}
    rows: list[list[str | None]] = []
    for row in table.rows:
        cells: list[str | None] = [None] * len(places)
        for label, cell in row.cells.items():
            place = places.get(label.casefold())
            if place is not None:
                cells[place] = cell
        rows.append([row.chunk_id, document_id, row.heading or None, *cells])
        group.headings[row.heading] = None
    database.executemany(f"INSERT INTO {group.waiting} VALUES ({_marks(group)})", rows)
    return group


def _numbered_columns(group: _Group) -> list[str]:
    return [f"c{place}" for place in range(len(group.labels))]


def _marks(group: _Group) -> str:
    """Return the question marks of an INSERT statement."""
    return ", ".join("?" * (len(ORIGINS) + len(group.labels)))


def _write_tables(
    database: sqlite3.Connection, groups: list[_Group]
) -> tuple[dict[str, CorpusTable], dict[str, dict[str, TablePart]], dict[str, list[int]], list[ColumnTexts]]:
    """Write the tables, and the table of all tables."""
    tables: dict[str, CorpusTable] = {}
    parts: dict[str, dict[str, TablePart]] = {}
    total_rows: dict[str, list[int]] = {}
    texts: list[ColumnTexts] = []
    database.execute(f"CREATE TABLE {CATALOGUE} (name TEXT, rows INTEGER, documents INTEGER, columns TEXT)")
    for group in groups:
        name = free_name(_name_group(group), {*tables, CATALOGUE})
        columns, parts[name], total_rows[name] = _write_table(database, name, group)
        texts += _find_texts(database, name, columns)
        table = describe(name, columns, parts[name])
        tables[name] = table
        column_names = ", ".join(column.name for column in columns)
        values = (name, table.rows, len(table.documents), column_names)
        database.execute(f"INSERT INTO {CATALOGUE} VALUES (?, ?, ?, ?)", values)
    database.commit()
    return tables, parts, total_rows, texts


def _write_table(
    database: sqlite3.Connection, name: str, group: _Group
) -> tuple[tuple[TableColumn, ...], dict[str, TablePart], list[int]]:
    """Write the rows of a group as a table; return its columns, what each document has of it, and its totals."""
    formats: list[ColumnFormat] = []
    for waiting, label in zip(_numbered_columns(group), group.labels, strict=True):
        cells = database.execute(f"SELECT {DOCUMENT}, {waiting}, count(*) FROM {group.waiting} GROUP BY 1, 2")
        formats.append(find_format(_without_totals(cells), label))
    formats = share_marks(formats)
    columns = _name_columns(group.labels, formats)
    definitions = [f"{CHUNK_ID} TEXT"]
    for column in columns:
        affinity = "NUMERIC" if column.kind == "number" else "TEXT"
        definitions.append(f'"{column.name}" {affinity}')
    definitions += [f"{DOCUMENT} TEXT", f"{SHEET} TEXT"]
    database.execute(f'CREATE TABLE "{name}" ({", ".join(definitions)})')
    parts: defaultdict[str, TablePart] = defaultdict(TablePart)
    total_rows: list[int] = []
    rows = _read_rows(database, group, formats, parts, total_rows)
    database.executemany(f'INSERT INTO "{name}" VALUES ({_marks(group)})', rows)
    return columns, parts, total_rows


def _find_texts(database: sqlite3.Connection, name: str, columns: Sequence[TableColumn]) -> list[ColumnTexts]:
    """Return the texts in a table's columns of numbers."""
    found: list[ColumnTexts] = []
    for column in columns:
        if column.kind != "number":
            continue
        with_texts = f"""FROM "{name}" WHERE typeof("{column.name}") = 'text'"""
        rows = database.execute(f'SELECT _rowid_, "{column.name}" {with_texts} ORDER BY 1').fetchall()
        if rows:
            _, first = rows[0]
            found.append(ColumnTexts(name, column.name, first, [number for number, _ in rows]))
    return found


def _without_totals(cells: Iterable[tuple[str, str | None, int]]) -> Iterator[tuple[str, str | None, int]]:
    """Yield the cells of a column without the names of totals, which may stand above the last prices."""
    for document_id, cell, times in cells:
        if cell is None or role_of(cell) not in {"total", "below totals"}:
            yield document_id, cell, times


def _name_columns(labels: Sequence[str], formats: Sequence[ColumnFormat]) -> tuple[TableColumn, ...]:
    columns: list[TableColumn] = []
    taken = set(ORIGINS)
    for label, column_format in zip(labels, formats, strict=True):
        name = free_name(sql_name(label), taken)
        taken.add(name)
        columns.append(TableColumn(name, label, column_format.kind, column_format.unit))
    return tuple(columns)


def _read_rows(
    database: sqlite3.Connection,
    group: _Group,
    formats: Sequence[ColumnFormat],
    parts: defaultdict[str, TablePart],
    total_rows: list[int],
) -> Iterator[list[Value]]:
    """Yield the rows of a table, with the values of their cells; note what each document has of it, and its totals."""
    rows = database.execute(f"SELECT * FROM {group.waiting}")
    for number, (chunk_id, document_id, sheet, *cells) in enumerate(rows, 1):
        for place, column_format in enumerate(formats):
            cells[place] = column_format.read(cells[place], document_id)
        is_total = parts[document_id].add(cells)
        if is_total:
            total_rows.append(number)
        yield [chunk_id, *cells, document_id, sheet]


def _name_group(group: _Group) -> str:
    """Return a name for a table: of what its documents share, else of its columns."""
    if not group.is_named:
        return f"rows_of_{len(group.labels)}"
    words = find_shared_words(group.documents, group.headings, group.titles)
    return sql_name(" ".join(words or group.labels[:_NAMING_COLUMNS]))


# --- the databases that are kept ---

_lock = threading.Lock()
_databases: WeakKeyDictionary[View, TableDatabase] = WeakKeyDictionary()  # the one that was used last is at the end


def open_database(view: View) -> TableDatabase:
    """Return the tables of a view's documents. They are kept for later calls, until there are too many.

    Raises:
        InputError: The tables are too large.
    """
    with _lock:
        database = _databases.pop(view, None) or build_database(view)
        _databases[view] = database
        while sum(len(kept.image) for kept in _databases.values()) > MAX_DATABASE_BYTES:
            oldest, _ = next(iter(_databases.items()))
            del _databases[oldest]
        return database
