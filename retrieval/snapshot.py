"""One generation of the index: what a search works on, whole, while the next one is being written."""

from __future__ import annotations

import string
import threading
import warnings
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz, process

from arag.errors import IndexFormatError
from arag.retrieval.local.chunk_store import ChunkStore
from arag.retrieval.local.exact import MOST_BYTES, ExactVectors
from arag.retrieval.local.keywords import KeywordMatcher, RankedChunk
from arag.retrieval.local.manifest import Manifest, check_files, keyword_file, vectors_folder, vocabulary_file
from arag.retrieval.local.seal import KEY_VARIABLE, is_sealed
from arag.retrieval.local.sentence_store import SentenceMatch, SentenceStore
from arag.retrieval.local.vocabulary import Vocabulary
from arag.retrieval.snippets import keyword_snippets, semantic_snippets
from arag.retrieval.suggestions import closest_terms
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

_MOST_TITLED = 3
_FEW_CHUNKS = 2  # a keyword in no more chunks than these gets the closest terms
_MOST_SUGGESTIONS = 20  # keywords of one search that get them
_SAME = 2e-3  # vectors are stored a thousandth of their length apart, and ranked so by Chroma
_FIRST_SENTENCES = 50  # asked of Chroma at first, then four times as many each time
_MOST_TIED = 3_000  # sentences that are asked of Chroma for the sake of ties only: 0.2 s, and a second for 12,000
_MOST_EXPLAINED = 20  # unknown ids of one read that get the closest ones
_AROUND_IDS = string.whitespace + "[](){}<>\"'`"


class Snapshot:
    """An index as one generation has it. All its searches may run in several threads at once.

    Args:
        path: The index's folder.
        manifest: The generation's manifest.
        chunks: The chunk store, at that generation.
    """

    def __init__(self, path: Path, manifest: Manifest, chunks: ChunkStore) -> None:
        self.manifest = manifest
        self.chunks = chunks
        self._path = path
        self._lock = threading.Lock()
        self._matcher: KeywordMatcher | None = None  # opened by the first search that needs it, as are these
        self._vocabulary: Vocabulary | None = None
        self._exact: ExactVectors | None = None
        self._sentences: SentenceStore | None = None
        self._is_sealed: bool | None = None

    def keyword_search(self, keywords: Sequence[str], top_k: int, read: Collection[str]) -> KeywordResults:
        """Find the chunks that hold keywords; see `Index.keyword_search`."""
        matcher = self._keyword_matcher()
        ranked, holding, total = matcher.rank(keywords, top_k)
        hits = self._keyword_hits(ranked, holding, read)
        rare = [keyword for keyword in keywords if holding[keyword] <= _FEW_CHUNKS][:_MOST_SUGGESTIONS]
        closest = {k: closest_terms(k, holding[k], self.chunks, matcher, self._words) for k in rare}
        shown = {hit.chunk_id for hit in hits}
        reports = tuple(
            KeywordReport(k, holding[k], closest.get(k, ()), self._titled(k, shown) if holding[k] > top_k else ())
            for k in keywords
        )
        return KeywordResults(reports, hits, total)

    def semantic_search(
        self, query: str, vector: NDArray[np.float32], top_k: int, read: Collection[str]
    ) -> SemanticResults:
        """Find the chunks with the sentences nearest to a query's vector; see `Index.semantic_search`."""
        matches = self._nearest(vector, top_k)
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
            snippets, more = semantic_snippets(chunk, similarities[number], brief=chunk.id in read)
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
        keys = list(self.chunks.yield_keys()) if unknown else []
        closest = {chunk_id: self._closest_ids(chunk_id, keys) for chunk_id in unknown[:_MOST_EXPLAINED]}
        reports = tuple(UnknownChunk(chunk_id, closest.get(chunk_id, ())) for chunk_id in unknown)
        return ReadResults(tuple(found.values()), reports, totals)

    def _keyword_matcher(self) -> KeywordMatcher:
        with self._lock:
            if self._matcher is None:
                file = keyword_file(self._path, self.manifest.generation)
                check_files(self._path, self.manifest, file)
                self._matcher = KeywordMatcher(file)
            return self._matcher

    def _words(self) -> Vocabulary:
        with self._lock:
            if self._vocabulary is None:
                file = vocabulary_file(self._path, self.manifest.generation)
                check_files(self._path, self.manifest, file)
                self._vocabulary = Vocabulary(file)
            return self._vocabulary

    def _exact_vectors(self) -> ExactVectors:
        with self._lock:
            if self._exact is None:
                self._exact = ExactVectors(self.chunks, self.manifest)
            return self._exact

    def _sentence_store(self) -> SentenceStore:
        with self._lock:
            if self._sentences is None:
                folder = vectors_folder(self._path, self.manifest.generation)
                # A flipped bit in its graph can end the process, or never end.
                check_files(self._path, self.manifest, folder, contents=True)
                store = SentenceStore(folder)
                if store.count() != self.manifest.sentences:
                    raise IndexFormatError(
                        f"{folder} has {store.count():,} vectors in place of {self.manifest.sentences:,}: "
                        f"run `arag verify --index {self._path} --repair`"
                    )
                self._sentences = store
            return self._sentences

    def _has_own_graph(self) -> bool:
        if self._is_sealed is None:
            self._is_sealed = is_sealed(self.manifest)
            if not self._is_sealed:
                warnings.warn(
                    f"the index in {self._path} was written by another user or on another machine: semantic search "
                    "compares with every vector and does not use its graph. To have the graph made here, run "
                    f"`arag verify --index {self._path} --repair`; to share indexes, set {KEY_VARIABLE} to the same "
                    "secret wherever they are written and read",
                    stacklevel=2,
                )
        return self._is_sealed

    def _keyword_hits(
        self, ranked: Sequence[RankedChunk], holding: Mapping[str, int], read: Collection[str]
    ) -> tuple[Hit, ...]:
        chunks = self.chunks.numbered([entry.number for entry in ranked])
        hits = []
        for entry in ranked:
            chunk = chunks.get(entry.number)
            if chunk is None:  # deleted by a writer a moment ago: the search is going to be repeated
                continue
            snippets, more = keyword_snippets(chunk, list(entry.counts), holding, brief=chunk.id in read)
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

    def _titled(self, keyword: str, shown: Collection[str]) -> tuple[Titled, ...]:
        """Find documents with a keyword as their title, as far as the hits do not show them."""
        found = []
        for document_id, title in self.chunks.titled(keyword, _MOST_TITLED):
            chunks = self.chunks.chunks_of([document_id])
            if chunks and chunks[0].id not in shown:
                found.append(Titled(title, chunks[0].id))
        return tuple(found)

    def _nearest(self, vector: NDArray[np.float32], top_k: int) -> list[SentenceMatch]:
        """Fetch sentences until they belong to `top_k` chunks, and to all that tie with the last, or none is left.

        In a large corpus that has one sentence in thousands of chunks, any of them are as good as the others.
        """
        total = self.manifest.sentences
        if total == 0:
            return []
        exactly = 4 * total * self.manifest.dimension <= MOST_BYTES or not self._has_own_graph()
        nearest = self._exact_vectors().nearest if exactly else self._sentence_store().nearest
        most = total if exactly else _MOST_TIED
        count = min(max(_FIRST_SENTENCES, 4 * top_k), total)
        while True:
            matches = nearest(vector, count)
            if len(matches) < count:
                return self._sentence_store().compared(vector)
            if count == total or _decided(matches, top_k, most):
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

    def _closest_ids(self, chunk_id: str, keys: Sequence[str]) -> tuple[str, ...]:
        of_document = self.chunks.chunks_of([chunk_id, chunk_id.rpartition(":")[0]])
        if of_document:
            return tuple(chunk.id for chunk in of_document[:3])
        similar = process.extract(chunk_id[:200], keys, scorer=fuzz.ratio, score_cutoff=60, limit=3)
        return tuple(match[0] for match in similar) or tuple(keys[:2])


def _decided(matches: Sequence[SentenceMatch], top_k: int, most: int) -> bool:
    """Tell whether sentences, nearest first, hold the best `top_k` chunks and all that tie with the last of them.

    When there are so many sentences as `most`, it does not matter what else ties.
    """
    scores: dict[int, float] = {}
    for match in matches:
        scores.setdefault(match.chunk, match.similarity)
    if len(scores) < top_k:
        return False
    return len(matches) >= most or list(scores.values())[top_k - 1] - matches[-1].similarity > _SAME
