"""One generation of the index, which searches use while the next one is being written."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Collection, Mapping, Sequence
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from arag.retrieval.backend import Generation, KeywordRanking, RankedChunk, SentenceMatch, Vectors
from arag.retrieval.scope import Scope
from arag.retrieval.snippets import choose_keyword_snippets, choose_semantic_snippets
from arag.retrieval.suggestions import find_closest_terms
from arag.retrieval.text import fold
from arag.retrieval.topics import Topics
from arag.retrieval.types import (
    Chunk,
    Hit,
    KeywordReport,
    KeywordResults,
    ReadResults,
    SemanticResults,
    Snippet,
    UnknownChunk,
)
from arag.retrieval.words import place_words, telling_words

_MAX_TITLED = 3
_FEW_CHUNKS = 2  # a keyword in no more chunks than these gets the closest terms
_MAX_SUGGESTIONS = 20  # keywords of one search that get them
_SAME = 2e-3  # vectors may be stored, and ranked, shifted by a thousandth of their length
_FIRST_SENTENCES = 50  # fetched at first, then four times as many each time
_MAX_TIED = 3_000  # sentences fetched from a graph only to resolve ties: takes 0.2 s; 12,000 take a second
_MAX_APART = 2  # chunks that hold a keyword's words apart from each other: of more, none stands out
_MAX_EXPLAINED = 20  # unknown ids of one read that get the closest ones
_MAX_CLOSEST = 3
_MAX_ID = 200  # characters of an unknown id that are looked at
_WORD = re.compile(r"\w+")
_NAME_WORD = re.compile(r"[^\s,;:?!\"“”()]+(?<![.'’])")
_MAX_NAME_WORDS = 20
_MAX_QUERY_WORDS = 40
_MAX_TITLE_WORDS = 6
_MAX_BEST = 2  # hits of which more is shown
_MAX_NAMED = 2  # documents that a query names
_UNRELATED = 0.25  # of similarity, below the nearest chunk: a title may be a common word
_AROUND_IDS = string.whitespace + "[](){}<>\"'`"


class Snapshot:
    """The searches in one generation of an index. They may run in several threads at once.

    Args:
        generation: The generation.

    Attributes:
        manifest: The generation's manifest.
        chunks: Its chunks.
        parts: The searches of scoped indexes. They are let go of with the generation, and with their index.
    """

    def __init__(self, generation: Generation) -> None:
        self.parts: WeakKeyDictionary[object, Snapshot] = WeakKeyDictionary()
        self.manifest = generation.manifest
        self.chunks = generation.chunks
        self._generation = generation
        self._topics = Topics(generation.chunks)

    def part(self, scope: Scope) -> Snapshot:
        """Return the searches in the documents that a scope allows; see `Index.scoped`."""
        is_allowed = scope.compile()
        allowed = [d.id for d in self.chunks.documents() if is_allowed(d.id, json.loads(d.metadata))]
        return Snapshot(self._generation.part(allowed))

    def keyword_search(
        self, keywords: Sequence[str], top_k: int, within: Sequence[str] | None, *, by_coverage: bool
    ) -> KeywordResults:
        """Find the chunks that hold keywords; see `Index.keyword_search`."""
        keyword_index = self._generation.keywords()
        numbers = None if within is None else self.chunks.numbers_of(within)
        ranking = keyword_index.rank(keywords, top_k, within=numbers, by_coverage=by_coverage)
        holding = ranking.holding
        rare = [keyword for keyword in keywords if holding[keyword] <= _FEW_CHUNKS][:_MAX_SUGGESTIONS]
        words = self._generation.words()
        closest = {k: find_closest_terms(k, holding[k], keyword_index, words, self.chunks) for k in rare}
        apart: dict[int, list[str]] = {}
        if by_coverage:
            missing = [k for k in rare if not holding[k] and not any(term.respelled for term in closest[k])]
            apart = self._find_apart(missing, within)
        hits = self._make_hits(ranking, keywords, apart)
        if by_coverage and within is None:
            hits += self._find_subjects(keywords[:_MAX_SUGGESTIONS], {hit.chunk_id for hit in hits}, holding)
        reports = tuple(
            KeywordReport(k, holding[k], ranking.as_word.get(k), closest.get(k, ()), apart=_list_apart(k, hits))
            for k in keywords
        )
        others = sum(not any(hit.keyword_counts.values()) for hit in hits)  # with no keyword but in pieces, or a title
        return KeywordResults(reports, hits, ranking.total + others)

    def semantic_search(
        self, query: str, vector: NDArray[np.float32], top_k: int, within: Sequence[str] | None, *, subjects: bool
    ) -> SemanticResults:
        """Find the chunks with the sentences nearest to a query's vector; see `Index.semantic_search`."""
        numbers = None if within is None else self.chunks.numbers_of(within)
        matches = self._find_nearest(vector, top_k, numbers)
        scores: dict[int, float] = {}
        similarities: dict[int, dict[int, float]] = {}
        for rank, match in enumerate(matches):
            if rank < 3 * top_k or match.chunk not in scores:
                similarities.setdefault(match.chunk, {})[match.position] = match.similarity
            scores[match.chunk] = max(match.similarity, scores.get(match.chunk, -2.0))
        ids = self.chunks.ids(list(scores))
        best = sorted(ids, key=lambda number: (-scores[number], ids[number]))[:top_k]
        chunks = self.chunks.numbered(best)
        hits: list[Hit] = []
        for chunk, number in ((chunks[number], number) for number in best if number in chunks):
            chosen = choose_semantic_snippets(chunk, similarities[number], query, is_best=len(hits) < _MAX_BEST)
            hits.append(_make_hit(chunk, scores[number], chosen, matches=sorted(similarities[number])))
        if subjects and within is None:
            least = (hits[0].score if hits else 0.0) - _UNRELATED
            named = [hit for hit in self._find_named(query, vector) if hit.score >= least]
            hits = [*named, *(hit for hit in hits if hit.chunk_id not in {other.chunk_id for other in named})]
        return SemanticResults(query, tuple(hits))

    def sentence_vectors(self, chunk_ids: Sequence[str]) -> list[tuple[Chunk, list[int], Vectors]]:
        """Return the vectors of chunks' sentences; see `Index.sentence_vectors`."""
        numbers = sorted(self.chunks.numbers(chunk_ids))
        chunks = self.chunks.numbered(numbers)
        placed = sorted(self.chunks.placed_vectors(numbers), key=lambda entry: entry[0])
        return [(chunks[number], positions, vectors) for number, positions, vectors in placed if number in chunks]

    def rate_sentences(self, vector: NDArray[np.float32], chunk_ids: Sequence[str]) -> dict[str, dict[int, float]]:
        """Compare the sentences of chunks with a query's vector; see `Index.rate_sentences`."""
        numbers = self.chunks.numbers(chunk_ids)
        ids = self.chunks.ids(numbers)
        found: dict[str, dict[int, float]] = {chunk_id: {} for chunk_id in ids.values()}
        if numbers:
            for match in self._generation.sentences().nearest(vector, self.manifest.sentences, within=numbers):
                if match.chunk in ids:  # or it has just been deleted by a writer
                    found[ids[match.chunk]][match.position] = match.similarity
        return found

    def find_topics(self, chunk_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Find what parts of long documents are about; see `Index.find_topics`."""
        return self._topics.find(chunk_ids)

    def find_documents(self, name: str, limit: int) -> list[str]:
        """Find documents by a part of their name; see `Index.find_documents`."""
        if self.chunks.document(name) is not None:
            return [name]
        for chunk in self._resolve([name]).values():
            return [section.document_id for section in chunk.sections]
        return self.chunks.named(_WORD.findall(name)[:_MAX_NAME_WORDS], limit)

    def read(self, chunk_ids: Sequence[str], adjacent: int) -> ReadResults:
        """Return full chunks; see `Index.read`."""
        resolved = self._resolve(chunk_ids)
        found: dict[str, Chunk] = {}
        for chunk in resolved.values():
            found |= {c.id: c for c in self.chunks.neighbours(chunk, adjacent) if c.id not in found}
        unknown = [chunk_id for chunk_id in chunk_ids if chunk_id not in resolved]
        totals = self.chunks.chunks_in_documents(chunk.document_id for chunk in found.values())
        closest = {chunk_id: self._find_closest_ids(chunk_id) for chunk_id in unknown[:_MAX_EXPLAINED]}
        reports = tuple(UnknownChunk(chunk_id, closest.get(chunk_id, ())) for chunk_id in unknown)
        return ReadResults(tuple(found.values()), reports, totals)

    def _find_apart(self, keywords: Sequence[str], within: Sequence[str] | None) -> dict[int, list[str]]:
        """Find the chunks with a document that holds all words of a keyword, if there are no more than a few.

        Returns:
            The keywords of each chunk, by its number.
        """
        split = {k: words for k in keywords if (words := telling_words(k))}
        numbers = None if within is None else self.chunks.numbers_of(within)
        holding = self._generation.words().holding_all(list(split.values()), _MAX_APART + 1, numbers)
        few = {k: sorted(found) for k, found in zip(split, holding, strict=True) if len(found) <= _MAX_APART}
        chunks = self.chunks.numbered([number for found in few.values() for number in found])
        apart: dict[int, list[str]] = {}
        for keyword, found in few.items():
            for number in found:
                if number in chunks and _is_in_one_document(chunks[number], split[keyword], within):
                    apart.setdefault(number, []).append(keyword)
        return apart

    def _make_hits(
        self, ranking: KeywordRanking, keywords: Sequence[str], apart: Mapping[int, Sequence[str]]
    ) -> tuple[Hit, ...]:
        """Make hits of a ranking's chunks, and of those that hold the words of a keyword apart from each other."""
        ranked = {entry.number for entry in ranking.chunks}
        entries = [*ranking.chunks, *(RankedChunk(number, 0.0, {}) for number in apart if number not in ranked)]
        chunks = self.chunks.numbered([entry.number for entry in entries])
        hits: list[Hit] = []
        for entry in entries:
            chunk = chunks.get(entry.number)
            if chunk is None:  # just deleted by a writer: the search will be repeated
                continue
            missing = apart.get(entry.number, ())
            words = list(dict.fromkeys(word for keyword in missing for word in telling_words(keyword)))
            counts = entry.counts or _count(keywords, chunk)
            is_best = len(hits) < _MAX_BEST
            chosen = choose_keyword_snippets(chunk, list(counts), ranking.holding, words, is_best=is_best)
            hits.append(_make_hit(chunk, entry.score, chosen, counts | dict.fromkeys(missing, 0)))
        return tuple(hits)

    def _find_subjects(
        self, keywords: Sequence[str], known: Collection[str], holding: Mapping[str, int]
    ) -> tuple[Hit, ...]:
        """Find the documents with a keyword as their title among those that are not known."""
        found: dict[str, Hit] = {}
        held = [keyword for keyword in keywords if holding[keyword]]
        for documents in self.chunks.titled(held, _MAX_TITLED):
            for chunk in self.chunks.mget(self._first_chunks(documents, known)[:1]):
                if chunk is not None:
                    counts = _count(keywords, chunk)
                    chosen = choose_keyword_snippets(chunk, list(counts), holding)
                    found[chunk.id] = _make_hit(chunk, 0.0, chosen, counts)
        return tuple(found.values())

    def _find_named(self, query: str, vector: NDArray[np.float32]) -> list[Hit]:
        """Find the documents whose titles a query names."""
        ids: list[str] = []
        for documents in self.chunks.titled(_list_names(query), _MAX_TITLED):
            ids += self._first_chunks(documents, ids)[:1]
            if len(ids) == _MAX_NAMED:
                break
        rated = self.rate_sentences(vector, ids)
        found = []
        for chunk in self.chunks.mget(ids):
            if chunk is not None and rated.get(chunk.id):
                chosen = choose_semantic_snippets(chunk, rated[chunk.id], query, is_best=True)
                found.append(_make_hit(chunk, max(rated[chunk.id].values()), chosen))
        return found

    def _first_chunks(self, documents: Sequence[tuple[str, str]], known: Collection[str]) -> list[str]:
        """Return the ids of the first chunks of documents, apart from the known ones."""
        found: list[str] = []
        for document_id, _ in documents:
            first = self.chunks.ids(self.chunks.numbers_of([document_id])[:1])
            found += [chunk_id for chunk_id in first.values() if chunk_id not in known]
        return found

    def _find_nearest(
        self, vector: NDArray[np.float32], top_k: int, within: Sequence[int] | None
    ) -> list[SentenceMatch]:
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
            matches = sentences.nearest(vector, count, within=within)
            if len(matches) < count or count >= total or _is_decided(matches, top_k, most):
                return matches
            count = min(4 * count, total)

    def _resolve(self, chunk_ids: Sequence[str]) -> dict[str, Chunk]:
        """Return the chunks that ids mean, as far as there are any; see `Index.read`."""
        spelled = {chunk_id: (chunk_id, _strip_quotes(chunk_id)) for chunk_id in chunk_ids}
        candidates = list(dict.fromkeys(candidate for pair in spelled.values() for candidate in pair))
        chunks = {chunk.id: chunk for chunk in self.chunks.mget(candidates) if chunk is not None}
        others = [candidate for candidate in candidates if candidate not in chunks]
        of_document: dict[str, list[Chunk]] = {candidate: [] for candidate in others}
        for chunk in self.chunks.chunks_of(others) if others else ():
            for section in chunk.sections:
                of_document.get(section.document_id, []).append(chunk)
        chunks |= {candidate: held[0] for candidate, held in of_document.items() if len(held) == 1}
        found = ((i, next((chunks[c] for c in pair if c in chunks), None)) for i, pair in spelled.items())
        return {chunk_id: chunk for chunk_id, chunk in found if chunk is not None}

    def _find_closest_ids(self, chunk_id: str) -> tuple[str, ...]:
        of_document = self.chunks.chunks_of([chunk_id, chunk_id.rpartition(":")[0]])
        if of_document:
            return tuple(chunk.id for chunk in of_document[:_MAX_CLOSEST])
        return tuple(self.chunks.similar_ids(chunk_id[:_MAX_ID], _MAX_CLOSEST))


def _count(keywords: Sequence[str], chunk: Chunk) -> dict[str, int]:
    """Count the keywords that a chunk holds."""
    text = fold(chunk.text).lower()
    return {keyword: text.count(keyword.lower()) for keyword in keywords if keyword.lower() in text}


def _is_in_one_document(chunk: Chunk, words: Collection[str], within: Collection[str] | None) -> bool:
    """Return whether one of a chunk's documents, or of those to search in, holds all of some words."""
    return any(
        {word for word, _, _ in place_words(chunk.text[section.start : section.end])}.issuperset(words)
        for section in chunk.sections
        if within is None or section.document_id in within
    )


def _list_apart(keyword: str, hits: Sequence[Hit]) -> tuple[str, ...]:
    """Return the ids of the chunks that hold a keyword's words, but not the keyword."""
    return tuple(hit.chunk_id for hit in hits if hit.keyword_counts.get(keyword) == 0)


def _list_names(query: str) -> list[str]:
    """Return the runs of words in a query that may be titles, the longest first: those with a capital or a digit."""
    words = list(_NAME_WORD.finditer(query))[:_MAX_QUERY_WORDS]
    runs = [
        query[words[first].start() : words[first + length - 1].end()]
        for length in range(min(_MAX_TITLE_WORDS, len(words)), 0, -1)
        for first in range(len(words) - length + 1)
    ]
    return [run for run in dict.fromkeys(runs) if any(c.isupper() or c.isdigit() for c in run) and len(run) > 2]


def _strip_quotes(chunk_id: str) -> str:
    """Return an id without what models write around ids."""
    return chunk_id.strip().lstrip(_AROUND_IDS).rstrip(_AROUND_IDS + ",;.")


def _make_hit(
    chunk: Chunk,
    score: float,
    chosen: tuple[tuple[Snippet, ...], int],
    counts: Mapping[str, int] | None = None,
    matches: Sequence[int] = (),
) -> Hit:
    snippets, more = chosen
    documents = tuple(section.document_id for section in chunk.sections)
    return Hit(chunk.id, documents, score, snippets, more, chunk.tokens, dict(counts or {}), tuple(matches))


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
