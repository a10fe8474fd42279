"""Makes questions from tables by rules, without a model: what a cell says, counts, lists, extremes, differences."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from arag.evaluation.making.drafts import Draft
from arag.evaluation.making.table_columns import YEAR_LABEL, Cell, Column, Table

_MAX_ITEMS = 8  # of a list that is asked for
_WORDS = re.compile(r"[A-Za-z][a-z]+(?: [a-z]+)*")
_VAGUE = {"name", "title", "item", "id", "no", "number", "key", "code", "entry"}
_CODE = re.compile(r"(\D*)(\d+)")


def ask_table(table: Table, kind: str, occurs: Callable[[str], bool], random: Random) -> Draft | None:
    """Return a question of a kind about a table; None if the table has none, or the choice was bad.

    Args:
        table: The table.
        kind: One of the kinds that rules can make.
        occurs: Says whether a text is anywhere in the corpus.
        random: Chooses columns and rows.
    """
    if kind != "absent":
        return _MAKERS[kind](table, random)
    if random.random() < 0.5:
        return _ask_empty_cell(table, random) or _ask_unknown_row(table, occurs, random)
    return _ask_unknown_row(table, occurs, random) or _ask_empty_cell(table, random)


def _ask_cell(table: Table, random: Random) -> Draft | None:
    columns = [*table.numbers, *table.times, *table.texts]
    if not columns:
        return None
    column = random.choice(columns)
    cell = random.choice(column.cells)
    key = table.key_of(cell.row)
    text = cell.row.cells.get(column.label, "")
    if cell.value is None or text in f"{table.name} {key}":
        return None
    return table.draft("look-up", _cell_question(table, key, column), [cell.row], **_gold(cell.value, text, column))


def _gold(value: Any, text: str, column: Column) -> dict[str, Any]:
    """Return the gold answer for the value of a cell."""
    if not isinstance(value, int | float):
        return {"answer": text}
    if column.unit:
        return {"number": {"value": value, "unit": column.unit}}
    return {"number": value}


def _cell_question(table: Table, key: str, column: Column) -> str:
    return f"What does {table.name} give as “{column.label}” for the {_plain(table.key)} “{key}”?"


def _plain(label: str) -> str:
    """Return the label of a column as a word in a sentence, or in quotation marks if it is none."""
    return label.lower() if _WORDS.fullmatch(label) else f"“{label}”"


def _ask_count(table: Table, random: Random) -> Draft | None:
    if not table.conditions:
        return None
    condition = random.choice(table.conditions)
    text = f"How many entries of {table.name} have {condition.words}?"
    return table.draft("counting", text, table.rows, number=len(condition.rows))


def _ask_list(table: Table, random: Random) -> Draft | None:
    short = [condition for condition in table.conditions if len(condition.rows) <= _MAX_ITEMS]
    if not short:
        return None
    condition = random.choice(short)
    text = f"Which entries of {table.name} have {condition.words}? Name each by its {_plain(table.key)}."
    return table.draft("list", text, condition.rows, answers=[table.key_of(row) for row in condition.rows])


def _ask_extreme(table: Table, random: Random) -> Draft | None:
    return _ask_end(table, "comparison", table.numbers, ("lowest", "highest"), random)


def _ask_time(table: Table, random: Random) -> Draft | None:
    return _ask_end(table, "dates", table.times, ("earliest", "latest"), random)


def _ask_end(
    table: Table, kind: str, columns: Sequence[Column], words: tuple[str, str], random: Random
) -> Draft | None:
    """Ask which row is at one end of a column; two rows that share the place make no question."""
    if not columns:
        return None
    column = random.choice(columns)
    place = random.choice([0, -1])
    ranked = sorted(column.cells, key=_by_value)
    end, next_one = ranked[place], ranked[1 if place == 0 else -2]
    if end.value == next_one.value:
        return None
    return table.draft(kind, _which(table, words[place], column), table.rows, answer=table.key_of(end.row))


def _by_value(cell: Cell) -> Any:
    return cell.value


def _which(table: Table, word: str, column: Column) -> str:
    key = _plain(table.key)
    if key in _VAGUE or not _WORDS.fullmatch(table.key):
        return f"Which entry of {table.name} has the {word} “{column.label}”? Give its {key}."
    return f"Which {key} has the {word} “{column.label}” in {table.name}?"


def _ask_difference(table: Table, random: Random) -> Draft | None:
    if not table.numbers:
        return None
    column = random.choice(table.numbers)
    low, high = sorted(random.sample(column.cells, 2), key=_by_value)
    difference = round(_by_value(high) - _by_value(low), 9)
    if not difference:
        return None
    names = f"“{table.key_of(high.row)}” than for “{table.key_of(low.row)}”"
    text = f"By how much is “{column.label}” higher for {names} in {table.name}?"
    return table.draft("arithmetic", text, [high.row, low.row], **_gold(difference, "", column))


def _ask_empty_cell(table: Table, random: Random) -> Draft | None:
    """Ask for a cell that is empty, in a column that most rows fill."""
    if not table.gaps:
        return None
    column = random.choice(table.gaps)
    cell = random.choice([cell for cell in column.cells if cell.value is None])
    text = _cell_question(table, table.key_of(cell.row), column)
    return table.draft("absent", text, [cell.row], absent=True)


def _ask_unknown_row(table: Table, occurs: Callable[[str], bool], random: Random) -> Draft | None:
    """Ask for a row that does not exist, if the rows are named by codes with a number: a next number is free."""
    codes = [_CODE.fullmatch(table.key_of(row)) for row in table.rows]
    found = [(code[1], int(code[2]), len(code[2])) for code in codes if code]
    columns = [*table.texts, *table.numbers]
    are_codes = len(found) == len(table.rows) and not YEAR_LABEL.search(table.key)
    if not columns or not are_codes or len({begin for begin, *_ in found}) > len(found) / 2:
        return None
    begin, last, digits = max(found, key=lambda code: code[1])
    key = f"{begin}{last + 1 + random.randrange(5):0{digits}}"
    if occurs(key):
        return None
    text = _cell_question(table, key, random.choice(columns))
    return table.draft("absent", text, table.rows[-1:], absent=True)


_MAKERS: dict[str, Callable[[Table, Random], Draft | None]] = {
    "look-up": _ask_cell,
    "counting": _ask_count,
    "list": _ask_list,
    "comparison": _ask_extreme,
    "dates": _ask_time,
    "arithmetic": _ask_difference,
}
