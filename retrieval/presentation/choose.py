"""Chooses the hits that the tools show, and builds their excerpts.

Each keyword that occurs gets its best chunk before any keyword gets a second one. Nothing that the conversation has
seen is shown again, and equal texts are shown once. In a search by meaning, hits that are much less similar than the
best one are shown in brief.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from arag.retrieval.presentation.excerpts import Excerpt, ShownSentence, cut_around, for_keywords, for_query
from arag.retrieval.presentation.rows import has_row_of
from arag.retrieval.presentation.similarity import find_rarest
from arag.retrieval.types import Hit, KeywordResults, SemanticResults
from arag.text.normalise import bare_title, is_title, searchable, words
from arag.text.tokens import estimate_tokens

DETAILED_GAP = 0.15  # of cosine similarity below the best hit: beyond it, a hit is shown in brief...
BRIEF_GAP = 0.3  # ...and beyond this, not at all
MAX_BRIEF_HITS = 3  # of a search by meaning
MAX_BRIEF_HITS_OF_SEVERAL = 1  # for each of several queries
MAX_DETAILED_HITS = 2  # the best ones, of which more is shown
COMMON_KEYWORD_CHUNKS = 8  # a keyword that at least so many chunks hold is common
MAX_LAST_HITS = 2  # more than asked for are shown if no others are left
BRIEF_CHARACTERS = 100  # of a sentence in brief...
UNCUT_CHARACTERS = 160  # ...unless the whole sentence has no more than these

_MIN_BRIEF_CHARACTERS = BRIEF_CHARACTERS // 3  # a shorter sentence says little: a longer one is preferred
_MIN_WORD_CHARACTERS = 3  # a shorter word is found everywhere

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

    def add(self, shown: Iterable[ShownHit]) -> SeenChunks:
        """Return what the conversation has seen after hits have been shown."""
        sentences = {chunk_id: set(positions) for chunk_id, positions in self.sentences.items()}
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
    copies: dict[str, list[str]] = field(default_factory=dict)
    """By the id of a shown hit, the ids of hits with the same text."""


def uncut_positions(excerpt: Excerpt) -> list[int]:
    """Return the positions of the sentences that are shown in full."""
    return [sentence.position for sentence in excerpt.sentences if not sentence.cut]


def evidence_text(shown: Iterable[ShownHit]) -> str:
    """Return the sentences that hits show, to count their tokens."""
    return "\n".join(sentence.text for each in shown for sentence in each.excerpt.sentences)


# --- keyword searches ---


def select_keyword_hits(results: KeywordResults, seen: SeenChunks, *, top_k: int, tokens: int) -> Selection:
    """Choose what is shown of a keyword search.

    Args:
        results: The results.
        seen: What the conversation has seen.
        top_k: How many hits to show, or more, so that each keyword has its best chunk before any has a second.
        tokens: How many tokens the sentences of further hits may have; beyond them, hits are shown in brief.
    """
    best = _choose_best_of_each(results)
    common = _find_only_common(results, best)
    needed = [hit for hit in results.hits if hit.chunk_id in best and hit.chunk_id not in common]
    further = [hit for hit in results.hits if hit.chunk_id not in best and hit.chunk_id not in common]
    room = max(0, top_k - len(best))
    if len(further) > room + MAX_LAST_HITS:
        further = further[:room]
    last = [hit for hit in results.hits if hit.chunk_id in best and hit.chunk_id in common]

    selector = _Selector(seen, _keyword_excerpts(results), always=len(needed))
    for hit in needed + further:
        selector.add(hit, tokens=tokens)
    for hit in last:
        selector.add(hit, in_brief=True)
    return selector.selection


def show_keyword_hits(results: KeywordResults) -> Selection:
    """Show all hits of a keyword search."""
    build = _keyword_excerpts(results)
    return Selection([ShownHit(hit, build(hit, ())) for hit in results.hits])


def _keyword_excerpts(results: KeywordResults) -> BuildExcerpt:
    best = {hit.chunk_id for hit in results.hits[:MAX_DETAILED_HITS]}

    def build(hit: Hit, seen: Collection[int]) -> Excerpt:
        return for_keywords(hit, results.document_frequency, is_best=hit.chunk_id in best, seen=seen)

    return build


def _choose_best_of_each(results: KeywordResults) -> set[str]:
    """Return the ids of each keyword's best chunk, chosen for the rarest keyword first.

    A document with the keyword as its title comes before those that mention it, and so does a table's row that it
    labels. A keyword that a chosen chunk holds needs no other chunk, unless one is about it.
    """
    chunks: dict[str, int] = {}
    for report in results.keywords:
        chunks[report.keyword] = report.chunks
    for report in results.keywords:
        if report.searched_as:
            chunks[report.searched_as] = report.closest[0].chunks
    best: set[str] = set()
    for keyword in sorted(chunks, key=lambda keyword: chunks[keyword]):
        holders = [hit for hit in results.hits if keyword in hit.keywords]
        holders.sort(key=lambda hit: (not _is_about(hit, keyword), not has_row_of(hit.chunk, keyword)))
        is_covered = any(hit.chunk_id in best for hit in holders)
        if holders and (not is_covered or _is_about(holders[0], keyword)):
            best.add(holders[0].chunk_id)
    return best


def _find_only_common(results: KeywordResults, best: Collection[str]) -> set[str]:
    """Return the ids of chunks with nothing but one common keyword, if another keyword is less common."""
    common: set[str] = set()
    for report in results.keywords:
        if (report.as_word or report.chunks) >= COMMON_KEYWORD_CHUNKS:
            common.add(report.keyword)
    only_common = {hit.chunk_id for hit in results.hits if _has_only(hit, common)}
    if len(results.keywords) < 2 or only_common.issuperset(best):
        return set()
    return {hit.chunk_id for hit in results.hits if len(hit.keywords) == 1 and hit.chunk_id in only_common}


def _has_only(hit: Hit, keywords: Collection[str]) -> bool:
    """Return whether a hit has no other keywords than these, and is not about one of them."""
    for keyword in hit.keywords:
        if keyword not in keywords or _is_about(hit, keyword) or has_row_of(hit.chunk, keyword):
            return False
    return True


def _is_about(hit: Hit, keyword: str) -> bool:
    """Return whether a keyword is the title of a hit's document."""
    return bare_title(hit.chunk.title) == bare_title(keyword)


# --- searches by meaning ---


def select_semantic_hits(
    results: SemanticResults, seen: SeenChunks, *, tokens: int, is_one_of_several: bool = False
) -> Selection:
    """Choose what is shown of a search by meaning.

    Args:
        results: The results.
        seen: What the conversation has seen.
        tokens: How many tokens the sentences may have; beyond them, hits are shown in brief.
        is_one_of_several: Whether the query is one of several: then fewer hits are shown in brief.
    """
    best_score = max((hit.score for hit in results.hits), default=0.0)
    selector = _Selector(seen, _semantic_excerpts(results), always=1, query=results.query)
    for hit in results.hits:
        if hit.score >= best_score - DETAILED_GAP:
            selector.add(hit, tokens=tokens)
        else:
            is_too_far = is_one_of_several or hit.score <= best_score - BRIEF_GAP
            selector.add(hit, tokens=0, or_nothing=is_too_far)
    most = MAX_BRIEF_HITS_OF_SEVERAL if is_one_of_several else MAX_BRIEF_HITS
    del selector.selection.brief[most:]
    return selector.selection


def show_semantic_hits(results: SemanticResults) -> Selection:
    """Show all hits of a search by meaning."""
    build = _semantic_excerpts(results)
    return Selection([ShownHit(hit, build(hit, ())) for hit in results.hits])


def _semantic_excerpts(results: SemanticResults) -> BuildExcerpt:
    best = {hit.chunk_id for hit in results.hits[:MAX_DETAILED_HITS]}

    def build(hit: Hit, seen: Collection[int]) -> Excerpt:
        return for_query(hit, results.query, is_best=hit.chunk_id in best, seen=seen)

    return build


# --- one hit after the other ---


class _Selector:
    """Adds hits to a selection, best first.

    Args:
        seen: What the conversation has seen.
        build: Builds the excerpts.
        always: How many hits are shown in full however long their sentences are.
        query: The query of a search by meaning, or an empty string.
    """

    def __init__(self, seen: SeenChunks, build: BuildExcerpt, *, always: int, query: str = "") -> None:
        self.selection = Selection()
        self._seen = seen
        self._build = build
        self._always = always
        self._query = query
        self._used = 0  # tokens
        self._shown_texts: dict[str, str] = {}  # ids by text

    def add(self, hit: Hit, *, tokens: int = 0, in_brief: bool = False, or_nothing: bool = False) -> None:
        """Add a hit in full, or in brief if with its sentences all would have more than so many tokens.

        Args:
            hit: The hit.
            tokens: The tokens.
            in_brief: Whether the hit is shown in brief in any case.
            or_nothing: Whether the hit is dropped where it would be shown in brief.
        """
        excerpt = self._build(hit, self._seen.sentences.get(hit.chunk_id, ()))
        shown = ShownHit(hit, excerpt)
        if hit.chunk_id in self._seen.whole or (excerpt.has_seen and not excerpt.sentences):
            self.selection.seen.append(hit.chunk_id)
            return
        if not excerpt.sentences:  # a keyword in the text between sentences
            self.selection.brief.append(shown)
            return
        text = _comparable_text(excerpt)
        if text in self._shown_texts:
            self.selection.copies.setdefault(self._shown_texts[text], []).append(hit.chunk_id)
            return
        cost = estimate_tokens(evidence_text([shown]))
        is_too_long = len(self.selection.full) >= self._always and self._used + cost > tokens
        if in_brief or is_too_long:
            if not or_nothing:
                self.selection.brief.append(ShownHit(hit, _shorten(shown, self._query)))
            return
        self._used += cost
        self._shown_texts[text] = hit.chunk_id
        self.selection.full.append(shown)


def _comparable_text(excerpt: Excerpt) -> str:
    parts: list[str] = []
    for sentence in excerpt.sentences:
        parts += [*sentence.under, sentence.text]
    return searchable("\n".join(parts))


# --- in brief ---


def _shorten(shown: ShownHit, query: str) -> Excerpt:
    """Return a part of the best sentence only, around a keyword or the query's rarest word."""
    excerpt = shown.excerpt
    places: dict[int, list[int]] = {}
    for sentence in excerpt.sentences:
        places[sentence.position] = _find_places(sentence.text, shown.hit, query)
    best = _choose_brief_sentence(excerpt, places)
    text = best.text
    if len(text) > UNCUT_CHARACTERS:
        first = min(places[best.position], default=0)
        text = cut_around(text, first, BRIEF_CHARACTERS)
    short = replace(best, text=text, cut=best.cut or text != best.text)
    return replace(excerpt, sentences=(short,), begins=False, ends=False, whole=False)


def _choose_brief_sentence(excerpt: Excerpt, places: Mapping[int, Sequence[int]]) -> ShownSentence:
    """Choose the matched sentence that is nearest to the query or has most keywords; below a heading, what follows."""
    matched = [s for s in excerpt.sentences if s.matched and not is_title(s.text, excerpt.title)]
    candidates = matched or list(excerpt.sentences)
    candidates.sort(key=lambda sentence: (-(sentence.similarity or 0), -len(places[sentence.position])))
    best = candidates[0]
    for sentence in candidates:
        if len(sentence.text) > _MIN_BRIEF_CHARACTERS:
            best = sentence
            break
    heading = best.text.strip("# ")
    for sentence in excerpt.sentences:
        if sentence.under[-1:] == (heading,):
            return sentence
    return best


def _find_places(text: str, hit: Hit, query: str) -> list[int]:
    """Return where a text first has each keyword, each word of a scattered keyword, and the query's rarest word."""
    patterns = [re.escape(keyword) for keyword in hit.keyword_counts]
    for keyword in hit.scattered:
        for word in words(keyword):
            if len(word) >= _MIN_WORD_CHARACTERS:
                patterns.append(rf"\b{re.escape(word)}\b")
    places: list[int] = []
    for pattern in patterns:
        if match := re.search(pattern, text, re.IGNORECASE):
            places.append(match.start())
    if rarest := find_rarest(text, query):
        places.append(rarest.start())
    return places
