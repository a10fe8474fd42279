"""How much of a question sentences say: its words, weighed by how rare they are in what was found."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from math import log

from arag.models.answering import find_versions, telling_words
from arag.models.notes import Sentence
from arag.text.languages import COMMON_WORDS, SHARED_WORDS, has_english

_ENDING = 3  # letters at the end of a word in another language than English, which may differ
_START = 5  # letters that may not
_SHORT = 2  # letters of a part of a word that says nothing: `l'angle`
_COMMON = 0.5  # the weight of a word that all sentences have


class Coverage:
    """The content words of a question, and which of them sentences have."""

    def __init__(self, words: Collection[str], sentences: Collection[Sentence], *, is_english: bool) -> None:
        self._is_english = is_english
        self._starts = {word: self._list_starts(word) for word in words}
        self._found: dict[Sentence, frozenset[str]] = {}
        counts = Counter[str]()
        for sentence in sentences:
            counts.update(self._find(telling_words(sentence.text)))
        rarity = {word: _COMMON + log((1 + len(sentences)) / (1 + counts[word])) for word in words}
        total = sum(rarity.values())
        self._weights = {word: weight / total for word, weight in rarity.items()}
        self.words = frozenset(words)

    def weigh(self, words: Iterable[str]) -> float:
        """Return the weight of some words of the question; all together weigh 1."""
        return sum(self._weights[word] for word in words)

    def find(self, sentence: Sentence) -> frozenset[str]:
        """Return the question's words that a sentence, its title or the questions above it have."""
        if sentence not in self._found:
            found = self._find(sentence.words)
            if found <= SHARED_WORDS and not has_english(sentence.text):
                found = frozenset()  # "die" alone may be an article
            self._found[sentence] = found
        return self._found[sentence]

    def _find(self, words: Iterable[str]) -> frozenset[str]:
        said = f" {' '.join(self._split(words))} "
        return frozenset(word for word, starts in self._starts.items() if all(start in said for start in starts))

    def _list_starts(self, word: str) -> list[str]:
        """Return how the parts of a word begin, after a space; all of a version, and of a stemmed English word."""
        if self._is_english or find_versions(word) == [word]:
            return [f" {word} "]
        return [f" {part[: max(_START, len(part) - _ENDING)]}" for part in self._split([word])]

    def _split(self, words: Iterable[str]) -> list[str]:
        if self._is_english:
            return list(words)
        parts: list[str] = []
        for word in words:
            split = re.split(r"['’-]", word)
            telling = [part for part in split if len(part) > _SHORT and part not in COMMON_WORDS]
            parts += telling or split
        return parts
