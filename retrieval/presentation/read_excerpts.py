"""Excerpts of chunks that are read: the passages that are nearest to queries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from arag.retrieval.presentation.context import expand
from arag.retrieval.presentation.excerpts import ChosenSentences, Excerpt, make_excerpt
from arag.retrieval.presentation.similarity import Passage, rank_passages
from arag.retrieval.presentation.table_rows import complete_tables, find_rows
from arag.retrieval.types import Chunk

_READ_CHARACTERS = 1_600  # of passages in one read: less than half of a full chunk...
_READ_CHARACTERS_PER_QUERY = 600  # ...plus these for each query


def excerpts_for_reading(
    chunks: Sequence[Chunk],
    similarities: Mapping[str, Mapping[str, Mapping[int, float]]],
    seen: Mapping[str, Collection[int]],
) -> dict[str, Excerpt]:
    """Choose the passages of chunks that are near to queries, and rows of tables whose labels are in them.

    The best new passage of each chunk comes first; then the best ones for each query in turn, until there are enough.

    Args:
        chunks: The chunks.
        similarities: Similarities by query, chunk id and position.
        seen: By chunk id, the positions of the sentences that the conversation has seen.

    Returns:
        The excerpts by chunk id; without sentences for a chunk that is far from every query.
    """
    queries = list(similarities)
    readings: dict[str, _Reading] = {}
    for chunk in chunks:
        readings[chunk.id] = _begin_reading(chunk, queries, seen.get(chunk.id, ()))

    rankings = [rank_passages(chunks, similarities[query], query) for query in queries]
    passages = _take_turns(rankings)
    room = _count_allowed_characters(chunks, queries)
    for passage in [*_choose_first_new(passages, readings), *passages]:
        if room < 0:
            break
        room -= readings[passage.chunk.id].add(passage.position)
    return {chunk_id: reading.make_excerpt() for chunk_id, reading in readings.items()}


@dataclass(slots=True)
class _Reading:
    """The sentences of one chunk that are chosen so far, given by position."""

    chunk: Chunk
    seen: set[int]  # by the conversation
    rows: set[int]
    matched: set[int]
    shown: set[int]

    def add(self, position: int) -> int:
        """Add a passage with its context, and return how many characters are new."""
        passage = complete_tables(self.chunk, expand(self.chunk, [position], window=not self.rows))
        new = passage - self.shown - self.seen
        self.matched.add(position)
        self.shown |= new
        return sum(len(self.chunk.sentence_text(each)) for each in new)

    def make_excerpt(self) -> Excerpt:
        chosen = ChosenSentences(shown=self.shown - self.seen, matched=self.matched)
        return make_excerpt(self.chunk, chosen, longest=_READ_CHARACTERS)


def _begin_reading(chunk: Chunk, queries: Sequence[str], seen: Collection[int]) -> _Reading:
    """Begin with the rows of tables that the queries ask for."""
    # A label may have a comma, at which the queries were split.
    rows = find_rows(chunk, [*queries, " ".join(queries)])
    return _Reading(
        chunk=chunk,
        seen=set(seen),
        rows=rows,
        matched=set(rows),
        shown=complete_tables(chunk, expand(chunk, rows)),
    )


def _count_allowed_characters(chunks: Sequence[Chunk], queries: Sequence[str]) -> int:
    """Return how many characters of passages are shown: at most half of the chunks."""
    allowed = _READ_CHARACTERS + _READ_CHARACTERS_PER_QUERY * len(queries)
    all_characters = sum(len(chunk.text) for chunk in chunks)
    return min(allowed, all_characters // 2)


def _choose_first_new(passages: Iterable[Passage], readings: Mapping[str, _Reading]) -> list[Passage]:
    """Return the first passage of each chunk that the conversation has not seen."""
    firsts: dict[str, Passage] = {}
    for passage in passages:
        reading = readings[passage.chunk.id]
        if passage.position not in reading.seen:
            firsts.setdefault(passage.chunk.id, passage)
    return list(firsts.values())


def _take_turns(rankings: Sequence[Sequence[Passage]]) -> list[Passage]:
    """Return the passages of several rankings: the best of each, then the second of each, and so on."""
    turns: list[Passage] = []
    for turn in zip_longest(*rankings):
        turns += [passage for passage in turn if passage is not None]
    return turns
