"""Search by meaning in one snapshot of an index; `Index.semantic_search` documents it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from arag.models.similarity import rescale
from arag.retrieval.search.contents import is_in_contents
from arag.retrieval.search.names import MIN_NAME_CHARACTERS, find_named, find_titled
from arag.retrieval.search.sections import follow_contents, leave_out_contents
from arag.retrieval.storage.contract import View
from arag.retrieval.storage.records import SentenceMatch
from arag.retrieval.storage.vectors import SIMILARITY_DIGITS, SentenceMatrix
from arag.retrieval.types import Chunk, Hit, SemanticResults
from arag.text.normalise import bare_title, words

_MIN_SENTENCES = 50  # fetched at first, then four times as many each time
_SENTENCES_PER_CHUNK = 3  # on average: of so many it is reported that they were found
_MAX_QUERY_WORDS = 4  # a query with no more words may be a document's name
_TITLES_LOOKED_AT = 20  # of the nearest chunks
_MAX_TITLED = 2
_OPENING_SENTENCES = 3
_MIN_COUNTED = 1 / 3  # of a chunk's sentences: fewer stand far from its beginning, and do not say what it is about
_TITLED_GAP = 0.25  # of similarity below the nearest chunk: a title may be a common word

_Similarities = dict[int, dict[int, float]]  # by a chunk's row id and a sentence's position


def semantic_search(
    view: View,
    query: str,
    vector: NDArray[np.float32],
    top_k: int,
    *,
    titles_first: bool,
) -> SemanticResults:
    """Find the chunks with the sentences nearest to a query, whose vector is given."""
    wanted = top_k
    named: _Similarities = {}
    if titles_first:
        wanted = max(top_k, _TITLES_LOOKED_AT)
        named = _rate_named(view, query, vector)
    matches = _find_nearest(view, vector, wanted)
    similarities = named | _group_by_chunk(matches, wanted)
    scores = _score(similarities)
    nearest = _order(view, scores)[:wanted]
    chunks = view.chunks_by_row_id({*nearest, *named})
    hits = {row_id: _make_hit(view, row_id, chunks[row_id], similarities[row_id]) for row_id in chunks}
    if not titles_first:
        return SemanticResults(query, tuple(hits[row_id] for row_id in nearest))
    hits = follow_contents(view, hits)
    nearest = [row_id for row_id in _order_hits(hits) if row_id in nearest or row_id not in named]
    titled = list(named)
    if not titled:
        titled = _choose_titled(query, nearest, hits)
        found = {hits[row_id].document_id for row_id in [*titled, *nearest[:top_k]]}
        further = _rate_titled(view, query, vector, but=found)
        similarities = further | similarities
        for row_id, chunk in view.chunks_by_row_id(further).items():
            hits.setdefault(row_id, leave_out_contents(_make_hit(view, row_id, chunk, similarities[row_id])))
        titled = [*titled, *further][:_MAX_TITLED]
    row_ids = dict.fromkeys([*titled, *nearest[:top_k]])
    return SemanticResults(query, tuple(hits[row_id] for row_id in row_ids))


def _make_hit(view: View, row_id: int, chunk: Chunk, similarities: dict[int, float]) -> Hit:
    if not similarities.keys() <= set(chunk.embedded_positions()):
        raise view.damage(f"chunk {row_id} has vectors of other sentences")
    return Hit(
        chunk=chunk,
        score=max(similarities.values()),
        similarities=similarities,
    )


def rate(
    view: View,
    vector: NDArray[np.float32],
    chunk_ids: Sequence[str],
) -> dict[str, dict[int, float]]:
    """Compare the sentences of chunks with a query's vector."""
    row_ids = view.row_ids(chunk_ids)
    rated = _rate(view, vector, row_ids.values())
    return {chunk_id: rated.get(row_id, {}) for chunk_id, row_id in row_ids.items()}


def rate_openings(
    view: View,
    vector: NDArray[np.float32],
    chunk_ids: Sequence[str],
    ignored: Mapping[str, Collection[int]],
) -> dict[str, float]:
    """Compare the beginnings of chunks with a query's vector; chunks without vectors are left out."""
    row_ids = view.row_ids(chunk_ids)
    chunk_ids_by_row = {row_id: chunk_id for chunk_id, row_id in row_ids.items()}
    places: list[tuple[int, int]] = []
    openings: list[NDArray[np.float32]] = []
    for row_id, positions, vectors in view.vectors(row_ids.values()):
        not_counted = ignored.get(chunk_ids_by_row[row_id], ())
        counted = [row for row, position in enumerate(positions) if position not in not_counted]
        if len(counted) < _MIN_COUNTED * len(positions):
            counted = list(range(len(positions)))
        if positions:
            places.append((row_id, positions[0]))
            openings.append(vectors[counted[:_OPENING_SENTENCES]].mean(axis=0))
    if not openings:
        return {}
    matrix = SentenceMatrix.of(places, np.stack(openings))
    matches = _rescaled(matrix.nearest(vector, len(matrix)), view)
    return {chunk_ids_by_row[match.row_id]: match.similarity for match in matches}


def _rate(
    view: View,
    vector: NDArray[np.float32],
    row_ids: Collection[int],
) -> _Similarities:
    """Compare the sentences of chunks with a query's vector; chunks without vectors are left out."""
    matrix = SentenceMatrix.build(view.vectors(row_ids), view.settings.dimension)
    rated: _Similarities = {}
    for match in _rescaled(matrix.nearest(vector, len(matrix)), view):
        rated.setdefault(match.row_id, {})[match.position] = match.similarity
    return rated


def _rate_named(view: View, query: str, vector: NDArray[np.float32]) -> _Similarities:
    """Compare the first chunks of documents that have a short query in their name."""
    if len(query.split()) > _MAX_QUERY_WORDS:
        return {}
    named = find_named(query, view)
    return _rate_in_order(view, vector, named)


def _rate_in_order(view: View, vector: NDArray[np.float32], row_ids: Sequence[int]) -> _Similarities:
    """Compare the sentences of chunks with a query's vector, in the order of the chunks."""
    rated = _rate(view, vector, row_ids)
    return {row_id: rated[row_id] for row_id in row_ids if row_id in rated}


def _rate_titled(
    view: View,
    query: str,
    vector: NDArray[np.float32],
    *,
    but: Collection[str],
) -> _Similarities:
    """Compare the first chunks of documents whose titles are in the query, or nearly the query."""
    titled = find_titled(query, view, but=but)
    return _rate_in_order(view, vector, titled)


def _find_nearest(
    view: View,
    vector: NDArray[np.float32],
    chunks: int,
) -> list[SentenceMatch]:
    """Fetch sentences until they cover enough chunks, or none are left."""
    count = max(_MIN_SENTENCES, 4 * chunks)
    while True:
        matches = view.nearest(vector, count)
        covered = {match.row_id for match in matches}
        if len(covered) >= chunks or len(matches) < count:
            return _rescaled(matches, view)
        count *= 4


def _rescaled(matches: Iterable[SentenceMatch], view: View) -> list[SentenceMatch]:
    """Return sentences with their similarities on the common scale, on which everything that reads them relies."""
    rescaled: list[SentenceMatch] = []
    for match in matches:
        similarity = round(rescale(match.similarity, view.settings.spread), SIMILARITY_DIGITS)
        rescaled.append(SentenceMatch(match.row_id, match.position, similarity))
    return rescaled


def _group_by_chunk(matches: Iterable[SentenceMatch], chunks: int) -> _Similarities:
    """Group sentences by chunk, nearest first; those of known chunks are dropped once there are enough."""
    similarities: _Similarities = {}
    for rank, match in enumerate(matches):
        if rank < _SENTENCES_PER_CHUNK * chunks or match.row_id not in similarities:
            similarities.setdefault(match.row_id, {})[match.position] = match.similarity
    return similarities


def _score(similarities: _Similarities) -> dict[int, float]:
    """Return the similarity of each chunk's best sentence."""
    return {row_id: max(rated.values()) for row_id, rated in similarities.items()}


def _order(view: View, scores: Mapping[int, float]) -> list[int]:
    """Return the row ids of chunks, best first, ties by chunk id."""
    ids = view.ids(scores)
    return sorted(ids, key=lambda row_id: (-scores[row_id], ids[row_id]))


def _order_hits(hits: Mapping[int, Hit]) -> list[int]:
    """Return the row ids of hits, best first, those in contents last, ties by chunk id."""

    def rank(row_id: int) -> tuple[bool, float, str]:
        hit = hits[row_id]
        return is_in_contents(hit), -hit.score, hit.chunk_id

    return sorted(hits, key=rank)


def _choose_titled(query: str, nearest: Sequence[int], hits: Mapping[int, Hit]) -> list[int]:
    """Return the row ids of those of the nearest hits whose documents' titles are in the query."""
    content = [row_id for row_id in nearest if not is_in_contents(hits[row_id])]
    titled: list[int] = []
    for row_id in content:
        if hits[row_id].score < hits[content[0]].score - _TITLED_GAP:
            break
        if _names_title(query, hits[row_id].chunk.title):
            titled.append(row_id)
    return titled[:_MAX_TITLED]


def _names_title(query: str, title: str) -> bool:
    """Return whether a query names a title, ignoring a note in brackets, with a capital letter or a digit in it."""
    name = words(bare_title(title))
    length = len(" ".join(name))
    if not MIN_NAME_CHARACTERS <= length <= len(query):  # the pattern of a huge title would take for ever
        return False
    in_a_row = r"\W+".join(map(re.escape, name))
    pattern = rf"(?<!\w){in_a_row}(?!\w)"
    for found in re.findall(pattern, query, re.IGNORECASE):
        if any(character.isupper() or character.isdigit() for character in found):
            return True
    return False
