"""Keyword search in one snapshot of an index; `Index.keyword_search` documents it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from arag.retrieval.search.contents import is_in_contents
from arag.retrieval.search.names import find_named
from arag.retrieval.search.spellings import spell
from arag.retrieval.search.suggestions import find_closest, find_other_apostrophe, telling_words
from arag.retrieval.search.unspaced import choose_nearest, find_phrase_parts
from arag.retrieval.storage.contract import View
from arag.retrieval.storage.records import KeywordRanking, Ranking
from arag.retrieval.types import Chunk, Hit, KeywordReport, KeywordResults, Term
from arag.text.normalise import collapse_whitespace, searchable, without_division_signs, words

_RARE_CHUNKS = 2  # a keyword that no more chunks hold gets suggestions
_MAX_SUGGESTIONS = 20  # keywords of one search that get suggestions: each costs some milliseconds
_MAX_SCATTERED = 2  # chunks with all words of a keyword: if there are more, none of them stands out
_CANDIDATES_FOR_SCATTERED = 20  # chunks that hold these words, also inside longer words
_MAX_CHUNKS_BESIDE_NAMES = 8  # a keyword that more chunks hold is not searched for in names

_Chunks = dict[int, Chunk]  # by row id


@dataclass(slots=True)
class _Keyword:
    """A keyword, or another spelling of one, and what was found for it."""

    text: str
    chunks: int  # how many hold it
    closest: tuple[Term, ...] = ()  # terms that may be meant, if it is rare
    searched_as: str | None = None  # another spelling of the same letters, if the corpus has one
    named: list[int] = field(default_factory=list)  # first chunks, by row id, of documents with it in their name only
    words: tuple[str, ...] = ()  # as the corpus spells them, if it has all of them but not the keyword
    scattered: _Chunks = field(default_factory=dict)  # chunks that hold all of these words, if they are few

    @property
    def is_missing(self) -> bool:
        """Whether the corpus has it nowhere: in no text, in no name, in no other spelling."""
        return self.chunks == 0 and self.searched_as is None and not self.named


def keyword_search(
    view: View,
    keywords: Sequence[str],
    top_k: int,
    *,
    ranking: Ranking,
) -> KeywordResults:
    """Find the chunks that hold keywords. With BM25, also find what rare keywords may mean."""
    ranked = view.rank(keywords, top_k, ranking=ranking)
    asked = _list_keywords(keywords, ranked)
    rare = [keyword for keyword in asked if keyword.chunks <= _RARE_CHUNKS][:_MAX_SUGGESTIONS]
    for keyword in asked:
        keyword.closest = find_other_apostrophe(keyword.text, view)
    for keyword in rare:
        keyword.closest = keyword.closest or find_closest(keyword.text, keyword.chunks, view)
    if ranking == "paper":
        chunks = _read_chunks(view, ranked)
        return _make_results(asked, asked, ranked, chunks)

    searched = asked
    respellings = _choose_respellings(asked)
    texts = distinct([*keywords, *respellings])
    if len(texts) > len(keywords):
        ranked = view.rank(texts, top_k, ranking=ranking)
        searched = asked + _list_keywords(texts[len(keywords) :], ranked)
    chunks = _read_chunks(view, ranked)
    _find_in_names(view, searched, ranked, chunks)
    missing = [keyword for keyword in rare if keyword.is_missing]
    _find_scattered(view, missing)
    _find_phrases_in_parts(view, missing)
    _add_chunks(view, searched, chunks)
    results = _make_results(asked, searched, ranked, chunks)
    return replace(results, hits=tuple(_sink_contents(results)))


def distinct(keywords: Iterable[str]) -> list[str]:
    """Collapse white space and drop signs of division, blank keywords, and repetitions, ignoring case."""
    kept: dict[str, str] = {}
    for given in keywords:
        keyword = collapse_whitespace(without_division_signs(given))
        if keyword:
            kept.setdefault(searchable(keyword), keyword)
    return list(kept.values())


def _list_keywords(texts: Sequence[str], ranked: KeywordRanking) -> list[_Keyword]:
    keywords: list[_Keyword] = []
    for text in texts:
        keyword = _Keyword(
            text=text,
            chunks=ranked.document_frequency[text],
        )
        keywords.append(keyword)
    return keywords


def _read_chunks(view: View, ranked: KeywordRanking) -> _Chunks:
    """Read the ranked chunks, best first."""
    row_ids = [entry.row_id for entry in ranked.chunks]
    return view.chunks_by_row_id(row_ids)


def _choose_respellings(keywords: Sequence[_Keyword]) -> list[str]:
    """Choose the other spelling of the same letters that each keyword is searched as, and return these spellings."""
    spellings: list[str] = []
    for keyword in keywords:
        if keyword.closest and keyword.closest[0].respelled:
            keyword.searched_as = keyword.closest[0].text
            spellings.append(keyword.searched_as)
    return spellings


# --- documents with a keyword in their name ---


def _find_in_names(
    view: View,
    keywords: Sequence[_Keyword],
    ranked: KeywordRanking,
    chunks: _Chunks,
) -> None:
    """Find, for each uncommon keyword, the documents that have it in their name only."""
    for keyword in keywords:
        is_common = keyword.chunks > _MAX_CHUNKS_BESIDE_NAMES
        if is_common or keyword.searched_as is not None:
            continue
        holders: set[str] = set()
        for entry in ranked.chunks:
            if keyword.text in entry.counts:
                holders.add(chunks[entry.row_id].document_id)
        keyword.named = find_named(keyword.text, view, but=holders)
        if keyword.named:
            keyword.closest = ()  # the name is meant


# --- chunks with all words of a keyword ---


def _find_scattered(view: View, keywords: Sequence[_Keyword]) -> None:
    """Find, for each keyword, the chunks that hold all of its words, if they are few."""
    spelled = _spell_words(view, keywords)
    groups = [keyword.words for keyword in spelled]
    candidates = view.chunks_holding(groups, _CANDIDATES_FOR_SCATTERED)
    for keyword, chunks in zip(spelled, candidates, strict=True):
        if len(chunks) == _CANDIDATES_FOR_SCATTERED:
            continue
        scattered = _keep_with_words(chunks, keyword.words)
        if len(scattered) <= _MAX_SCATTERED:
            keyword.scattered = scattered


def _find_phrases_in_parts(view: View, keywords: Sequence[_Keyword]) -> None:
    """Find, for each phrase in a script without spaces, its parts, and a few chunks that hold all of them."""
    for keyword in keywords:
        parts = find_phrase_parts(keyword.text, view)
        if not parts:
            continue
        counts = view.count_chunks(parts)
        keyword.closest = tuple(Term(part, chunks) for part, chunks in zip(parts, counts, strict=True))
        (chunks_with_all,) = view.chunks_holding([parts], _CANDIDATES_FOR_SCATTERED)
        keyword.words = tuple(parts)
        keyword.scattered = choose_nearest(chunks_with_all, parts, _MAX_SCATTERED)


def _spell_words(view: View, keywords: Sequence[_Keyword]) -> list[_Keyword]:
    """Spell the words of keywords as the corpus does, and return the keywords of which it has all words."""
    telling = [telling_words(keyword.text) for keyword in keywords]
    spellings = _spell_each(view, set().union(*telling))
    spelled: list[_Keyword] = []
    for keyword, wanted in zip(keywords, telling, strict=True):
        if wanted and spellings.keys() >= set(wanted):
            keyword.words = tuple(spellings[word] for word in wanted)
            spelled.append(keyword)
    return spelled


def _spell_each(view: View, asked: set[str]) -> dict[str, str]:
    """Return the spelling of each word that the corpus has: the word as it is, or else the first other spelling."""
    present = view.words_present(asked)
    chosen = {word: word for word in present}
    for word, spellings in spell(asked - present, view).items():
        if spellings:
            chosen[word] = spellings[0]
    return chosen


def _keep_with_words(chunks: Mapping[int, Chunk], wanted: Sequence[str]) -> _Chunks:
    """Return the chunks that have all of some words as whole words."""
    kept: _Chunks = {}
    for row_id, chunk in chunks.items():
        words_of_chunk = set(words(chunk.text))
        if words_of_chunk.issuperset(wanted):
            kept[row_id] = chunk
    return kept


# --- tables of contents ---


def _sink_contents(results: KeywordResults) -> list[Hit]:
    """Move each table of contents behind all other hits that have its keywords."""
    hits: list[Hit] = []
    contents: dict[int, Hit] = {}  # by their places
    for place, hit in enumerate(results.hits):
        if is_in_contents(hit):
            contents[place] = hit
        else:
            hits.append(hit)
    for place, hit in contents.items():
        behind = _find_last_with(_list_asked(hit, results), hits, results)
        hits.insert(max(place, behind + 1), hit)
    return hits


def _find_last_with(keywords: set[str], hits: Sequence[Hit], results: KeywordResults) -> int:
    """Return the place of the last hit that has all of some keywords; -1 if there is none."""
    for place in range(len(hits) - 1, -1, -1):
        if keywords <= _list_asked(hits[place], results):
            return place
    return -1


def _list_asked(hit: Hit, results: KeywordResults) -> set[str]:
    """Return the keywords of a hit as they were asked for, not as the corpus spells them."""
    asked: set[str] = set()
    for report in results.keywords:
        if not {report.keyword, report.searched_as}.isdisjoint(hit.keywords):
            asked.add(report.keyword)
    return asked


# --- results ---


def _add_chunks(view: View, keywords: Sequence[_Keyword], chunks: _Chunks) -> None:
    """Add the chunks that were found by scattered words, then those that were found by names."""
    named: list[int] = []
    for keyword in keywords:
        chunks.update(keyword.scattered)
        named += keyword.named
    chunks.update(view.chunks_by_row_id(named))


def _make_results(
    asked: Sequence[_Keyword],
    searched: Sequence[_Keyword],
    ranked: KeywordRanking,
    chunks: _Chunks,
) -> KeywordResults:
    """Make the results.

    Args:
        asked: The keywords that were given.
        searched: These, and other spellings of them.
        ranked: The ranking of the searched keywords.
        chunks: All chunks that were found, best first.
    """
    hits = _make_hits(searched, ranked, chunks)
    without_keyword = [hit for hit in hits if not hit.keyword_counts]
    reports: list[KeywordReport] = []
    for keyword in asked:
        report = KeywordReport(
            keyword=keyword.text,
            chunks=keyword.chunks,
            as_word=ranked.as_word.get(keyword.text),
            closest=keyword.closest,
            searched_as=keyword.searched_as,
        )
        reports.append(report)
    return KeywordResults(
        keywords=tuple(reports),
        hits=tuple(hits),
        total=ranked.total + len(without_keyword),
        document_frequency=ranked.document_frequency,
    )


def _make_hits(
    keywords: Sequence[_Keyword],
    ranked: KeywordRanking,
    chunks: _Chunks,
) -> list[Hit]:
    entries = {entry.row_id: entry for entry in ranked.chunks}
    hits: list[Hit] = []
    for row_id, chunk in chunks.items():
        if row_id in entries:
            score = entries[row_id].score
            counts = entries[row_id].counts
        else:
            score = 0.0
            counts = _count(keywords, chunk)
        hit = Hit(
            chunk=chunk,
            score=score,
            keyword_counts=counts,
            scattered={keyword.text: keyword.words for keyword in keywords if row_id in keyword.scattered},
            in_name=tuple(keyword.text for keyword in keywords if row_id in keyword.named),
        )
        hits.append(hit)
    return hits


def _count(keywords: Sequence[_Keyword], chunk: Chunk) -> dict[str, int]:
    """Count the keywords in a chunk that is not among the ranked ones."""
    text = searchable(chunk.text)
    counts: dict[str, int] = {}
    for keyword in keywords:
        count = text.count(searchable(keyword.text))
        if count:
            counts[keyword.text] = count
    return counts
