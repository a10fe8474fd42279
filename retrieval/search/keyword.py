"""The searches, in one view of an index; `Index` explains them."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from arag.retrieval.presentation.excerpts import for_keywords, for_opening, for_query
from arag.retrieval.search.suggestions import FUNCTION_WORDS, find_closest, spell, telling_words
from arag.retrieval.storage.contract import RankedChunk, Ranking, SentenceMatch, View
from arag.retrieval.storage.vectors import SentenceMatrix
from arag.retrieval.types import Chunk, Hit, KeywordReport, KeywordResults, ReadResults, SemanticResults
from arag.text.normalise import bare_title, collapse_whitespace, name_words, searchable, words
from arag.text.scripts import is_east_asian

_FEW_CHUNKS = 2  # a keyword in no more chunks than these gets the closest terms
_MAX_SUGGESTIONS = 20  # keywords of one search that get them
_MAX_APART = 2  # chunks that hold a keyword's words apart from each other: of more, none stands out
_CHUNKS_WITH_PIECES = 20  # chunks looked at that hold these words, also inside longer ones
_MAX_DETAILED_HITS = 2  # of which more is shown
_MAX_BESIDE_NAMES = 8  # chunks that hold a keyword: names with a more common one are not looked for
_MAX_NAMES_LOOKED_AT = 20
_MAX_NAMED = 2  # documents for each keyword
_MAX_QUERY_WORDS = 4  # of a query that may be a document's name

_MIN_SENTENCES = 50  # fetched at first, then four times as many each time
_MATCHES_PER_CHUNK = 3  # sentences of which it is said that they were found, on average
_TITLES_LOOKED_AT = 20  # of the nearest chunks
_MAX_TITLED = 2
_TITLED_GAP = 0.25  # of similarity, below the nearest chunk: a title may be a common word
_MIN_TITLE_CHARACTERS = 3

_MAX_EXPLAINED = 20  # unknown ids of one read that get the closest ones
_MAX_CLOSEST = 3
_MAX_NAME_WORDS = 20
_AROUND_IDS = string.whitespace + "[](){}<>\"'`"  # by models
_BEHIND_IDS = string.whitespace + ",;."
_MAX_AROUND_ID = 4  # pairs that are taken off one by one: an id may have the inner ones


def keyword_search(view: View, keywords: Sequence[str], top_k: int, *, ranking: Ranking) -> KeywordResults:
    """Find the chunks that hold keywords; by coverage, also those with other spellings of the same letters."""
    ranked = view.rank(keywords, top_k, ranking=ranking)
    rare = [keyword for keyword in keywords if ranked.document_frequency[keyword] <= _FEW_CHUNKS][:_MAX_SUGGESTIONS]
    closest = {keyword: find_closest(keyword, ranked.document_frequency[keyword], view) for keyword in rare}
    best = {keyword: terms[0] for keyword, terms in closest.items() if terms and ranking == "bm25"}
    respelled = {keyword: term.text for keyword, term in best.items() if term.respelled}
    searched = distinct([*keywords, *respelled.values()])
    if len(searched) > len(keywords):
        ranked = view.rank(searched, top_k, ranking="bm25")
    holding = ranked.document_frequency
    entries = {entry.number: entry for entry in ranked.chunks}
    chunks = view.numbered(entries)
    named: dict[int, list[str]] = {}
    for keyword in searched if ranking == "bm25" else ():
        holders = {chunk.document_id for number, chunk in chunks.items() if keyword in entries[number].counts}
        if keyword not in respelled and holding[keyword] <= _MAX_BESIDE_NAMES:
            for number in _find_named(keyword, view, but=holders):
                named.setdefault(number, []).append(keyword)
    in_names = {keyword for names in named.values() for keyword in names}
    missing = [keyword for keyword in rare if not holding[keyword] and keyword not in respelled.keys() | in_names]
    apart = _find_apart(missing, view) if ranking == "bm25" else {}
    entries |= {number: RankedChunk(number, 0.0, {}) for number in (*apart, *named) if number not in entries}
    chunks |= view.numbered(entries.keys() - chunks.keys())
    hits: list[Hit] = []
    for number, entry in entries.items():
        chunk, pieces, names = chunks[number], apart.get(number, {}), tuple(named.get(number, ()))
        counts = entry.counts or _count(searched, chunk)
        piece_words = [word for keyword in pieces for word in pieces[keyword]]
        is_best = len(hits) < _MAX_DETAILED_HITS
        excerpt = for_keywords(chunk, list(counts), holding, piece_words, is_best=is_best)
        excerpt = excerpt if excerpt.sentences or not names else for_opening(chunk)
        why = counts, tuple(pieces), names
        hits.append(Hit(chunk.id, chunk.document_id, entry.score, excerpt, chunk.tokens, *why))
    terms = {keyword: closest[keyword] for keyword in rare if keyword not in in_names}
    as_word = ranked.as_word
    reports = [KeywordReport(k, holding[k], as_word.get(k), terms.get(k, ()), respelled.get(k)) for k in keywords]
    total = ranked.total + sum(not hit.keyword_counts for hit in hits)
    return KeywordResults(tuple(reports), tuple(hits), total)


def distinct(keywords: Iterable[str]) -> list[str]:
    """Fold white space, and drop blank keywords and repetitions, ignoring case."""
    kept: dict[str, str] = {}
    for keyword in map(collapse_whitespace, keywords):
        if keyword:
            kept.setdefault(searchable(keyword), keyword)
    return list(kept.values())


def semantic_search(
    view: View, query: str, vector: NDArray[np.float32], top_k: int, *, titles_first: bool
) -> SemanticResults:
    """Find the chunks with the sentences nearest to a query, whose vector is given."""
    wanted = max(top_k, _TITLES_LOOKED_AT) if titles_first else top_k
    similarities: dict[int, dict[int, float]] = {}
    for rank, match in enumerate(_find_nearest(view, vector, wanted)):  # nearest first
        if rank < _MATCHES_PER_CHUNK * wanted or match.chunk not in similarities:
            similarities.setdefault(match.chunk, {})[match.position] = match.similarity
    titled: list[int] = []
    if titles_first and len(query.split()) <= _MAX_QUERY_WORDS:
        rated = {number: places for number, places in _rate(view, vector, _find_named(query, view)).items() if places}
        similarities = rated | similarities
        titled = list(rated)
    scores = {number: max(by_position.values()) for number, by_position in similarities.items()}
    ids = view.ids(scores)
    nearest = sorted(ids, key=lambda number: (-scores[number], ids[number]))[:wanted]
    chunks = view.numbered({*nearest, *titled})
    if titles_first and not titled:
        close = [number for number in nearest if scores[number] >= scores[nearest[0]] - _TITLED_GAP]
        titled = [number for number in close if _is_in(chunks[number].title, query)][:_MAX_TITLED]
    hits: list[Hit] = []
    for number in dict.fromkeys([*titled, *nearest[:top_k]]):
        chunk, matches = chunks[number], similarities[number]
        if not matches.keys() <= set(chunk.embedded_positions()):
            raise view.damage(f"chunk {number} has vectors of other sentences")
        excerpt = for_query(chunk, matches, query, is_best=len(hits) < _MAX_DETAILED_HITS)
        places = tuple(sorted(matches))
        hits.append(Hit(chunk.id, chunk.document_id, scores[number], excerpt, chunk.tokens, matches=places))
    return SemanticResults(query, tuple(hits))


def rate(view: View, vector: NDArray[np.float32], chunk_ids: Sequence[str]) -> dict[str, dict[int, float]]:
    """Compare the sentences of chunks with a query's vector."""
    numbers = view.numbers(chunk_ids)
    rated = _rate(view, vector, numbers.values())
    return {chunk_id: rated[number] for chunk_id, number in numbers.items()}


def _rate(view: View, vector: NDArray[np.float32], numbers: Collection[int]) -> dict[int, dict[int, float]]:
    """Compare the sentences of chunks, given by number, with a query's vector."""
    matrix = SentenceMatrix.build(view.vectors(numbers), view.settings.dimension)
    rated: dict[int, dict[int, float]] = {number: {} for number in numbers}
    for match in matrix.nearest(vector, len(matrix)):
        rated[match.chunk][match.position] = match.similarity
    return rated


def read(view: View, chunk_ids: Sequence[str], adjacent: int) -> ReadResults:
    """Return full chunks."""
    resolved = resolve(view, chunk_ids)
    chunks: dict[str, Chunk] = {}
    for chunk in resolved.values():
        for each in view.neighbours(chunk, adjacent) if adjacent else [chunk]:
            chunks.setdefault(each.id, each)
    unknown = [chunk_id for chunk_id in chunk_ids if chunk_id not in resolved]
    closest = {chunk_id: _find_closest_ids(view, chunk_id) for chunk_id in unknown[:_MAX_EXPLAINED]}
    return ReadResults(tuple(chunks.values()), dict.fromkeys(unknown, ()) | closest)


def resolve(view: View, chunk_ids: Sequence[str]) -> dict[str, Chunk]:
    """Return the chunks that ids mean, also in quotes or brackets, or as the id of a document with one chunk."""
    spellings = {chunk_id: list(_strip(chunk_id)) for chunk_id in chunk_ids}
    candidates = list(dict.fromkeys(chain.from_iterable(spellings.values())))
    chunks = {chunk.id: chunk for chunk in view.mget(candidates) if chunk is not None}
    documents = view.entries([candidate for candidate in candidates if candidate not in chunks])
    whole = view.chunks_of([document_id for document_id, entry in documents.items() if entry.chunks == 1])
    chunks |= {chunk.document_id: chunk for chunk in whole}
    meant = {chunk_id: [chunks[i] for i in candidates if i in chunks] for chunk_id, candidates in spellings.items()}
    return {chunk_id: candidates[0] for chunk_id, candidates in meant.items() if candidates}


def _strip(chunk_id: str) -> Iterator[str]:
    """Yield an id as it is, then with less and less around it, at last with nothing that an id may stand in."""
    yield chunk_id
    with suppress(ValueError):  # a mark has unusual ids as JSON strings
        if isinstance(name := json.loads(chunk_id.strip().removeprefix("[").removesuffix("]")), str):
            yield name
    inner = chunk_id
    for _ in range(_MAX_AROUND_ID):
        inner = inner.lstrip().rstrip(_BEHIND_IDS)
        yield inner
        inner = inner[1:] if inner[:1] in _AROUND_IDS else inner
        inner = inner[:-1] if inner[-1:] in _AROUND_IDS else inner
    yield chunk_id.lstrip(_AROUND_IDS).rstrip(_AROUND_IDS + _BEHIND_IDS)


def find_documents(view: View, name: str, limit: int) -> list[str]:
    """Find documents by a part of their name."""
    if view.document(name) is not None:
        return [name]
    if chunk := resolve(view, [name]).get(name):
        return [chunk.document_id]
    named = words(name)[:_MAX_NAME_WORDS]
    return view.named(named, limit) or view.of_files_named(named, limit)


def _find_apart(keywords: Sequence[str], view: View) -> dict[int, dict[str, list[str]]]:
    """Find the chunks that hold all words of a keyword, if they are few.

    Returns:
        By the chunks' numbers, for each keyword its words as the corpus spells them.
    """
    telling = {keyword: telling_words(keyword) for keyword in keywords}
    asked = set(chain.from_iterable(telling.values()))
    present = view.words_present(asked)
    spellings = {word: [word] for word in present} | spell(asked - present, view)
    pieces_of = {
        keyword: [spellings[word][0] for word in wanted]
        for keyword, wanted in telling.items()
        if wanted and all(spellings[word] for word in wanted)
    }
    apart: dict[int, dict[str, list[str]]] = {}
    chunks_of = view.chunks_holding(list(pieces_of.values()), _CHUNKS_WITH_PIECES)
    for (keyword, pieces), chunks in zip(pieces_of.items(), chunks_of, strict=True):
        holding = [number for number, chunk in chunks.items() if set(words(chunk.text)).issuperset(pieces)]
        if len(holding) <= _MAX_APART and len(chunks) < _CHUNKS_WITH_PIECES:
            for number in holding:
                apart.setdefault(number, {})[keyword] = pieces
    return apart


def _find_named(name: str, view: View, *, but: Collection[str] = ()) -> list[int]:
    """Find documents that have all words of a name in their title or file name, except some.

    Returns:
        The numbers of their first chunks.
    """
    wanted = [word for word in name_words(name) if word not in FUNCTION_WORDS][:_MAX_NAME_WORDS]
    if len("".join(wanted)) < (1 if is_east_asian(name) else _MIN_TITLE_CHARACTERS):
        return []
    entries = view.entries(view.named(wanted, _MAX_NAMES_LOOKED_AT))
    names = {i: name_words(f"{i} {entry.title}") for i, entry in entries.items() if i not in but}
    # Words of scripts without spaces may be inside longer ones.
    whole = [i for i, held in names.items() if all(word in held or is_east_asian(word) for word in wanted)]
    return list(view.numbers([f"{document_id}:0" for document_id in whole[:_MAX_NAMED]]).values())


def _find_nearest(view: View, vector: NDArray[np.float32], chunks: int) -> list[SentenceMatch]:
    """Fetch sentences until they cover enough chunks, or none are left."""
    count = max(_MIN_SENTENCES, 4 * chunks)
    while True:
        matches = view.nearest(vector, count)
        if len(matches) < count or len({match.chunk for match in matches}) >= chunks:
            return matches
        count *= 4


def _is_in(title: str, query: str) -> bool:
    """Return whether a query names a title, without a note in brackets: with a capital or a digit in it."""
    name = words(bare_title(title))
    if len(" ".join(name)) < _MIN_TITLE_CHARACTERS:
        return False
    pattern = r"(?<!\w)" + r"\W+".join(map(re.escape, name)) + r"(?!\w)"
    return any(c.isupper() or c.isdigit() for match in re.findall(pattern, query, re.IGNORECASE) for c in match)


def _count(keywords: Sequence[str], chunk: Chunk) -> dict[str, int]:
    """Count the keywords that a chunk holds."""
    text = searchable(chunk.text)
    counts = {keyword: text.count(searchable(keyword)) for keyword in keywords}
    return {keyword: count for keyword, count in counts.items() if count}


def _find_closest_ids(view: View, chunk_id: str) -> tuple[str, ...]:
    of_document = view.chunks_of([chunk_id, chunk_id.rpartition(":")[0]])
    if of_document:
        return tuple(chunk.id for chunk in of_document[:_MAX_CLOSEST])
    return tuple(view.nearby_ids(chunk_id, _MAX_CLOSEST))
