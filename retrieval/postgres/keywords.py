"""Exact keyword search in the texts of an index in PostgreSQL (paper, section 3.2), with the results of a folder.

The server counts. It returns chunks with the same counts as one row, with the first of them by id: a keyword in a
million chunks needs no million rows. The scores are computed here, as in a folder, and so are equal to the last bit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from arag.retrieval.keywords import MAX_CHECKED_CHUNKS, SPACED_SCRIPTS
from arag.retrieval.postgres.connection import UNSTORABLE
from arag.retrieval.postgres.schema import FOR_EVER, HAS_LONG_RUN, RUN, RUNS, Tables
from arag.retrieval.storage import KeywordRanking, RankedChunk, Settings, keyword_weight
from arag.retrieval.text import fold, searchable

_MIN_RUN = 3  # characters: a trigram index finds nothing shorter
_MAX_RUNS = 100
_LETTER = "0-9a-z\u00c0-\u07ff"  # ASCII, and the scripts of UTF-8's two bytes
_TEXTS_AT_ONCE = 100  # in a statement: PostgreSQL returns no more than 1,664 columns
_TEXTS_READ = 50  # chunks

# Run by run: for all at once, the planner would split all texts, which takes longer than it expects.
_WITH_RUNS = (
    "(lowered.number = ANY (ARRAY(SELECT held.number FROM unnest(?::text[]) AS asked (run) "
    f"CROSS JOIN LATERAL (SELECT number FROM lowered WHERE {RUNS} @> ARRAY[run] AND NOT {HAS_LONG_RUN}) AS held "
    f"UNION SELECT number FROM lowered WHERE {HAS_LONG_RUN})) AND strpos(lowered, ?) > 0)"
)

Condition = tuple[str, list[Any]]  # SQL on table `lowered`, and its values
Integers = NDArray[np.int64]
Scores = NDArray[Any]


class _Groups(NamedTuple):
    """Chunks with the same counts, as one."""

    counts: Integers  # how often each of a group's chunks holds each keyword, shape (keywords, groups)
    words: Integers  # how often as a word of its own, likewise
    sizes: Integers  # how many chunks each group has, shape (groups,)
    first: list[list[tuple[str, int]]]  # id and number of each group's first chunks, by id


class KeywordTables(Tables):
    """Chunks that are searched by keywords.

    Attributes:
        settings: Settings with the counts of what is there.
    """

    settings: Settings

    def rank(self, keywords: Sequence[str], top_k: int, *, by_coverage: bool = False) -> KeywordRanking:
        """Rank the chunks by keywords; see `View.rank`."""
        storable = [keyword for keyword in keywords if not UNSTORABLE.search(keyword)]  # others match nowhere
        groups = self._count([searchable(keyword) for keyword in storable], top_k, checked=by_coverage)
        scores: Scores = np.zeros(len(groups.sizes), dtype=np.float64 if by_coverage else np.int64)
        holding, as_word = dict.fromkeys(keywords, 0), {}
        firsts = []
        for keyword, counts, words in zip(storable, groups.counts, groups.words, strict=True):
            held = np.flatnonzero(counts)
            holding[keyword] = int(groups.sizes[held].sum())
            if not by_coverage:
                scores += counts * len(fold(keyword))
            elif len(held):
                as_word[keyword] = int(groups.sizes[words > 0].sum())
                counted = words if as_word[keyword] else counts
                scores[held] += keyword_weight(
                    counted[held], as_word[keyword] or holding[keyword], self.settings.chunks
                )
                firsts.append(np.flatnonzero(counted))
        best = _best(groups, scores, np.flatnonzero(scores), top_k)
        for rows in firsts:  # each keyword's best chunk, by all keywords
            best |= _best(groups, scores, rows, 1)
        ranked = [
            RankedChunk(
                number,
                scores[row].item(),
                {keyword: int(n) for keyword, n in zip(storable, groups.counts[:, row], strict=True) if n},
            )
            for (_, number), row in sorted(best.items(), key=lambda entry: (-scores[entry[1]], entry[0]))
        ]
        return KeywordRanking(ranked, holding, as_word, int(groups.sizes.sum()))

    def count_chunks(self, texts: Sequence[str]) -> list[int]:
        """Count the chunks that hold each of some texts."""
        needles = list(dict.fromkeys(searchable(text) for text in texts if not UNSTORABLE.search(text)))
        counts: dict[str, int] = {}
        for start in range(0, len(needles), _TEXTS_AT_ONCE):
            conditions = self._hold(needles[start : start + _TEXTS_AT_ONCE])
            selected = ", ".join(
                f"(SELECT count(*) FROM lowered JOIN {self.chunks_table} AS chunks ON chunks.number = lowered.number "
                f"WHERE {condition})"
                for condition, _ in conditions.values()
            )
            (row,) = self.query(f"SELECT {selected}", *(value for _, values in conditions.values() for value in values))
            counts |= zip(conditions, row, strict=True)
        return [counts.get(searchable(text), 0) for text in texts]

    def holding_all(self, texts: Sequence[str], limit: int) -> list[int]:
        """Return the numbers of the chunks that hold all of some texts, at most `limit` of them, by chunk id."""
        if any(map(UNSTORABLE.search, texts)):
            return []
        conditions = self._hold([searchable(text) for text in texts]).values()
        held = " AND ".join(condition for condition, _ in conditions) or "TRUE"
        # From an array the planner expects few numbers, and looks each of them up; it would read the texts by chunk id.
        rows = self.query(
            f"SELECT number FROM {self.chunks_table} AS chunks "
            f"WHERE number = ANY (ARRAY(SELECT number FROM lowered WHERE {held})) ORDER BY id LIMIT ?",
            *(value for _, values in conditions for value in values),
            limit,
        )
        return [number for (number,) in rows]

    def holds_word(self, word: str) -> bool:
        """Return whether a text has this word, as a whole word in lower case."""
        whole = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
        for limit in (_TEXTS_READ, 100 * _TEXTS_READ, FOR_EVER):
            condition, value = self.among("number", self.holding_all([word], limit))
            texts = self.query(f"SELECT lowered FROM lowered WHERE {condition}", value)
            if len(texts) < limit or any(whole.search(text) for (text,) in texts):
                break
        return any(whole.search(text) for (text,) in texts)

    def _hold(self, needles: Sequence[str]) -> dict[str, Condition]:
        """Return, for each of some needles, the condition that texts with it meet.

        A run of ASCII's letters and digits lies within one word of a text. If few words of the corpus hold a needle's
        longest run, only the texts with the runs of these words are read. Else trigrams propose texts, or all are read.
        """
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
        return {
            needle: (_WITH_RUNS, [sorted(known[run]), needle])
            if run in known
            else ("lowered LIKE ?", [f"%{_escape_pattern(needle)}%"])
            for needle, run in longest.items()
        }

    def _count(self, needles: Sequence[str], top_k: int, *, checked: bool) -> _Groups:
        """Let the server count needles, and words if `checked`. Of chunks with equal counts, `top_k` are named."""
        if not needles:
            nothing = np.zeros((0, 0), dtype=np.int64)
            return _Groups(nothing, nothing, nothing.ravel(), [])
        held = self._hold(needles)
        counts = [f"n{place}" for place in range(len(needles))]
        counted = ", ".join(
            f"(octet_length(lowered) - octet_length(replace(lowered, ?, ''))) / {len(needle.encode())} AS {name}"
            for name, needle in zip(counts, needles, strict=True)
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
            f"JOIN {self.chunks_table} AS chunks ON chunks.number = lowered.number "
            f"WHERE {' OR '.join(condition for condition, _ in held.values())}), "
            f"held AS (SELECT {', '.join(f'count(*) FILTER (WHERE {n} > 0) AS h{n[1:]}' for n in counts)} FROM hits), "
            f"checked AS (SELECT id, number, {', '.join([*counts, *words])} FROM hits CROSS JOIN held) "
            f"SELECT {', '.join(names)}, count(*), "
            "(array_agg(id ORDER BY id))[:?], (array_agg(number ORDER BY id))[:?] "
            f"FROM checked GROUP BY {', '.join(names)}",
            *needles,
            *(value for _, values in held.values() for value in values),
            *patterns.values(),
            top_k,
            top_k,
        )
        numbers = np.array([row[:-2] for row in rows], dtype=np.int64).reshape(len(rows), len(names) + 1).T
        found = dict(zip(names, numbers, strict=False))
        words_found = np.array([found.get(f"w{name[1:]}", found[name]) for name in counts])
        return _Groups(
            numbers[: len(needles)], words_found, numbers[-1], [list(zip(*row[-2:], strict=True)) for row in rows]
        )


def _word_pattern(needle: str) -> str:
    """Return the server's regular expression for a needle that is not a part of a longer word, or its plural.

    Empty if what is around the needle does not matter.
    """
    starts, ends = (c.isalnum() and ord(c) < SPACED_SCRIPTS for c in (needle[0], needle[-1]))
    before = f"(?<![{_LETTER}])" if starts else ""
    after = f"(?:e?s)?(?![{_LETTER}])" if ends else ""
    return f"{before}{re.escape(needle)}{after}" if starts or ends else ""


def _best(groups: _Groups, scores: Scores, rows: Integers, top_k: int) -> dict[tuple[str, int], int]:
    """Return the chunks of the groups with the highest scores: id and number of each, and its group's row."""
    found: dict[tuple[str, int], int] = {}
    last = None  # the lowest score that is taken
    for row in rows[np.argsort(-scores[rows], kind="stable")].tolist():
        if len(found) >= top_k and scores[row] < last:
            break
        last = scores[row]
        found |= dict.fromkeys(groups.first[row], row)
    kept = sorted(found, key=lambda chunk: (-scores[found[chunk]], chunk))[:top_k]
    return {chunk: found[chunk] for chunk in kept}


def _escape_pattern(text: str) -> str:
    """Return the pattern of SQL's LIKE for a text."""
    return re.sub(r"([\\%_])", r"\\\1", text)
