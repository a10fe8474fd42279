"""Which sentences of a chunk match a search."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from arag.retrieval.types import Chunk, Hit
from arag.text.normalise import searchable
from arag.text.scripts import SPACED, is_east_asian

KeywordOffsets = dict[int, dict[str, int]]
"""By position, the keywords that a sentence holds, each with its offset in the sentence as it is shown."""

_EDGE = rf"(?:(?<![{SPACED}])|(?![{SPACED}]))"  # of a word
_SHORT = 3  # letters: so short a keyword begins many other words, as `AC` begins "access"


def find_keywords(
    chunk: Chunk,
    keywords: Sequence[str],
    whole_words: Sequence[str] = (),
    *,
    prefer_words: bool = False,
) -> KeywordOffsets:
    """Find the sentences of a chunk that hold keywords, or words that are not part of longer words.

    A keyword that spans several sentences counts for each of them. With `prefer_words`, places inside longer words
    count only if the chunk has the keyword nowhere else.
    """
    sentences = _join_sentences(chunk)
    patterns: dict[str, str] = {}
    for word in whole_words:
        pattern = re.escape(searchable(word))
        patterns[word] = pattern if is_east_asian(word) else rf"\b{pattern}\b"  # no spaces bound their words
    for keyword in keywords:
        if prefer_words:
            patterns[keyword] = _prefer_words(keyword, sentences.text)
        else:
            patterns[keyword] = re.escape(searchable(keyword))

    offsets: KeywordOffsets = {}
    for keyword, pattern in patterns.items():
        for match in re.finditer(pattern, sentences.text):
            first = sentences.position_at(match.start())
            last = sentences.position_at(match.end() - 1)
            for position in range(first, last + 1):
                offset = max(0, match.start() - sentences.starts[position])
                offsets.setdefault(position, {}).setdefault(keyword, offset)
    return offsets


def _word_start_pattern(keyword: str) -> str:
    """Return a pattern for a keyword that is or begins a word: `drop` in "dropped", but not `view` in "Overview"."""
    return _EDGE + re.escape(searchable(keyword))


def begins_word(keyword: str, text: str) -> bool:
    """Return whether a keyword is or begins a word of a searchable text."""
    return searchable(keyword) in text and re.search(_word_start_pattern(keyword), text) is not None


def _prefer_words(keyword: str, text: str) -> str:
    """Return the pattern for the best places of a keyword in a text: words, their beginnings, or else all."""
    begins = _word_start_pattern(keyword)
    patterns = [begins]
    if len(keyword) <= _SHORT:
        patterns.insert(0, f"{begins}s?{_EDGE}")
    everywhere = re.escape(searchable(keyword))
    return next((pattern for pattern in patterns if re.search(pattern, text)), everywhere)


def prefer_whole_words(chunk: Chunk, found: KeywordOffsets) -> dict[int, set[str]]:
    """Return, by position, the keywords that a sentence has as words; of keywords that none has so, those it holds."""
    keywords: set[str] = set()
    for in_sentence in found.values():
        keywords.update(in_sentence)
    words = find_keywords(chunk, (), whole_words=list(keywords))
    for position in found:
        keywords.difference_update(words.get(position, ()))
    preferred: dict[int, set[str]] = {}
    for position, in_sentence in found.items():
        preferred[position] = in_sentence.keys() & keywords.union(words.get(position, ()))
    return preferred


def matched_sentences(hit: Hit) -> list[int]:
    """Return the positions of the sentences that a search found a chunk for (paper, Equations 2 and 3)."""
    if hit.similarities:
        return sorted(hit.similarities)
    return sorted(find_keywords(hit.chunk, list(hit.keyword_counts)))


@dataclass(frozen=True, slots=True)
class _JoinedSentences:
    """A chunk's sentences in the form in which keywords are matched."""

    text: str
    starts: list[int]  # the offset of each sentence, and the length of the text

    def position_at(self, offset: int) -> int:
        """Return the position of the sentence at an offset."""
        return bisect_right(self.starts, offset) - 1


def _join_sentences(chunk: Chunk) -> _JoinedSentences:
    """Join a chunk's sentences; white space behind a sentence becomes one space."""
    boundaries = [sentence.start for sentence in chunk.sentences]
    boundaries.append(len(chunk.text))
    texts: list[str] = []
    starts = [0]
    for start, end in pairwise(boundaries):
        sentence = chunk.text[start:end]
        text = searchable(sentence)
        if sentence[-1:].isspace():
            text += " "
        texts.append(text)
        starts.append(starts[-1] + len(text))
    return _JoinedSentences("".join(texts), starts)
