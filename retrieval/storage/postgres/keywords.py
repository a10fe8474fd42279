"""Exact keyword search in the texts of an index in PostgreSQL (paper, section 3.2), with the results of a folder.

The server counts. It returns chunks with the same counts as one row, with the first of them by id: a keyword in a
million chunks needs no million rows.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from arag.retrieval.storage.batches import batches, read_ahead
from arag.retrieval.storage.contract import View
from arag.retrieval.storage.keywords import word_pattern
from arag.retrieval.storage.postgres.schema import LONG_RUN, RUN, RUNS, Tables
from arag.retrieval.storage.ranking import MAX_CHECKED_CHUNKS, Integers, Occurrences, gather, rank_chunks
from arag.retrieval.storage.records import KeywordRanking, Ranking
from arag.retrieval.storage.words.index import Found
from arag.retrieval.storage.words.rows import Held, WordRows
from arag.text.normalise import searchable
from arag.text.scripts import SPACED, makes_words

_MIN_RUN = 3  # characters: a trigram index finds nothing shorter
_MAX_RUNS = 100  # of a keyword: if more words hold it, trigrams propose its chunks
_CONDITIONS_PER_QUERY = 100  # more make a longer statement to plan, fewer more queries
_TEXTS_PER_QUERY = 2_000  # larger batches take more memory, smaller ones more queries
_FEW_POSTINGS = 5_000  # in bytes: the server counts so few chunks in a few milliseconds
_TEXTS_READ = 50  # for a word, at first
_MORE = 100  # so many times as many texts are read for a word that the first ones do not have

# Run by run: for all at once, the planner would split all texts, which takes longer than it expects. Use it once in a
# condition: beside another index, the server would look for each row id in the array from the start.
_WITH_RUNS = (
    "lowered.number = ANY (ARRAY(SELECT held.number FROM unnest(?::text[]) AS asked (run) "
    f"CROSS JOIN LATERAL (SELECT number FROM lowered WHERE {RUNS} @> ARRAY[run]) AS held))"
)

# The columns n0, n1... count each keyword, h0, h1... the chunks that hold it, and w0, w1... count it as a word.
_COUNT = """
WITH
hits AS MATERIALIZED (
    SELECT chunks.id, chunks.number, {counts}
    FROM lowered JOIN {chunks_table} ON chunks.number = lowered.number
    WHERE {condition}
),

held AS (SELECT {document_frequencies} FROM hits),

checked AS (SELECT id, number, {columns} FROM hits CROSS JOIN held)

SELECT {names}, count(*), (array_agg(id ORDER BY id))[:?], (array_agg(number ORDER BY id))[:?]
FROM checked GROUP BY {names}
"""
_COUNT_IN_TEXT = "(octet_length(lowered) - octet_length(replace(lowered, ?, ''))) / {needle_bytes} AS n{place}"
_DOCUMENT_FREQUENCY = "count(*) FILTER (WHERE n{place} > 0) AS h{place}"
# A keyword in many chunks is counted inside longer words, too, as in a folder.
_COUNT_AS_WORD = (
    f"CASE WHEN n{{place}} = 0 OR h{{place}} > {MAX_CHECKED_CHUNKS} THEN n{{place}} ELSE "
    "(SELECT regexp_count(lowered, ?) FROM lowered WHERE lowered.number = hits.number) END AS w{place}"
)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on table `lowered`: SQL, and its values."""

    sql: str
    values: list[Any]


@dataclass(frozen=True, slots=True)
class Needle:
    """A text to look for, in lower case."""

    text: str
    runs: Collection[str] | None  # each text with the needle has one of these runs; None if they are not known


class KeywordTables(Tables, View):
    """Chunks that are searched by keywords."""

    _rows: WordRows | None = None

    def rank(self, keywords: Sequence[str], top_k: int, *, ranking: Ranking = "paper") -> KeywordRanking:
        as_words = ranking == "bm25"
        occurrences = self._count_by_words(keywords, as_words=as_words)
        if occurrences is None:
            occurrences = self._count(keywords, top_k, as_words=as_words)
        return rank_chunks(occurrences, top_k, self.settings.chunks)

    def count_chunks(self, texts: Sequence[str]) -> list[int]:
        conditions = [_holding_any([needle]) for needle in self._find_runs(texts)]
        counts = self._query_each(f"count(*) FROM lowered JOIN {self.chunks_table} USING (number)", conditions)
        return [count for (count,) in counts]

    def row_ids_holding(self, groups: Sequence[Sequence[str]], limit: int) -> list[list[int]]:
        texts = [text for group in groups for text in group]
        needles = dict(zip(texts, self._find_runs(texts), strict=True))
        conditions: list[Condition] = []
        for group in groups:
            holding = _holding_all([needles[text] for text in group])
            # The planner expects few row ids in an array, and looks each up; else it would read texts by chunk id.
            sql = f"number = ANY (ARRAY(SELECT number FROM lowered WHERE {holding.sql}))"
            conditions.append(Condition(sql, holding.values))
        return self._query_each(f"number FROM {self.chunks_table}", conditions, f"ORDER BY id LIMIT {limit}")

    def searchable_texts(self, row_ids: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        for rows in read_ahead(self._read_lowered, row_ids, _TEXTS_PER_QUERY):
            yield from rows

    def _read_lowered(self, row_ids: Sequence[int]) -> list[tuple[Any, ...]]:
        return self.query_among("SELECT number, convert_to(lowered, 'UTF8') FROM lowered", "number", row_ids)

    def words_present(self, words: Collection[str], limit: int = _TEXTS_READ) -> set[str]:
        conditions = [_holding_any([_needle_of_word(word)]) for word in words]
        select = f"lowered FROM lowered JOIN {self.chunks_table} USING (number)"
        texts_by_word = self._query_each(select, conditions, f"LIMIT {limit}")
        present: set[str] = set()
        unsure: set[str] = set()
        for word, texts in zip(words, texts_by_word, strict=True):
            whole_word = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
            if any(whole_word.search(text) for text in texts):
                present.add(word)
            elif len(texts) == limit:
                unsure.add(word)
        if unsure:
            present |= self.words_present(unsure, _MORE * limit)
        return present

    def _query_each(self, select: str, conditions: Iterable[Condition], end: str = "") -> list[list[Any]]:
        """Return, for each condition, the values that a query yields with it; several share a statement."""
        results: list[list[Any]] = []
        for batch in batches(conditions, _CONDITIONS_PER_QUERY):
            queries: list[str] = []
            values: list[Any] = []
            for place, condition in enumerate(batch):
                queries.append(f"(SELECT {place}, {select} WHERE {condition.sql} {end})")
                values += condition.values
            found: list[list[Any]] = [[] for _ in batch]
            for place, value in self.query(" UNION ALL ".join(queries), *values):
                found[place].append(value)
            results += found
        return results

    def _count_by_words(self, keywords: Sequence[str], *, as_words: bool) -> Occurrences | None:
        """Count common words by the word index; None if the server has to, or is as fast."""
        rows = self._word_rows()
        found: dict[str, Found] = {}
        for keyword in keywords:
            words = rows.find(searchable(keyword))
            if words is None:
                return None
            found[keyword] = words
        if sum(words.size() for words in found.values()) < _FEW_POSTINGS or len(rows.others):
            return None
        held = {keyword: rows.count(words, searchable(keyword)) for keyword, words in found.items()}
        whole: dict[str, Held] = {}
        for keyword in keywords if as_words else ():
            pattern = word_pattern(keyword)
            whole[keyword] = held[keyword]
            if pattern is not None and len(held[keyword].rows) <= MAX_CHECKED_CHUNKS:
                whole[keyword] = rows.count(found[keyword], searchable(keyword), pattern)
        return gather(held, whole, rows.row_ids)

    def _word_rows(self) -> WordRows:
        """Return the rows of this view's chunks; they are read when the first common word is looked for."""
        if self._rows is None:
            self._rows = WordRows(self.word_index(), lambda: np.array(self.ordered_row_ids(), np.int64))
        return self._rows

    def _find_runs(self, texts: Sequence[str]) -> list[Needle]:
        """Return texts as needles.

        A run of ASCII's letters and digits lies within one word of a text. If few words of the corpus hold a needle's
        longest run, only chunks with the runs of these words are read. Else trigrams propose chunks, or all are read.
        """
        needles = [searchable(text) for text in texts]
        longest_runs = [max(RUN.findall(needle), key=len, default="") for needle in needles]
        asked = sorted({run for run in longest_runs if len(run) >= _MIN_RUN})
        known = self._find_runs_with(asked)
        return [Needle(needle, known.get(run)) for needle, run in zip(needles, longest_runs, strict=True)]

    def _find_runs_with(self, parts: Sequence[str]) -> dict[str, set[str]]:
        """Return the corpus's runs that hold each of some parts of runs, unless too many words do."""
        if not parts:
            return {}
        select_words = f"ARRAY(SELECT DISTINCT word FROM words WHERE word LIKE ? LIMIT {_MAX_RUNS + 1})"
        columns = ", ".join([select_words] * len(parts))
        (words_by_part,) = self.query(f"SELECT {columns}", *(f"%{part}%" for part in parts))
        found: dict[str, set[str]] = {}
        for part, words in zip(parts, words_by_part, strict=True):
            if len(words) <= _MAX_RUNS:
                runs = [run for word in words for run in RUN.findall(word)]
                found[part] = {run for run in runs if part in run}
        return found

    def _count(self, keywords: Sequence[str], top_k: int, *, as_words: bool) -> Occurrences:
        """Let the server count keywords.

        Args:
            keywords: The keywords.
            top_k: How many chunks of each group are returned, the first by id.
            as_words: Whether to count them outside of longer words, too.

        Returns:
            The counts. Chunks with the same counts are a group.
        """
        needles = self._find_runs(keywords)
        condition = _holding_any(needles)
        counts: list[str] = []
        document_frequencies: list[str] = []
        names: list[str] = []
        columns: list[str] = []
        patterns: list[str] = []
        for n, needle in enumerate(needles):
            counts.append(_COUNT_IN_TEXT.format(place=n, needle_bytes=_size(needle)))
            document_frequencies.append(_DOCUMENT_FREQUENCY.format(place=n))
            names.append(f"n{n}")
            columns.append(f"n{n}")
            pattern = _word_pattern(needle.text) if as_words else ""
            if pattern:
                names.append(f"w{n}")
                columns.append(_COUNT_AS_WORD.format(place=n))
                patterns.append(pattern)
        statement = _COUNT.format(
            counts=", ".join(counts),
            chunks_table=self.chunks_table,
            condition=condition.sql,
            document_frequencies=", ".join(document_frequencies),
            columns=", ".join(columns),
            names=", ".join(names),
        )
        texts = [needle.text for needle in needles]
        rows = self.query(statement, *texts, *condition.values, *patterns, top_k, top_k)
        return _decode(rows, names, keywords, as_words=as_words)


def _decode(
    rows: Sequence[Sequence[Any]], names: Sequence[str], keywords: Sequence[str], *, as_words: bool
) -> Occurrences:
    """Read the rows of `_COUNT`: the named columns, the group's size, and the ids and row ids of its first chunks."""
    columns: dict[str, Integers] = {}
    for column, name in enumerate([*names, "size"]):
        columns[name] = np.array([row[column] for row in rows], dtype=np.int64)
    counts = {keyword: columns[f"n{n}"] for n, keyword in enumerate(keywords)}
    words: dict[str, Integers] = {}
    if as_words:
        for n, keyword in enumerate(keywords):
            words[keyword] = columns.get(f"w{n}", counts[keyword])
    chunks: list[tuple[str, int, int]] = []
    for group, (*_, ids, row_ids) in enumerate(rows):
        for chunk_id, row_id in zip(ids, row_ids, strict=True):
            chunks.append((chunk_id, row_id, group))
    chunks.sort()
    return Occurrences(
        counts=counts,
        words=words,
        sizes=columns["size"],
        row_ids=np.array([row_id for _, row_id, _ in chunks], dtype=np.int64),
        groups=np.array([group for _, _, group in chunks], dtype=np.int64),
    )


def _needle_of_word(word: str) -> Needle:
    """Return the needle of a whole word: its longest run is a whole run of the text."""
    longest_run = max(RUN.findall(word), key=len, default="")
    return Needle(word, [longest_run] if longest_run else None)


def _holding_any(needles: Sequence[Needle]) -> Condition:
    """Return the condition that texts with one of some needles meet."""
    texts = [needle.text for needle in needles]
    runs: set[str] = set()
    for needle in needles:
        if needle.runs is None:
            holding = " OR ".join(["lowered LIKE ?"] * len(texts))
            return Condition(f"({holding})", [_like_pattern(text) for text in texts])
        runs.update(needle.runs)
    holding = " OR ".join(["strpos(lowered, ?) > 0"] * len(texts))
    return Condition(f"({_WITH_RUNS} AND ({holding}))", [[*runs, LONG_RUN], *texts])


def _holding_all(needles: Sequence[Needle]) -> Condition:
    """Return the condition that texts with all of some needles meet; the runs of the longest one propose texts."""
    first, *others = sorted(needles, key=lambda needle: (needle.runs is None, -len(needle.text)))
    condition = _holding_any([first])
    sql = " AND ".join([condition.sql, *["lowered LIKE ?"] * len(others)])
    values = condition.values + [_like_pattern(needle.text) for needle in others]
    return Condition(sql, values)


def _size(needle: Needle) -> int:
    """Return a needle's length on the server, in bytes."""
    return len(needle.text.encode(errors="replace"))


def _word_pattern(needle: str) -> str:
    """Return the server's regular expression for a needle that is not a part of a longer word, or of its plural.

    Empty if the text around the needle does not matter.
    """
    is_word_at_start = makes_words(needle[0])
    is_word_at_end = makes_words(needle[-1])
    if not is_word_at_start and not is_word_at_end:
        return ""
    before = f"(?<![{SPACED}])" if is_word_at_start else ""
    after = f"(?:e?s)?(?![{SPACED}])" if is_word_at_end else ""
    return f"{before}{re.escape(needle)}{after}"


def _like_pattern(text: str) -> str:
    """Return the pattern of SQL's LIKE for texts that hold a text."""
    escaped = re.sub(r"([\\%_])", r"\\\1", text)
    return f"%{escaped}%"
