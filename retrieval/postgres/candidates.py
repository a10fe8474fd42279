"""Which texts may hold a keyword, told by the words of the vocabulary.

The trigrams of a keyword are in many long texts that do not hold it, and these would all be read. The letters and
digits of ASCII never separate words, so a run of them in a text lies within one word, also after
diacritics are dropped. If few words of the vocabulary hold the run, only texts with one of these words are read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from arag.retrieval.postgres.connections import Statements
from arag.retrieval.postgres.schema import HAS_LONG_WORDS, WORD_ARRAY

_RUN = re.compile("[a-z0-9]+")
_MIN_RUN = 3  # characters: the index has nothing shorter
_MAX_WORDS = 100

# Word by word: for all at once, the planner would split all texts into words, which takes longer than it expects.
_WITH_WORDS = (
    "lowered.number = ANY (ARRAY(SELECT held.number FROM unnest(%s::text[]) AS asked (word) "
    f"CROSS JOIN LATERAL (SELECT number FROM terms WHERE {WORD_ARRAY} @> ARRAY[word]) AS held "
    f"UNION SELECT number FROM terms WHERE {HAS_LONG_WORDS}))"
)


class Candidates:
    """Tells which texts may hold needles.

    Args:
        statements: Runs the statements.
        needles: The needles, in lower case.
    """

    def __init__(self, statements: Statements, needles: Sequence[str]) -> None:
        self._runs = {needle: max(_RUN.findall(needle), key=len, default="") for needle in needles}
        asked = [run for run in dict.fromkeys(self._runs.values()) if len(run) >= _MIN_RUN]
        self._words: dict[str, list[str]] = {}
        if asked:
            listed = f"ARRAY(SELECT word FROM vocabulary WHERE word LIKE %s LIMIT {_MAX_WORDS + 1})"
            (row,) = statements.query(f"SELECT {', '.join([listed] * len(asked))}", [f"%{run}%" for run in asked])
            self._words = {run: found for run, found in zip(asked, row, strict=True) if len(found) <= _MAX_WORDS}

    def hold_any(self, needles: Sequence[str]) -> tuple[str, list[Any]]:
        """Return the condition on table `lowered` that texts with any of some needles meet: SQL and its values."""
        runs = {self._runs[needle] for needle in needles}
        if runs <= self._words.keys():
            words = sorted({word for run in runs for word in self._words[run]})
            return f"{_WITH_WORDS} AND ({_any('strpos(lowered, %s) > 0', needles)})", [words, *needles]
        # A common needle is looked for in all texts, and the others with it.
        return f"({_any('lowered LIKE %s', needles)})", [f"%{escape_pattern(needle)}%" for needle in needles]


def _any(condition: str, needles: Sequence[str]) -> str:
    return " OR ".join([condition] * len(needles))


def escape_pattern(text: str) -> str:
    """Return the pattern of SQL's LIKE for a text."""
    return re.sub(r"([\\%_])", r"\\\1", text)
