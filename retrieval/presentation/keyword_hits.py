"""Groups the hits of a keyword search by what they are shown for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from arag.retrieval.presentation.table_rows import has_row_of
from arag.retrieval.search.contents import is_in_contents
from arag.retrieval.types import Hit, KeywordResults
from arag.text.normalise import bare_title

COMMON_KEYWORD_CHUNKS = 8  # a keyword in at least this many chunks is common
MAX_EXTRA_HITS = 2  # hits beyond top_k that are still shown if no others are left


@dataclass
class KeywordHits:
    """The hits of a keyword search, grouped by their role; each list has the order of the results."""

    needed: list[Hit] = field(default_factory=list)  # the best hit for a keyword
    further: list[Hit] = field(default_factory=list)
    common: list[Hit] = field(default_factory=list)  # the best hit for a common keyword, with no other keyword


def group_keyword_hits(results: KeywordResults, top_k: int, *, with_common: bool) -> KeywordHits:
    """Group the hits by their role, and drop those that are not shown.

    With `with_common`, chunks with nothing but one common keyword are hits like others.
    """
    best = choose_best_of_each(results)
    common: set[str] = set()
    if not with_common:
        common = _find_only_common(results, best)
    hits = KeywordHits()
    for hit in results.hits:
        is_best = hit.chunk_id in best
        is_common = hit.chunk_id in common
        if is_best and is_common:
            hits.common.append(hit)
        elif is_best:
            hits.needed.append(hit)
        elif not is_common:
            hits.further.append(hit)
    room = max(0, top_k - len(best))
    if len(hits.further) > room + MAX_EXTRA_HITS:
        del hits.further[room:]
    return hits


def choose_best_of_each(results: KeywordResults) -> set[str]:
    """Return the ids of each keyword's best chunk, chosen for the rarest keyword first.

    A document with the keyword as its title comes before those that mention it, and so does a table's row that it
    labels. A keyword that a chosen chunk holds needs no other chunk, unless one is about it.
    """
    chunks = _count_chunks(results)
    best: set[str] = set()
    for keyword in sorted(chunks, key=lambda keyword: chunks[keyword]):
        holders = [hit for hit in results.hits if keyword in hit.keywords]
        if not holders:
            continue
        first = min(holders, key=lambda hit: _rank_holder(hit, keyword))
        is_covered = any(hit.chunk_id in best for hit in holders)
        if not is_covered or _is_about(first, keyword):
            best.add(first.chunk_id)
    return best


def _count_chunks(results: KeywordResults) -> dict[str, int]:
    """Return how many chunks hold each keyword, other spellings that were searched for included."""
    chunks: dict[str, int] = {}
    for report in results.keywords:
        chunks[report.keyword] = report.chunks
    for report in results.keywords:
        if report.searched_as:
            chunks[report.searched_as] = report.closest[0].chunks
    return chunks


def _rank_holder(hit: Hit, keyword: str) -> tuple[bool, bool, bool]:
    """Return how well a hit shows a keyword: the lowest rank is the best, and False is lower than True."""
    return is_in_contents(hit), not _is_about(hit, keyword), not has_row_of(hit.chunk, keyword)


def _find_only_common(results: KeywordResults, best: Collection[str]) -> set[str]:
    """Return the ids of chunks with nothing but one common keyword, if another keyword is less common."""
    if len(results.keywords) < 2:
        return set()
    common_keywords: set[str] = set()
    for report in results.keywords:
        chunks = report.as_word or report.chunks
        if chunks >= COMMON_KEYWORD_CHUNKS:
            common_keywords.add(report.keyword)
    only_common = [hit for hit in results.hits if _has_only(hit, common_keywords)]
    if {hit.chunk_id for hit in only_common}.issuperset(best):
        return set()
    return {hit.chunk_id for hit in only_common if len(hit.keywords) == 1}


def list_common(document_frequency: Mapping[str, int]) -> set[str]:
    """Return the keywords that many chunks hold, other spellings that were searched for included."""
    return {keyword for keyword, chunks in document_frequency.items() if chunks >= COMMON_KEYWORD_CHUNKS}


def _has_only(hit: Hit, keywords: Collection[str]) -> bool:
    """Return whether a hit has no other keywords than these, and is not about one of them."""
    for keyword in hit.keywords:
        if keyword not in keywords:
            return False
        if _is_about(hit, keyword) or has_row_of(hit.chunk, keyword):
            return False
    return True


def _is_about(hit: Hit, keyword: str) -> bool:
    """Return whether a keyword is the title of a hit's document."""
    return bare_title(hit.chunk.title) == bare_title(keyword)
