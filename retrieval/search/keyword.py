"""Keyword search in one snapshot of an index; `Index.keyword_search` documents it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from arag.retrieval.search.names import find_named
from arag.retrieval.search.suggestions import find_closest, spell, telling_words
from arag.retrieval.storage.contract import KeywordRanking, Ranking, View
from arag.retrieval.types import Chunk, Hit, KeywordReport, KeywordResults, Term
from arag.text.normalise import collapse_whitespace, searchable, words

_RARE_CHUNKS = 2  # a keyword that no more chunks hold gets suggestions
_MAX_SUGGESTIONS = 20  # keywords of one search that get suggestions: each costs some milliseconds
_MAX_SCATTERED = 2  # chunks with all words of a keyword: if there are more, none of them stands out
_CANDIDATES_FOR_SCATTERED = 20  # chunks that hold these words, also inside longer words
_MAX_CHUNKS_BESIDE_NAMES = 8  # a keyword that more chunks hold is not searched for in names


@dataclass(slots=True)
class _Match:
    """Why a chunk was found."""

    score: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)  # occurrences of each keyword
    scattered: dict[str, list[str]] = field(default_factory=dict)  # by keyword, its words as the corpus spells them
    in_name: list[str] = field(default_factory=list)  # keywords that only the document's name has


def keyword_search(view: View, keywords: Sequence[str], top_k: int, *, ranking: Ranking) -> KeywordResults:
    """Find the chunks that hold keywords. With BM25, also find what rare keywords may mean."""
    ranked = view.rank(keywords, top_k, ranking=ranking)
    suggestions = _find_suggestions(view, keywords, ranked)
    if ranking == "paper":
        matches = {entry.number: _Match(entry.score, entry.counts) for entry in ranked.chunks}
        return _make_results(view, keywords, keywords, ranked, matches, suggestions, {})

    respelled = _choose_respelled(suggestions)
    searched = distinct([*keywords, *respelled.values()])
    if len(searched) > len(keywords):
        ranked = view.rank(searched, top_k, ranking=ranking)
    matches = {entry.number: _Match(entry.score, entry.counts) for entry in ranked.chunks}
    named = _find_in_names(view, searched, respelled, ranked, matches)
    missing = [
        keyword
        for keyword in suggestions
        if not ranked.document_frequency[keyword] and keyword not in respelled and not named.get(keyword)
    ]
    for number, pieces in _find_scattered(view, missing).items():
        matches.setdefault(number, _Match()).scattered = pieces
    for keyword, numbers in named.items():
        for number in numbers:
            matches.setdefault(number, _Match()).in_name.append(keyword)
        if numbers:
            suggestions.pop(keyword, None)
    return _make_results(view, keywords, searched, ranked, matches, suggestions, respelled)


def distinct(keywords: Iterable[str]) -> list[str]:
    """Collapse white space, and drop blank keywords and repetitions, ignoring case."""
    kept: dict[str, str] = {}
    for keyword in map(collapse_whitespace, keywords):
        if keyword:
            kept.setdefault(searchable(keyword), keyword)
    return list(kept.values())


def _find_suggestions(view: View, keywords: Sequence[str], ranked: KeywordRanking) -> dict[str, tuple[Term, ...]]:
    """Find the closest terms of the corpus for rare keywords."""
    frequency = ranked.document_frequency
    rare = [keyword for keyword in keywords if frequency[keyword] <= _RARE_CHUNKS]
    return {keyword: find_closest(keyword, frequency[keyword], view) for keyword in rare[:_MAX_SUGGESTIONS]}


def _choose_respelled(suggestions: Mapping[str, Sequence[Term]]) -> dict[str, str]:
    """Return the other spelling of the same letters that each keyword is searched as, if it has one."""
    respelled: dict[str, str] = {}
    for keyword, terms in suggestions.items():
        if terms and terms[0].respelled:
            respelled[keyword] = terms[0].text
    return respelled


def _find_in_names(
    view: View,
    searched: Sequence[str],
    respelled: Collection[str],
    ranked: KeywordRanking,
    matches: Mapping[int, _Match],
) -> dict[str, list[int]]:
    """Find, for each uncommon keyword, documents that have it in their name only: the numbers of their first chunks."""
    chunks = view.numbered(matches)
    named: dict[str, list[int]] = {}
    for keyword in searched:
        if keyword in respelled or ranked.document_frequency[keyword] > _MAX_CHUNKS_BESIDE_NAMES:
            continue
        holders: set[str] = set()
        for number, chunk in chunks.items():
            if keyword in matches[number].counts:
                holders.add(chunk.document_id)
        named[keyword] = find_named(keyword, view, but=holders)
    return named


def _find_scattered(view: View, keywords: Sequence[str]) -> dict[int, dict[str, list[str]]]:
    """Find the chunks that hold all words of a keyword, if they are few.

    Returns:
        By the chunks' numbers, for each keyword its words as the corpus spells them.
    """
    words_of = {keyword: telling_words(keyword) for keyword in keywords}
    asked = {word for some in words_of.values() for word in some}
    present = view.words_present(asked)
    spellings = spell(asked - present, view)
    for word in present:
        spellings[word] = [word]
    pieces_of: dict[str, list[str]] = {}
    for keyword, wanted in words_of.items():
        if wanted and all(spellings[word] for word in wanted):
            pieces_of[keyword] = [spellings[word][0] for word in wanted]

    found: dict[int, dict[str, list[str]]] = {}
    candidates = view.chunks_holding(list(pieces_of.values()), _CANDIDATES_FOR_SCATTERED)
    for (keyword, pieces), chunks in zip(pieces_of.items(), candidates, strict=True):
        whole = [number for number, chunk in chunks.items() if set(pieces) <= set(words(chunk.text))]
        if len(whole) <= _MAX_SCATTERED and len(chunks) < _CANDIDATES_FOR_SCATTERED:
            for number in whole:
                found.setdefault(number, {})[keyword] = pieces
    return found


def _make_results(
    view: View,
    keywords: Sequence[str],
    searched: Sequence[str],
    ranked: KeywordRanking,
    matches: Mapping[int, _Match],
    suggestions: Mapping[str, tuple[Term, ...]],
    respelled: Mapping[str, str],
) -> KeywordResults:
    chunks = view.numbered(matches)
    hits = tuple(_make_hit(chunks[number], match, searched) for number, match in matches.items())
    reports = tuple(
        KeywordReport(
            keyword=keyword,
            chunks=ranked.document_frequency[keyword],
            as_word=ranked.as_word.get(keyword),
            closest=suggestions.get(keyword, ()),
            searched_as=respelled.get(keyword),
        )
        for keyword in keywords
    )
    without_keyword = sum(not hit.keyword_counts for hit in hits)
    return KeywordResults(reports, hits, ranked.total + without_keyword, ranked.document_frequency)


def _make_hit(chunk: Chunk, match: _Match, searched: Sequence[str]) -> Hit:
    return Hit(
        chunk=chunk,
        score=match.score,
        keyword_counts=match.counts or _count(searched, chunk),
        scattered={keyword: tuple(pieces) for keyword, pieces in match.scattered.items()},
        in_name=tuple(match.in_name),
    )


def _count(keywords: Sequence[str], chunk: Chunk) -> dict[str, int]:
    """Count the keywords that a chunk holds."""
    text = searchable(chunk.text)
    counts: dict[str, int] = {}
    for keyword in keywords:
        if count := text.count(searchable(keyword)):
            counts[keyword] = count
    return counts
