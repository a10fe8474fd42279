"""The closest terms that a corpus does hold, for keywords that it holds rarely or not at all."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from rapidfuzz import fuzz, process

from arag.retrieval.chunk_store import ChunkStore
from arag.retrieval.keywords import KeywordMatcher
from arag.retrieval.types import Term

_TERMS = 3
_LONGEST_KEYWORD = 100  # characters; nobody misspells a longer one
_MOST_WORDS = 8
_SPELLINGS_LOOKED_AT = 200  # chunks
_SIMILAR = 75.0  # rapidfuzz ratio, 0 to 100
_SHORTEST_SPLIT = 2  # letters
_WORD = re.compile(r"[^\W_]+")


def closest_terms(keyword: str, store: ChunkStore, matcher: KeywordMatcher) -> tuple[Term, ...]:
    """Find terms of the corpus that a keyword may mean and that its exact match does not count.

    First come other spellings of the whole keyword: other spaces, hyphens and diacritics, parts written as one
    word or apart, longer endings. Where the corpus holds none, similar words follow, and at last the keyword's
    own words that do occur, the rarest first.

    Args:
        keyword: The keyword.
        store: The chunks.
        matcher: Counts chunks, the way keywords are counted.

    Returns:
        At most three terms.
    """
    words = _folded_words(keyword)
    if not words or len(words) > _MOST_WORDS or len(keyword) > _LONGEST_KEYWORD:
        return ()
    found: dict[str, Term] = {}
    for expression in _spellings(words, store):
        _collect(expression, keyword, store, matcher, found)
    if not found and matcher.chunks_holding(keyword) == 0:
        for expression in _similar(words, store):
            _collect(expression, keyword, store, matcher, found)
            if len(found) >= _TERMS:
                break
        if not found and len(words) > 1:
            for word in words:
                _collect(_phrase(word), keyword, store, matcher, found)
            return tuple(sorted(found.values(), key=lambda term: (term.chunks, term.text)))[:_TERMS]
    return tuple(sorted(found.values(), key=lambda term: (-term.chunks, term.text)))[:_TERMS]


def _collect(expression: str, keyword: str, store: ChunkStore, matcher: KeywordMatcher, found: dict[str, Term]) -> None:
    """Add what a phrase matches, as spelled in the corpus, unless the keyword's own matches hold it."""
    for spelled in store.phrase_matches(expression, _SPELLINGS_LOOKED_AT):
        key = spelled.lower()
        if key not in found and keyword.lower() not in key:
            found[key] = Term(" ".join(spelled.split()), matcher.chunks_holding(spelled))


def _spellings(words: list[str], store: ChunkStore) -> Iterator[str]:
    """Yield FTS5 phrases for other spellings of the same words."""
    yield _phrase(*words)
    yield f"{_phrase(*words)} *"
    for i in range(len(words) - 1):
        yield _phrase(*words[:i], words[i] + words[i + 1], *words[i + 2 :])
    if len(words) == 1:
        word = words[0]
        for cut in range(_SHORTEST_SPLIT, len(word) - _SHORTEST_SPLIT + 1):
            if store.holds_word(word[:cut]) and store.holds_word(word[cut:]):
                yield _phrase(word[:cut], word[cut:])


def _similar(words: list[str], store: ChunkStore) -> Iterator[str]:
    """Yield FTS5 phrases in which words that the corpus does not hold give way to similar ones."""
    for i, word in enumerate(words):
        if store.holds_word(word) or len(word) <= _SHORTEST_SPLIT:
            continue
        reach = max(1, len(word) // 4)
        candidates = store.words(len(word) - reach, len(word) + reach)
        for similar, _, _ in process.extract(word, candidates, scorer=fuzz.ratio, score_cutoff=_SIMILAR, limit=_TERMS):
            if len(words) > 1:
                yield _phrase(*words[:i], similar, *words[i + 1 :])
            yield _phrase(similar)


def _phrase(*words: str) -> str:
    return '"' + " ".join(words) + '"'


def _folded_words(text: str) -> list[str]:
    """Return a text's words as SQLite's unicode61 tokenizer has them: lower case, no diacritics."""
    decomposed = unicodedata.normalize("NFKD", text.lower())
    plain = "".join(character for character in decomposed if not unicodedata.combining(character))
    return _WORD.findall(plain)
