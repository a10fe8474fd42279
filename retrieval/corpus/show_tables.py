"""The text that a model is shown of tables and of the results of queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from arag.retrieval.corpus.sql import TableResults
from arag.retrieval.corpus.tables import CHUNK_ID, DOCUMENT, SHEET, CorpusTable, TableColumn
from arag.retrieval.corpus.values import Value
from arag.text.marks import list_marks, without_marks
from arag.text.normalise import CELL_BOUNDARY, count, shorten
from arag.text.tokens import count_tokens

_MAX_RESULT_TOKENS = 1_500  # as of the other results that may be long
_MAX_LIST_TOKENS = 800
_MAX_CELL = 300  # characters
_MAX_SAMPLE_CELL = 40
_MAX_COLUMNS = 30  # named of one table in the list
_MAX_MARKS = 2  # of the chunks of one row; of more chunks, the first is named
_HEAD = "Each row also has chunk_id, document, sheet. Query with SQLite's SELECT."
_NO_ORIGIN = "Select chunk_id, too, to cite rows."


@dataclass(frozen=True, slots=True)
class ShownTables:
    """What a model is shown."""

    text: str
    chunk_ids: tuple[str, ...] = ()
    """Ids of the chunks that are named in it."""
    evidence: tuple[str, ...] = ()
    """The values of the documents in it."""


def show_tables(results: TableResults) -> ShownTables:
    """Write the rows of a query, or the list of the tables."""
    if not results.sql:
        return ShownTables(_list_tables(results.tables))
    return _show_rows(results)


# --- rows ---


def _show_rows(results: TableResults) -> ShownTables:
    places = _shown_places(results)
    lines: list[str] = []
    evidence: list[str] = []
    chunk_ids: dict[str, None] = {}
    tokens = 0
    for row, origins in zip(results.rows, results.chunk_ids, strict=True):
        cells = without_marks(CELL_BOUNDARY.join(_write(row[place], _MAX_CELL) for place in places))
        line = f"{_write_origins(origins)} {cells}" if origins else cells
        tokens += count_tokens(line)
        if lines and tokens > _MAX_RESULT_TOKENS:
            break
        lines.append(line)
        evidence.append(cells)
        chunk_ids.update(dict.fromkeys(_named_origins(origins)))
    head = [f"{_write_total(results)}: {_write_names(results, places)}"]
    if results.rows and results.tables and not chunk_ids:
        head.append(_NO_ORIGIN)
    if len(lines) < results.total:
        head.append(
            f"The first {len(lines):,} are shown: group or filter them, or go on with LIMIT and OFFSET {len(lines)}."
        )
    return ShownTables(
        text="\n".join([" ".join(head), *lines]),
        chunk_ids=tuple(chunk_ids),
        evidence=("\n".join(evidence),),
    )


def _shown_places(results: TableResults) -> list[int]:
    """Return the places of the columns that are shown: those of the chunk and its document are in the marks."""
    names = [name.lower() for name in results.columns]
    hidden: set[str] = set()
    if all(results.chunk_ids) and CHUNK_ID in names:
        hidden.add(CHUNK_ID)
        if names.count(DOCUMENT) == 1 and _name_their_documents(results, names.index(DOCUMENT)):
            hidden.add(DOCUMENT)
    shown: list[int] = []
    for place, name in enumerate(names):
        is_empty = name == SHEET and all(row[place] is None for row in results.rows)
        if name not in hidden and not is_empty:
            shown.append(place)
    return shown


def _name_their_documents(results: TableResults, place: int) -> bool:
    for row, origins in zip(results.rows, results.chunk_ids, strict=True):
        document_id, _, _ = origins[0].rpartition(":")
        if row[place] != document_id:
            return False
    return True


def _write_total(results: TableResults) -> str:
    if results.is_complete:
        return count(results.total, "row")
    return f"At least {count(results.total, 'row')} (not all were counted in time)"


def _write_names(results: TableResults, places: Sequence[int]) -> str:
    """Return the names of the columns, with the units of those that are columns of a table."""
    units: dict[str, str] = {}
    for table in results.tables:
        for column in table.columns:
            units[column.name] = column.unit
    names: list[str] = []
    for place in places:
        name = results.columns[place]
        unit = units.get(name.lower())
        names.append(f"{name} ({unit})" if unit else name)
    return without_marks(shorten(CELL_BOUNDARY.join(names), _MAX_CELL))


def _write_origins(chunk_ids: Sequence[str]) -> str:
    named = _named_origins(chunk_ids)
    more = len(chunk_ids) - len(named)
    return f"{list_marks(named)} and {count(more, 'other')}:" if more else list_marks(named)


def _named_origins(chunk_ids: Sequence[str]) -> Sequence[str]:
    return chunk_ids if len(chunk_ids) <= _MAX_MARKS else chunk_ids[:1]


def _write(value: Value, length: int) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.12g}" if abs(value) < 1e15 else repr(value)
    return shorten(str(value), length)


# --- the list of tables ---


def _list_tables(tables: Sequence[CorpusTable]) -> str:
    """Write the tables, the largest first; if they are many, with less about each."""
    if not tables:
        return "There are no tables."
    ordered = sorted(tables, key=lambda table: (-table.rows, table.name))
    blocks: list[str] = []
    for samples in (2, 1, 0):
        blocks = [_describe_table(table, samples) for table in ordered]
        text = "\n".join([f"{count(len(tables), 'table')}. {_HEAD}", *blocks])
        if count_tokens(text) <= _MAX_LIST_TOKENS:
            return text
    return _list_some(ordered, blocks)


def _list_some(tables: Sequence[CorpusTable], blocks: Sequence[str]) -> str:
    """Write as many tables with their columns as fit into half of the space, and the names of others."""
    lines = [f"{count(len(tables), 'table')}, the largest first. {_HEAD}"]
    tokens = 0
    shown = 0
    for block in blocks:
        tokens += count_tokens(block)
        if shown and tokens > _MAX_LIST_TOKENS // 2:
            break
        lines.append(block)
        shown += 1
    names: list[str] = []
    for table in tables[shown:]:
        name = f"{table.name} ({table.rows:,})"
        tokens += count_tokens(name) + 1
        if tokens > _MAX_LIST_TOKENS:
            break
        names.append(name)
    if names:
        lines.append(f"Others, with their rows: {', '.join(names)}")
    left_out = len(tables) - shown - len(names)
    if left_out:
        lines.append(f"and {left_out:,} more: name documents with `within`, or SELECT * FROM tables WHERE ...")
    return "\n".join(lines)


def _describe_table(table: CorpusTable, samples: int) -> str:
    columns = [_describe_column(column) for column in table.columns[:_MAX_COLUMNS]]
    more = len(table.columns) - _MAX_COLUMNS
    if more > 0:
        columns.append(f"and {count(more, 'more column')}")
    origin = f"{count(table.rows, 'row')}, {_describe_documents(table.documents)}"
    lines = [f"{table.name} ({origin}): {', '.join(columns)}"]
    for row in table.samples[:samples]:
        cells = [_write(value, _MAX_SAMPLE_CELL) for value in row[:_MAX_COLUMNS]]
        lines.append(f"  {CELL_BOUNDARY.join(cells)}")
    return without_marks("\n".join(lines))


def _describe_documents(document_ids: Sequence[str]) -> str:
    first = shorten(document_ids[0], _MAX_SAMPLE_CELL)
    if len(document_ids) == 1:
        return first
    last = shorten(document_ids[-1], _MAX_SAMPLE_CELL)
    return f"{count(len(document_ids), 'document')}: {first} … {last}"


def _describe_column(column: TableColumn) -> str:
    kind = "" if column.kind == "text" else f" {column.kind}"
    unit = f" {column.unit}" if column.unit else ""
    return f"{column.name}{kind}{unit}"
