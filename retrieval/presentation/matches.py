"""Which sentences of a chunk match a search."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from arag.retrieval.types import Chunk, Hit
from arag.text.normalise import searchable
from arag.text.scripts import is_east_asian

KeywordOffsets = dict[int, dict[str, int]]
"""By position, the keywords that a sentence holds, each with its offset in the sentence as it is shown."""


def find_keywords(chunk: Chunk, keywords: Sequence[str], whole_words: Sequence[str] = ()) -> KeywordOffsets:
    """Find the sentences of a chunk that hold keywords, or words that are not part of longer words.

    A keyword that spans several sentences counts for each of them.
    """
    patterns: dict[str, str] = {}
    for word in whole_words:
        pattern = re.escape(searchable(word))
        patterns[word] = pattern if is_east_asian(word) else rf"\b{pattern}\b"  # no spaces bound their words
    for keyword in keywords:
        patterns[keyword] = re.escape(searchable(keyword))

    sentences = _join_sentences(chunk)
    offsets: KeywordOffsets = {}
    for keyword, pattern in patterns.items():
        for match in re.finditer(pattern, sentences.text):
            first = sentences.position_at(match.start())
            last = sentences.position_at(match.end() - 1)
            for position in range(first, last + 1):
                offset = max(0, match.start() - sentences.starts[position])
                offsets.setdefault(position, {}).setdefault(keyword, offset)
    return offsets


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
