"""Exact keyword search in the texts of an index in PostgreSQL (paper, section 3.2), with the results of a folder.

The server counts. It returns chunks with the same counts as one row, with the first of them by id: a keyword in a
million chunks needs no million rows.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from arag.retrieval.storage.contract import KeywordRanking, Ranking, View, batches
from arag.retrieval.storage.keywords import MAX_CHECKED_CHUNKS, SPACED_SCRIPTS, Occurrences, rank_chunks
from arag.retrieval.storage.postgres.schema import LONG_RUN, RUN, RUNS, Tables
from arag.text.normalise import searchable

_MIN_RUN = 3  # characters: a trigram index finds nothing shorter
_MAX_RUNS = 100
_LETTER = "0-9a-z\u00c0-\u07ff"  # ASCII, and the scripts of UTF-8's two bytes
_CONDITIONS_AT_ONCE = 100  # in a statement
_TEXTS_READ = 50  # for a word, at first

# Run by run: for all at once, the planner would split all texts, which takes longer than it expects. A condition has it
# once: beside another index, the server would look for each number in the array from the start.
_WITH_RUNS = (
    "lowered.number = ANY (ARRAY(SELECT held.number FROM unnest(?::text[]) AS asked (run) "
    f"CROSS JOIN LATERAL (SELECT number FROM lowered WHERE {RUNS} @> ARRAY[run]) AS held))"
)

Condition = tuple[str, list[Any]]  # SQL on table `lowered`, and its values


class Needle(NamedTuple):
    """What is looked for, in lower case; and runs of which all texts with it have one, if they are known."""

    text: str
    runs: Collection[str] | None


class KeywordTables(Tables, View):
    """Chunks that are searched by keywords."""

    def rank(self, keywords: Sequence[str], top_k: int, *, ranking: Ranking = "paper") -> KeywordRanking:
        return rank_chunks(self._count(keywords, top_k, checked=ranking == "bm25"), top_k, self.settings.chunks)

    def count_chunks(self, texts: Sequence[str]) -> list[int]:
        conditions = [_holding_any([needle]) for needle in self._find_runs(texts)]
        counts = self._query_each(f"count(*) FROM lowered JOIN {self.chunks_table} USING (number)", conditions)
        return [count for (count,) in counts]

    def numbers_holding(self, groups: Sequence[Sequence[str]], limit: int) -> list[list[int]]:
        every = list(chain.from_iterable(groups))
        needles = dict(zip(every, self._find_runs(every), strict=True))
        conditions: list[Condition] = []
        for texts in groups:
            condition, values = _holding_all([needles[text] for text in texts])
            # From an array the planner expects few numbers, and looks each up; it would read the texts by chunk id.
            conditions.append((f"number = ANY (ARRAY(SELECT number FROM lowered WHERE {condition}))", values))
        return self._query_each(f"number FROM {self.chunks_table}", conditions, f"ORDER BY id LIMIT {limit}")

    def words_present(self, words: Collection[str], limit: int = _TEXTS_READ) -> set[str]:
        # The runs of a whole word are whole runs of the text.
        conditions = [_holding_any([Needle(word, sorted(RUN.findall(word), key=len)[-1:] or None)]) for word in words]
        source = f"lowered FROM lowered JOIN {self.chunks_table} USING (number)"
        present, unsure = set[str](), set[str]()
        for word, texts in zip(words, self._query_each(source, conditions, f"LIMIT {limit}"), strict=True):
            whole = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
            if any(map(whole.search, texts)):
                present.add(word)
            elif len(texts) == limit:
                unsure.add(word)
        return present | self.words_present(unsure, 100 * limit) if unsure else present

    def _query_each(self, select: str, conditions: Iterable[Condition], end: str = "") -> list[list[Any]]:
        """Return, for each of some conditions, the values that a query yields with it."""
        each: list[list[Any]] = []
        for some in batches(conditions, _CONDITIONS_AT_ONCE):
            yielded: list[list[Any]] = [[] for _ in some]
            union = " UNION ALL ".join(
                f"(SELECT {place}, {select} WHERE {condition} {end})" for place, (condition, _) in enumerate(some)
            )
            for place, value in self.query(union, *(value for _, values in some for value in values)):
                yielded[place].append(value)
            each += yielded
        return each

    def _find_runs(self, texts: Sequence[str]) -> list[Needle]:
        """Return texts as they are looked for.

        A run of ASCII's letters and digits lies within one word of a text. If few words of the corpus hold a needle's
        longest run, only chunks with the runs of these words are read. Else trigrams propose chunks, or all are read.
        """
        needles = list(map(searchable, texts))
        longest = {needle: max(RUN.findall(needle), key=len, default="") for needle in needles}
        asked = sorted({run for run in longest.values() if len(run) >= _MIN_RUN})
        known: dict[str, set[str]] = {}
        if asked:
            words = f"ARRAY(SELECT DISTINCT word FROM words WHERE word LIKE ? LIMIT {_MAX_RUNS + 1})"
            (row,) = self.query(f"SELECT {', '.join([words] * len(asked))}", *(f"%{run}%" for run in asked))
            known = {
                run: {each for word in found for each in RUN.findall(word) if run in each}
                for run, found in zip(asked, row, strict=True)
                if len(found) <= _MAX_RUNS
            }
        return [Needle(needle, known.get(longest[needle])) for needle in needles]

    def _count(self, keywords: Sequence[str], top_k: int, *, checked: bool) -> Occurrences:
        """Let the server count keywords, and as words if `checked`; of each group of chunks, `top_k` are named."""
        sought = self._find_runs(keywords)
        needles = [needle.text for needle in sought]
        condition, values = _holding_any(sought)
        counts = [f"n{place}" for place in range(len(needles))]
        sizes = [len(needle.encode(errors="replace")) for needle in needles]
        counted = ", ".join(
            f"(octet_length(lowered) - octet_length(replace(lowered, ?, ''))) / {size} AS {name}"
            for name, size in zip(counts, sizes, strict=True)
        )
        patterns = {
            f"w{n}": pattern for n, needle in enumerate(needles) if checked and (pattern := _word_pattern(needle))
        }
        words = [
            f"CASE WHEN n{name[1:]} = 0 OR h{name[1:]} > {MAX_CHECKED_CHUNKS} THEN n{name[1:]} ELSE "
            f"(SELECT regexp_count(lowered, ?) FROM lowered WHERE lowered.number = hits.number) END AS {name}"
            for name in patterns
        ]
        names = [*counts, *patterns]
        rows = self.query(
            f"WITH hits AS MATERIALIZED (SELECT chunks.id, chunks.number, {counted} FROM lowered "
            f"JOIN {self.chunks_table} ON chunks.number = lowered.number "
            f"WHERE {condition}), "
            f"held AS (SELECT {', '.join(f'count(*) FILTER (WHERE {n} > 0) AS h{n[1:]}' for n in counts)} FROM hits), "
            f"checked AS (SELECT id, number, {', '.join([*counts, *words])} FROM hits CROSS JOIN held) "
            f"SELECT {', '.join(names)}, count(*), "
            "(array_agg(id ORDER BY id))[:?], (array_agg(number ORDER BY id))[:?] "
            f"FROM checked GROUP BY {', '.join(names)}",
            *needles,
            *values,
            *patterns.values(),
            top_k,
            top_k,
        )
        columns = np.array([row[:-2] for row in rows], dtype=np.int64).reshape(len(rows), len(names) + 1).T
        by_name = dict(zip(names, columns, strict=False))
        occurrences = {keyword: by_name[f"n{n}"] for n, keyword in enumerate(keywords)}
        as_words = {k: by_name.get(f"w{n}", occurrences[k]) for n, k in enumerate(keywords)} if checked else {}
        first = sorted((*pair, group) for group, row in enumerate(rows) for pair in zip(*row[-2:], strict=True))
        numbers, groups = (np.array([entry[place] for entry in first], dtype=np.int64) for place in (1, 2))
        return Occurrences(occurrences, as_words, columns[-1], numbers, groups)


def _holding_any(needles: Sequence[Needle]) -> Condition:
    """Return the condition that texts with one of some needles meet."""
    texts = [needle.text for needle in needles]
    if any(needle.runs is None for needle in needles):
        return f"({' OR '.join(['lowered LIKE ?'] * len(texts))})", list(map(_pattern, texts))
    runs = {run for needle in needles for run in needle.runs or ()}
    holding = " OR ".join(["strpos(lowered, ?) > 0"] * len(texts))
    return f"({_WITH_RUNS} AND ({holding}))", [[*runs, LONG_RUN], *texts]


def _holding_all(needles: Sequence[Needle]) -> Condition:
    """Return the condition that texts with all of some needles meet; the runs of the longest one propose texts."""
    first, *others = sorted(needles, key=lambda needle: (needle.runs is None, -len(needle.text)))
    condition, values = _holding_any([first])
    return " AND ".join([condition, *["lowered LIKE ?"] * len(others)]), values + [_pattern(n.text) for n in others]


def _word_pattern(needle: str) -> str:
    """Return the server's regular expression for a needle that is not a part of a longer word, or its plural.

    Empty if what is around the needle does not matter.
    """
    starts, ends = (c.isalnum() and ord(c) < SPACED_SCRIPTS for c in (needle[0], needle[-1]))
    before = f"(?<![{_LETTER}])" if starts else ""
    after = f"(?:e?s)?(?![{_LETTER}])" if ends else ""
    return f"{before}{re.escape(needle)}{after}" if starts or ends else ""


def _pattern(text: str) -> str:
    """Return the pattern of SQL's LIKE for what has a text in it."""
    escaped = re.sub(r"([\\%_])", r"\\\1", text)
    return f"%{escaped}%"
