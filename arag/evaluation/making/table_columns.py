"""Reads the tables of a corpus in the form in which questions need them.

A question names its table by the document's title, so tables whose names are not unique are left out. So are total
rows, columns with long cells, and tables without a column that tells their rows apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import PurePosixPath
from statistics import median_low

from arag.evaluation.making.drafts import Draft
from arag.retrieval.corpus.table_rows import NAMELESS, Row, SourceTable, find_tables
from arag.retrieval.corpus.totals import label_of, role_of
from arag.retrieval.corpus.values import ColumnFormat, Value, find_format
from arag.retrieval.index import Index
from arag.retrieval.storage.batches import batches
from arag.retrieval.types import Chunk
from arag.text.normalise import HEADING_BOUNDARY

YEAR_LABEL = re.compile(r"\b(?:year|jahr|année|año|built|founded|opened|since|born|died)\b|年", re.IGNORECASE)

_DOCUMENTS_AT_ONCE = 50
_MIN_ROWS = 2
_MAX_CELL = 60  # characters; longer cells are texts, not values
_YEARS = range(1500, 2101)


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: its row, and its value, which is None if it is empty."""

    row: Row
    value: Value


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its label, the unit of its numbers, and a cell for each row."""

    label: str
    unit: str
    cells: Sequence[Cell]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition in words, and the rows that meet it: two or more, but not all."""

    words: str
    rows: Sequence[Row]


@dataclass(slots=True)
class Table:
    """A table that questions can be asked about.

    Attributes:
        name: What a question calls it.
        document: The id of its document.
        rows: Its rows, without totals.
        key: The column that tells the rows apart.
        texts: The columns of texts.
        numbers: The columns with a number in each row, neither years nor row numbers.
        times: The columns with a date or a year in each row.
        gaps: The columns that are empty in some rows, but not in most.
        conditions: What some of the rows have in common.
    """

    name: str
    document: str
    rows: Sequence[Row]
    key: str
    texts: list[Column] = field(default_factory=list)
    numbers: list[Column] = field(default_factory=list)
    times: list[Column] = field(default_factory=list)
    gaps: list[Column] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)

    def key_of(self, row: Row) -> str:
        """Return the cell that names a row."""
        return row.cells[self.key]

    def draft(self, kind: str, text: str, rows: Sequence[Row], **gold: object) -> Draft:
        """Return a question about some of its rows."""
        chunks = dict.fromkeys(row.chunk_id for row in rows)
        return Draft(kind, text, gold, tuple(chunks), (self.document,))


def read_tables(index: Index) -> list[Table]:
    """Return the tables of an index that questions can be asked about."""
    named: dict[str, list[Table | None]] = {}
    for document in _read_documents(index):
        for name, table in _name_tables(document):
            prepared = _prepare(name, document[0].document_id, table)
            named.setdefault(name.casefold(), []).append(prepared)
    return [tables[0] for tables in named.values() if len(tables) == 1 and tables[0] is not None]


def _read_documents(index: Index) -> Iterator[list[Chunk]]:
    """Yield the chunks of each document that may have a table."""
    view = index.store.open()
    ids = [document.id for document in index.documents()]
    for some in batches(ids, _DOCUMENTS_AT_ONCE):
        by_document: dict[str, list[Chunk]] = {}
        for chunk in view.chunks_of(some):
            by_document.setdefault(chunk.document_id, []).append(chunk)
        for chunks in by_document.values():
            if any("|" in chunk.text for chunk in chunks):
                yield chunks


def _name_tables(document: Sequence[Chunk]) -> Iterator[tuple[str, SourceTable]]:
    """Yield the tables of a document with their names: the document's title and the heading that says more."""
    first = document[0]
    title = first.title or PurePosixPath(first.document_id).name
    for table in find_tables(document):
        heading = table.rows[0].heading.split(HEADING_BOUNDARY)[-1]
        if not table.is_named:
            continue
        if heading and heading.casefold() not in title.casefold():
            yield f"the table “{heading}” of “{title}”", table
        else:
            yield f"“{title}”", table


def _prepare(name: str, document: str, source: SourceTable) -> Table | None:
    """Return a table as questions need it; None if they cannot tell its rows apart."""
    rows = [row for row in source.rows if not role_of(label_of(list(row.cells.values())))]
    labels = [label for label in source.columns if len(label) <= _MAX_CELL and not NAMELESS.fullmatch(label)]
    key = next((label for label in labels if _tells_apart(label, rows)), None)
    if key is None or len(rows) < _MIN_ROWS:
        return None
    table = Table(name, document, rows, key)
    for label in labels:
        if label != key:
            _add_column(table, label)
    return table


def _tells_apart(label: str, rows: Sequence[Row]) -> bool:
    """Return whether each row has another short text in a column, or another year."""
    cells = [row.cells.get(label, "") for row in rows]
    different = {cell.casefold() for cell in cells}
    if len(different) < len(rows) or not _are_short(cells):
        return False
    if find_format((("", cell, 1) for cell in cells), label).kind == "text":
        return "" not in different
    return bool(YEAR_LABEL.search(label)) and all(cell.isdigit() and int(cell) in _YEARS for cell in cells)


def _are_short(cells: Sequence[str]) -> bool:
    return max(map(len, cells)) <= _MAX_CELL and "\n" not in "".join(cells)


def _add_column(table: Table, label: str) -> None:
    """Put a column where questions look for it; one with long cells is left out."""
    texts = [row.cells.get(label, "") for row in table.rows]
    if not _are_short(texts):
        return
    form = find_format(((table.document, text or None, 1) for text in texts), label)
    cells = [Cell(row, form.read(row.cells.get(label), table.document)) for row in table.rows]
    column = Column(label, form.unit, cells)
    gaps = [cell for cell in cells if cell.value is None]
    if form.kind == "text":
        table.texts.append(column)
        table.conditions += _find_equal(column)
    elif not gaps:
        _add_values(table, column, form)
    if 0 < len(gaps) < len(cells) / 2:
        table.gaps.append(column)


def _add_values(table: Table, column: Column, form: ColumnFormat) -> None:
    """Add a column of dates, years or numbers that has a value in each row."""
    values = [cell.value for cell in column.cells]
    numbers = [value for value in values if isinstance(value, int | float)]
    if form.kind == "date" or (YEAR_LABEL.search(column.label) and len(numbers) == len(values)):
        table.times.append(column)
    elif len(numbers) == len(values) and _are_measured(numbers):
        table.numbers.append(column)
        table.conditions += _find_above(column, median_low(numbers))


def _are_measured(numbers: Sequence[float]) -> bool:
    """Return whether numbers count or measure something: they are neither years nor the numbers of the rows."""
    is_running = all(second - first == 1 for first, second in pairwise(numbers))
    return not is_running and not all(number in _YEARS for number in numbers)


def _find_equal(column: Column) -> list[Condition]:
    """Return the conditions that a column of texts gives: rows with the same text."""
    groups: dict[str, list[Row]] = {}
    for cell in column.cells:
        if cell.value:
            groups.setdefault(str(cell.value).casefold(), []).append(cell.row)
    conditions: list[Condition] = []
    for rows in groups.values():
        words = f"“{rows[0].cells[column.label]}” as “{column.label}”"
        conditions += _limit(words, rows, column)
    return conditions


def _find_above(column: Column, bound: float) -> list[Condition]:
    """Return the condition that a column of numbers gives: rows above their median."""
    rows = [cell.row for cell in column.cells if isinstance(cell.value, int | float) and cell.value > bound]
    return _limit(f"more than {bound:,.15g} as “{column.label}”", rows, column)


def _limit(words: str, rows: Sequence[Row], column: Column) -> list[Condition]:
    is_some = 2 <= len(rows) < len(column.cells)
    return [Condition(words, rows)] if is_some else []
