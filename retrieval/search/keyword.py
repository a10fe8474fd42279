"""Keyword search in one snapshot of an index; `Index.keyword_search` documents it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from arag.retrieval.search.names import find_named
from arag.retrieval.search.suggestions import find_closest, spell, telling_words
from arag.retrieval.storage.contract import View
from arag.retrieval.storage.records import KeywordRanking, Ranking
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
        matches = _list_matches(ranked)
        return _make_results(view, keywords, keywords, ranked, matches, suggestions, {})

    respelled = _choose_respelled(suggestions)
    searched = distinct([*keywords, *respelled.values()])
    if len(searched) > len(keywords):
        ranked = view.rank(searched, top_k, ranking=ranking)
    matches = _list_matches(ranked)
    named = _find_in_names(view, searched, respelled, ranked, matches)
    missing: list[str] = []
    for keyword in suggestions:
        is_elsewhere = keyword in respelled or keyword in named
        if not is_elsewhere and not ranked.document_frequency[keyword]:
            missing.append(keyword)
    for row_id, pieces in _find_scattered(view, missing).items():
        matches.setdefault(row_id, _Match()).scattered = pieces
    for keyword, row_ids in named.items():
        suggestions.pop(keyword, None)
        for row_id in row_ids:
            matches.setdefault(row_id, _Match()).in_name.append(keyword)
    return _make_results(view, keywords, searched, ranked, matches, suggestions, respelled)


def distinct(keywords: Iterable[str]) -> list[str]:
    """Collapse white space, and drop blank keywords and repetitions, ignoring case."""
    kept: dict[str, str] = {}
    for keyword in map(collapse_whitespace, keywords):
        if keyword:
            kept.setdefault(searchable(keyword), keyword)
    return list(kept.values())


def _list_matches(ranked: KeywordRanking) -> dict[int, _Match]:
    """Return why the ranked chunks were found, by row id, best first."""
    matches: dict[int, _Match] = {}
    for entry in ranked.chunks:
        matches[entry.row_id] = _Match(entry.score, entry.counts)
    return matches


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
    """Find, for each uncommon keyword, documents that have it in their name only: the row ids of their first chunks."""
    chunks = view.chunks_by_row_id(matches)
    named: dict[str, list[int]] = {}
    for keyword in searched:
        if keyword in respelled or ranked.document_frequency[keyword] > _MAX_CHUNKS_BESIDE_NAMES:
            continue
        holders: set[str] = set()
        for row_id, chunk in chunks.items():
            if keyword in matches[row_id].counts:
                holders.add(chunk.document_id)
        row_ids = find_named(keyword, view, but=holders)
        if row_ids:
            named[keyword] = row_ids
    return named


def _find_scattered(view: View, keywords: Sequence[str]) -> dict[int, dict[str, list[str]]]:
    """Find the chunks that hold all words of a keyword, if they are few.

    Returns:
        By the chunks' row ids, for each keyword its words as the corpus spells them.
    """
    pieces_of = _spell_words(view, keywords)
    found: dict[int, dict[str, list[str]]] = {}
    candidates = view.chunks_holding(list(pieces_of.values()), _CANDIDATES_FOR_SCATTERED)
    for (keyword, pieces), chunks in zip(pieces_of.items(), candidates, strict=True):
        if len(chunks) == _CANDIDATES_FOR_SCATTERED:
            continue
        whole: list[int] = []
        for row_id, chunk in chunks.items():
            if set(pieces) <= set(words(chunk.text)):
                whole.append(row_id)
        if len(whole) <= _MAX_SCATTERED:
            for row_id in whole:
                found.setdefault(row_id, {})[keyword] = pieces
    return found


def _spell_words(view: View, keywords: Sequence[str]) -> dict[str, list[str]]:
    """Return the words of each keyword as the corpus spells them, if it has all of them."""
    words_of = {keyword: telling_words(keyword) for keyword in keywords}
    asked: set[str] = set()
    for wanted in words_of.values():
        asked.update(wanted)
    present = view.words_present(asked)
    spellings = spell(asked - present, view)
    for word in present:
        spellings[word] = [word]
    spelled: dict[str, list[str]] = {}
    for keyword, wanted in words_of.items():
        if wanted and all(spellings[word] for word in wanted):
            spelled[keyword] = [spellings[word][0] for word in wanted]
    return spelled


def _make_results(
    view: View,
    keywords: Sequence[str],
    searched: Sequence[str],
    ranked: KeywordRanking,
    matches: Mapping[int, _Match],
    suggestions: Mapping[str, tuple[Term, ...]],
    respelled: Mapping[str, str],
) -> KeywordResults:
    chunks = view.chunks_by_row_id(matches)
    hits: list[Hit] = []
    total = ranked.total
    for row_id, match in matches.items():
        hit = _make_hit(chunks[row_id], match, searched)
        hits.append(hit)
        if not hit.keyword_counts:
            total += 1
    reports: list[KeywordReport] = []
    for keyword in keywords:
        report = KeywordReport(
            keyword=keyword,
            chunks=ranked.document_frequency[keyword],
            as_word=ranked.as_word.get(keyword),
            closest=suggestions.get(keyword, ()),
            searched_as=respelled.get(keyword),
        )
        reports.append(report)
    return KeywordResults(
        keywords=tuple(reports),
        hits=tuple(hits),
        total=total,
        document_frequency=ranked.document_frequency,
    )


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
