"""Results of searches as plain values, without the chunks' texts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

from arag.retrieval.presentation.matches import matched_sentences
from arag.retrieval.presentation.selection import ShownHit
from arag.retrieval.presentation.sentences import sentence_line
from arag.retrieval.search.contents import find_listed
from arag.retrieval.types import Hit, KeywordResults, SemanticResults


def describe_results(results: KeywordResults | SemanticResults) -> dict[str, Any]:
    """Return the results of a search as plain values; each hit has its matched sentences."""
    hits: list[dict[str, Any]] = []
    for hit in results.hits:
        description = _describe_hit(hit)
        description["sentences"] = [_describe_sentence(hit, position) for position in matched_sentences(hit)]
        hits.append(description)
    return _describe(results, hits)


def describe_shown(results: KeywordResults | SemanticResults, shown: Iterable[ShownHit]) -> dict[str, Any]:
    """Return the results of a search as plain values, with the hits that are shown; each has its shown sentences."""
    hits: list[dict[str, Any]] = []
    for each in shown:
        description = _describe_hit(each.hit)
        description["sentences"] = _describe_excerpt(each)
        description["whole"] = each.excerpt.whole
        hits.append(description)
    return _describe(results, hits)


def _describe(results: KeywordResults | SemanticResults, hits: list[dict[str, Any]]) -> dict[str, Any]:
    without_hits = replace(results, hits=())
    return {**asdict(without_hits), "hits": hits}


def _describe_hit(hit: Hit) -> dict[str, Any]:
    return {
        "chunk_id": hit.chunk_id,
        "document_id": hit.document_id,
        "title": hit.chunk.title,
        "score": hit.score,
        "pages": hit.chunk.pages,
        "tokens": hit.chunk.tokens,
        "keyword_counts": hit.keyword_counts,
        "scattered": list(hit.scattered),
        "in_name": list(hit.in_name),
    }


def _describe_excerpt(shown: ShownHit) -> list[dict[str, Any]]:
    """Return the sentences that are shown of a hit, and which of them only name what other sentences say."""
    listed = find_listed(shown.hit.chunk)
    descriptions: list[dict[str, Any]] = []
    for sentence in shown.excerpt.sentences:
        description = asdict(sentence)
        if sentence.position in listed:
            description["in_contents"] = True
        descriptions.append(description)
    return descriptions


def _describe_sentence(hit: Hit, position: int) -> dict[str, Any]:
    return {
        "position": position,
        "text": sentence_line(hit.chunk, position),
        "similarity": hit.similarities.get(position),
    }
