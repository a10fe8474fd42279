"""Makes questions from tables by rules, without a model: what a cell says, counts, lists, extremes, differences.

A question names its table by the document's title, so tables whose names are not unique are left out. So are total
rows, long cells, and tables without a column that tells their rows apart.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath
from random import Random
from statistics import median_low
from typing import Any

from arag.evaluation.making.drafts import Draft
from arag.retrieval.corpus.table_rows import LABEL, UNNAMED, Row, SourceTable, find_tables
from arag.retrieval.corpus.tables import is_total
from arag.retrieval.corpus.values import ColumnFormat, Value, find_format
from arag.retrieval.index import Index
from arag.retrieval.storage.batches import batches
from arag.retrieval.types import Chunk
from arag.text.normalise import HEADING_BOUNDARY

_DOCUMENTS_AT_ONCE = 50
_MIN_ROWS = 2
_MAX_CELL = 60  # characters; longer cells are texts, not values
_MAX_ITEMS = 8  # of a list that is asked for
_YEAR_LABEL = re.compile(r"\b(?:year|jahr|année|año|built|founded|opened|since|born|died)\b|年", re.IGNORECASE)
_YEARS = range(1500, 2101)
_WORDS = re.compile(r"[A-Za-z][a-z]+(?: [a-z]+)*")
_VAGUE = {"name", "title", "item", "id", "no", "number", "key", "code", "entry"}
_CODE = re.compile(r"(\D*)(\d+)")


@dataclass(frozen=True, slots=True)
class Table:
    """A table that questions can be asked about.

    Attributes:
        name: What a question calls it.
        document: The id of its document.
        rows: Its rows, without totals.
        key: The column that tells the rows apart.
        formats: How the cells of each other column are read, by the column's label.
    """

    name: str
    document: str
    rows: Sequence[Row]
    key: str
    formats: dict[str, ColumnFormat]

    def value(self, row: Row, column: str) -> Value:
        """Return the value of a cell; None if it is empty."""
        return self.formats[column].read(row.cells.get(column), self.document)

    def numbers(self, column: str) -> list[tuple[Row, float]]:
        """Return the rows with a number in a column, and the numbers."""
        found: list[tuple[Row, float]] = []
        for row in self.rows:
            value = self.value(row, column)
            if isinstance(value, int | float):
                found.append((row, value))
        return found

    def columns(self, kind: str, random: Random) -> list[str]:
        """Return the columns of a kind of values, in a random order."""
        columns = [column for column, form in self.formats.items() if form.kind == kind]
        random.shuffle(columns)
        return columns

    def draft(self, kind: str, text: str, rows: Sequence[Row], **gold: Any) -> Draft:
        """Return a question about some of its rows."""
        chunks = dict.fromkeys(row.chunk_id for row in rows)
        return Draft(kind, text, gold, tuple(chunks), (self.document,))


def read_tables(index: Index) -> list[Table]:
    """Return the tables of an index that questions can be asked about."""
    named: dict[str, list[Table]] = {}
    for document in _read_documents(index):
        for name, table in _name_tables(document):
            asked = _prepare(name, document[0].document_id, table)
            named.setdefault(name.casefold(), []).extend([] if asked is None else [asked])
    return [tables[0] for tables in named.values() if len(tables) == 1]


def _read_documents(index: Index) -> Iterator[list[Chunk]]:
    """Yield the chunks of each document that may have a table."""
    ids = [document.id for document in index.documents()]
    for some in batches(ids, _DOCUMENTS_AT_ONCE):
        by_document: dict[str, list[Chunk]] = {}
        for chunk in index.store.open().chunks_of(some):
            by_document.setdefault(chunk.document_id, []).append(chunk)
        for chunks in by_document.values():
            if any("|" in chunk.text for chunk in chunks):
                yield chunks


def _name_tables(document: Sequence[Chunk]) -> Iterator[tuple[str, SourceTable]]:
    """Yield the tables of a document with their names: the document's title and the heading that says more."""
    first = document[0]
    title = first.title or PurePosixPath(first.document_id).name
    for table in find_tables(document):
        if not table.is_named:
            continue
        heading = table.rows[0].heading.split(HEADING_BOUNDARY)[-1]
        if heading and heading.casefold() not in title.casefold():
            yield f"the table “{heading}” of “{title}”", table
        else:
            yield f"“{title}”", table


def _prepare(name: str, document: str, table: SourceTable) -> Table | None:
    """Return a table as questions need it; None if they cannot tell its rows apart."""
    rows = [row for row in table.rows if not is_total(list(row.cells.values()))]
    key = next((column for column in table.columns if _tells_apart(column, rows)), None)
    if key is None or len(rows) < _MIN_ROWS:
        return None
    formats: dict[str, ColumnFormat] = {}
    for column in table.columns:
        cells = Counter(row.cells.get(column) for row in rows)
        is_short = all(len(cell) <= _MAX_CELL and "\n" not in cell for cell in cells if cell)
        if column != key and is_short and _is_label(column):
            formats[column] = find_format((document, cell, times) for cell, times in cells.items())
    return Table(name, document, rows, key, formats)


def _is_label(column: str) -> bool:
    return column not in {LABEL, UNNAMED} and len(column) <= _MAX_CELL


def _tells_apart(column: str, rows: Sequence[Row]) -> bool:
    """Return whether each row has another short text in a column, or another year."""
    cells = [row.cells.get(column, "") for row in rows]
    if len({cell.casefold() for cell in cells}) < len(rows) or not all(cells) or not _is_label(column):
        return False
    is_year = _YEAR_LABEL.search(column) and all(cell.isdigit() and int(cell) in _YEARS for cell in cells)
    kind = find_format(("", cell, 1) for cell in cells).kind
    return bool(is_year) or (kind == "text" and all(len(cell) <= _MAX_CELL for cell in cells))


# --- questions ---


def ask_table(table: Table, kind: str, occurs: Callable[[str], bool], random: Random) -> Draft | None:
    """Return a question of a kind about a table; None if the table has none.

    Args:
        table: The table.
        kind: One of the kinds that rules can make.
        occurs: Says whether a text is anywhere in the corpus.
        random: Chooses columns and rows.
    """
    if kind == "absent":
        if random.random() < 0.5:
            return _ask_empty_cell(table, random) or _ask_unknown_row(table, occurs, random)
        return _ask_unknown_row(table, occurs, random) or _ask_empty_cell(table, random)
    return _MAKERS[kind](table, random)


def _ask_cell(table: Table, random: Random) -> Draft | None:
    for column in [*table.columns("number", random), *table.columns("text", random)]:
        row = random.choice(table.rows)
        value = table.value(row, column)
        cell = row.cells.get(column, "")
        if value is None or cell in _words_of(table, row):
            continue
        gold = _number(value, table.formats[column]) if isinstance(value, int | float) else {"answer": cell}
        return table.draft("look-up", _cell_question(table, row.cells[table.key], column), [row], **gold)
    return None


def _words_of(table: Table, row: Row) -> str:
    """Return the texts that a question about a row repeats."""
    return f"{table.name} {row.cells[table.key]}"


def _cell_question(table: Table, key: str, column: str) -> str:
    return f"What does {table.name} give as “{column}” for the {_plain(table.key)} “{key}”?"


def _number(value: float, form: ColumnFormat) -> dict[str, Any]:
    if form.unit:
        return {"number": {"value": value, "unit": form.unit}}
    return {"number": value}


def _plain(label: str) -> str:
    """Return the label of a column as a word in a sentence, or in quotation marks if it is none."""
    return label.lower() if _WORDS.fullmatch(label) else f"“{label}”"


def _ask_count(table: Table, random: Random) -> Draft | None:
    chosen = _choose_condition(table, random, most=len(table.rows) - 1)
    if chosen is None:
        return None
    condition, rows = chosen
    text = f"How many entries of {table.name} have {condition}?"
    return table.draft("counting", text, table.rows, number=len(rows))


def _ask_list(table: Table, random: Random) -> Draft | None:
    chosen = _choose_condition(table, random, most=min(_MAX_ITEMS, len(table.rows) - 1))
    if chosen is None:
        return None
    condition, rows = chosen
    text = f"Which entries of {table.name} have {condition}? Name each by its {_plain(table.key)}."
    return table.draft("list", text, rows, answers=[row.cells[table.key] for row in rows])


def _choose_condition(table: Table, random: Random, most: int) -> tuple[str, list[Row]] | None:
    """Return a condition on rows in words, and the rows that meet it: at least two, and at most `most`."""
    for column in table.columns("text", random):
        counts = Counter(row.cells.get(column, "").casefold() for row in table.rows)
        values = [cell for cell, times in counts.items() if cell and 2 <= times <= most]
        if values:
            value = random.choice(values)
            rows = [row for row in table.rows if row.cells.get(column, "").casefold() == value]
            return f"“{rows[0].cells[column]}” as “{column}”", rows
    for column in table.columns("number", random):
        numbers = table.numbers(column)
        if not _is_measured(table, column, numbers):
            continue
        bound = median_low(number for _, number in numbers)
        rows = [row for row, number in numbers if number > bound]
        if 2 <= len(rows) <= most:
            return f"more than {bound:,.15g} as “{column}”", rows
    return None


def _is_measured(table: Table, column: str, numbers: Sequence[tuple[Row, float]]) -> bool:
    """Return whether a column has a number in each row, and these are neither years nor row numbers."""
    values = [number for _, number in numbers]
    if len(values) < len(table.rows) or _YEAR_LABEL.search(column):
        return False
    is_running = all(second - first == 1 for first, second in pairwise(values))
    return not is_running and not all(value in _YEARS for value in values)


def _ask_extreme(table: Table, random: Random) -> Draft | None:
    for column in table.columns("number", random):
        numbers = table.numbers(column)
        if _is_measured(table, column, numbers):
            word, sign = random.choice([("highest", -1), ("lowest", 1)])
            ranked = sorted(numbers, key=lambda each: sign * each[1])
            if ranked[0][1] != ranked[1][1]:
                return table.draft("comparison", _which(table, word, column), table.rows, answer=_key_of(table, ranked))
    return None


def _which(table: Table, word: str, column: str) -> str:
    key = _plain(table.key)
    if key in _VAGUE or not _WORDS.fullmatch(table.key):
        return f"Which entry of {table.name} has the {word} “{column}”? Give its {key}."
    return f"Which {key} has the {word} “{column}” in {table.name}?"


def _key_of(table: Table, ranked: Sequence[tuple[Row, Any]]) -> str:
    return ranked[0][0].cells[table.key]


def _ask_date(table: Table, random: Random) -> Draft | None:
    columns = table.columns("date", random)
    columns += [column for column in table.columns("number", random) if _YEAR_LABEL.search(column)]
    for column in columns:
        dated = [(row, table.value(row, column)) for row in table.rows]
        known = [(row, value) for row, value in dated if value is not None]
        if len(known) < len(table.rows) or len({type(value) for _, value in known}) > 1:
            continue
        word = random.choice(["earliest", "latest"])
        ranked = sorted(known, key=lambda each: str(each[1]), reverse=word == "latest")
        if ranked[0][1] != ranked[1][1]:
            return table.draft("dates", _which(table, word, column), table.rows, answer=_key_of(table, ranked))
    return None


def _ask_difference(table: Table, random: Random) -> Draft | None:
    for column in table.columns("number", random):
        numbers = table.numbers(column)
        if not _is_measured(table, column, numbers):
            continue
        (first, high), (second, low) = sorted(random.sample(numbers, 2), key=lambda each: -each[1])
        if high == low:
            continue
        names = f"“{first.cells[table.key]}” than for “{second.cells[table.key]}”"
        text = f"By how much is “{column}” higher for {names} in {table.name}?"
        difference = round(high - low, 9)
        return table.draft("arithmetic", text, [first, second], **_number(difference, table.formats[column]))
    return None


def _ask_empty_cell(table: Table, random: Random) -> Draft | None:
    """Ask for a cell that is empty, in a column that most rows fill."""
    for column in random.sample(list(table.formats), len(table.formats)):
        empty = [row for row in table.rows if not row.cells.get(column)]
        if 0 < len(empty) < len(table.rows) / 2:
            row = random.choice(empty)
            return table.draft("absent", _cell_question(table, row.cells[table.key], column), [row], absent=True)
    return None


def _ask_unknown_row(table: Table, occurs: Callable[[str], bool], random: Random) -> Draft | None:
    """Ask for a row that does not exist, if the rows are named by codes with a number: the next number is free."""
    matches = [_CODE.fullmatch(row.cells[table.key]) for row in table.rows]
    if not table.formats or not all(matches) or _YEAR_LABEL.search(table.key):
        return None
    codes = [match for match in matches if match]
    if len({code[1] for code in codes}) > len(codes) / 2:
        return None
    last = max(codes, key=lambda code: int(code[2]))
    number = int(last[2]) + 1 + random.randrange(5)
    key = f"{last[1]}{number:0{len(last[2])}}"
    if occurs(key):
        return None
    column = random.choice(list(table.formats))
    return table.draft("absent", _cell_question(table, key, column), table.rows[-1:], absent=True)


_MAKERS: dict[str, Callable[[Table, Random], Draft | None]] = {
    "look-up": _ask_cell,
    "counting": _ask_count,
    "list": _ask_list,
    "comparison": _ask_extreme,
    "dates": _ask_date,
    "arithmetic": _ask_difference,
}
