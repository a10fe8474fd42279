"""Excerpts: which sentences of a chunk are shown, for keywords, for a query, or when chunks are read.

Each kind chooses the sentences that match best; `expand` adds those that make them understandable; sentences that the
conversation has seen are left out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import NamedTuple

from arag.retrieval.presentation.context import MAX_SHORT_CHARACTERS, expand, is_short
from arag.retrieval.presentation.occurrences import Occurrences, find_keywords
from arag.retrieval.presentation.rows import find_header, find_rows, is_row_of
from arag.retrieval.presentation.similarity import find_rarest, rank_passages, rate_sentences
from arag.retrieval.types import Chunk, Hit
from arag.text.normalise import CUT, HEADING_BOUNDARY, bare_title, collapse_whitespace, is_title

SENTENCE_GAP = 0.2  # of cosine similarity: how much less similar than the best a chunk's second sentence may be

_MAX_KEYWORD_SENTENCES = 3  # unless more are needed to show every keyword
_MAX_QUERY_SENTENCES = 2
_OPENING_SENTENCES = 3
_MAX_HEADINGS = 2  # that are named, the nearest ones
_MAX_SENTENCE_CHARACTERS = 400
_READ_CHARACTERS = 1_600  # of passages in one read...
_READ_CHARACTERS_PER_QUERY = 600  # ...and for each query
_MIN_CUT_CHARACTERS = 40  # how far from the end of a cut text a space is looked for
_NO_STATEMENT = re.compile(r"[?:]$|^[^.!。！]{0,60}$")  # a question, or perhaps a heading or an item of a list


@dataclass(frozen=True, slots=True)
class ShownSentence:
    """A sentence that is shown, on one line."""

    position: int
    """Its place among the chunk's sentences, from 0."""
    text: str
    matched: bool
    """Whether it matched, or is shown as context."""
    similarity: float | None = None
    """Cosine similarity to the query, for matched sentences of a semantic search."""
    cut: bool = False
    """Whether the text is only a part of the sentence; `…` stands for the rest."""
    under: tuple[str, ...] = ()
    """The headings above it, outermost first, and its table's header if that is not shown."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The sentences that are shown of a chunk."""

    title: str
    sentences: tuple[ShownSentence, ...]
    begins: bool
    """Whether the first one is the chunk's first, apart from a title."""
    ends: bool
    """Whether the last one is the chunk's last."""
    whole: bool
    """Whether this is the document's whole text."""
    has_seen: bool = field(default=False, compare=False)
    """Whether sentences were left out because the conversation has seen them."""


# --- the kinds of excerpts ---


def for_keywords(
    hit: Hit, document_frequency: Mapping[str, int], *, is_best: bool = False, seen: Collection[int] = ()
) -> Excerpt:
    """Choose the sentences with the most keywords until each keyword has one, then up to three in all.

    The words of scattered keywords get a sentence, too. If the hit is one of the best, more is shown of a long
    document, around the first sentence. A hit that was found by its name only gets the document's first sentences.

    Args:
        hit: A hit of a keyword search.
        document_frequency: How many chunks hold each keyword: rarer keywords count more.
        is_best: Whether the hit is one of the search's best.
        seen: Positions of the sentences that the conversation has seen.
    """
    chunk = hit.chunk
    keywords = list(hit.keyword_counts)
    pieces = [word for words in hit.scattered.values() for word in words]
    found = find_keywords(chunk, keywords, pieces)
    if hit.in_name and not found:
        return for_opening(chunk, seen=seen)
    ranks = _KeywordRanks(chunk, found, _weigh(chunk, [*keywords, *pieces], document_frequency))
    anchors = ranks.choose_anchors()
    further = [position for position in found if position not in anchors]
    further.sort(key=lambda position: ranks.rank(position, keywords), reverse=True)
    matched = {*anchors, *further[: max(0, _MAX_KEYWORD_SENTENCES - len(anchors))]}
    shown = expand(chunk, matched, is_subject=_is_about_any(chunk, keywords))
    if is_best:
        shown |= expand(chunk, anchors[:1], window=True)
    offsets: dict[int, int] = {}
    for position in matched:
        rarest = min(found[position], key=lambda keyword: document_frequency.get(keyword, 0))
        offsets[position] = found[position][rarest]
    return _make_excerpt(chunk, shown, matched, offsets=offsets, seen=seen)


def for_query(hit: Hit, query: str, *, is_best: bool = False, seen: Collection[int] = ()) -> Excerpt:
    """Choose the two sentences nearest to a query, and rows of tables whose labels are in it.

    If the hit is one of the best, a short document is shown whole, and more of a long one around each sentence.

    Args:
        hit: A hit of a semantic search.
        query: The query.
        is_best: Whether the hit is one of the search's best.
        seen: Positions of the sentences that the conversation has seen.
    """
    chunk, similarities = hit.chunk, hit.similarities
    rated = rate_sentences(chunk, similarities, query)
    first = max(similarities, key=lambda position: (similarities[position], -position))
    near = [p for p in rated if p != first and rated[p] > similarities[first] - SENTENCE_GAP]
    near.sort(key=lambda position: (-rated[position], position))
    rows = find_rows(chunk, [query])
    matched = {first, *near[: _MAX_QUERY_SENTENCES - 1], *rows}
    shown = expand(chunk, matched, is_subject=is_best, window=is_best and not rows)
    offsets: dict[int, int] = {}
    for position in shown:
        if len(chunk.sentence_text(position)) > _MAX_SENTENCE_CHARACTERS:
            rarest = find_rarest(_sentence(chunk, position), query)
            if rarest is not None:
                offsets[position] = rarest.start()
    return _make_excerpt(chunk, shown, matched, similarities=similarities, offsets=offsets, seen=seen)


def for_opening(chunk: Chunk, *, seen: Collection[int] = ()) -> Excerpt:
    """Choose the first sentences; of a table, its header and its first rows."""
    first = chunk.embedded_positions()[:_OPENING_SENTENCES]
    return _make_excerpt(chunk, expand(chunk, first[:1]) | {*first}, first, seen=seen)


def for_read(
    chunks: Sequence[Chunk],
    similarities: Mapping[str, Mapping[str, Mapping[int, float]]],
    seen: Mapping[str, Collection[int]],
) -> dict[str, Excerpt]:
    """Choose the passages of chunks that are near to queries, and rows of tables whose labels are in them.

    The best new passage of each chunk comes first; then the best ones for each query in turn, until there are enough.

    Args:
        chunks: The chunks.
        similarities: Cosine similarities by query, chunk id and position.
        seen: By chunk id, the positions of the sentences that the conversation has seen.

    Returns:
        The excerpts by chunk id; without sentences for a chunk that is far from every query.
    """
    room = _READ_CHARACTERS + _READ_CHARACTERS_PER_QUERY * len(similarities)
    room = min(room, sum(len(chunk.text) for chunk in chunks) // 2)
    known: dict[str, set[int]] = {}
    rows: dict[str, set[int]] = {}
    matched: dict[str, set[int]] = {}
    shown: dict[str, set[int]] = {}
    for chunk in chunks:
        known[chunk.id] = set(seen.get(chunk.id, ()))
        # A label may have a comma, at which the queries were split.
        rows[chunk.id] = find_rows(chunk, [*similarities, " ".join(similarities)])
        matched[chunk.id] = set(rows[chunk.id])
        shown[chunk.id] = expand(chunk, rows[chunk.id])

    passages = _take_turns([rank_passages(chunks, rated, query) for query, rated in similarities.items()])
    firsts: dict[str, tuple[Chunk, int]] = {}
    for chunk, position in passages:
        if position not in known[chunk.id]:
            firsts.setdefault(chunk.id, (chunk, position))
    for chunk, position in [*firsts.values(), *passages]:
        if room < 0:
            break
        new = expand(chunk, [position], window=not rows[chunk.id]) - shown[chunk.id] - known[chunk.id]
        room -= sum(len(chunk.sentence_text(each)) for each in new)
        matched[chunk.id].add(position)
        shown[chunk.id] |= new

    excerpts: dict[str, Excerpt] = {}
    for chunk in chunks:
        new = shown[chunk.id] - known[chunk.id]
        excerpts[chunk.id] = _make_excerpt(chunk, new, matched[chunk.id], longest=_READ_CHARACTERS)
    return excerpts


def _take_turns(ranked: Sequence[Sequence[tuple[Chunk, int]]]) -> list[tuple[Chunk, int]]:
    """Return the passages of several rankings: the best of each, then the second of each, and so on."""
    turns: list[tuple[Chunk, int]] = []
    for places in zip_longest(*ranked):
        turns += [place for place in places if place is not None]
    return turns


# --- sentences with keywords ---


class _Rank(NamedTuple):
    """How well a sentence shows keywords; the first field that differs decides."""

    wanted: int  # keywords that are looked for
    labels_row: bool
    is_statement: bool
    rarity: float
    order: int


@dataclass(frozen=True)
class _KeywordRanks:
    """Ranks the sentences of a chunk that hold keywords."""

    chunk: Chunk
    found: Occurrences
    weights: Mapping[str, float]

    def rank(self, position: int, wanted: Collection[str]) -> _Rank:
        text = _sentence(self.chunk, position)
        held = self.found[position]
        matching = [keyword for keyword in held if keyword in wanted]
        return _Rank(
            wanted=len(matching),
            labels_row=any(is_row_of(text, keyword) for keyword in matching),
            is_statement=self.chunk.sentences[position].embedded and not _NO_STATEMENT.search(text),
            rarity=sum(self.weights[keyword] for keyword in held),
            order=-position,
        )

    def choose_anchors(self) -> list[int]:
        """Choose the best sentences, one by one, until each keyword that the chunk holds has one."""
        missing: set[str] = set()
        for held in self.found.values():
            missing |= held.keys()
        anchors: list[int] = []
        while missing:
            useful = [position for position, held in self.found.items() if not missing.isdisjoint(held)]
            best = max(useful, key=lambda position: self.rank(position, missing))
            anchors.append(best)
            missing -= self.found[best].keys()
        return anchors


def _weigh(chunk: Chunk, keywords: Sequence[str], document_frequency: Mapping[str, int]) -> dict[str, float]:
    """Return the weights of keywords: rarer ones weigh more, and the chunk's title nothing."""
    title = bare_title(chunk.title)
    weights: dict[str, float] = {}
    for keyword in keywords:
        is_the_title = bare_title(keyword) == title
        weights[keyword] = 0 if is_the_title else 1 / (1 + document_frequency.get(keyword, 0))
    return weights


def _is_about_any(chunk: Chunk, keywords: Sequence[str]) -> bool:
    """Return whether a keyword is the chunk's title, or several words with which it begins."""
    title = bare_title(chunk.title)
    for keyword in keywords:
        name = bare_title(keyword)
        if title == name or (" " in name and title.startswith(f"{name} ")):
            return True
    return False


# --- the excerpt ---


def _make_excerpt(
    chunk: Chunk,
    shown: Collection[int],
    matched: Collection[int],
    *,
    similarities: Mapping[int, float] | None = None,
    offsets: Mapping[int, int] | None = None,
    longest: int = _MAX_SENTENCE_CHARACTERS,
    seen: Collection[int] = (),
) -> Excerpt:
    """Make an excerpt of sentences, each of at most `longest` characters around an offset.

    If no matched sentence is new, nothing is shown.
    """
    positions = [position for position in sorted(shown) if position not in seen]
    has_seen = len(positions) < len(shown)
    if has_seen and not any(position in matched for position in positions):
        positions = []
    if not positions:
        return Excerpt(chunk.title, (), begins=False, ends=False, whole=False, has_seen=has_seen)
    is_complete = len(shown) == len(chunk.sentences)
    if is_complete and is_short(chunk):
        longest = MAX_SHORT_CHARACTERS
    sentences: list[ShownSentence] = []
    for position in positions:
        whole = _sentence(chunk, position)
        offset = offsets.get(position, 0) if offsets else 0
        text = cut_around(whole, offset, longest)
        is_match = position in matched
        sentences.append(
            ShownSentence(
                position=position,
                text=text,
                matched=is_match,
                similarity=similarities.get(position) if similarities and is_match else None,
                cut=text != whole,
                under=_find_headings(chunk, position),
            )
        )
    starts_with_title = positions[0] > 0 and is_title(chunk.sentence_text(0), chunk.title)
    is_cut = any(sentence.cut for sentence in sentences)
    return Excerpt(
        title=chunk.title,
        sentences=tuple(sentences),
        begins=positions[0] == int(starts_with_title),
        ends=positions[-1] == len(chunk.sentences) - 1,
        whole=chunk.whole and is_complete and not has_seen and not is_cut,
        has_seen=has_seen,
    )


def _find_headings(chunk: Chunk, position: int) -> tuple[str, ...]:
    """Return the headings above a sentence, and the header of its table if the chunk does not hold it."""
    sentence = chunk.sentences[position]
    nearest = sentence.heading.split(HEADING_BOUNDARY)[-_MAX_HEADINGS:]
    named = [heading for heading in nearest if heading]
    if sentence.header and find_header(chunk, position) == position:
        named.append(sentence.header)
    return tuple(named)


def cut_around(text: str, offset: int, longest: int) -> str:
    """Cut a text, at spaces, to about `longest` characters around an offset; `…` stands for the rest."""
    if len(text) <= longest:
        return text
    start = max(0, min(offset - longest // 3, len(text) - longest))
    if start > 0:
        start = text.find(" ", start, offset) + 1 or start
    end = start + longest
    if end < len(text):
        space = text.rfind(" ", offset + 1, end)
        if space > end - _MIN_CUT_CHARACTERS:
            end = space
    before = CUT if start > 0 else ""
    after = CUT if end < len(text) else ""
    return f"{before}{text[start:end].strip()}{after}"


def _sentence(chunk: Chunk, position: int) -> str:
    """Return a sentence as it is shown, on one line."""
    return collapse_whitespace(chunk.sentence_text(position))
