"""The closest terms in a corpus, for keywords that it holds rarely or not at all."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from rapidfuzz import fuzz, process

from arag.retrieval.backend import Chunks, Keywords, Phrase, Words
from arag.retrieval.suggestions_by_characters import find_by_characters, find_other_widths
from arag.retrieval.text import fold, is_east_asian
from arag.retrieval.types import Term
from arag.retrieval.words import FUNCTION_WORDS, MAX_CHARACTERS, find_words

_MAX_TERMS = 3
_MAX_WORDS = 8
_CHUNKS_LOOKED_AT = 200  # for a phrase's spellings
_SIMILAR = 75.0  # rapidfuzz ratio, 0 to 100
_MIN_SPLIT = 2  # letters
_MAX_SHARE = 0.01  # of all chunks: a part of a keyword in more of them is too common to help
_MIN_TELLING = 3  # chunks: in a small corpus, so many are not too common
# What a keyword may lack: spaces, dashes, commas, brackets and quotation marks.
_GAPS = re.compile(r"[\s\u2010-\u2015\u2212,;:()\[\]\"“”-]+")


def find_closest_terms(keyword: str, chunks: int, keywords: Keywords, corpus: Words, texts: Chunks) -> tuple[Term, ...]:
    """Find terms of the corpus that a keyword may mean and that its exact match does not count.

    First come other spellings of the whole keyword: other spaces, hyphens and diacritics, parts written as one
    word or apart, longer endings. If the corpus holds neither the keyword nor one of these, similar words
    follow, then the longest parts of the keyword that do occur, then its words, the rarest first. For Chinese,
    Japanese and Korean keywords, these are found by their characters.

    Args:
        keyword: The keyword, white space folded.
        chunks: How many chunks hold it.
        keywords: Counts the chunks that hold a term.
        corpus: The words of the corpus.
        texts: Its chunks.

    Returns:
        At most three terms.
    """
    words = find_words(keyword)
    if not words:
        return ()
    # Nobody misspells a whole sentence: for a long keyword, only its words are looked up.
    is_term = len(words) <= _MAX_WORDS and len(keyword) <= MAX_CHARACTERS
    words = words[:_MAX_WORDS]
    found = _find_terms(_spell_otherwise(words, corpus), keyword, keywords, corpus) if is_term else []
    # The keyword without a bracket or a quotation mark is worth naming only if more chunks hold it.
    found = [term for term in found if term.text.lower() not in keyword.lower() or term.chunks > chunks]
    east_asian = is_east_asian(keyword)
    if not found and (east_asian or chunks == 0):
        found = [term for term in find_other_widths(keyword, keywords) if term.chunks > chunks]
    if not found and chunks == 0:
        telling = max(_MIN_TELLING, int(_MAX_SHARE * len(keywords)))
        if east_asian:
            found = find_by_characters(keyword, telling, keywords, texts)
        else:
            found = _find_by_words(words, keyword, telling, keywords, corpus, is_term=is_term)
    return tuple(found[:_MAX_TERMS])


def _find_by_words(
    words: list[str], keyword: str, most: int, keywords: Keywords, corpus: Words, *, is_term: bool
) -> list[Term]:
    """Find terms with similar words; or else the longest parts of a keyword that at most so many chunks hold."""
    found = _find_terms(_replace_unknown(words, corpus), keyword, keywords, corpus) if is_term else []
    for length in range(len(words) - 1 if is_term else 1, 0, -1):
        if found:
            break
        runs = (words[i : i + length] for i in range(len(words) - length + 1))
        parts = (Phrase(tuple(run)) for run in runs if FUNCTION_WORDS.isdisjoint((run[0], run[-1])))
        found = [t for t in _find_terms(parts, keyword, keywords, corpus) if t.chunks <= most and len(t.text) > 1]
        found.sort(key=lambda term: (term.chunks, term.text))
    return found


def _find_terms(phrases: Iterable[Phrase], keyword: str, keywords: Keywords, corpus: Words) -> list[Term]:
    """Return what phrases match, as spelled in the corpus, unless the keyword's own matches hold it."""
    found: dict[str, str] = {}
    for spelled in chain.from_iterable(corpus.spellings(list(phrases), _CHUNKS_LOOKED_AT)):
        folded = fold(spelled)
        if keyword.lower() not in folded.lower():
            found.setdefault(folded.lower(), folded)
    counts = keywords.chunks_holding(list(found.values()))
    terms = [Term(s, c, _has_same_letters(s, keyword)) for s, c in zip(found.values(), counts, strict=True)]
    return sorted(terms, key=lambda term: (not term.respelled, -term.chunks, term.text))


def _has_same_letters(one: str, other: str) -> bool:
    """Return whether two spellings differ only in case, diacritics and gaps."""
    return _drop_gaps(one) == _drop_gaps(other)


def _drop_gaps(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.lower())
    # Japanese voiced sounds are other letters, although they are written with a mark.
    kept = (c for c in decomposed if not unicodedata.combining(c) or c in "\u3099\u309a")
    return _GAPS.sub("", "".join(kept))


def _spell_otherwise(words: list[str], corpus: Words) -> Iterator[Phrase]:
    """Yield other spellings of the same words."""
    yield Phrase(tuple(words))
    yield Phrase(tuple(words), is_prefix=True)
    for i in range(len(words) - 1):
        yield Phrase((*words[:i], words[i] + words[i + 1], *words[i + 2 :]))
    if len(words) == 1:
        word = words[0]
        parts = [(word[:cut], word[cut:]) for cut in range(_MIN_SPLIT, len(word) - _MIN_SPLIT + 1)]
        listed = corpus.listed({part for pair in parts for part in pair})
        yield from (Phrase(pair) for pair in parts if listed.issuperset(pair))


def _replace_unknown(words: list[str], corpus: Words) -> Iterator[Phrase]:
    """Yield phrases in which words that the corpus does not hold are replaced by similar ones."""
    for i, word in enumerate(words):
        if corpus.holds(word) or len(word) <= _MIN_SPLIT:
            continue
        reach = max(1, len(word) // 4)
        candidates = corpus.of_length(len(word) - reach, len(word) + reach)
        found = process.extract(word, candidates, scorer=fuzz.ratio, score_cutoff=_SIMILAR, limit=None)
        for similar in islice((found_word for found_word, _, _ in found if corpus.holds(found_word)), _MAX_TERMS):
            if len(words) > 1:
                yield Phrase((*words[:i], similar, *words[i + 1 :]))
            yield Phrase((similar,))
