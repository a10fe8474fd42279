"""Rows of tables: their labels, their headers, and which of them a query asks for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from arag.retrieval.types import Chunk
from arag.text.normalise import CELL_BOUNDARY, collapse_whitespace, searchable, words

MAX_ROWS = 4  # for each query
LABEL_SHARE = 0.6  # of a label's words: a row is shown if more of them are in the query

_ROW = re.compile(r"\S \| .*\d")  # with a number in it
_NAMED_ROW = re.compile(r"[^|]*?: ([^|]*) \| [^|]*?: ")  # with the names of the columns in its cells


def is_row(text: str) -> bool:
    """Return whether a sentence is the row of a table that has a number."""
    return _ROW.search(text) is not None


def is_row_of(text: str, keyword: str) -> bool:
    """Return whether a sentence is the row with this label, which may go on in brackets or after a comma."""
    label = _label(text)
    name = searchable(keyword)
    return label == name or label.startswith((f"{name} (", f"{name}, "))


def has_row_of(chunk: Chunk, keyword: str) -> bool:
    """Return whether a chunk has a row with this label."""
    if CELL_BOUNDARY not in chunk.text:
        return False
    for position in range(len(chunk.sentences)):
        if is_row_of(collapse_whitespace(chunk.sentence_text(position)), keyword):
            return True
    return False


def find_header(chunk: Chunk, row: int) -> int:
    """Return the position of the header of a row's table, or the row's own if the chunk does not hold the header."""
    header = chunk.sentences[row].header
    if header:
        for position in range(row, -1, -1):
            if collapse_whitespace(chunk.sentence_text(position)).strip("| ") == header:
                return position
    return row


def find_rows(chunk: Chunk, queries: Iterable[str]) -> set[int]:
    """Return the positions of the rows whose label is in a query for the most part, up to four for each query.

    Rows with more words of the query come first, then rows with nothing else, then repeated labels.
    """
    if CELL_BOUNDARY not in chunk.text:
        return set()
    labels: dict[int, str] = {}
    for position in range(len(chunk.sentences)):
        if label := _label(chunk.sentence_text(position)):
            labels[position] = label
    stems = {position: _stems(label) for position, label in labels.items()}
    rows: set[int] = set()
    for query in queries:
        asked = _stems(query)
        seen: Counter[str] = Counter()
        ranks: list[tuple[int, int, int, int]] = []
        for position, own in stems.items():
            shared = len(own & asked)
            if shared > LABEL_SHARE * len(own):
                seen[labels[position]] += 1
                ranks.append((seen[labels[position]], -shared, len(own), position))
        rows.update(position for *_, position in sorted(ranks)[:MAX_ROWS])
    return rows


def _label(text: str) -> str:
    """Return the label of a row in lower case, or an empty string for other texts."""
    if not is_row(text):
        return ""
    named = _NAMED_ROW.match(text)
    label = named[1] if named else text.partition(CELL_BOUNDARY)[0]
    return label.lower().strip("$: ")


def _stems(text: str) -> set[str]:
    return {word.removesuffix("s") for word in words(text) if len(word) > 2}
