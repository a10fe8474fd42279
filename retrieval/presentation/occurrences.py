"""Where a chunk holds keywords."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise

from arag.retrieval.types import Chunk, Hit
from arag.text.normalise import searchable

Occurrences = dict[int, dict[str, int]]
"""By position, the keywords that a sentence holds, each with its offset in the sentence as it is shown."""


def find_keywords(chunk: Chunk, keywords: Sequence[str], whole_words: Sequence[str] = ()) -> Occurrences:
    """Find the sentences of a chunk that hold keywords, or words that are not part of longer words.

    A keyword that spans several sentences counts for each of them.
    """
    texts = _sentences_with_gaps(chunk)
    starts = [0, *accumulate(len(text) for text in texts)]
    joined = "".join(texts)
    patterns = {word: rf"\b{re.escape(searchable(word))}\b" for word in whole_words}
    for keyword in keywords:
        patterns[keyword] = re.escape(searchable(keyword))
    found: Occurrences = {}
    for keyword, pattern in patterns.items():
        for match in re.finditer(pattern, joined):
            first = bisect_right(starts, match.start()) - 1
            last = bisect_right(starts, match.end() - 1) - 1
            for position in range(first, last + 1):
                offset = max(0, match.start() - starts[position])
                found.setdefault(position, {}).setdefault(keyword, offset)
    return found


def matched_sentences(hit: Hit) -> list[int]:
    """Return the positions of the sentences that a search found a chunk for (paper, Equations 2 and 3)."""
    if hit.similarities:
        return sorted(hit.similarities)
    return sorted(find_keywords(hit.chunk, list(hit.keyword_counts)))


def _sentences_with_gaps(chunk: Chunk) -> list[str]:
    """Return the sentences as keywords are matched in them, each with the white space behind it as one space."""
    texts: list[str] = []
    starts = [sentence.start for sentence in chunk.sentences]
    for start, end in pairwise([*starts, len(chunk.text)]):
        piece = chunk.text[start:end]
        gap = " " if piece[-1:].isspace() else ""
        texts.append(searchable(piece) + gap)
    return texts
