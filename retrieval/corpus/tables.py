"""The tables of a corpus as one SQLite database: tables with the same columns are one table.

Forty monthly reports are one table, whose rows say which chunk, document and sheet they are from.
"""

from __future__ import annotations

import re
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from math import isclose
from pathlib import PurePosixPath
from secrets import token_hex
from weakref import WeakKeyDictionary

from arag.errors import InputError
from arag.retrieval.corpus.table_rows import SourceTable, find_tables
from arag.retrieval.corpus.totals import label_of, role_of
from arag.retrieval.corpus.values import ColumnFormat, Kind, Value, find_format, share_marks
from arag.retrieval.storage.batches import batches
from arag.retrieval.storage.contract import View
from arag.retrieval.types import Chunk
from arag.text.normalise import HEADING_BOUNDARY

CHUNK_ID, DOCUMENT, SHEET = "chunk_id", "document", "sheet"
ORIGINS = (CHUNK_ID, DOCUMENT, SHEET)  # the columns that every table has
CATALOGUE = "tables"  # the table of all tables
CATALOGUE_COLUMNS = ("name", "rows", "documents", "columns")
MAX_DATABASE_BYTES = 256_000_000  # about two million rows; the process that queries it needs as much again

_MAX_COLUMNS = 500  # of a table, further ones are left out: SQLite's own limit is 2,000
_MAX_NAME = 40  # characters of the name of a table or a column
_MAX_SAMPLES = 2  # rows
_NAMING_COLUMNS = 2  # that a table is named by if nothing else names it
_DOCUMENTS_PER_QUERY = 50
_PAGE_BYTES = 4_096
_WORD = re.compile(r"[^\W_]+")
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_LANGUAGE = re.compile(r"(?:^|[._-])[a-z]{2}(?:[-_][A-Za-z]{2,4})?$")  # of `manual.en.html` and `zh-cn/`
_NOT_A_NAME = re.compile(r"\d|sqlite_")  # in SQL
_ROUNDED = 0.005  # of a sum: so much may rounded numbers differ from it
_SHEET_NAME = re.compile(r"(?:(?:sheet|tabelle|feuil|hoja|foglio)\s?\d*)?", re.IGNORECASE)


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
    totals: int = 0
    """How many rows are totals of others: sums would count these twice."""
    total_labels: tuple[str, ...] = ()
    """What each such row says that it is, such as `Total`."""


@dataclass(slots=True)
class ColumnTexts:
    """The texts in a column of numbers, which SQLite takes as greater than all numbers, and as 0 in a mean.

    Attributes:
        table: The table's name.
        column: The column's name.
        first: The first text.
        rows: The numbers of the rows that have them.
    """

    table: str
    column: str
    first: str
    rows: list[int] = field(default_factory=list)


@dataclass(slots=True)
class _Part:
    """What one document has of a table."""

    rows: int = 0
    total_labels: list[str] = field(default_factory=list)
    samples: list[tuple[Value, ...]] = field(default_factory=list)
    _sums: dict[int, float] = field(default_factory=dict)  # of each column, of all rows but totals
    _sums_below_total: dict[int, float] = field(default_factory=dict)  # and of those since the last total
    _is_below_total: bool = False

    def add(self, cells: Sequence[Value]) -> bool:
        """Add a row; return whether it is a total of others."""
        self.rows += 1
        if self.rows <= _MAX_SAMPLES:
            self.samples.append(tuple(cells))
        numbers = {place: cell for place, cell in enumerate(cells) if isinstance(cell, int | float)}
        label = label_of(cells)
        is_total = bool(numbers) and self._is_total(label, numbers)
        if is_total:
            self.total_labels.append(label)
            self._sums_below_total.clear()
        else:
            for sums in (self._sums, self._sums_below_total):
                for place, number in numbers.items():
                    sums[place] = sums.get(place, 0) + number
        self._is_below_total = is_total
        return is_total

    def _is_total(self, label: str, numbers: Mapping[int, float]) -> bool:
        match role_of(label):
            case "total":
                return True
            case "perhaps total":
                return self._has_sums(numbers)
            case "below totals":
                return self._is_below_total
            case _:
                return False

    def _has_sums(self, numbers: Mapping[int, float]) -> bool:
        """Return whether one of a row's numbers is the sum of those above it."""
        for place, number in numbers.items():
            for sums in (self._sums, self._sums_below_total):
                if number and isclose(number, sums.get(place, 0), rel_tol=_ROUNDED):
                    return True
        return False


@dataclass(frozen=True, slots=True)
class TableDatabase:
    """The tables of a view.

    Attributes:
        key: A name that no other database has.
        tables: The tables, by name.
        parts: What each document has of each table.
        total_rows: The numbers of the rows of each table that are totals of others.
        texts: The texts in columns of numbers.
        image: The SQLite database.
    """

    key: str
    tables: dict[str, CorpusTable]
    parts: dict[str, dict[str, _Part]] = field(repr=False)
    total_rows: dict[str, list[int]] = field(repr=False)
    texts: list[ColumnTexts] = field(repr=False)
    image: bytes = field(repr=False)

    def list_tables(self, document_ids: Collection[str] | None) -> tuple[CorpusTable, ...]:
        """Return the tables with the rows of some documents, or of all."""
        if document_ids is None:
            return tuple(self.tables.values())
        wanted = frozenset(document_ids)
        tables: list[CorpusTable] = []
        for table in self.tables.values():
            parts: dict[str, _Part] = {}
            for document_id, part in self.parts[table.name].items():
                if document_id in wanted:
                    parts[document_id] = part
            if parts:
                tables.append(_describe(table.name, table.columns, parts))
        return tuple(tables)


def _describe(name: str, columns: tuple[TableColumn, ...], parts: dict[str, _Part]) -> CorpusTable:
    samples: list[tuple[Value, ...]] = []
    total_labels: list[str] = []
    for part in parts.values():
        total_labels += part.total_labels
        samples += part.samples[: _MAX_SAMPLES - len(samples)]
    return CorpusTable(
        name=name,
        columns=columns,
        rows=sum(part.rows for part in parts.values()),
        documents=tuple(parts),
        samples=tuple(samples),
        totals=len(total_labels),
        total_labels=tuple(total_labels),
    )


# --- building ---


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
) -> tuple[dict[str, CorpusTable], dict[str, dict[str, _Part]], dict[str, list[int]], list[ColumnTexts]]:
    """Write the tables, and the table of all tables."""
    tables: dict[str, CorpusTable] = {}
    parts: dict[str, dict[str, _Part]] = {}
    total_rows: dict[str, list[int]] = {}
    texts: list[ColumnTexts] = []
    database.execute(f"CREATE TABLE {CATALOGUE} (name TEXT, rows INTEGER, documents INTEGER, columns TEXT)")
    for group in groups:
        name = _free_name(_name_group(group), {*tables, CATALOGUE})
        columns, parts[name], total_rows[name] = _write_table(database, name, group)
        texts += _find_texts(database, name, columns)
        table = _describe(name, columns, parts[name])
        tables[name] = table
        column_names = ", ".join(column.name for column in columns)
        values = (name, table.rows, len(table.documents), column_names)
        database.execute(f"INSERT INTO {CATALOGUE} VALUES (?, ?, ?, ?)", values)
    database.commit()
    return tables, parts, total_rows, texts


def _write_table(
    database: sqlite3.Connection, name: str, group: _Group
) -> tuple[tuple[TableColumn, ...], dict[str, _Part], list[int]]:
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
    parts: defaultdict[str, _Part] = defaultdict(_Part)
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
        name = _free_name(sql_name(label), taken)
        taken.add(name)
        columns.append(TableColumn(name, label, column_format.kind, column_format.unit))
    return tuple(columns)


def _read_rows(
    database: sqlite3.Connection,
    group: _Group,
    formats: Sequence[ColumnFormat],
    parts: defaultdict[str, _Part],
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


# --- names ---


def sql_name(label: str) -> str:
    """Return a name that SQL takes without quotation marks: in lower case, with `_` between words."""
    name = "_".join(_WORD.findall(label.lower()))[:_MAX_NAME].rstrip("_")
    if not name:
        return "column_1"
    if _NOT_A_NAME.match(name):
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


def _free_name(name: str, taken: set[str]) -> str:
    """Return a name that is not taken, with a number if need be."""
    free = name
    number = 1
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free


def _name_group(group: _Group) -> str:
    """Return a name for a table, of the words that all its documents, headings, titles or folders have in their names.

    Else these are the names of its columns.
    """
    if not group.is_named:
        return f"rows_of_{len(group.labels)}"
    files: list[PurePosixPath] = []
    for document_id in group.documents:
        files.append(PurePosixPath(document_id.partition("#")[0]))
    headings: list[str] = []
    for heading in group.headings:
        last = heading.rpartition(HEADING_BOUNDARY)[2]
        if not _SHEET_NAME.fullmatch(last):
            headings.append(last)
    words = _shared_words([_LANGUAGE.sub("", file.stem) for file in files])
    if len(headings) == 1 or not words:
        words += _shared_words(headings)
    if not words:
        words = _shared_words(list(group.titles))
    if not words:
        words = _shared_words([_LANGUAGE.sub("", file.parent.name) for file in files])
    return sql_name(" ".join(dict.fromkeys(words or group.labels[:_NAMING_COLUMNS])))


def _shared_words(names: Sequence[str]) -> list[str]:
    """Return the words of the first name that all have; of several names, words with two letters or more."""
    if not names:
        return []
    if len(names) == 1:
        return _WORD.findall(names[0].lower())
    shared = set(_LETTERS.findall(names[0].lower()))
    for name in names[1:]:
        shared.intersection_update(_LETTERS.findall(name.lower()))
    return [word for word in _LETTERS.findall(names[0].lower()) if word in shared]


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
