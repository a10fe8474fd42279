"""BM25 as Lucene computes it."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from arag.retrieval.text import EAST_ASIAN

_K1, _B = 1.2, 0.75  # Lucene's defaults
_WORD = re.compile(rf"[^\W{EAST_ASIAN}]+|(?<![{EAST_ASIAN}])[{EAST_ASIAN}](?![{EAST_ASIAN}])")
_PAIR = re.compile(rf"(?=([{EAST_ASIAN}]{{2}}))")  # all pairs: they overlap


class BM25:
    """The words of texts, to rank the texts by those of a query.

    A word's weight in a text is `idf * f / (f + k1 * (1 - b + b * length / mean length))`, with
    `idf = ln(1 + (N - n + 0.5) / (n + 0.5))` for a word in n of N texts; a text's score is the sum over the words of
    the query. Words are lower-cased, and there are no stop words. Chinese, Japanese and Korean text is cut into
    pairs of neighbouring characters, as Lucene's analyzer for these languages cuts it.

    Args:
        texts: The texts.

    Example:
        >>> from arag.evaluation.methods.baselines.bm25 import BM25
        >>> ranked = BM25(["the tower and the lamp", "the tower", "a ship"])
        >>> [float(score) for score in ranked.scores("lamp tower").round(3)]
        [0.518, 0.247, 0.0]
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._numbers: dict[str, int] = {}  # of the words
        found, frequencies, distinct = array("q"), array("q"), []
        for text in texts:
            counted = Counter(_words(text))
            found.extend(self._numbers.setdefault(word, len(self._numbers)) for word in counted)
            frequencies.extend(counted.values())
            distinct.append(len(counted))
        self._count = len(texts)
        order = np.argsort(found, kind="stable")  # by word, then by text
        self._texts = np.repeat(np.arange(self._count), distinct)[order]
        counts = np.asarray(frequencies)[order]
        lengths = np.bincount(self._texts, counts, minlength=self._count)
        holding = np.bincount(found, minlength=len(self._numbers))  # texts, by word
        self._starts = np.concatenate([[0], np.cumsum(holding)])
        idf = np.log1p((self._count - holding + 0.5) / (holding + 0.5))
        norms = _K1 * (1 - _B + _B * lengths / lengths.mean()) if lengths.any() else lengths
        self._weights = np.repeat(idf, holding) * counts / (counts + norms[self._texts])

    def scores(self, query: str) -> NDArray[np.float64]:
        """Return the score of every text, shape (texts,); 0 where no word of the query occurs."""
        scores = np.zeros(self._count)
        for word in _words(query):
            number = self._numbers.get(word)
            if number is not None:
                rows = slice(self._starts[number], self._starts[number + 1])
                scores[self._texts[rows]] += self._weights[rows]
        return scores


def _words(text: str) -> list[str]:
    lowered = text.lower()
    return _WORD.findall(lowered) + _PAIR.findall(lowered)
