"""The tables of a corpus as one SQLite database: tables with the same columns are one table.

Forty monthly reports are one table, whose rows say which chunk, document and sheet they are from.
"""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import PurePosixPath
from secrets import token_hex
from weakref import WeakKeyDictionary

from arag.errors import InputError
from arag.retrieval.corpus.table_rows import SourceTable, find_tables
from arag.retrieval.corpus.values import ColumnFormat, DecimalMark, Kind, Value, find_format
from arag.retrieval.storage.batches import batches
from arag.retrieval.storage.contract import View
from arag.retrieval.types import Chunk
from arag.text.normalise import HEADING_BOUNDARY

CHUNK_ID, DOCUMENT, SHEET = "chunk_id", "document", "sheet"
ORIGINS = (CHUNK_ID, DOCUMENT, SHEET)  # the columns that every table has
CATALOGUE = "tables"  # the table of all tables
MAX_DATABASE_BYTES = 256_000_000  # about two million rows; the process that queries it needs as much again

_MAX_COLUMNS = 500  # of a table, further ones are left out: SQLite's own limit is 2,000
_MAX_KEPT = 16  # databases
_MAX_NAME = 40  # characters of the name of a table or a column
_MAX_SAMPLES = 2  # rows
_DOCUMENTS_PER_QUERY = 50
_PAGE_BYTES = 4_096
_WORD = re.compile(r"[^\W_]+")
_LETTERS = re.compile(r"[^\W\d_]+")
_SHEET_NAME = re.compile(r"(?:sheet|tabelle|feuil|hoja|foglio)\s?\d*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table."""

    name: str
    """Its name in SQL."""
    label: str
    """Its name in the documents."""
    kind: Kind
    """`number` if most cells are numbers, `date` if all are dates, which are in the form of ISO 8601, else `text`."""
    unit: str = ""
    """The unit that its numbers have in the documents, such as `%` or `€`."""


@dataclass(frozen=True, slots=True)
class CorpusTable:
    """All rows of the corpus that have the same columns."""

    name: str
    columns: tuple[TableColumn, ...]
    """Its columns, without `chunk_id`, `document` and `sheet`, which every table has."""
    rows: int
    documents: tuple[str, ...]
    """Ids of the documents that it is from, in order."""
    samples: tuple[tuple[Value, ...], ...]
    """Its first rows."""


@dataclass(slots=True)
class _Part:
    """The rows of a table that are from one document."""

    rows: int = 0
    samples: list[tuple[Value, ...]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class TableDatabase:
    """The tables of a view.

    Attributes:
        key: A name that no other database has.
        tables: The tables, by name.
        parts: What each document has of each table.
        image: The SQLite database.
    """

    key: str
    tables: dict[str, CorpusTable]
    parts: dict[str, dict[str, _Part]] = field(repr=False)
    image: bytes = field(repr=False)

    def list_tables(self, document_ids: frozenset[str] | None) -> tuple[CorpusTable, ...]:
        """Return the tables with the rows of some documents, or of all."""
        if document_ids is None:
            return tuple(self.tables.values())
        tables: list[CorpusTable] = []
        for table in self.tables.values():
            parts = {name: part for name, part in self.parts[table.name].items() if name in document_ids}
            if parts:
                tables.append(_describe(table.name, table.columns, parts))
        return tuple(tables)


def _describe(name: str, columns: tuple[TableColumn, ...], parts: dict[str, _Part]) -> CorpusTable:
    samples: list[tuple[Value, ...]] = []
    for part in parts.values():
        samples += part.samples[: _MAX_SAMPLES - len(samples)]
    return CorpusTable(
        name=name,
        columns=columns,
        rows=sum(part.rows for part in parts.values()),
        documents=tuple(parts),
        samples=tuple(samples),
    )


# --- building ---


@dataclass
class _Group:
    """Tables with the same columns, and where their rows wait until all have been read."""

    number: int
    labels: list[str]
    is_named: bool
    documents: dict[str, None] = field(default_factory=dict)
    headings: dict[str, None] = field(default_factory=dict)

    @property
    def keys(self) -> dict[str, int]:
        """The place of each column by its name, ignoring case."""
        return {label.casefold(): place for place, label in enumerate(self.labels)}


def build_database(view: View) -> TableDatabase:
    """Read the tables of a view's documents.

    Raises:
        InputError: The tables are too large.
    """
    with closing(sqlite3.connect("")) as staged, closing(sqlite3.connect(":memory:")) as database:
        staged.execute("PRAGMA journal_mode = OFF")
        groups = _stage_rows(view, staged)
        database.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        database.execute(f"PRAGMA max_page_count = {MAX_DATABASE_BYTES // _PAGE_BYTES}")
        try:
            tables, parts = _fill(database, staged, groups)
        except sqlite3.OperationalError as error:
            if "full" not in str(error):
                raise
            raise InputError(
                f"the tables take more than {MAX_DATABASE_BYTES // 1_000_000} MB: limit the index to fewer documents"
            ) from error
        return TableDatabase(key=token_hex(16), tables=tables, parts=parts, image=database.serialize())


def _stage_rows(view: View, staged: sqlite3.Connection) -> list[_Group]:
    """Write the rows of all tables into the database of rows that wait, which may be on disk."""
    groups: dict[frozenset[str], _Group] = {}
    for ids in batches(_documents_with_bars(view), _DOCUMENTS_PER_QUERY):
        chunks_by_document: dict[str, list[Chunk]] = {}
        for chunk in view.chunks_of(ids):
            chunks_by_document.setdefault(chunk.document_id, []).append(chunk)
        for document_id, chunks in chunks_by_document.items():
            for table in find_tables(chunks):
                _stage_table(table, document_id, groups, staged)
    return list(groups.values())


def _documents_with_bars(view: View) -> list[str]:
    """Return the ids of the documents that may have tables."""
    rows = view.query(
        f"SELECT DISTINCT document_id FROM {view.chunks_table} JOIN contents ON contents.number = chunks.number "
        "WHERE contents.text LIKE ?",
        "%|%",
    )
    return sorted(document_id for (document_id,) in rows)


def _stage_table(
    table: SourceTable, document_id: str, groups: dict[frozenset[str], _Group], staged: sqlite3.Connection
) -> None:
    labels = table.columns[:_MAX_COLUMNS]
    key = frozenset(label.casefold() for label in labels)
    group = groups.get(key)
    if group is None:
        group = _Group(len(groups), labels, table.is_named)
        groups[key] = group
        columns = ", ".join(f"c{place}" for place in range(len(labels)))
        staged.execute(f"CREATE TABLE g{group.number} ({', '.join(ORIGINS)}, {columns})")
    keys = group.keys
    places = {label: keys[label.casefold()] for label in labels}
    rows: list[list[str | None]] = []
    for row in table.rows:
        cells: list[str | None] = [None] * len(group.labels)
        for label, cell in row.cells.items():
            if label in places:
                cells[places[label]] = cell
        rows.append([row.chunk_id, document_id, row.heading or None, *cells])
        group.headings.setdefault(row.heading)
    marks = ", ".join("?" * (len(ORIGINS) + len(group.labels)))
    staged.executemany(f"INSERT INTO g{group.number} VALUES ({marks})", rows)
    group.documents.setdefault(document_id)


def _fill(
    database: sqlite3.Connection, staged: sqlite3.Connection, groups: list[_Group]
) -> tuple[dict[str, CorpusTable], dict[str, dict[str, _Part]]]:
    """Write the tables, and the table of all tables."""
    tables: dict[str, CorpusTable] = {}
    parts: dict[str, dict[str, _Part]] = {}
    database.execute(f"CREATE TABLE {CATALOGUE} (name TEXT, rows INTEGER, documents INTEGER, columns TEXT)")
    for group in groups:
        name = _free_name(_name_group(group), {*tables, CATALOGUE})
        columns, parts[name] = _write_table(database, staged, name, group)
        table = _describe(name, columns, parts[name])
        tables[name] = table
        column_names = ", ".join(column.name for column in columns)
        values = (name, table.rows, len(table.documents), column_names)
        database.execute(f"INSERT INTO {CATALOGUE} VALUES (?, ?, ?, ?)", values)
    database.commit()
    return tables, parts


def _write_table(
    database: sqlite3.Connection, staged: sqlite3.Connection, name: str, group: _Group
) -> tuple[tuple[TableColumn, ...], dict[str, _Part]]:
    """Write the rows of a group as a table; return its columns, and what each document has of it."""
    formats: list[ColumnFormat] = []
    for place in range(len(group.labels)):
        cells = staged.execute(f"SELECT {DOCUMENT}, c{place}, count(*) FROM g{group.number} GROUP BY 1, 2")
        formats.append(find_format(cells))
    columns: list[TableColumn] = []
    taken = set(ORIGINS)
    for label, column_format in zip(group.labels, formats, strict=True):
        column_name = _free_name(sql_name(label), taken)
        taken.add(column_name)
        columns.append(TableColumn(column_name, label, column_format.kind, column_format.unit))
    types = [f'"{column.name}" {"NUMERIC" if column.kind == "number" else "TEXT"}' for column in columns]
    definition = ", ".join([f"{CHUNK_ID} TEXT", *types, f"{DOCUMENT} TEXT", f"{SHEET} TEXT"])
    database.execute(f'CREATE TABLE "{name}" ({definition})')
    marks = ", ".join("?" * (len(columns) + len(ORIGINS)))
    parts: dict[str, _Part] = {}
    database.executemany(f'INSERT INTO "{name}" VALUES ({marks})', _read_rows(staged, group, formats, parts))
    return tuple(columns), parts


def _read_rows(
    staged: sqlite3.Connection, group: _Group, formats: Sequence[ColumnFormat], parts: dict[str, _Part]
) -> Iterator[list[Value]]:
    """Yield the rows of a table, with the values of their cells; note what each document has of it."""
    converted = [place for place, column_format in enumerate(formats) if column_format.kind != "text"]
    last_document = None
    part = _Part()
    marks: list[DecimalMark] = []
    for chunk_id, document_id, sheet, *cells in staged.execute(f"SELECT * FROM g{group.number}"):
        if document_id != last_document:
            marks = [column_format.decimal_mark_of(document_id) for column_format in formats]
            part = parts.setdefault(document_id, _Part())
            last_document = document_id
        for place in converted:
            cells[place] = formats[place].read(cells[place], marks[place])
        part.rows += 1
        if part.rows <= _MAX_SAMPLES:
            part.samples.append(tuple(cells))
        yield [chunk_id, *cells, document_id, sheet]


# --- names ---


def sql_name(label: str) -> str:
    """Return a name that SQL takes without quotation marks: in lower case, with `_` between words."""
    name = "_".join(_WORD.findall(label.lower()))[:_MAX_NAME].rstrip("_")
    if not name:
        return "column_1"
    if name[0].isdigit() or name.startswith("sqlite_"):
        name = f"_{name}"
    return f"{name}_" if _is_reserved(name) else name


@cache
def _is_reserved(name: str) -> bool:
    """Return whether SQLite takes a word for something else than a name."""
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            rows = connection.execute(f'SELECT {name} FROM (SELECT 7 AS "{name}") AS {name}').fetchall()
        except sqlite3.OperationalError:
            return True
    return rows != [(7,)]


def _free_name(name: str, taken: Iterable[str]) -> str:
    """Return a name that is not taken, with a number if need be."""
    others = set(taken)
    if name not in others:
        return name
    return next(numbered for number in count(2) if (numbered := f"{name}_{number}") not in others)


def _name_group(group: _Group) -> str:
    """Return a name for a table, of the words that all of its documents or headings have in their names."""
    if not group.is_named:
        return f"rows_of_{len(group.labels)}"
    documents = [_stem(document_id) for document_id in group.documents]
    headings: list[str] = []
    for heading in group.headings:
        last = heading.rpartition(HEADING_BOUNDARY)[2]
        if last and not _SHEET_NAME.fullmatch(last):
            headings.append(last)
    words = _shared_words(documents)
    if len(headings) == 1 or not words:
        words += [word for word in _shared_words(headings) if word not in words]
    if not words:
        words = _shared_words([PurePosixPath(document_id).parent.name for document_id in group.documents])
    return sql_name(" ".join(words or ["table"]))


def _shared_words(names: Sequence[str]) -> list[str]:
    """Return the words of the first name that all have; of several names, words with two letters or more."""
    if not names:
        return []
    pattern = _WORD if len(names) == 1 else _LETTERS
    shared = [word.lower() for word in pattern.findall(names[0])]
    for name in names[1:]:
        others = {word.lower() for word in pattern.findall(name)}
        shared = [word for word in shared if word in others and len(word) > 1]
    return list(dict.fromkeys(shared))


def _stem(document_id: str) -> str:
    """Return the name of a document's file without its extension."""
    name = document_id.partition("#")[0]
    return PurePosixPath(name).stem


# --- the databases that are kept ---


@dataclass
class _Slot:
    """A place for a database, and the lock of the thread that builds it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    database: TableDatabase | None = None


class _Databases:
    """The databases that were asked for last; each ends with its view."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slots: WeakKeyDictionary[View, _Slot] = WeakKeyDictionary()

    def get(self, view: View) -> TableDatabase:
        """Return the database of a view; build it if need be."""
        with self._lock:
            slot = self._slots.pop(view, None) or _Slot()
            self._slots[view] = slot  # at the end
        with slot.lock:
            if slot.database is None:
                slot.database = build_database(view)
            database = slot.database
        with self._lock:
            self._drop_oldest()
        return database

    def _drop_oldest(self) -> None:
        slots = list(self._slots.items())
        size = 0
        for number, (view, slot) in enumerate(reversed(slots)):
            if slot.database is not None:
                size += len(slot.database.image)
            if number and (number >= _MAX_KEPT or size > MAX_DATABASE_BYTES):
                self._slots.pop(view, None)


_databases = _Databases()


def open_database(view: View) -> TableDatabase:
    """Return the tables of a view's documents. They are kept for later calls.

    Raises:
        InputError: The tables are too large.
    """
    return _databases.get(view)
