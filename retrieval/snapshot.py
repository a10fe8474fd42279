"""One generation of the index, which searches use while the next one is being written."""

from __future__ import annotations

import string
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from arag.retrieval.backend import Generation, RankedChunk, SentenceMatch
from arag.retrieval.snippets import choose_keyword_snippets, choose_semantic_snippets
from arag.retrieval.suggestions import find_closest_terms
from arag.retrieval.types import (
    Chunk,
    Hit,
    KeywordReport,
    KeywordResults,
    ReadResults,
    SemanticResults,
    Titled,
    UnknownChunk,
)

_MAX_TITLED = 3
_FEW_CHUNKS = 2  # a keyword in no more chunks than these gets the closest terms
_MAX_SUGGESTIONS = 20  # keywords of one search that get them
_SAME = 2e-3  # vectors may be stored, and ranked, shifted by a thousandth of their length
_FIRST_SENTENCES = 50  # fetched at first, then four times as many each time
_MAX_TIED = 3_000  # sentences fetched from a graph only to resolve ties: takes 0.2 s; 12,000 take a second
_MAX_EXPLAINED = 20  # unknown ids of one read that get the closest ones
_MAX_CLOSEST = 3
_MAX_ID = 200  # characters of an unknown id that are looked at
_AROUND_IDS = string.whitespace + "[](){}<>\"'`"


class Snapshot:
    """The searches in one generation of an index. They may run in several threads at once.

    Args:
        generation: The generation.
    """

    def __init__(self, generation: Generation) -> None:
        self.manifest = generation.manifest
        self.chunks = generation.chunks
        self._generation = generation

    def keyword_search(self, keywords: Sequence[str], top_k: int, read: Collection[str]) -> KeywordResults:
        """Find the chunks that hold keywords; see `Index.keyword_search`."""
        ranking = self._generation.keywords()
        ranked, holding, total = ranking.rank(keywords, top_k)
        hits = self._make_hits(ranked, holding, read)
        rare = [keyword for keyword in keywords if holding[keyword] <= _FEW_CHUNKS][:_MAX_SUGGESTIONS]
        words = self._generation.words()
        closest = {k: find_closest_terms(k, holding[k], ranking, words) for k in rare}
        shown = {hit.chunk_id for hit in hits}
        reports = tuple(
            KeywordReport(k, holding[k], closest.get(k, ()), self._find_titled(k, shown) if holding[k] > top_k else ())
            for k in keywords
        )
        return KeywordResults(reports, hits, total)

    def semantic_search(
        self, query: str, vector: NDArray[np.float32], top_k: int, read: Collection[str]
    ) -> SemanticResults:
        """Find the chunks with the sentences nearest to a query's vector; see `Index.semantic_search`."""
        matches = self._find_nearest(vector, top_k)
        scores: dict[int, float] = {}
        similarities: dict[int, dict[int, float]] = {}
        for rank, match in enumerate(matches):
            if rank < 3 * top_k or match.chunk not in scores:
                similarities.setdefault(match.chunk, {})[match.position] = match.similarity
            scores[match.chunk] = max(match.similarity, scores.get(match.chunk, -2.0))
        ids = self.chunks.ids(list(scores))
        best = sorted(ids, key=lambda number: (-scores[number], ids[number]))[:top_k]
        chunks = self.chunks.numbered(best)
        hits = []
        for number, chunk in ((number, chunks[number]) for number in best if number in chunks):
            snippets, more = choose_semantic_snippets(chunk, similarities[number], brief=chunk.id in read)
            hits.append(
                Hit(
                    chunk_id=chunk.id,
                    document_ids=tuple(section.document_id for section in chunk.sections),
                    score=scores[number],
                    snippets=snippets,
                    more=more,
                    tokens=chunk.tokens,
                )
            )
        return SemanticResults(query, tuple(hits))

    def read(self, chunk_ids: Sequence[str], adjacent: int) -> ReadResults:
        """Return full chunks; see `Index.read`."""
        found: dict[str, Chunk] = {}
        unknown: list[str] = []
        for chunk_id in chunk_ids:
            chunk = self._resolve(chunk_id)
            if chunk is None:
                unknown.append(chunk_id)
                continue
            for neighbour in self.chunks.neighbours(chunk, adjacent):
                found.setdefault(neighbour.id, neighbour)
        totals = {c.document_id: self.chunks.chunks_in_document(c.document_id) for c in found.values()}
        closest = {chunk_id: self._find_closest_ids(chunk_id) for chunk_id in unknown[:_MAX_EXPLAINED]}
        reports = tuple(UnknownChunk(chunk_id, closest.get(chunk_id, ())) for chunk_id in unknown)
        return ReadResults(tuple(found.values()), reports, totals)

    def _make_hits(
        self, ranked: Sequence[RankedChunk], holding: Mapping[str, int], read: Collection[str]
    ) -> tuple[Hit, ...]:
        chunks = self.chunks.numbered([entry.number for entry in ranked])
        hits = []
        for entry in ranked:
            chunk = chunks.get(entry.number)
            if chunk is None:  # just deleted by a writer: the search will be repeated
                continue
            snippets, more = choose_keyword_snippets(chunk, list(entry.counts), holding, brief=chunk.id in read)
            hits.append(
                Hit(
                    chunk_id=chunk.id,
                    document_ids=tuple(section.document_id for section in chunk.sections),
                    score=entry.score,
                    snippets=snippets,
                    more=more,
                    tokens=chunk.tokens,
                    keyword_counts=entry.counts,
                )
            )
        return tuple(hits)

    def _find_titled(self, keyword: str, shown: Collection[str]) -> tuple[Titled, ...]:
        """Find documents with a keyword as their title that the hits do not show."""
        found = []
        for document_id, title in self.chunks.titled(keyword, _MAX_TITLED):
            chunks = self.chunks.chunks_of([document_id])
            if chunks and chunks[0].id not in shown:
                found.append(Titled(title, chunks[0].id))
        return tuple(found)

    def _find_nearest(self, vector: NDArray[np.float32], top_k: int) -> list[SentenceMatch]:
        """Fetch sentences until they cover `top_k` chunks, and all that tie with the last, or none are left.

        If a large corpus has one sentence in thousands of chunks, any of these is as good as the others.
        """
        total = self.manifest.sentences
        if total == 0:
            return []
        sentences = self._generation.sentences()
        most = total if sentences.is_exact else _MAX_TIED
        count = min(max(_FIRST_SENTENCES, 4 * top_k), total)
        while True:
            matches = sentences.nearest(vector, count)
            if len(matches) >= total or count >= total or _is_decided(matches, top_k, most):
                return matches
            count = min(4 * count, total)

    def _resolve(self, chunk_id: str) -> Chunk | None:
        bare = chunk_id.strip().lstrip(_AROUND_IDS).rstrip(_AROUND_IDS + ",;.")
        for candidate in dict.fromkeys((chunk_id, bare)):
            chunk = self.chunks.mget([candidate])[0]
            if chunk is not None:
                return chunk
            of_document = self.chunks.chunks_of([candidate])
            if len(of_document) == 1:
                return of_document[0]
        return None

    def _find_closest_ids(self, chunk_id: str) -> tuple[str, ...]:
        of_document = self.chunks.chunks_of([chunk_id, chunk_id.rpartition(":")[0]])
        if of_document:
            return tuple(chunk.id for chunk in of_document[:_MAX_CLOSEST])
        return tuple(self.chunks.similar_ids(chunk_id[:_MAX_ID], _MAX_CLOSEST))


def _is_decided(matches: Sequence[SentenceMatch], top_k: int, most: int) -> bool:
    """Return whether sentences, nearest first, hold the best `top_k` chunks and all that tie with the last of them.

    When there are as many sentences as `most`, it does not matter what else ties.
    """
    scores: dict[int, float] = {}
    for match in matches:
        scores.setdefault(match.chunk, match.similarity)
    if len(scores) < top_k:
        return False
    return len(matches) >= most or list(scores.values())[top_k - 1] - matches[-1].similarity > _SAME
