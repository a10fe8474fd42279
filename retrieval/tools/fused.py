"""Searches by keywords and by meaning together, for people: one box, one list."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from arag.models.names import knows_script
from arag.retrieval.index import Index
from arag.retrieval.presentation.context import expand
from arag.retrieval.presentation.excerpts import ShownSentence
from arag.retrieval.presentation.for_people import NEAREST, without_contents
from arag.retrieval.presentation.matches import begins_word, find_keywords, prefer_whole_words
from arag.retrieval.presentation.render import list_closest
from arag.retrieval.presentation.selection import (
    Selection,
    ShownHit,
    comparable_text,
    show_keyword_hits,
    show_semantic_hits,
)
from arag.retrieval.presentation.weighing import weigh
from arag.retrieval.search.contents import is_in_contents
from arag.retrieval.search.spellings import swap_apostrophes
from arag.retrieval.tools.retriever import is_quoted, list_keywords, list_quoted
from arag.retrieval.types import Chunk, Hit, KeywordResults, SemanticResults
from arag.text.normalise import is_title, searchable

HITS = 30  # of each search, and of both together
_NEAR = 10  # if no keyword is anywhere
_MIN_SHARE = 0.5  # of the best sentence's weight
_WORD = re.compile(r"[^\W\d_]{2}|[^\W\d_\x00-\u024f]")  # in scripts without spaces, one letter may be a word
_QUESTION = re.compile(r"[?？؟]\s*$|^\s*¿")
_MOST_KEYWORDS = 5  # of a query: more are a sentence
_NAME = re.compile(r"[\d_./\\:@+]|\w-\w")  # a number, a version, or as in programs
_SMOOTHING = 60  # of ranks, as is usual in reciprocal rank fusion


Group = Literal["words", "near", "contents"]


@dataclass(frozen=True)
class Passage:
    """A chunk that was found."""

    shown: ShownHit
    matched: list[int]
    """The positions of the sentences that matched: the best one first, the others in order."""
    group: Group
    """Passages of a group come together: `words` have all keywords that are anywhere, `contents` stand in contents."""
    copies: list[Passage] = field(default_factory=list)
    """Further passages that show the same text."""


def find_passages(index: Index, query: str) -> tuple[list[Passage], dict[str, list[str]]]:
    """Return the best chunks by keywords and meaning, and the sought keywords without any, with their closest terms.

    Those with all keywords that are anywhere come first, and of these the ones that spell them so; then, unless it is a
    question, those with the rarest keyword; contents come last. A query that is only quoted finds no others. The same
    text comes once, with its copies.
    """
    keywords = list_keywords(query)
    by_keyword = index.keyword_search(keywords, HITS, ranking="bm25")
    selections = [show_keyword_hits(by_keyword, for_people=True)]
    if not is_quoted(query) and knows_script(index.embedder.name, query):
        selections.append(show_semantic_hits(_find_nearest(index, query)))
    hits, scores = _fuse(selections, adds_nearest=_is_asked(query))
    sought = _list_sought(by_keyword)
    rarest = set[str]() if _is_asked(query) else _find_rarest(by_keyword)

    def begun_in(hit: Hit) -> set[str]:
        text = searchable(hit.chunk.text)
        return {keyword for keyword in hit.keyword_counts if begins_word(keyword, text)}.union(hit.in_name)

    def has_all(hit: Hit) -> bool:
        begun = begun_in(hit)
        return bool(sought) and all(begun & spellings for spellings in sought)

    def rank_of(chunk_id: str) -> tuple[bool, bool, bool, bool, float, str]:
        hit = hits[chunk_id].hit
        has_all_as_written = has_all(hit) and hit.keyword_counts.keys() >= set(keywords)
        lacks_rarest = begun_in(hit).isdisjoint(rarest)
        return (
            is_in_contents(hit),
            not has_all(hit),
            not has_all_as_written,
            lacks_rarest,
            -scores[chunk_id],
            chunk_id,
        )

    passages: dict[str, Passage] = {}  # by their texts
    for chunk_id in sorted(hits, key=rank_of):
        hit = hits[chunk_id].hit
        group: Group = "words" if has_all(hit) else "near"
        if is_in_contents(hit):
            group = "contents"
        matched = _order_sentences(hits[chunk_id], by_keyword)
        passage = Passage(_with_context(hits[chunk_id], matched), matched, group)
        if not matched or (is_quoted(query) and not has_all(hit)):
            continue
        original = passages.setdefault(comparable_text(passage.shown.excerpt), passage)
        if original is not passage:
            original.copies.append(passage)
    most = HITS if sought else _NEAR
    return list(passages.values())[:most], _list_missing(by_keyword, query)


def _fuse(selections: Iterable[Selection], *, adds_nearest: bool) -> tuple[dict[str, ShownHit], dict[str, float]]:
    """Return the hits of several searches and their scores, by their chunks' ids.

    Args:
        selections: Of the search by keywords, and of that by meaning if there is one.
        adds_nearest: Whether a hit of both also shows the sentence nearest in meaning.
    """
    hits: dict[str, ShownHit] = {}
    scores: dict[str, float] = defaultdict(float)
    for selection in selections:
        for rank, shown in enumerate(selection.full):
            chunk_id = shown.hit.chunk_id
            scores[chunk_id] += 1 / (_SMOOTHING + rank)
            if chunk_id not in hits:
                hits[chunk_id] = shown
            elif adds_nearest:
                hits[chunk_id] = _add_nearest(hits[chunk_id], shown)
    return hits, scores


def _list_sought(by_keyword: KeywordResults) -> list[set[str]]:
    """Return the spellings of each keyword that is anywhere, also in names of documents."""
    in_names = _list_in_names(by_keyword)
    sought: list[set[str]] = []
    for report in by_keyword.keywords:
        if report.chunks or report.searched_as or report.keyword in in_names:
            sought.append({report.keyword, report.searched_as or ""})
    return sought


def _find_rarest(by_keyword: KeywordResults) -> set[str]:
    """Return the keyword that the fewest chunks hold, if any does: it says most of what is sought."""
    held = [report for report in by_keyword.keywords if report.chunks]
    rarest = min(held, key=lambda report: report.chunks, default=None)
    return {rarest.keyword} if rarest else set()


def _list_in_names(by_keyword: KeywordResults) -> set[str]:
    """Return the keywords that names of documents have."""
    return {keyword for hit in by_keyword.hits for keyword in hit.in_name}


def _list_missing(by_keyword: KeywordResults, query: str) -> dict[str, list[str]]:
    """Return the sought keywords that are nowhere, with the closest terms of each."""
    in_names = _list_in_names(by_keyword)
    missing: dict[str, list[str]] = {}
    for report in by_keyword.keywords:
        respelled = searchable(report.searched_as or "")
        is_found = report.chunks > 0 or report.keyword in in_names
        is_nowhere = not is_found and respelled != swap_apostrophes(searchable(report.keyword))
        if is_nowhere and _is_sought(report.keyword, query):
            missing[report.keyword] = [term.text for term in list_closest(report)]
    return missing


def _is_sought(keyword: str, query: str) -> bool:
    """Return whether somebody looks for a keyword itself: in a question or a sentence, for a name, a number or code."""
    if not _is_asked(query) or keyword in list_quoted(query) or _NAME.search(keyword):
        return True
    found = re.search(rf"(?<!\w){re.escape(keyword)}(?!\w)", query, re.IGNORECASE)
    if found is None or not re.search(r"\w", query[: found.start()]):  # the first word has a capital in any case
        return False
    return found[0] != found[0].lower()


def _is_asked(query: str) -> bool:
    """Return whether a query is a question or a sentence, and not keywords."""
    return _QUESTION.search(query) is not None or len(query.split()) > _MOST_KEYWORDS


def _find_nearest(index: Index, query: str) -> SemanticResults:
    """Search by meaning; of the nearest chunks, those with an opening near to the query come first."""
    results = index.semantic_search(query, NEAREST, titles_first=True)
    hits = weigh(index, query, results.hits)
    hits.sort(key=lambda hit: (is_in_contents(hit), -hit.score, hit.chunk_id))
    return replace(results, hits=tuple(hits[:HITS]))


def _add_nearest(by_words: ShownHit, by_meaning: ShownHit) -> ShownHit:
    """Add, to the sentences of a chunk that hold keywords, the one that is nearest in meaning."""
    rated = [sentence for sentence in by_meaning.excerpt.sentences if sentence.similarity is not None]
    if not rated:
        return by_words
    nearest = max(rated, key=lambda sentence: sentence.similarity or 0)
    others = [sentence for sentence in by_words.excerpt.sentences if sentence.position != nearest.position]
    sentences = sorted([*others, nearest], key=lambda sentence: sentence.position)
    return replace(by_words, excerpt=replace(by_words.excerpt, sentences=tuple(sentences)))


def _with_context(shown: ShownHit, matched: list[int]) -> ShownHit:
    """Return a hit with the sentences that matched and those that make them understandable, without headings."""
    chunk = shown.hit.chunk
    context = expand(chunk, matched) | expand(chunk, matched[:1], window=True)
    kept: list[ShownSentence] = []
    for sentence in shown.excerpt.sentences:
        is_text = chunk.sentences[sentence.position].embedded and re.search(r"\w", sentence.text)
        if sentence.position in matched or (is_text and sentence.position in context):
            kept.append(sentence)
    sentences = without_contents(chunk, _without_title(chunk, kept))
    best = matched[0] if matched else None
    return replace(shown, excerpt=replace(shown.excerpt, sentences=tuple(sentences), best=best))


def _without_title(chunk: Chunk, sentences: Sequence[ShownSentence]) -> Sequence[ShownSentence]:
    """Return sentences without the document's title, which is named above them, unless there are no others."""
    return [sentence for sentence in sentences if not is_title(sentence.text, chunk.title)] or sentences


def _order_sentences(shown: ShownHit, by_keyword: KeywordResults) -> list[int]:
    """Return the positions of the sentences that matched, the best one first, without those that say nothing.

    In place of a heading, the sentence below it is given. Sentences much worse than the best one are left out.
    """
    chunk = shown.hit.chunk
    weights = _weigh_sentences(shown.hit, by_keyword)
    matched = [sentence.position for sentence in shown.excerpt.sentences if sentence.matched]
    seeks_words = any(_WORD.search(report.keyword) for report in by_keyword.keywords)
    if shown.hit.similarities or seeks_words:
        matched = [position for position in matched if _WORD.search(chunk.sentence_text(position))]
    if not matched:
        return []
    best = max(matched, key=lambda position: (weights.get(position, 0), -position))
    if not shown.hit.similarities:
        least = _MIN_SHARE * weights.get(best, 0)
        near = {sentence.position for sentence in shown.excerpt.sentences if sentence.similarity is not None}
        matched = [position for position in matched if position in near or weights.get(position, 0) >= least]
    readable = {sentence.position for sentence in shown.excerpt.sentences}
    ordered = [_find_below(chunk, position, readable) for position in (best, *matched)]
    return list(dict.fromkeys(ordered))


def _find_below(chunk: Chunk, position: int, readable: Collection[int]) -> int:
    """Return the sentence below a heading, if it is shown; of other sentences the position itself."""
    below = position + 1
    is_heading = not chunk.sentences[position].embedded
    if is_heading and below in readable and chunk.sentences[below].embedded:
        return below
    return position


def _weigh_sentences(hit: Hit, by_keyword: KeywordResults) -> dict[int, float]:
    """Return how well sentences match: by how many keywords they hold and how rare these are, or by their meaning."""
    if hit.similarities:
        return dict(hit.similarities)
    weights: dict[int, float] = {}
    found = find_keywords(hit.chunk, list(hit.keyword_counts), prefer_words=True)
    for position, keywords in prefer_whole_words(hit.chunk, found).items():
        weights[position] = sum(1 + 1 / by_keyword.document_frequency.get(keyword, 1) for keyword in keywords)
    return weights
