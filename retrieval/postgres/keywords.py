"""Exact keyword search in the texts of an index in PostgreSQL (paper, section 3.2), with the results of a keyword file.

The server counts. Chunks with the same counts of all keywords are told as one row, with the first of them by id, so
that a keyword in a million chunks needs no million rows. The scores are computed here, in the same way as for a keyword
file, and so are equal to the last bit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arag.retrieval.backend import KeywordRanking, RankedChunk, keyword_weight
from arag.retrieval.keyword_file import MAX_CHECKED
from arag.retrieval.postgres.candidates import Candidates
from arag.retrieval.postgres.chunk_store import PostgresChunks
from arag.retrieval.postgres.connections import Statements
from arag.retrieval.postgres.word_borders import WordBorders
from arag.retrieval.text import fold
from arag.retrieval.types import Chunk

# A text as `WordBorders` needs it: split where it holds a needle, of long pieces only the ends. Or the whole text.
_AROUND = (
    "(SELECT array_agg(CASE WHEN length(piece) <= 4 THEN piece ELSE left(piece, 3) || right(piece, 1) END "
    "ORDER BY place) FROM unnest(string_to_array(lowered, %s)) WITH ORDINALITY AS pieces (piece, place))"
)
_WHOLE = "ARRAY[lowered]"

_AT_ONCE = 100  # needles in a statement: PostgreSQL returns no more than 1,664 columns

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Group:
    """Chunks with the same counts.

    Attributes:
        occurrences: How often each of them holds each keyword.
        words: How often it holds it as a word of its own; only for keywords that were checked.
        size: How many chunks there are.
        first: Id and number of the first ones, by id.
    """

    occurrences: tuple[int, ...]
    words: tuple[int, ...]
    size: int
    first: list[tuple[str, int]]


class PostgresKeywords:
    """Counts keywords in the texts of a generation's chunks, and ranks the chunks.

    Args:
        statements: Runs the statements.
        chunks: The chunks: all of a generation, or a part.
        size: How many there are.
        cut: Those of them that are a part of what is stored, by number.
    """

    def __init__(
        self, statements: Statements, chunks: PostgresChunks, size: int, cut: Mapping[int, Chunk] | None = None
    ) -> None:
        self._statements = statements
        self._seen = chunks.seen
        self._size = size
        self._cut = {number: (chunk.id, fold(chunk.text).lower()) for number, chunk in (cut or {}).items()}

    def __len__(self) -> int:
        """Return the number of chunks."""
        return self._size

    def chunks_holding(self, keywords: Sequence[str]) -> list[int]:
        """Count the chunks that hold each of some keywords."""
        needles = list(dict.fromkeys(needle for needle in map(_needle, keywords) if needle is not None))
        counts: dict[str | None, int] = {None: 0}
        for start in range(0, len(needles), _AT_ONCE):
            counts.update(self._count_chunks(needles[start : start + _AT_ONCE]))
        return [counts[_needle(keyword)] for keyword in keywords]

    def _count_chunks(self, needles: Sequence[str]) -> dict[str, int]:
        """Count the chunks that hold each of some needles."""
        candidates = Candidates(self._statements, needles)
        conditions = [candidates.hold_any([needle]) for needle in needles]
        counted = (
            f"(SELECT count(*) FROM lowered JOIN chunks ON chunks.number = lowered.number "
            f"WHERE {condition} AND {self._seen})"
            for condition, _ in conditions
        )
        values = [value for _, values in conditions for value in values]
        (row,) = self._statements.query(f"SELECT {', '.join(counted)}", values)
        cut = {needle: sum(needle in text for _, text in self._cut.values()) for needle in needles}
        return {needle: held + cut[needle] for needle, held in zip(needles, row, strict=True)}

    def rank(
        self, keywords: Sequence[str], top_k: int, *, within: Collection[int] | None = None, by_coverage: bool = False
    ) -> KeywordRanking:
        """Rank the chunks by Score(c, K), ties by chunk id; see `Keywords.rank`."""
        needles = [_needle(keyword) for keyword in keywords]
        asked = [needle for needle in needles if needle is not None]
        groups = self._find(asked, top_k, within, checked=by_coverage) if asked else []
        size = len(self) if within is None else self._count_within(within)
        sizes = np.fromiter((group.size for group in groups), np.int64, len(groups))
        scores: NDArray[Any] = np.zeros(len(groups), dtype=np.float64 if by_coverage else np.int64)
        holding = dict.fromkeys(keywords, 0)
        as_word: dict[str, int] = {}
        firsts: list[Integers] = []
        places = iter(range(len(asked)))
        for keyword, needle in zip(keywords, needles, strict=True):
            if needle is None:
                continue
            place = next(places)
            occurrences = np.fromiter((group.occurrences[place] for group in groups), np.int64, len(groups))
            held = np.flatnonzero(occurrences)
            holding[keyword] = int(sizes[held].sum())
            if by_coverage and len(held):
                words = np.fromiter((group.words[place] for group in groups), np.int64, len(groups))
                as_word[keyword] = int(sizes[words > 0].sum())
                counted = words if as_word[keyword] else occurrences
                weight = keyword_weight(counted[held], as_word[keyword] or holding[keyword], size)
                scores[held] += weight
                firsts.append(np.flatnonzero(counted))
            elif not by_coverage:
                scores += occurrences * len(fold(keyword))
        best = _best(groups, scores, np.flatnonzero(scores), top_k)
        for found in firsts:  # each keyword's best chunk, by all keywords
            best |= _best(groups, scores, found, 1)
        ranked = [
            RankedChunk(number, scores[place].item(), _name_counts(keywords, needles, groups[place].occurrences))
            for (_, number), place in sorted(best.items(), key=lambda entry: (-scores[entry[1]], entry[0]))
        ]
        return KeywordRanking(ranked, holding, as_word, int(sizes.sum()))

    def _count_within(self, within: Collection[int]) -> int:
        """Count those of some chunks that there are."""
        ((held,),) = self._statements.query(
            f"SELECT count(*) FROM chunks WHERE number = ANY (%s) AND {self._seen}", (list(within),)
        )
        return int(held) + sum(number in self._cut for number in within)

    def _find(
        self, needles: Sequence[str], top_k: int, within: Collection[int] | None, *, checked: bool
    ) -> list[_Group]:
        """Return the chunks that hold any needle, in groups."""
        borders = [WordBorders(needle) for needle in needles]
        cut = self._cut if within is None else {n: self._cut[n] for n in within if n in self._cut}
        in_cut = {n: tuple(text.count(needle) for needle in needles) for n, (_, text) in cut.items()}
        few = [MAX_CHECKED - sum(counts[i] > 0 for counts in in_cut.values()) for i in range(len(needles))]
        looks = [i for i, border in enumerate(borders) if checked and border.matter]
        rows = self._count(needles, top_k, within, {i: few[i] for i in looks})
        holding = [sum(row[-3] for row in rows if row[i]) for i in range(len(needles))]
        width = len(needles)
        groups = []
        for row in rows:
            occurrences = tuple(row[:width])
            words = list(occurrences)
            for i, around in zip(looks, row[width:-3], strict=True):
                if around is not None:
                    words[i] = borders[i].count_around(around)
            groups.append(_Group(occurrences, tuple(words), row[-3], list(zip(row[-2], row[-1], strict=True))))
        for number, (chunk_id, text) in cut.items():
            occurrences = in_cut[number]
            if any(occurrences):
                words = [
                    borders[i].count(text) if i in looks and occurrences[i] and holding[i] <= few[i] else occurrences[i]
                    for i in range(width)
                ]
                groups.append(_Group(occurrences, tuple(words), 1, [(chunk_id, number)]))
        return groups

    def _count(
        self, needles: Sequence[str], top_k: int, within: Collection[int] | None, few: Mapping[int, int]
    ) -> list[tuple[Any, ...]]:
        """Let the server count needles.

        Args:
            needles: The needles.
            top_k: How many chunks to name of those with the same counts.
            within: Numbers of the chunks to search in.
            few: Places of needles; where no more chunks than this hold one, what is around it is told, too.

        Returns:
            For each group of chunks: the count of each needle; for those in `few`, what is around it, or None; the
            number of chunks; ids and numbers of the first ones, by id.
        """
        names = [f"n{i}" for i in range(len(needles))]
        around = [f"x{i}" for i in few]
        counted = ", ".join(
            f"(octet_length(lowered) - octet_length(replace(lowered, %s, ''))) / {len(needle.encode())} AS {name}"
            for needle, name in zip(needles, names, strict=True)
        )
        held = ", ".join(f"count(*) FILTER (WHERE {name} > 0) AS h{name}" for name in names)
        cut = {i: WordBorders(needles[i]).can_be_cut for i in few}
        told = "".join(
            f", CASE WHEN n{i} > 0 AND hn{i} <= {most} THEN (SELECT {_AROUND if cut[i] else _WHOLE} "
            f"FROM lowered WHERE lowered.number = hits.number) END AS x{i}"
            for i, most in few.items()
        )
        condition, values = Candidates(self._statements, needles).hold_any(needles)
        alone = " OR ".join(f"{name} IS NOT NULL" for name in around) or "FALSE"
        statement = (
            f"WITH hits AS MATERIALIZED (SELECT chunks.id, chunks.number, {counted} "
            "FROM lowered JOIN chunks ON chunks.number = lowered.number "
            f"WHERE {condition} AND {self._seen}"
            f"{'' if within is None else ' AND chunks.number = ANY (%s)'}), "
            f"held AS (SELECT {held} FROM hits), "
            f"told AS (SELECT id, number, {', '.join(names)}{told} FROM hits CROSS JOIN held) "
            f"SELECT {', '.join([*names, *around])}, count(*), "
            "(array_agg(id ORDER BY id))[:%s], (array_agg(number ORDER BY id))[:%s] FROM told "
            f"GROUP BY {', '.join([*names, *around])}, CASE WHEN {alone} THEN number END"
        )
        parameters: list[Any] = [*needles, *values]
        if within is not None:
            parameters.append(list(within))
        parameters += [needles[i] for i in few if cut[i]]
        return self._statements.query(statement, [*parameters, top_k, top_k])


def _needle(keyword: str) -> str | None:
    """Return a keyword as it is matched; None if it has characters that no text has.

    Raises:
        ValueError: It is blank.
    """
    needle = fold(keyword).lower()
    if not needle:
        raise ValueError("a blank keyword matches nowhere")
    return None if PostgresChunks.UNSTORABLE.search(needle) else needle


def _best(groups: Sequence[_Group], scores: NDArray[Any], places: Integers, top_k: int) -> dict[tuple[str, int], int]:
    """Return the chunks of the groups with the highest scores: id and number of each, and its group's place."""
    order = places[np.argsort(-scores[places], kind="stable")].tolist()
    found: dict[tuple[str, int], int] = {}
    last = None  # the lowest score that is taken
    for place in order:
        if len(found) >= top_k and scores[place] < last:
            break
        last = scores[place]
        found |= dict.fromkeys(groups[place].first, place)
    kept = sorted(found, key=lambda chunk: (-scores[found[chunk]], chunk))[:top_k]
    return {chunk: found[chunk] for chunk in kept}


def _name_counts(keywords: Sequence[str], needles: Sequence[str | None], occurrences: Sequence[int]) -> dict[str, int]:
    """Return the count of each keyword that a chunk holds."""
    asked = [keyword for keyword, needle in zip(keywords, needles, strict=True) if needle is not None]
    return {keyword: count for keyword, count in zip(asked, occurrences, strict=True) if count}
