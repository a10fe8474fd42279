"""Selects the hits that the tools show.

Each keyword that occurs gets its best chunk before any keyword gets a second one. Nothing that the conversation has
seen is shown again: the next best hits take the places of those that it has seen. Equal texts are shown once. In a
search by meaning, hits that are much less similar than the best one are shown in brief.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from arag.retrieval.presentation.brief import shorten
from arag.retrieval.presentation.excerpts import Excerpt
from arag.retrieval.presentation.keyword_hits import group_keyword_hits, list_common
from arag.retrieval.presentation.search_excerpts import excerpt_for_keywords, excerpt_for_query
from arag.retrieval.search.contents import is_in_contents
from arag.retrieval.types import Hit, KeywordResults, SemanticResults
from arag.text.normalise import searchable
from arag.text.tokens import estimate_tokens

DETAILED_GAP = 0.15  # of similarity below the best hit: beyond it, a hit is shown in brief...
BRIEF_GAP = 0.3  # ...and beyond this, not at all
MAX_BRIEF_HITS = 3  # hits in brief for one query: each costs tokens...
MAX_BRIEF_HITS_OF_SEVERAL = 1  # ...and for each of several queries
MAX_DETAILED_HITS = 2  # the best hits, whose excerpts are longer
AGAIN = 3  # times the tokens for a search that is made again: hits in brief were not enough

BuildExcerpt = Callable[[Hit, Collection[int]], Excerpt]
"""Builds a hit's excerpt without the sentences, given by position, that the conversation has seen."""


@dataclass(frozen=True)
class SeenChunks:
    """What a conversation has seen of an index's chunks."""

    whole: Sequence[str] = ()
    """Ids of the chunks that were shown in full, in order."""
    sentences: Mapping[str, Collection[int]] = field(default_factory=dict)
    """By chunk id, the positions of the sentences that were shown of other chunks."""
    question: str = ""
    """The question that the conversation is about, or an empty string."""
    asked_again: bool = False
    """Whether the conversation has had the same search before."""

    def add(self, shown: Iterable[ShownHit]) -> SeenChunks:
        """Return what the conversation has seen after hits have been shown."""
        sentences: dict[str, set[int]] = {}
        for chunk_id, positions in self.sentences.items():
            sentences[chunk_id] = set(positions)
        for each in shown:
            sentences.setdefault(each.hit.chunk_id, set()).update(uncut_positions(each.excerpt))
        return replace(self, sentences=sentences)


@dataclass(frozen=True)
class ShownHit:
    """A hit, and what is shown of it."""

    hit: Hit
    excerpt: Excerpt


@dataclass
class Selection:
    """What is shown of a search's hits."""

    full: list[ShownHit] = field(default_factory=list)
    """Hits whose sentences are shown."""
    brief: list[ShownHit] = field(default_factory=list)
    """Further hits, each with a part of one sentence."""
    seen: list[str] = field(default_factory=list)
    """Ids of hits that the conversation has seen before."""
    copies: dict[str, list[ShownHit]] = field(default_factory=dict)
    """By the id of a shown hit, the hits with the same text."""

    def list_copies(self, originals: Iterable[ShownHit]) -> list[ShownHit]:
        """Return all hits with the same text as one of some shown ones."""
        copies: list[ShownHit] = []
        for original in originals:
            copies += self.copies.get(original.hit.chunk_id, [])
        return copies

    def count_named(self) -> int:
        """Return how many hits are shown or named."""
        shown = [*self.full, *self.brief]
        return len(shown) + len(self.seen) + len(self.list_copies(shown))


def uncut_positions(excerpt: Excerpt) -> list[int]:
    """Return the positions of the sentences that are shown in full."""
    return [sentence.position for sentence in excerpt.sentences if not sentence.cut]


def cut_positions(excerpt: Excerpt) -> list[int]:
    """Return the positions of the sentences of which a part is shown."""
    return [sentence.position for sentence in excerpt.sentences if sentence.cut]


def evidence_text(shown: Iterable[ShownHit]) -> str:
    """Return the sentences that hits show, to count their tokens."""
    texts: list[str] = []
    for each in shown:
        texts += [sentence.text for sentence in each.excerpt.sentences]
    return "\n".join(texts)


# --- keyword searches ---


def select_keyword_hits(results: KeywordResults, seen: SeenChunks, *, top_k: int, tokens: int) -> Selection:
    """Select what is shown of a keyword search.

    Args:
        results: The results.
        seen: What the conversation has seen.
        top_k: How many hits to show, or more, so that each keyword has its best chunk before any has a second.
        tokens: A budget for the sentences. Once it is spent, hits are shown in brief, except the best of each keyword.
    """
    hits = group_keyword_hits(results, top_k, with_common=seen.asked_again)
    selector = _Selector(
        seen,
        _keyword_builder(results),
        tokens=tokens,
        always=len(hits.needed),
        common=list_common(results.document_frequency),
    )
    for hit in [*hits.needed, *hits.further]:
        selector.add(hit)
    for hit in hits.common:
        selector.add_in_brief(hit)
    return selector.selection


def show_keyword_hits(results: KeywordResults, *, for_people: bool = False) -> Selection:
    """Show all hits of a keyword search."""
    return _show_all(results.hits, _keyword_builder(results, for_people=for_people))


def _keyword_builder(results: KeywordResults, *, for_people: bool = False) -> BuildExcerpt:
    """Return the function that builds excerpts; those of the best hits are longer."""
    best = {hit.chunk_id for hit in results.hits[:MAX_DETAILED_HITS]}

    def build(hit: Hit, seen: Collection[int]) -> Excerpt:
        return excerpt_for_keywords(
            hit,
            results.document_frequency,
            is_best=hit.chunk_id in best,
            seen=seen,
            for_people=for_people,
        )

    return build


# --- searches by meaning ---


def select_semantic_hits(
    results: SemanticResults,
    seen: SeenChunks,
    *,
    tokens: int,
    is_one_of_several: bool = False,
) -> Selection:
    """Select what is shown of a search by meaning.

    Args:
        results: The results.
        seen: What the conversation has seen.
        tokens: A budget for the sentences. Once it is spent, hits are shown in brief.
        is_one_of_several: Whether the query is one of several: then fewer hits are shown in brief.
    """
    selector = _Selector(seen, _semantic_builder(results), tokens=tokens, always=1, query=results.query)
    best_score = max((hit.score for hit in results.hits if not is_in_contents(hit)), default=0.0)
    for hit in results.hits:
        if hit.score >= best_score - DETAILED_GAP:
            selector.add(hit)
            continue
        is_too_far = is_one_of_several or hit.score <= best_score - BRIEF_GAP
        selector.add(hit, is_far=True, or_in_brief=not is_too_far)  # in full only if no nearer hit is
    most = MAX_BRIEF_HITS_OF_SEVERAL if is_one_of_several else MAX_BRIEF_HITS
    selector.drop_brief(most)
    return selector.selection


def show_semantic_hits(results: SemanticResults) -> Selection:
    """Show all hits of a search by meaning."""
    return _show_all(results.hits, _semantic_builder(results))


def _semantic_builder(results: SemanticResults) -> BuildExcerpt:
    """Return the function that builds excerpts; those of the best hits are longer."""
    best = {hit.chunk_id for hit in results.hits[:MAX_DETAILED_HITS]}

    def build(hit: Hit, seen: Collection[int]) -> Excerpt:
        return excerpt_for_query(
            hit,
            results.query,
            is_best=hit.chunk_id in best,
            seen=seen,
        )

    return build


# --- both ---


def _show_all(hits: Iterable[Hit], build: BuildExcerpt) -> Selection:
    selection = Selection()
    for hit in hits:
        excerpt = build(hit, ())
        selection.full.append(ShownHit(hit, excerpt))
    return selection


class _Selector:
    """Adds hits to a selection, best first.

    Args:
        seen: What the conversation has seen.
        build: Builds the excerpts.
        tokens: A budget for the sentences of the hits that are shown in full.
        always: How many hits are shown in full however long their sentences are.
        query: The query of a search by meaning, or an empty string.
        common: The keywords that many chunks hold.
    """

    def __init__(
        self,
        seen: SeenChunks,
        build: BuildExcerpt,
        *,
        tokens: int,
        always: int,
        query: str = "",
        common: Collection[str] = (),
    ) -> None:
        self.selection = Selection()
        self._seen = seen
        self._build = build
        self._tokens = tokens
        if seen.asked_again:
            self._tokens *= AGAIN
        self._always = always
        self._query = query
        self._common = common
        self._used = 0  # tokens
        self._ids_by_text: dict[str, str] = {}  # of the hits that are shown in full
        self._ids_in_brief: dict[str, str] = {}  # by the chunk's text: the line in brief may be a common one

    def add(self, hit: Hit, *, is_far: bool = False, or_in_brief: bool = True) -> None:
        """Add a hit in full if its sentences fit into the budget, and otherwise in brief.

        Args:
            hit: The hit.
            is_far: Whether it is too far from the query to be shown in full beside nearer hits.
            or_in_brief: Whether a hit that is not shown in full is shown in brief, or not at all.
        """
        shown = self._find_new(hit)
        if shown is None:
            return
        cost = estimate_tokens(evidence_text([shown]))
        is_needed = len(self.selection.full) < self._always
        fits = not is_far and self._used + cost <= self._tokens
        if is_needed or fits:
            self._used += cost
            self._ids_by_text[comparable_text(shown.excerpt)] = hit.chunk_id
            self.selection.full.append(shown)
        elif or_in_brief:
            self._append_in_brief(shown)

    def add_in_brief(self, hit: Hit) -> None:
        """Add a hit in brief."""
        shown = self._find_new(hit)
        if shown is not None:
            self._append_in_brief(shown)

    def _append_in_brief(self, shown: ShownHit) -> None:
        original = self._ids_in_brief.setdefault(shown.hit.chunk.text, shown.hit.chunk_id)
        if original != shown.hit.chunk_id:
            self.selection.copies.setdefault(original, []).append(shown)
            return
        excerpt = shorten(shown.hit, shown.excerpt, self._query, self._common)
        self.selection.brief.append(ShownHit(shown.hit, excerpt))

    def drop_brief(self, most: int) -> None:
        """Keep only the first hits in brief."""
        for dropped in self.selection.brief[most:]:
            self.selection.copies.pop(dropped.hit.chunk_id, None)
        del self.selection.brief[most:]

    def _find_new(self, hit: Hit) -> ShownHit | None:
        """Return a hit with its new sentences. If it has none, record that in the selection, and return None."""
        excerpt = self._build(hit, self._seen.sentences.get(hit.chunk_id, ()))
        shown = ShownHit(hit, excerpt)
        is_seen = excerpt.has_seen and not excerpt.sentences
        if is_seen or hit.chunk_id in self._seen.whole:
            self.selection.seen.append(hit.chunk_id)
            return None
        if not excerpt.sentences:  # a keyword in the text between sentences
            self.selection.brief.append(shown)
            return None
        original = self._ids_by_text.get(comparable_text(excerpt))
        if original is not None:
            self.selection.copies.setdefault(original, []).append(shown)
            return None
        return shown


def comparable_text(excerpt: Excerpt) -> str:
    """Return an excerpt's text in the form in which copies are equal."""
    parts: list[str] = []
    for sentence in excerpt.sentences:
        parts += [*sentence.under, sentence.text]
    return searchable("\n".join(parts))
