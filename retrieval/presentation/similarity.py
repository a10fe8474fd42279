"""Which sentences of chunks are nearest to a query."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from arag.retrieval.types import Chunk
from arag.text.normalise import bare_title, lower, words

PASSAGE_GAP = 0.3  # of cosine similarity: how much less similar than the best a passage of a read may be
RARE_WORD_BONUS = 0.15  # of cosine similarity, for each of up to two rare words of the query

_MAX_RARE_SENTENCES = 3  # of a chunk: a word in more of them is not rare in it
_MAX_RARE_WORDS = 2
_MIN_WORD_CHARACTERS = 3


def rate_sentences(chunk: Chunk, similarities: Mapping[int, float], query: str) -> dict[int, float]:
    """Return the similarities, raised for words of the query that are rare in the chunk and not in its title."""
    lowered = lower(chunk.text)
    texts = [lowered[sentence.start : sentence.end] for sentence in chunk.sentences]
    rare_words: Counter[int] = Counter()  # by position
    for word in _long_words(query) - _long_words(bare_title(chunk.title)):
        holding = [position for position, text in enumerate(texts) if word in text and word in words(text)]
        if len(holding) <= _MAX_RARE_SENTENCES:
            rare_words.update(holding)
    rated: dict[int, float] = {}
    for position, similarity in similarities.items():
        if position < len(texts):  # the chunk may have been replaced since it was compared with the query
            bonus = RARE_WORD_BONUS * min(_MAX_RARE_WORDS, rare_words[position])
            rated[position] = similarity + bonus
    return rated


def rank_passages(
    chunks: Sequence[Chunk], similarities: Mapping[str, Mapping[int, float]], query: str
) -> list[tuple[Chunk, int]]:
    """Return the sentences that are near to a query, best first: chunks with positions.

    Args:
        chunks: The chunks.
        similarities: Cosine similarities by chunk id and position.
        query: The query.
    """
    best = max((value for rated in similarities.values() for value in rated.values()), default=0.0)
    ranks: list[tuple[float, int, int]] = []
    for number, chunk in enumerate(chunks):
        rated = rate_sentences(chunk, similarities.get(chunk.id, {}), query)
        for position, similarity in rated.items():
            if similarity >= best - PASSAGE_GAP:
                ranks.append((-similarity, number, position))
    return [(chunks[number], position) for _, number, position in sorted(ranks)]


def find_rarest(text: str, query: str) -> re.Match[str] | None:
    """Return the first place in a text of the query's word that is rarest in it; None if it has none of them."""
    asked = _long_words(query)
    places = [match for match in re.finditer(r"\w+", text) if match[0].lower() in asked]
    counts = Counter(match[0].lower() for match in places)
    # Among equally rare words, the longer one is more specific.
    return min(places, key=lambda match: (counts[match[0].lower()], -len(match[0])), default=None)


def _long_words(text: str) -> set[str]:
    return {word for word in words(text) if len(word) >= _MIN_WORD_CHARACTERS}
