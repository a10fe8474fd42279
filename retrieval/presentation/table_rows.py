"""Rows of tables: their labels, their headers, and the rows that a query asks for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from arag.retrieval.presentation.sentences import sentence_line
from arag.retrieval.types import Chunk
from arag.text.normalise import CELL_BOUNDARY, searchable, words

MAX_ROWS = 4  # for each query: further rows cost tokens
MAX_WHOLE_TABLE = 1_200  # characters of a table that is read whole, about 300 tokens: part of it says little less
LABEL_SHARE = 0.6  # a row is shown if a larger share of its label's words is in the query

_MIN_WORD_CHARACTERS = 3  # shorter words carry little meaning
_ROW = re.compile(r"\S \| .*\d")  # with a number in it
_NAMED_ROW = re.compile(r"[^|]*?: ([^|]*) \| [^|]*?: ")  # with the names of the columns in its cells


# --- single rows ---


def is_row(text: str) -> bool:
    """Return whether a sentence is the row of a table that has a number."""
    return _ROW.search(text) is not None


def is_row_of(text: str, keyword: str) -> bool:
    """Return whether a sentence is the row with this label, which may continue in brackets or after a comma."""
    return _is_named(_label(text), searchable(keyword))


def has_row_of(chunk: Chunk, keyword: str) -> bool:
    """Return whether a chunk has a row with this label."""
    if CELL_BOUNDARY not in chunk.text:
        return False
    name = searchable(keyword)
    for position in range(len(chunk.sentences)):
        label = _label(sentence_line(chunk, position))
        if _is_named(label, name):
            return True
    return False


def find_header(chunk: Chunk, row: int) -> int:
    """Return the position of the header of a row's table, or the row's own if the chunk does not hold the header."""
    header = chunk.sentences[row].header
    if not header:
        return row
    for position in range(row, -1, -1):
        if sentence_line(chunk, position).strip("| ") == header:
            return position
    return row


def complete_tables(chunk: Chunk, positions: Collection[int]) -> set[int]:
    """Add to sentences, given by position, all rows of their small tables, and the headers of large ones."""
    complete = set(positions)
    for position in positions:
        if not _is_any_row(chunk, position):
            continue
        table = _find_table(chunk, position)
        characters = sum(len(chunk.sentence_text(row)) for row in table)
        if characters <= MAX_WHOLE_TABLE:
            complete.update(table)
        else:
            complete.add(find_header(chunk, position))
    return complete


def _find_table(chunk: Chunk, row: int) -> range:
    """Return the positions of the rows of a row's table that the chunk holds."""
    first = last = row
    while first > 0 and _is_same_table(chunk, first - 1, row):
        first -= 1
    while last + 1 < len(chunk.sentences) and _is_same_table(chunk, last + 1, row):
        last += 1
    return range(first, last + 1)


def _is_same_table(chunk: Chunk, position: int, row: int) -> bool:
    """Return whether a sentence is a row, under the headings of another row."""
    return _is_any_row(chunk, position) and chunk.sentences[position].heading == chunk.sentences[row].heading


def _is_any_row(chunk: Chunk, position: int) -> bool:
    """Return whether a sentence is a row of a table, or the rule below its header."""
    text = chunk.sentence_text(position)
    return CELL_BOUNDARY in text or text.startswith("|")


# --- rows for queries ---


class _Row(NamedTuple):
    """A row with a label."""

    position: int
    label: str
    stems: set[str]  # of the label's words


class _RowRank(NamedTuple):
    """How well a row answers a query: the lowest rank is the best, and the first field that differs decides."""

    repetition: int  # 1 for the first row with its label
    minus_shared: int  # words that the label shares with the query, negated: more are better
    label_words: int
    position: int


def find_rows(chunk: Chunk, queries: Iterable[str]) -> set[int]:
    """Return the positions of the rows whose labels are mostly in a query, up to four for each query.

    Repeated labels come last. Rows with more words of the query come first, then rows with fewer other words.
    """
    if CELL_BOUNDARY not in chunk.text:
        return set()
    rows = _list_rows(chunk)
    positions: set[int] = set()
    for query in queries:
        best = sorted(_rank_rows(rows, query))[:MAX_ROWS]
        positions.update(rank.position for rank in best)
    return positions


def _list_rows(chunk: Chunk) -> list[_Row]:
    rows: list[_Row] = []
    for position in range(len(chunk.sentences)):
        label = _label(chunk.sentence_text(position))
        if label:
            rows.append(_Row(position, label, _stems(label)))
    return rows


def _rank_rows(rows: Sequence[_Row], query: str) -> list[_RowRank]:
    """Rank the rows whose labels are mostly in a query."""
    asked = _stems(query)
    repetitions: Counter[str] = Counter()
    ranks: list[_RowRank] = []
    for row in rows:
        shared = len(row.stems & asked)
        if shared > LABEL_SHARE * len(row.stems):
            repetitions[row.label] += 1
            rank = _RowRank(
                repetition=repetitions[row.label],
                minus_shared=-shared,
                label_words=len(row.stems),
                position=row.position,
            )
            ranks.append(rank)
    return ranks


def _is_named(label: str, name: str) -> bool:
    """Return whether a label is a name, or continues it in brackets or after a comma."""
    if label == name:
        return True
    return label.startswith((f"{name} (", f"{name}, "))


def _label(text: str) -> str:
    """Return the label of a row in lower case, or an empty string for other texts."""
    if not is_row(text):
        return ""
    named = _NAMED_ROW.match(text)
    label = named[1] if named else text.partition(CELL_BOUNDARY)[0]
    return label.lower().strip("$: ")


def _stems(text: str) -> set[str]:
    """Return the words of a text without a plural's ending."""
    return {word.removesuffix("s") for word in words(text) if len(word) >= _MIN_WORD_CHARACTERS}
