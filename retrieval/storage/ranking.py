"""Ranks chunks by how often they hold keywords (paper, section 3.2), for a folder and for PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arag.retrieval.storage.records import KeywordRanking, RankedChunk
from arag.retrieval.storage.words.index import distinct
from arag.retrieval.storage.words.rows import Held
from arag.text.normalise import collapse_whitespace

# A keyword in more chunks than these is counted inside longer words, too: to check each chunk would take too long.
MAX_CHECKED_CHUNKS = 5_000
_K1 = 0.5  # of BM25: the smaller it is, the less repetitions of a keyword add

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Occurrences:
    """How often chunks hold keywords. Chunks with the same counts may be counted together, as a group."""

    counts: Mapping[str, Integers]  # of each keyword, shape (groups,)
    words: Mapping[str, Integers]  # of each keyword outside of longer words, shape (groups,); empty if not counted
    sizes: Integers  # how many chunks each group has, shape (groups,)
    row_ids: Integers  # of the first chunks of each group, in the order of the chunks' ids
    groups: Integers  # the group of each of these chunks


def gather(held: Mapping[str, Held], as_words: Mapping[str, Held], row_ids: Integers) -> Occurrences:
    """Return the occurrences of keywords, each chunk as a group.

    Args:
        held: The rows that hold each keyword.
        as_words: Those that hold it outside of longer words; empty if these were not counted.
        row_ids: The row ids of all chunks, in the order of their ids.
    """
    rows = distinct(np.concatenate([each.rows for each in held.values()]))
    return Occurrences(
        counts={keyword: each.among(rows) for keyword, each in held.items()},
        words={keyword: each.among(rows) for keyword, each in as_words.items()},
        sizes=np.ones(len(rows), np.int64),
        row_ids=row_ids[rows],
        groups=np.arange(len(rows)),
    )


@dataclass(slots=True)
class _Scores:
    scores: NDArray[Any]  # of each group, shape (groups,)
    document_frequency: dict[str, int] = field(default_factory=dict)  # for each keyword, how many chunks hold it
    as_word: dict[str, int] = field(default_factory=dict)  # how many chunks hold it as a word, if it occurs
    matching: list[NDArray[np.bool_]] = field(default_factory=list)  # the groups that match each keyword that occurs


def rank_chunks(occurrences: Occurrences, top_k: int, chunks: int) -> KeywordRanking:
    """Rank chunks by BM25 if words were counted, else by Score(c, K).

    BM25's term weight has k1 = 0.5 and b = 0, since chunks have about the same length: a keyword adds more if it is
    rare, and little more for repetitions. Each keyword's best chunk is then returned, too.

    Args:
        occurrences: How often chunks hold keywords.
        top_k: How many chunks to return, apart from the keywords' best chunks.
        chunks: How many chunks the index has.

    Returns:
        The best chunks, best first, ties in the order of `occurrences.row_ids`.
    """
    scored = _score_by_bm25(occurrences, chunks) if occurrences.words else _score_as_paper(occurrences)
    chunk_scores = scored.scores[occurrences.groups]
    chosen = [_best(np.flatnonzero(chunk_scores), chunk_scores, top_k)]
    for is_matching in scored.matching:
        matching_rows = np.flatnonzero(is_matching[occurrences.groups])
        chosen.append(_best(matching_rows, chunk_scores, 1))
    best = np.unique(np.concatenate(chosen))
    ranked = []
    for row in _best(best, chunk_scores, len(best)).tolist():
        chunk = RankedChunk(
            row_id=int(occurrences.row_ids[row]),
            score=chunk_scores[row].item(),
            counts=_counts_of_group(occurrences, occurrences.groups[row]),
        )
        ranked.append(chunk)
    has_any = np.any(list(occurrences.counts.values()), axis=0)
    return KeywordRanking(
        chunks=ranked,
        document_frequency=scored.document_frequency,
        as_word=scored.as_word,
        total=int(occurrences.sizes[has_any].sum()),
    )


def _score_as_paper(occurrences: Occurrences) -> _Scores:
    sizes = occurrences.sizes
    scored = _Scores(np.zeros(len(sizes), np.int64))
    for keyword, counts in occurrences.counts.items():
        rows = np.flatnonzero(counts)
        scored.document_frequency[keyword] = int(sizes[rows].sum())
        scored.scores += counts * len(collapse_whitespace(keyword))
    return scored


def _score_by_bm25(occurrences: Occurrences, chunks: int) -> _Scores:
    """Score groups; a keyword that occurs as a word does not count inside longer words."""
    sizes = occurrences.sizes
    scored = _Scores(np.zeros(len(sizes), np.float64))
    for keyword, counts in occurrences.counts.items():
        rows = np.flatnonzero(counts)
        document_frequency = int(sizes[rows].sum())
        scored.document_frequency[keyword] = document_frequency
        if document_frequency == 0:
            continue
        frequencies = counts[rows]
        word_frequencies = occurrences.words[keyword][rows]
        as_word = int(sizes[rows[word_frequencies > 0]].sum())
        scored.as_word[keyword] = as_word
        if as_word:
            frequencies = word_frequencies
            document_frequency = as_word
        scored.scores[rows] += np.log1p(chunks / document_frequency) * frequencies / (frequencies + _K1)
        is_matching = np.zeros(len(sizes), dtype=np.bool_)
        is_matching[rows[frequencies > 0]] = True
        scored.matching.append(is_matching)
    return scored


def _counts_of_group(occurrences: Occurrences, group: int) -> dict[str, int]:
    """Return how often the chunks of a group hold each keyword that they have."""
    present: dict[str, int] = {}
    for keyword, counts in occurrences.counts.items():
        if counts[group]:
            present[keyword] = int(counts[group])
    return present


def _best(rows: Integers, scores: NDArray[Any], top_k: int) -> Integers:
    """Return the rows with the highest scores, best first, ties by row."""
    if len(rows) > top_k:
        # Keep all rows that tie with the last one: their order decides.
        threshold = np.partition(scores[rows], -top_k)[-top_k]
        rows = rows[scores[rows] >= threshold]
    return rows[np.lexsort((rows, -scores[rows]))][:top_k]
