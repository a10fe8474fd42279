"""The closest terms that a corpus does hold, for keywords that it holds rarely or not at all."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator

from rapidfuzz import fuzz, process

from arag.retrieval.local.chunk_store import ChunkStore
from arag.retrieval.local.keywords import KeywordMatcher, fold
from arag.retrieval.local.vocabulary import Vocabulary
from arag.retrieval.types import Term

_TERMS = 3
_LONGEST_KEYWORD = 100  # characters
_MOST_WORDS = 8
_SPELLINGS_LOOKED_AT = 200  # chunks
_SIMILAR = 75.0  # rapidfuzz ratio, 0 to 100
_SHORTEST_SPLIT = 2  # letters
_TELLING_SHARE = 0.1  # of all chunks: a part of a keyword that is in more of them tells nothing
_FUNCTION_WORDS = frozenset("a an and at by de for from in la of on or the to with".split())
_DASH = re.compile(r"\s*[-\u2010-\u2015\u2212]\s*")
_WORD = re.compile(r"[^\W_]+")


def closest_terms(
    keyword: str, chunks: int, store: ChunkStore, matcher: KeywordMatcher, vocabulary: Callable[[], Vocabulary]
) -> tuple[Term, ...]:
    """Find terms of the corpus that a keyword may mean and that its exact match does not count.

    First come other spellings of the whole keyword: other spaces, hyphens and diacritics, parts written as one
    word or apart, longer endings. Where the corpus holds neither the keyword nor one of these, similar words
    follow, then the longest parts of the keyword that do occur, then its words, the rarest first.

    Args:
        keyword: The keyword, white space folded.
        chunks: How many chunks hold it.
        store: The chunks.
        matcher: Counts chunks, the way keywords are counted.
        vocabulary: Gives the words of the corpus, when they are needed.

    Returns:
        At most three terms.
    """
    words = _folded_words(keyword)
    if not words:
        return ()
    # Nobody misspells a whole sentence: of a long keyword only its words are looked up.
    is_term = len(words) <= _MOST_WORDS and len(keyword) <= _LONGEST_KEYWORD
    words = words[:_MOST_WORDS]
    found = _terms(_spellings(words, store), keyword, store, matcher) if is_term else []
    # The keyword without a bracket or a quotation mark is worth naming only where more chunks hold it.
    found = [term for term in found if term.text.lower() not in keyword.lower() or term.chunks > chunks]
    if not found and chunks == 0:
        found = _terms(_similar(words, store, vocabulary), keyword, store, matcher) if is_term else []
        for length in range(len(words) - 1 if is_term else 1, 0, -1):
            if found:
                break
            runs = (words[i : i + length] for i in range(len(words) - length + 1))
            parts = (_phrase(*run) for run in runs if _FUNCTION_WORDS.isdisjoint((run[0], run[-1])))
            telling = int(_TELLING_SHARE * len(matcher)) + 1
            found = [t for t in _terms(parts, keyword, store, matcher) if t.chunks <= telling and len(t.text) > 1]
            found.sort(key=lambda term: (term.chunks, term.text))
    return tuple(found[:_TERMS])


def _terms(expressions: Iterable[str], keyword: str, store: ChunkStore, matcher: KeywordMatcher) -> list[Term]:
    """Return what phrases match, as spelled in the corpus, unless the keyword's own matches hold it."""
    found: dict[str, Term] = {}
    for expression in expressions:
        for spelled in map(fold, store.phrase_matches(expression, _SPELLINGS_LOOKED_AT)):
            key = spelled.lower()
            if key not in found and keyword.lower() not in key:
                found[key] = Term(spelled, matcher.chunks_holding(spelled), _same_letters(spelled, keyword))
    return sorted(found.values(), key=lambda term: (not term.respelled, -term.chunks, term.text))


def _same_letters(one: str, other: str) -> bool:
    """Tell whether two spellings differ in case, diacritics, kinds of dash and spaces around dashes only."""
    return _bare(one) == _bare(other)


def _bare(text: str) -> str:
    return " ".join(_DASH.sub("-", _without_diacritics(text.lower())).split())


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


def _similar(words: list[str], store: ChunkStore, vocabulary: Callable[[], Vocabulary]) -> Iterator[str]:
    """Yield FTS5 phrases in which words that the corpus does not hold give way to similar ones."""
    for i, word in enumerate(words):
        if store.holds_word(word) or len(word) <= _SHORTEST_SPLIT:
            continue
        reach = max(1, len(word) // 4)
        candidates = vocabulary().of_length(len(word) - reach, len(word) + reach)
        for similar, _, _ in process.extract(word, candidates, scorer=fuzz.ratio, score_cutoff=_SIMILAR, limit=_TERMS):
            if len(words) > 1:
                yield _phrase(*words[:i], similar, *words[i + 1 :])
            yield _phrase(similar)


def _phrase(*words: str) -> str:
    return '"' + " ".join(words) + '"'


def _folded_words(text: str) -> list[str]:
    """Return a text's words as SQLite's unicode61 tokenizer has them: lower case, no diacritics."""
    return _WORD.findall(_without_diacritics(text.lower()))


def _without_diacritics(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(character for character in decomposed if not unicodedata.combining(character))
