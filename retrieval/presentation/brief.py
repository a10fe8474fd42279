"""Hits in brief: a part of the best sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from arag.retrieval.presentation.excerpts import Excerpt, ShownSentence
from arag.retrieval.presentation.sentences import cut_around
from arag.retrieval.presentation.similarity import find_rarest_word
from arag.retrieval.types import Hit
from arag.text.normalise import is_title, words

BRIEF_CHARACTERS = 100  # that are shown of a sentence in brief: enough to judge whether to read on...
UNCUT_CHARACTERS = 160  # ...but a sentence of up to this length is shown whole

_MIN_BRIEF_CHARACTERS = BRIEF_CHARACTERS // 3  # a shorter sentence says little: a longer one is preferred
_MIN_WORD_CHARACTERS = 3  # a shorter word is found everywhere


def shorten(hit: Hit, excerpt: Excerpt, query: str) -> Excerpt:
    """Return a part of the best sentence only, around a keyword or the query's rarest word.

    Args:
        hit: The hit.
        excerpt: Its excerpt.
        query: The query of a search by meaning, or an empty string.
    """
    offsets: dict[int, list[int]] = {}
    for sentence in excerpt.sentences:
        offsets[sentence.position] = _find_offsets(sentence.text, hit, query)
    best = _choose_sentence(excerpt, offsets)
    text = best.text
    if len(text) > UNCUT_CHARACTERS:
        first = min(offsets[best.position], default=0)
        text = cut_around(text, first, BRIEF_CHARACTERS)
    short = replace(best, text=text, cut=best.cut or text != best.text, lines="")
    return replace(excerpt, sentences=(short,), begins=False, ends=False, whole=False)


def _choose_sentence(excerpt: Excerpt, offsets: Mapping[int, Sequence[int]]) -> ShownSentence:
    """Choose the matched sentence that is nearest to the query or has most keywords; below a heading, the next one."""
    candidates: list[ShownSentence] = []
    for sentence in excerpt.sentences:
        if sentence.matched and not is_title(sentence.text, excerpt.title):
            candidates.append(sentence)
    if not candidates:
        candidates = list(excerpt.sentences)
    candidates.sort(key=lambda sentence: (-(sentence.similarity or 0), -len(offsets[sentence.position])))
    best = _first_long(candidates)
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


def _find_offsets(text: str, hit: Hit, query: str) -> list[int]:
    """Return where a text first has each keyword, each word of a scattered keyword, and the query's rarest word."""
    patterns = [re.escape(keyword) for keyword in hit.keyword_counts]
    for keyword in hit.scattered:
        for word in words(keyword):
            if len(word) >= _MIN_WORD_CHARACTERS:
                patterns.append(rf"\b{re.escape(word)}\b")
    offsets: list[int] = []
    for pattern in patterns:
        match = re.search(pattern, text, re.IGNORECASE)
        if match is not None:
            offsets.append(match.start())
    rarest = find_rarest_word(text, query)
    if rarest is not None:
        offsets.append(rarest.start())
    return offsets
