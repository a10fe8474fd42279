"""Suggestions for rare keywords: terms of the corpus that a keyword may mean."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, product
from math import log2

from rapidfuzz import fuzz, process

from arag.retrieval.search.spellings import (
    MIN_SPLIT_CHARACTERS,
    Choice,
    choose,
    is_number_in_pieces,
    is_version,
    join,
    respell,
    respell_number,
    respell_signs,
    spell,
    swap_apostrophes,
    without_chance,
)
from arag.retrieval.storage.batches import batches
from arag.retrieval.storage.contract import View
from arag.retrieval.types import Chunk, Term
from arag.text.normalise import collapse_whitespace, plain, searchable, words
from arag.text.scripts import is_east_asian

FUNCTION_WORDS = frozenset("a an and at by de for from in la of on or the to with".split())
MAX_KEYWORD_CHARACTERS = 100  # in a longer keyword, no word is misspelt, and not all words are meant

_MAX_TERMS = 3
_MAX_WORDS = 8  # of a keyword: the number of spellings grows with them
_MAX_RUNS = 50  # of words of a keyword: each is counted in the whole corpus
_CHUNKS_READ = 5  # to find how they spell a term
_MAX_SIMILAR = 8  # words that an unknown one may mean: the nearest by their letters
_MIN_SIMILARITY = 75.0  # rapidfuzz ratio, 0 to 100
_FREQUENCY_BONUS = 4.0  # of similarity, for each time that the chunks of a term double: a typo of it is rarer
_MAX_SHARE = 0.01  # of all chunks: a part of a keyword that more chunks hold is too common to help
_MIN_COMMON_CHUNKS = 3  # the same bound in a small corpus
_MIN_LETTERS = 3  # of a keyword without its signs: C++ is not C
_SIGN = re.compile(r"[^\w\s]")

_Spellings = Sequence[list[str]]  # of each word of a keyword
_Counts = dict[str, int]  # how many chunks hold each text


def find_closest(keyword: str, chunks: int, view: View) -> tuple[Term, ...]:
    """Find terms that a keyword may mean and that its exact match does not count.

    First come other spellings of the same letters: other diacritics, spaces, hyphens, punctuation or width, two words
    as one or one as two. If the corpus holds neither the keyword nor one of these, similar words follow, then the
    longest parts of the keyword that occur, the rarest first.

    Args:
        keyword: The keyword.
        chunks: How many chunks hold it.
        view: The snapshot to search.
    """
    parts = words(keyword)
    if not parts:
        return ()
    if is_version(keyword):
        return ()  # it has no other spelling, and its pieces mean nothing
    is_term = len(parts) <= _MAX_WORDS and len(keyword) <= MAX_KEYWORD_CHARACTERS
    parts = parts[:_MAX_WORDS]
    if is_term:
        respelled = _find_respelled(keyword, parts, chunks, view)
        if respelled:
            return respelled
    if chunks or is_number_in_pieces(keyword):
        return ()
    spelled = spell(parts, view)
    spellings = [spelled[part] for part in parts]
    longest = 1  # only the words of a long keyword are looked up
    if is_term:
        similar = _find_similar(keyword, parts, spellings, view)
        if similar:
            return similar
        longest = len(parts) - 1
    return _find_parts(parts, spellings, longest, view)


def find_other_apostrophe(keyword: str, view: View) -> tuple[Term, ...]:
    """Find a keyword with the other apostrophe: keyboards have ' and books have ’."""
    lowered = searchable(keyword)
    swapped = swap_apostrophes(lowered)
    if swapped == lowered:
        return ()
    counts = _count([swapped], view)
    return _make_terms(list(counts), counts, view, is_respelled=True)


def telling_words(keyword: str) -> list[str]:
    """Return the words of a keyword of several words that carry meaning, in lower case.

    Function words and single letters do not. Chinese, Japanese and Korean keywords have none, and neither have keywords
    with a number or a date in pieces, such as 83.0%: the pieces mean nothing apart from each other.
    """
    if is_east_asian(keyword) or len(keyword) > MAX_KEYWORD_CHARACTERS:
        return []
    telling: list[str] = []
    telling_parts = 0
    for part in keyword.split():
        pieces = words(part)
        has_number = any(map(str.isdecimal, pieces))
        if has_number and len(pieces) > 1:
            return []
        kept = [word for word in pieces if _is_telling(word)]
        if kept:
            telling += kept
            telling_parts += 1
    if telling_parts < 2:
        return []
    return list(dict.fromkeys(telling))


def _is_telling(word: str) -> bool:
    return len(word) > 1 and word not in FUNCTION_WORDS


# --- other spellings of the same letters ---


def _find_respelled(
    keyword: str,
    parts: Sequence[str],
    chunks: int,
    view: View,
) -> tuple[Term, ...]:
    """Find other spellings of a keyword's letters, those in the most chunks first."""
    lowered = searchable(keyword)
    other_width = searchable(unicodedata.normalize("NFKC", keyword))
    spellings: Iterable[str] = chain(respell_signs(lowered), respell_number(lowered, view))
    if not is_number_in_pieces(lowered):
        spellings = chain(respell(parts, view), spellings)
    if len(parts) == 1:
        spellings = without_chance(spellings, view, is_known=chunks > 0)
    if _SIGN.search(lowered):
        spellings = [text for text in spellings if not _is_too_short(text)]
    counts = _count_without(lowered, [other_width, *spellings], view)
    helpful: _Counts = {}
    for text, count in counts.items():
        # The keyword without a bracket or a quotation mark helps only if more chunks hold it.
        if text not in lowered or count > chunks:
            helpful[text] = count
    best = sorted(helpful, key=lambda text: (-helpful[text], text))
    return _make_terms(best, helpful, view, is_respelled=True)


def _is_too_short(text: str) -> bool:
    """Return whether a text has too few letters to be a spelling of a keyword with signs: `c` of C++."""
    letters = "".join(words(text))
    return letters.isalpha() and len(letters) < _MIN_LETTERS and not is_east_asian(letters)


# --- similar words ---


def _find_similar(
    keyword: str,
    parts: Sequence[str],
    spellings: _Spellings,
    view: View,
) -> tuple[Term, ...]:
    """Find texts in which an unknown word is replaced by a similar one: those of the most words first.

    Of texts with as many words, similar and frequent ones come first. A word alone helps only where it is in one of the
    longest texts, or where there are no longer ones.
    """
    texts = _replace_unknown(parts, spellings, view)
    counts = _count_without(searchable(keyword), texts, view)
    longest = max((len(words(text)) for text in counts), default=0)
    whole = [text for text in counts if len(words(text)) == longest]
    helpful = [text for text in counts if any(text in other for other in whole)]
    asked = [searchable(keyword), *parts]

    def rank(text: str) -> tuple[int, float, str]:
        similarity = max(fuzz.ratio(text, each) for each in asked)
        return -len(words(text)), -similarity - _FREQUENCY_BONUS * log2(counts[text]), text

    return _make_terms(sorted(helpful, key=rank), counts, view)


def _replace_unknown(
    parts: Sequence[str],
    spellings: _Spellings,
    view: View,
) -> Iterator[str]:
    """Yield texts in which an unknown word is replaced by a similar one, and the similar words themselves."""
    choices: list[Choice] = []
    for i, part in enumerate(parts):
        form = plain(part)
        if len(form) <= MIN_SPLIT_CHARACTERS or spellings[i]:
            continue
        for similar in _find_similar_words(form, view):
            choices += choose([*spellings[:i], similar, *spellings[i + 1 :]])
            for word in similar:
                choices.append((word,))
    return join(choices, view)


def _find_similar_words(form: str, view: View) -> list[list[str]]:
    """Return the spellings of the words of the corpus that are most similar to a plain word."""
    reach = max(1, len(form) // 4)
    matches = process.extract(
        form,
        view.words_of_length(len(form) - reach, len(form) + reach),
        scorer=fuzz.ratio,
        score_cutoff=_MIN_SIMILARITY,
        limit=None,
    )
    matches.sort(key=lambda match: (-match[1], match[0]))
    similar_forms = [match[0] for match in matches]

    found: list[list[str]] = []
    for some in batches(similar_forms, _MAX_SIMILAR):
        for spellings in spell(some, view).values():
            if spellings:
                found.append(spellings)
        if len(found) >= _MAX_SIMILAR:
            break
    return found[:_MAX_SIMILAR]


# --- parts of a keyword ---


def _find_parts(
    parts: Sequence[str],
    spellings: _Spellings,
    longest: int,
    view: View,
) -> tuple[Term, ...]:
    """Find the longest runs of words that occur, the rarest first, except those that are too common."""
    most = max(_MIN_COMMON_CHUNKS, int(_MAX_SHARE * view.settings.chunks))
    for length in range(longest, 0, -1):
        runs = islice(_list_runs(parts, spellings, length), _MAX_RUNS)
        few: _Counts = {}
        for text, count in _count(runs, view).items():
            is_of_digits = " " in text and text.replace(" ", "").isdecimal()  # pieces of a number, such as 0,5 mm
            if count <= most and len(text) > 1 and not is_of_digits:
                few[text] = count
        if few:
            rarest_first = sorted(few, key=lambda text: (few[text], text))
            return _make_terms(rarest_first, few, view)
    return ()


def _list_runs(
    parts: Sequence[str],
    spellings: _Spellings,
    length: int,
) -> Iterator[str]:
    """Yield the runs of words of a keyword, in all spellings, that neither begin nor end with a function word."""
    for start in range(len(parts) - length + 1):
        end = start + length
        first_and_last = {parts[start], parts[end - 1]}
        if first_and_last & FUNCTION_WORDS:
            continue
        for choice in product(*spellings[start:end]):
            yield " ".join(choice)


# --- terms ---


def _count_without(keyword: str, texts: Iterable[str], view: View) -> _Counts:
    """Count the chunks that hold texts; texts with the keyword in them are left out, as its exact match has them."""
    others = [text for text in texts if keyword not in text]
    return _count(others, view)


def _count(texts: Iterable[str], view: View) -> _Counts:
    """Count the chunks that hold texts; those in no chunk are left out."""
    distinct = list(dict.fromkeys(texts))
    counts: _Counts = {}
    for text, count in zip(distinct, view.count_chunks(distinct), strict=True):
        if count:
            counts[text] = count
    return counts


def _make_terms(
    texts: Sequence[str],
    counts: Mapping[str, int],
    view: View,
    *,
    is_respelled: bool = False,
) -> tuple[Term, ...]:
    """Make the terms of the first texts, spelled as the corpus spells them."""
    best = texts[:_MAX_TERMS]
    groups = [[text] for text in best]
    chunks_of = view.chunks_holding(groups, _CHUNKS_READ)
    terms: list[Term] = []
    for text, chunks in zip(best, chunks_of, strict=True):
        term = Term(
            text=_read_spelling(text, chunks.values()),
            chunks=counts[text],
            respelled=is_respelled,
        )
        terms.append(term)
    return tuple(terms)


def _read_spelling(text: str, chunks: Iterable[Chunk]) -> str:
    """Return a text, given in lower case, as the chunks that hold it spell it, preferably as whole words."""
    whole_words = re.compile(rf"(?<!\w){re.escape(text)}(?!\w)")
    as_part = ""
    for chunk in chunks:
        lowered = searchable(chunk.text)
        spelled = collapse_whitespace(chunk.text)
        whole = whole_words.search(lowered)
        if whole:
            return spelled[whole.start() : whole.end()]
        if not as_part:
            start = lowered.find(text)
            as_part = spelled[start : start + len(text)]
    return as_part or text
