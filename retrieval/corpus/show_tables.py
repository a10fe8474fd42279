"""The text that a model is shown of tables and of the results of queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from arag.retrieval.corpus.sql import TableResults
from arag.retrieval.corpus.tables import CHUNK_ID, DOCUMENT, SHEET, ColumnTexts, ComparedUnit, CorpusTable
from arag.retrieval.corpus.values import Value
from arag.text.marks import list_marks, without_marks
from arag.text.normalise import CELL_BOUNDARY, count, shorten
from arag.text.tokens import count_tokens

_MAX_RESULT_TOKENS = 1_500  # as of the other results that may be long
_MAX_LIST_TOKENS = 800
_MAX_CELL = 300  # characters
_MAX_SAMPLE_CELL = 40
_MAX_PLAIN = 1e15  # larger numbers lose digits when they are rounded
_MAX_TOTALS = 3  # rows of totals that are named
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


def show_tables(results: TableResults, *, within: str = "within") -> ShownTables:
    """Write the rows of a query, or the list of the tables; `within` is what the caller names that argument."""
    if not results.sql:
        return ShownTables(_list_tables(results.tables, within))
    return _show_rows(results)


# --- rows ---


def _show_rows(results: TableResults) -> ShownTables:
    places = _shown_places(results)
    lines: list[str] = []
    evidence: list[str] = []
    chunk_ids: dict[str, None] = {}
    tokens = 0
    for row, origins in zip(results.rows, results.chunk_ids, strict=True):
        cells = _write_cells([row[place] for place in places], _MAX_CELL)
        named = origins
        if len(origins) > _MAX_MARKS:
            named = origins[:1]
        line = _write_origins(named, len(origins) - len(named)) + cells
        tokens += count_tokens(line)
        if lines and tokens > _MAX_RESULT_TOKENS:
            break
        lines.append(line)
        evidence.append(cells)
        chunk_ids.update(dict.fromkeys(named))
    head = [f"{_write_total(results)}: {_write_names(results, places)}", *_list_notes(results)]
    if len(lines) < results.total:
        head.append(
            f"The first {len(lines):,} are shown: group or filter them, or go on with LIMIT and OFFSET {len(lines)}."
        )
    return ShownTables(
        text="\n".join([" ".join(head), *lines]),
        chunk_ids=tuple(chunk_ids),
        evidence=("\n".join(evidence),),
    )


def _list_notes(results: TableResults) -> list[str]:
    notes: list[str] = []
    if results.rows and results.tables and not any(results.chunk_ids):
        notes.append(_NO_ORIGIN)
    notes += map(_write_totals, results.counted_totals)
    notes += map(_write_texts, results.compared_texts)
    notes += [f"({write_unit(compared)}.)" for compared in results.compared_units]
    return notes


def _write_totals(table: CorpusTable) -> str:
    labels = list(dict.fromkeys(table.total_labels))
    named = ", ".join(shorten(without_marks(label), _MAX_SAMPLE_CELL) for label in labels[:_MAX_TOTALS])
    more = ", ..." if len(labels) > _MAX_TOTALS else ""
    them = "it" if table.totals == 1 else "them"
    return f"({table.name} has {count(table.totals, 'row')} of totals, {named}{more}: leave {them} out of sums.)"


def _write_texts(texts: ColumnTexts) -> str:
    first = shorten(without_marks(texts.first), _MAX_SAMPLE_CELL)
    without = f"WHERE typeof({texts.column}) <> 'text'"
    return f"({texts.column} of {texts.table} also has texts, such as {first}: leave them out, {without}.)"


def write_unit(compared: ComparedUnit) -> str:
    """Say that a column of numbers is compared with a text."""
    text = shorten(without_marks(compared.text), _MAX_SAMPLE_CELL)
    return f"{compared.column} is a number, without its unit {compared.unit}: compare it with a number, not '{text}'"


def _shown_places(results: TableResults) -> list[int]:
    """Return the places of the columns that are shown: those of the chunk and its document are in the marks."""
    names = [name.lower() for name in results.columns]
    are_marked = CHUNK_ID in names and all(results.chunk_ids)
    places: list[int] = []
    for place, name in enumerate(names):
        values = [row[place] for row in results.rows]
        is_in_mark = are_marked and _is_in_marks(name, values, results.chunk_ids)
        is_empty = name == SHEET and not any(values)
        if not is_in_mark and not is_empty:
            places.append(place)
    return places


def _is_in_marks(name: str, values: Sequence[Value], chunk_ids: Sequence[Sequence[str]]) -> bool:
    """Return whether a column has the chunks that marks name, or these chunks' documents."""
    if name == DOCUMENT:
        return values == [first.rpartition(":")[0] for first, *_ in chunk_ids]
    return name == CHUNK_ID


def _write_total(results: TableResults) -> str:
    rows = count(results.total, "row")
    if results.is_complete:
        return rows
    return f"At least {rows} (not all were counted in time)"


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
        if unit:
            name = f"{name} ({unit})"
        names.append(name)
    return without_marks(shorten(CELL_BOUNDARY.join(names), _MAX_CELL))


def _write_origins(named: Sequence[str], more: int) -> str:
    if not named:
        return ""
    if not more:
        return f"{list_marks(named)} "
    return f"{list_marks(named)} and {count(more, 'other')}: "


def _write_cells(values: Sequence[Value], length: int) -> str:
    cells: list[str] = []
    for value in values:
        cells.append(_write(value, length))
    return without_marks(CELL_BOUNDARY.join(cells))


def _write(value: Value, length: int) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and abs(value) < _MAX_PLAIN:
        return f"{value:.12g}"
    return shorten(str(value), length)


# --- the list of tables ---


def _list_tables(tables: Sequence[CorpusTable], within: str) -> str:
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
    return _list_some(ordered, blocks, within)


def _list_some(tables: Sequence[CorpusTable], blocks: Sequence[str], within: str) -> str:
    """Write as many tables with their columns as fit into half of the space, and the names of others."""
    described = max(1, _count_fitting(blocks, _MAX_LIST_TOKENS // 2))
    names: list[str] = []
    for table in tables[described:]:
        names.append(f"{table.name} ({table.rows:,})")
    named = _count_fitting(names, _MAX_LIST_TOKENS // 2)
    left_out = len(names) - named
    lines = [f"{count(len(tables), 'table')}, the largest first. {_HEAD}", *blocks[:described]]
    if named:
        lines.append(f"Others, with their rows: {', '.join(names[:named])}")
    if left_out:
        lines.append(f"and {left_out:,} more: name documents with `{within}`, or SELECT * FROM tables WHERE ...")
    return "\n".join(lines)


def _count_fitting(texts: Sequence[str], max_tokens: int) -> int:
    """Return how many of the first texts have so many tokens together, with one more for what is between them."""
    tokens = 0
    for number, text in enumerate(texts):
        tokens += count_tokens(text) + 1
        if tokens > max_tokens:
            return number
    return len(texts)


def _describe_table(table: CorpusTable, samples: int) -> str:
    columns: list[str] = []
    for column in table.columns[:_MAX_COLUMNS]:
        kind = column.kind.removeprefix("text")
        columns.append(" ".join(f"{column.name} {kind} {column.unit}".split()))
    more = len(table.columns) - _MAX_COLUMNS
    if more > 0:
        columns.append(f"and {count(more, 'more column')}")
    rows = count(table.rows, "row")
    if table.totals:
        rows += f" with {count(table.totals, 'total')}"
    origin = f"{rows}, {_describe_documents(table.documents)}"
    lines = [without_marks(f"{table.name} ({origin}): {', '.join(columns)}")]
    for row in table.samples[:samples]:
        lines.append(f"  {_write_cells(row[:_MAX_COLUMNS], _MAX_SAMPLE_CELL)}")
    return "\n".join(lines)


def _describe_documents(document_ids: Sequence[str]) -> str:
    first = shorten(document_ids[0], _MAX_SAMPLE_CELL)
    if len(document_ids) == 1:
        return first
    last = shorten(document_ids[-1], _MAX_SAMPLE_CELL)
    return f"{count(len(document_ids), 'document')}: {first} … {last}"
