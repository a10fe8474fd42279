"""Excerpts of hits: the sentences that match keywords or a query best, and those that make them understandable."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from arag.retrieval.presentation.context import expand
from arag.retrieval.presentation.excerpts import MAX_SENTENCE_CHARACTERS, ChosenSentences, Excerpt, make_excerpt
from arag.retrieval.presentation.matches import KeywordOffsets, find_keywords, prefer_whole_words
from arag.retrieval.presentation.sentences import sentence_line
from arag.retrieval.presentation.similarity import boost_rare_words, find_rarest_word
from arag.retrieval.presentation.table_rows import find_rows, is_row_of
from arag.retrieval.search.contents import find_listed
from arag.retrieval.types import Chunk, Hit
from arag.text.contents import name_section
from arag.text.normalise import HEADING_BOUNDARY, bare_title, searchable

SENTENCE_GAP = 0.2  # similarity: how far below the best sentence of a chunk a second one may be

_MAX_KEYWORD_SENTENCES = 3  # for keywords, unless more are needed to show every keyword
_MAX_QUERY_SENTENCES = 2  # for a query: each brings its context along, which costs tokens
_OPENING_SENTENCES = 3  # of a chunk that was found by its name
_SECTION_SENTENCES = 2  # of a section whose heading was found
_NO_STATEMENT = re.compile(r"[?:]$|^[^.!。！]{0,60}$")  # a question, or perhaps a heading or an item of a list
_NUMBER = re.compile(r"^\d[\d.]*[.)]? ")  # of a section or an item: its full stop ends no sentence


# --- for keywords ---


def excerpt_for_keywords(
    hit: Hit,
    document_frequency: Mapping[str, int],
    *,
    is_best: bool = False,
    seen: Collection[int] = (),
    for_people: bool = False,
) -> Excerpt:
    """Choose the sentences with the most keywords until each keyword has one, then up to three in all.

    The words of scattered keywords get a sentence, too. If the hit is one of the best, more is shown of a long
    document, around the first sentence. A hit that was found by its name only gets the document's first sentences.

    Args:
        hit: A hit of a keyword search.
        document_frequency: How many chunks hold each keyword: rarer keywords count more.
        is_best: Whether the hit is one of the search's best.
        seen: Positions of the sentences that the conversation has seen.
        for_people: Whether lines that are nothing but keywords or names of sections come last, as do keywords inside
            longer words. Then each keyword that is a word has a sentence with this word.
    """
    chunk = hit.chunk
    keywords = list(hit.keyword_counts)
    scattered_words: list[str] = []
    for words in hit.scattered.values():
        scattered_words += words
    found = find_keywords(chunk, keywords, scattered_words, prefer_words=for_people)
    found = _prefer_others(found, find_listed(chunk))
    shows: Mapping[int, Collection[str]] = found
    if for_people:
        found = _prefer_others(found, _find_bare(chunk, found))
        found = _prefer_others(found, _find_repeated(chunk, found))
        shows = prefer_whole_words(chunk, found)
    if hit.in_name and not found:
        return opening_excerpt(chunk, seen=seen)

    weights = _weigh(chunk, [*keywords, *scattered_words], document_frequency)
    ranking = _KeywordRanking(chunk, found, shows, weights, for_people)
    anchors = ranking.choose_anchors()
    further = ranking.choose_further(anchors, keywords)
    matched = {*anchors, *further}
    shown = expand(chunk, matched, is_subject=_is_about_any(chunk, keywords))
    if is_best:
        shown |= expand(chunk, anchors[:1], window=True)
    chosen = ChosenSentences(
        shown=shown,
        matched=matched,
        offsets=_find_rarest_offsets(found, matched, document_frequency),
        best=anchors[0] if anchors else None,
    )
    return make_excerpt(chunk, chosen, seen=seen)


def _prefer_others(found: KeywordOffsets, weak: Collection[int]) -> KeywordOffsets:
    """Return where sentences hold keywords; weak ones, such as entries of contents, only if no other holds these."""
    in_others: set[str] = set()
    for position, in_sentence in found.items():
        if position not in weak:
            in_others.update(in_sentence)
    kept: KeywordOffsets = {}
    for position, in_sentence in found.items():
        if position not in weak or not in_others.issuperset(in_sentence):
            kept[position] = in_sentence
    return kept


def _find_bare(chunk: Chunk, found: KeywordOffsets) -> set[int]:
    """Return the sentences that are nothing but a keyword."""
    bare: set[int] = set()
    for position, in_sentence in found.items():
        text = searchable(chunk.sentence_text(position)).strip("# :")
        if text in map(searchable, in_sentence):
            bare.add(position)
    return bare


def _find_repeated(chunk: Chunk, found: KeywordOffsets) -> set[int]:
    """Return the sentences that repeat an earlier one."""
    first: dict[str, int] = {}
    for position in sorted(found):
        first.setdefault(searchable(chunk.sentence_text(position)), position)
    return found.keys() - first.values()


def opening_excerpt(chunk: Chunk, *, seen: Collection[int] = ()) -> Excerpt:
    """Choose the first sentences; of a table, its header and its first rows."""
    first = chunk.embedded_positions()[:_OPENING_SENTENCES]
    shown = expand(chunk, first[:1])
    shown.update(first)
    chosen = ChosenSentences(shown, matched=set(first))
    return make_excerpt(chunk, chosen, seen=seen)


class _KeywordRank(NamedTuple):
    """How well a sentence shows keywords; the first field that differs decides."""

    wanted: int  # keywords that are looked for
    labels_row: bool  # whether such a keyword is the label of a table's row
    is_statement: bool
    rarity: float  # of all its keywords
    order: int  # the position, negated: earlier sentences come first


@dataclass(frozen=True, slots=True)
class _KeywordRanking:
    """Ranks the sentences of a chunk that hold keywords."""

    chunk: Chunk
    found: KeywordOffsets
    shows: Mapping[int, Collection[str]]  # the keywords that need no other sentence
    weights: Mapping[str, float]
    for_people: bool

    def rank(self, position: int, wanted: Collection[str]) -> _KeywordRank:
        line = sentence_line(self.chunk, position)
        in_sentence = self.found[position]
        matching = [keyword for keyword in in_sentence if keyword in wanted]
        is_embedded = self.chunk.sentences[position].embedded
        words = _NUMBER.sub("", line) if self.for_people else line
        return _KeywordRank(
            wanted=len(matching),
            labels_row=any(is_row_of(line, keyword) for keyword in matching),
            is_statement=is_embedded and not _NO_STATEMENT.search(words),
            rarity=sum(self.weights[keyword] for keyword in in_sentence),
            order=-position,
        )

    def choose_anchors(self) -> list[int]:
        """Choose the best sentences, one by one, until each keyword that the chunk holds has one."""
        missing: set[str] = set()
        for in_sentence in self.found.values():
            missing.update(in_sentence)
        anchors: list[int] = []
        while missing:
            useful = [position for position in self.found if not missing.isdisjoint(self.shows[position])]
            best = max(useful, key=lambda position: self.rank(position, missing))
            anchors.append(best)
            missing.difference_update(self.shows[best])
        return anchors

    def choose_further(self, anchors: Collection[int], keywords: Collection[str]) -> list[int]:
        """Choose the best other sentences, up to three with the anchors."""
        room = max(0, _MAX_KEYWORD_SENTENCES - len(anchors))
        others = [position for position in self.found if position not in anchors]
        others.sort(key=lambda position: self.rank(position, keywords), reverse=True)
        return others[:room]


def _weigh(chunk: Chunk, keywords: Sequence[str], document_frequency: Mapping[str, int]) -> dict[str, float]:
    """Return the weights of keywords: rarer ones weigh more, and the chunk's title nothing."""
    title = bare_title(chunk.title)
    weights: dict[str, float] = {}
    for keyword in keywords:
        if bare_title(keyword) == title:
            weights[keyword] = 0.0
        else:
            weights[keyword] = 1 / (1 + document_frequency.get(keyword, 0))
    return weights


def _find_rarest_offsets(
    found: KeywordOffsets,
    positions: Collection[int],
    document_frequency: Mapping[str, int],
) -> dict[int, int]:
    """Return where sentences have their rarest keyword, by position."""
    offsets: dict[int, int] = {}
    for position in positions:
        in_sentence = found[position]
        rarest = min(in_sentence, key=lambda keyword: document_frequency.get(keyword, 0))
        offsets[position] = in_sentence[rarest]
    return offsets


def _is_about_any(chunk: Chunk, keywords: Sequence[str]) -> bool:
    """Return whether a keyword is the chunk's title, or several words with which it begins."""
    title = bare_title(chunk.title)
    for keyword in keywords:
        name = bare_title(keyword)
        if title == name:
            return True
        if " " in name and title.startswith(f"{name} "):
            return True
    return False


# --- for a query ---


def excerpt_for_query(hit: Hit, query: str, *, is_best: bool = False, seen: Collection[int] = ()) -> Excerpt:
    """Choose the two sentences nearest to a query, and rows of tables whose labels are in it.

    If the hit is one of the best, a short document is shown whole, and more of a long one around each sentence.

    Args:
        hit: A hit of a semantic search.
        query: The query.
        is_best: Whether the hit is one of the search's best.
        seen: Positions of the sentences that the conversation has seen.
    """
    chunk = hit.chunk
    rows = find_rows(chunk, [query])
    matched = set(rows)
    nearest = _choose_nearest(hit, query)
    for position in nearest:
        matched.update(_find_section(chunk, position) or [position])
    shown = expand(chunk, matched, is_subject=is_best, window=is_best and not rows)
    chosen = ChosenSentences(
        shown=shown,
        matched=matched,
        similarities=hit.similarities,
        offsets=_find_cut_offsets(chunk, shown, query),
        best=nearest[0],
    )
    return make_excerpt(chunk, chosen, seen=seen)


def _choose_nearest(hit: Hit, query: str) -> list[int]:
    """Choose the nearest sentence, and another one if it is nearly as near; rare words of the query help it."""
    similarities = hit.similarities
    nearest = max(similarities, key=lambda position: (similarities[position], -position))
    least = similarities[nearest] - SENTENCE_GAP
    boosted = boost_rare_words(hit.chunk, similarities, query)
    others: list[int] = []
    for position, similarity in boosted.items():
        if position != nearest and similarity > least:
            others.append(position)
    others.sort(key=lambda position: (-boosted[position], position))
    return [nearest, *others[: _MAX_QUERY_SENTENCES - 1]]


def _find_section(chunk: Chunk, position: int) -> list[int]:
    """Return the first sentences below the heading at a position, or below one that a sentence there repeats."""
    name = name_section(sentence_line(chunk, position))
    is_heading = not chunk.sentences[position].embedded
    section: list[int] = []
    for later in range(position + 1, len(chunk.sentences)):
        sentence = chunk.sentences[later]
        headings = sentence.heading.split(HEADING_BOUNDARY)
        if not is_heading:
            del headings[:-1]  # contents name the sections below it, too
        if sentence.embedded and name and name in map(name_section, headings):
            section.append(later)
    return section[:_SECTION_SENTENCES]


def _find_cut_offsets(chunk: Chunk, shown: Collection[int], query: str) -> dict[int, int]:
    """Return where sentences that must be cut have the query's rarest word, by position."""
    offsets: dict[int, int] = {}
    for position in shown:
        if len(chunk.sentence_text(position)) <= MAX_SENTENCE_CHARACTERS:
            continue
        rarest = find_rarest_word(sentence_line(chunk, position), query)
        if rarest is not None:
            offsets[position] = rarest.start()
    return offsets
