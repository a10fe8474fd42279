"""The tables of a corpus: tables with the same columns are one table.

Forty monthly reports are one table, whose rows say which chunk, document and sheet they are from.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import isclose

from arag.retrieval.corpus.totals import label_of, role_of
from arag.retrieval.corpus.values import Kind, Value

CHUNK_ID, DOCUMENT, SHEET = "chunk_id", "document", "sheet"
ORIGINS = (CHUNK_ID, DOCUMENT, SHEET)  # the columns that every table has
CATALOGUE = "tables"  # the table of all tables
CATALOGUE_COLUMNS = ("name", "rows", "documents", "columns")

_MAX_SAMPLES = 2  # rows
_ROUNDED = 0.005  # of a sum: so much may rounded numbers differ from it


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
class ComparedUnit:
    """A text with a unit that a query compares with a column of numbers, whose unit is left out."""

    column: str
    unit: str
    text: str


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
class TablePart:
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
    parts: dict[str, dict[str, TablePart]] = field(repr=False)
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
            parts: dict[str, TablePart] = {}
            for document_id, part in self.parts[table.name].items():
                if document_id in wanted:
                    parts[document_id] = part
            if parts:
                tables.append(describe(table.name, table.columns, parts))
        return tuple(tables)


def describe(name: str, columns: tuple[TableColumn, ...], parts: dict[str, TablePart]) -> CorpusTable:
    """Return the table of what some documents have of it."""
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
