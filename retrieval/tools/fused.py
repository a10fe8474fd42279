"""Searches by keywords and by meaning together, for people: one box, one list."""

from __future__ import annotations

from collections import defaultdict

from arag.retrieval.index import Index
from arag.retrieval.presentation.selection import ShownHit, show_keyword_hits, show_semantic_hits
from arag.retrieval.tools.retriever import list_keywords

HITS = 30  # of each search, and of both together
_SMOOTHING = 60  # of ranks, as is usual in reciprocal rank fusion


def find_passages(index: Index, query: str) -> tuple[list[ShownHit], list[str]]:
    """Return the best chunks by keywords and meaning, those with all keywords first, and the keywords without any."""
    keywords = list_keywords(query)
    by_keyword = index.keyword_search(keywords, HITS, ranking="bm25")
    by_meaning = index.semantic_search(query, HITS, titles_first=True)
    scores: dict[str, float] = defaultdict(float)
    hits: dict[str, ShownHit] = {}
    for selection in (show_keyword_hits(by_keyword), show_semantic_hits(by_meaning)):
        for rank, shown in enumerate(selection.full):
            scores[shown.hit.chunk_id] += 1 / (_SMOOTHING + rank)
            hits.setdefault(shown.hit.chunk_id, shown)

    def rank_of(chunk_id: str) -> tuple[bool, float, str]:
        has_all = len(hits[chunk_id].hit.keyword_counts) == len(keywords)
        return not has_all, -scores[chunk_id], chunk_id

    missing = [report.keyword for report in by_keyword.keywords if not report.chunks]
    return [hits[chunk_id] for chunk_id in sorted(hits, key=rank_of)[:HITS]], missing
