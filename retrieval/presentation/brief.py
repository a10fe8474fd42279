"""Hits in brief: a part of the best sentence."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from arag.retrieval.presentation.excerpts import Excerpt, ShownSentence
from arag.retrieval.presentation.sentences import cut_around
from arag.retrieval.presentation.similarity import find_rarest_word
from arag.retrieval.types import Hit
from arag.text.normalise import is_title, words

BRIEF_CHARACTERS = 100  # that are shown of a sentence in brief: enough to judge whether to read on...
UNCUT_CHARACTERS = 160  # ...but a sentence of up to this length is shown whole

_MIN_BRIEF_CHARACTERS = BRIEF_CHARACTERS // 3  # a shorter sentence says little: a longer one is preferred
_MIN_WORD_CHARACTERS = 3  # a shorter word is found everywhere


def shorten(hit: Hit, excerpt: Excerpt, query: str, common: Collection[str]) -> Excerpt:
    """Return a part of the best sentence only, around a keyword or the query's rarest word.

    Args:
        hit: The hit.
        excerpt: Its excerpt.
        query: The query of a search by meaning, or an empty string.
        common: The keywords that many chunks hold: others say more of why this one was found.
    """
    telling = [re.escape(keyword) for keyword in hit.keyword_counts if keyword not in common]
    patterns = _make_patterns(hit)
    matches: dict[int, _Matches] = {}
    for sentence in excerpt.sentences:
        found = _Matches(_find_offsets(sentence.text, telling), _find_offsets(sentence.text, patterns))
        rarest = find_rarest_word(sentence.text, query)
        if rarest is not None:
            found.all.append(rarest.start())
        matches[sentence.position] = found
    best = _choose_sentence(excerpt, matches)
    text = best.text
    if len(text) > UNCUT_CHARACTERS:
        found = matches[best.position]
        text = cut_around(text, min(found.telling or found.all, default=0), BRIEF_CHARACTERS)
    short = replace(best, text=text, cut=best.cut or text != best.text, lines="")
    return replace(excerpt, sentences=(short,), begins=False, ends=False, whole=False)


@dataclass(frozen=True, slots=True)
class _Matches:
    """Where a sentence first has each keyword, or the query's rarest word."""

    telling: list[int]  # of keywords that are not common
    all: list[int]


def _make_patterns(hit: Hit) -> list[str]:
    """Return the patterns of a hit's keywords, and of each word of its scattered keywords."""
    patterns = [re.escape(keyword) for keyword in hit.keyword_counts]
    for keyword in hit.scattered:
        for word in words(keyword):
            if len(word) >= _MIN_WORD_CHARACTERS:
                patterns.append(rf"\b{re.escape(word)}\b")
    return patterns


def _find_offsets(text: str, patterns: Iterable[str]) -> list[int]:
    """Return where a text first has each pattern that it has."""
    matches = [re.search(pattern, text, re.IGNORECASE) for pattern in patterns]
    return [match.start() for match in matches if match is not None]


def _choose_sentence(excerpt: Excerpt, matches: Mapping[int, _Matches]) -> ShownSentence:
    """Choose the matched sentence that is nearest to the query or has most keywords; below a heading, the next one.

    A sentence with a keyword that is not common comes first.
    """
    candidates: list[ShownSentence] = []
    for sentence in excerpt.sentences:
        if sentence.matched and not is_title(sentence.text, excerpt.title):
            candidates.append(sentence)
    if not candidates:
        candidates = list(excerpt.sentences)

    def rank(sentence: ShownSentence) -> tuple[float, bool, int]:
        found = matches[sentence.position]
        return -(sentence.similarity or 0), not found.telling, -len(found.all)

    best = _first_long(sorted(candidates, key=rank))
    heading = best.text.strip("# ")
    for sentence in excerpt.sentences:
        if sentence.under[-1:] == (heading,):
            return sentence
    return best


def _first_long(sentences: Sequence[ShownSentence]) -> ShownSentence:
    """Return the first sentence that is not too short to say something; the very first one if all are."""
    for sentence in sentences:
        if len(sentence.text) > _MIN_BRIEF_CHARACTERS:
            return sentence
    return sentences[0]
