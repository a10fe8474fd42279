"""Which texts may hold a keyword, told by the words of the vocabulary.

The trigrams of a keyword are in many long texts that do not hold it, and these would all be read. The letters and
digits of ASCII never stand at the border of a word, so a run of them in a text lies within one word, also after
diacritics are dropped. If few words of the vocabulary hold the run, only texts with one of these words are read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from arag.retrieval.postgres.connections import Statements
from arag.retrieval.postgres.schema import LONG_WORDS, WORD_ARRAY

_RUN = re.compile("[a-z0-9]+")
_MIN_RUN = 3  # characters: the index has nothing shorter
_MAX_WORDS = 100

_BY_TRIGRAMS = "lowered LIKE %s"
_BY_WORDS = (
    f"lowered.number = ANY (ARRAY(SELECT number FROM terms WHERE {WORD_ARRAY} && %s::text[] "
    f"UNION ALL SELECT number FROM terms WHERE {LONG_WORDS})) AND strpos(lowered, %s) > 0"
)


def find_conditions(statements: Statements, needles: Sequence[str]) -> list[tuple[str, list[Any]]]:
    """Return the conditions on table `lowered` that texts with needles meet: SQL and its values.

    Args:
        statements: Runs the statements.
        needles: The needles, in lower case.
    """
    runs = [max(_RUN.findall(needle), key=len, default="") for needle in needles]
    asked = [run for run in dict.fromkeys(runs) if len(run) >= _MIN_RUN]
    words: dict[str, list[str]] = {}
    if asked:
        listed = f"ARRAY(SELECT word FROM vocabulary WHERE word LIKE %s LIMIT {_MAX_WORDS + 1})"
        (row,) = statements.query(f"SELECT {', '.join([listed] * len(asked))}", [f"%{run}%" for run in asked])
        words = {run: found for run, found in zip(asked, row, strict=True) if len(found) <= _MAX_WORDS}
    return [
        (_BY_WORDS, [words[run], needle]) if run in words else (_BY_TRIGRAMS, [f"%{escape_pattern(needle)}%"])
        for needle, run in zip(needles, runs, strict=True)
    ]


def escape_pattern(text: str) -> str:
    """Return the pattern of SQL's LIKE for a text."""
    return re.sub(r"([\\%_])", r"\\\1", text)
