"""Which sentences of chunks are nearest to a query."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from arag.retrieval.types import Chunk
from arag.text.normalise import bare_title, lower, words

PASSAGE_GAP = 0.3  # similarity: how far below the nearest sentence a passage of a read may be
RARE_WORD_BOOST = 0.15  # similarity, for each of up to two rare words of the query

_MAX_RARE_SENTENCES = 3  # a word in more sentences of a chunk is not rare in it
_MAX_RARE_WORDS = 2  # that count in a sentence: with more, words would outweigh the similarity
_MIN_WORD_CHARACTERS = 3  # shorter words carry little meaning


@dataclass(frozen=True, slots=True)
class Passage:
    """A sentence that is near to a query."""

    chunk: Chunk
    position: int
    similarity: float
    """Similarity to the query, boosted for rare words."""


def boost_rare_words(chunk: Chunk, similarities: Mapping[int, float], query: str) -> dict[int, float]:
    """Return similarities boosted for words of the query that are rare in the chunk and not in its title.

    Args:
        chunk: The chunk.
        similarities: Similarities by position.
        query: The query.
    """
    rare_words = _count_rare_words(chunk, query)
    boosted: dict[int, float] = {}
    for position, similarity in similarities.items():
        if position < len(chunk.sentences):  # the chunk may have been replaced since it was compared with the query
            boost = RARE_WORD_BOOST * min(_MAX_RARE_WORDS, rare_words[position])
            boosted[position] = similarity + boost
    return boosted


def rank_passages(
    chunks: Sequence[Chunk],
    similarities: Mapping[str, Mapping[int, float]],
    query: str,
) -> list[Passage]:
    """Return the sentences that are near to a query, best first; ties in the order of the text.

    Args:
        chunks: The chunks.
        similarities: Similarities by chunk id and position.
        query: The query.
    """
    unboosted: list[float] = []
    for by_position in similarities.values():
        unboosted.extend(by_position.values())
    least = max(unboosted, default=0.0) - PASSAGE_GAP

    passages: list[Passage] = []
    for chunk in chunks:
        boosted = boost_rare_words(chunk, similarities.get(chunk.id, {}), query)
        for position in sorted(boosted):
            if boosted[position] >= least:
                passages.append(Passage(chunk, position, boosted[position]))
    passages.sort(key=lambda passage: passage.similarity, reverse=True)
    return passages


def find_rarest_word(text: str, query: str) -> re.Match[str] | None:
    """Return where a text first has the query's word that is rarest in it; None if it has none of them."""
    asked = _long_words(query)
    found = [match for match in re.finditer(r"\w+", text) if match[0].lower() in asked]
    counts = Counter(match[0].lower() for match in found)
    # Among equally rare words, the longer one is more specific.
    return min(found, key=lambda match: (counts[match[0].lower()], -len(match[0])), default=None)


def _count_rare_words(chunk: Chunk, query: str) -> Counter[int]:
    """Return, by position, how many words of a query are in a sentence and rare in the chunk."""
    lowered = lower(chunk.text)
    texts = [lowered[sentence.start : sentence.end] for sentence in chunk.sentences]
    rare_words: Counter[int] = Counter()
    for word in _long_words(query) - _long_words(bare_title(chunk.title)):
        positions = _find_word(word, texts)
        if len(positions) <= _MAX_RARE_SENTENCES:
            rare_words.update(positions)
    return rare_words


def _find_word(word: str, texts: Sequence[str]) -> list[int]:
    """Return the positions of the texts that have a word."""
    positions: list[int] = []
    for position, text in enumerate(texts):
        # Most texts do not hold the word at all, which is known without splitting them into words.
        if word in text and word in words(text):
            positions.append(position)
    return positions


def _long_words(text: str) -> set[str]:
    return {word for word in words(text) if len(word) >= _MIN_WORD_CHARACTERS}
