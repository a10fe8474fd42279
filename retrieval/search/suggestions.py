"""Suggestions for rare keywords: terms of the corpus that a keyword may mean."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice, product

from rapidfuzz import fuzz, process

from arag.retrieval.storage.batches import batches
from arag.retrieval.storage.contract import View
from arag.retrieval.types import Chunk, Term
from arag.text.normalise import collapse_whitespace, plain, searchable, words
from arag.text.scripts import is_east_asian

FUNCTION_WORDS = frozenset("a an and at by de for from in la of on or the to with".split())
MAX_KEYWORD_CHARACTERS = 100  # in a longer keyword, no word is misspelt, and not all words are meant

_MAX_TERMS = 3
_MAX_WORDS = 8  # of a keyword: the number of spellings grows with them
_MAX_CHOICES = 8  # of spellings for all words of a keyword
_MAX_RUNS = 50  # of words of a keyword: each is counted in the whole corpus
_CHUNKS_LOOKED_AT = 50  # to find what is between the words of a keyword
_CHUNKS_READ = 5  # to find how they spell a term
_MIN_SIMILARITY = 75.0  # rapidfuzz ratio, 0 to 100
_MIN_SPLIT_CHARACTERS = 2
_MAX_SHARE = 0.01  # of all chunks: a part of a keyword that more chunks hold is too common to help
_MIN_COMMON_CHUNKS = 3  # the same bound in a small corpus
_JOINTS = (" ", "-", " - ", ",", ".")
_NUMBER_END = r"(?!\d)(?![\W_]\d{3}(?!\d))"  # so that 5,000 is not found in 5,000,000
_YEAR = re.compile(r"(?:19|20)\d\d")
_GAP = r"[\W_]{1,3}"

_Words = tuple[str, ...]  # in one spelling each


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
    # Only the words of a long keyword are looked up.
    is_term = len(parts) <= _MAX_WORDS and len(keyword) <= MAX_KEYWORD_CHARACTERS
    parts = parts[:_MAX_WORDS]
    if is_term:
        counts = _count_respelled(keyword, parts, chunks, view)
        if counts:
            best = sorted(counts, key=lambda text: (-counts[text], text))
            return _make_terms(best, counts, view, is_respelled=True)
    if chunks:
        return ()
    spelled = spell(parts, view)
    spellings = [spelled[part] for part in parts]
    if is_term:
        counts = _count(_replace_unknown(parts, spellings, view), searchable(keyword), view)
        if counts:
            best = sorted(counts, key=lambda text: (-len(words(text)), -counts[text], text))
            return _make_terms(best, counts, view)
    longest = len(parts) - 1 if is_term else 1
    counts = _find_parts(parts, spellings, longest, view)
    rarest_first = sorted(counts, key=lambda text: (counts[text], text))
    return _make_terms(rarest_first, counts, view)


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
        if len(pieces) > 1 and any(piece.isdecimal() for piece in pieces):
            return []
        kept = [word for word in pieces if len(word) > 1 and word not in FUNCTION_WORDS]
        telling += kept
        if kept:
            telling_parts += 1
    if telling_parts < 2:
        return []
    return list(dict.fromkeys(telling))


def spell(words: Collection[str], view: View) -> dict[str, list[str]]:
    """Return how the corpus spells words, in lower case: with which diacritics and width."""
    forms = {word: plain(word) for word in words}
    spelled = view.words_spelled(set(forms.values()))
    candidates: set[str] = set()
    for some in spelled.values():
        candidates.update(some)
    present = view.words_present(candidates)
    spellings: dict[str, list[str]] = {}
    for word, form in forms.items():
        spellings[word] = [each for each in spelled.get(form, ()) if each in present]
    return spellings


# --- other spellings of the same letters ---


def _count_respelled(keyword: str, parts: Sequence[str], chunks: int, view: View) -> dict[str, int]:
    """Count the chunks that hold other spellings of a keyword's letters."""
    lowered = searchable(keyword)
    other_width = searchable(unicodedata.normalize("NFKC", keyword))
    counts = _count([other_width, *_respell(parts, view)], lowered, view)
    helpful: dict[str, int] = {}
    for text, count in counts.items():
        # The keyword without a bracket or a quotation mark helps only if more chunks hold it.
        if text not in lowered or count > chunks:
            helpful[text] = count
    return helpful


def _respell(parts: Sequence[str], view: View) -> Iterator[str]:
    """Yield other spellings of the same letters, in lower case."""
    sequences = [parts, *_regroup(parts)]
    forms: set[str] = set()
    for sequence in sequences:
        forms.update(map(plain, sequence))
    spelled = view.words_spelled(forms)
    known: list[Sequence[str]] = []
    for sequence in sequences:
        if sequence is parts or spelled.keys() >= set(map(plain, sequence)):
            known.append(sequence)

    candidates: set[str] = set()
    for sequence in known:
        for part in sequence:
            candidates.update(spelled.get(plain(part), ()))
    present = view.words_present(candidates.difference(parts)).union(parts)

    choices: list[_Words] = []
    for sequence in known:
        spellings: list[list[str]] = []
        for part in sequence:
            forms_of_part = dict.fromkeys([part, *spelled.get(plain(part), ())])
            spellings.append([word for word in forms_of_part if word in present])
        choices += _choose(spellings)
    return _join(choices, view)


def _regroup(parts: Sequence[str]) -> list[Sequence[str]]:
    """Return other words with the same letters: two words as one, one word as two, numbers with other separators."""
    sequences: list[Sequence[str]] = []
    for i in range(len(parts) - 1):
        sequences.append([*parts[:i], parts[i] + parts[i + 1], *parts[i + 2 :]])
    if len(parts) == 1:
        (word,) = parts
        for cut in range(_MIN_SPLIT_CHARACTERS, len(word) - _MIN_SPLIT_CHARACTERS + 1):
            sequences.append([word[:cut], word[cut:]])
    # A number with its thousands set apart: 12500 is 12,500, and the other way round.
    grouped: list[str] = []
    for part in parts:
        grouped += _split_thousands(part)
    if len(grouped) > len(parts):
        sequences.append(grouped)
    if len(parts) > 2 and all(part.isdecimal() for part in parts):
        sequences.append(["".join(parts[:-1]), parts[-1]])
        sequences.append(["".join(parts)])
    return sequences


def _split_thousands(part: str) -> list[str]:
    """Return the groups of three digits of a number; for a year or anything else, the part itself."""
    if not part.isdecimal() or _YEAR.fullmatch(part):
        return [part]
    return re.findall(r"\d{1,3}(?=(?:\d{3})*$)", part)


def _choose(spellings: Sequence[Iterable[str]]) -> Iterator[_Words]:
    """Yield words, each in one of its spellings."""
    return islice(product(*spellings), _MAX_CHOICES)


def _join(choices: Sequence[_Words], view: View) -> Iterator[str]:
    """Yield texts, in lower case, that have the words of a choice one after the other.

    The characters between them are read from the chunks that have all of them; if these are many, they are guessed.
    """
    several = [choice for choice in choices if len(choice) > 1]
    for choice, chunks in zip(several, view.chunks_holding(several, _CHUNKS_LOOKED_AT), strict=True):
        is_number = all(word.isdecimal() for word in choice)
        end = _NUMBER_END if is_number else ""
        pattern = re.compile(rf"(?<!\w){_GAP.join(map(re.escape, choice))}{end}")
        for chunk in chunks.values():
            yield from pattern.findall(searchable(chunk.text))
        if len(chunks) == _CHUNKS_LOOKED_AT:
            for joint in _JOINTS:
                yield joint.join(choice)
    for choice in choices:
        if len(choice) == 1:
            yield choice[0]


# --- similar words ---


def _replace_unknown(parts: Sequence[str], spellings: Sequence[list[str]], view: View) -> Iterator[str]:
    """Yield texts in which an unknown word is replaced by a similar one, and the similar words themselves."""
    choices: list[_Words] = []
    for i, part in enumerate(parts):
        form = plain(part)
        if len(form) <= _MIN_SPLIT_CHARACTERS or spellings[i]:
            continue
        for spelled in _find_similar(form, view):
            choices += _choose([*spellings[:i], spelled, *spellings[i + 1 :]])
            for word in spelled:
                choices.append((word,))
    return _join(choices, view)


def _find_similar(form: str, view: View) -> list[list[str]]:
    """Return the spellings of the words of the corpus that are most similar to a plain word."""
    reach = max(1, len(form) // 4)
    forms = view.words_of_length(len(form) - reach, len(form) + reach)
    similar = process.extract(form, forms, scorer=fuzz.ratio, score_cutoff=_MIN_SIMILARITY, limit=None)
    similar.sort(key=lambda match: (-match[1], match[0]))
    found: list[list[str]] = []
    for some in batches((match[0] for match in similar), _MAX_TERMS):
        for spelled in spell(some, view).values():
            if spelled:
                found.append(spelled)
        if len(found) >= _MAX_TERMS:
            break
    return found[:_MAX_TERMS]


# --- parts of a keyword ---


def _find_parts(parts: Sequence[str], spellings: Sequence[list[str]], longest: int, view: View) -> dict[str, int]:
    """Count the chunks with the longest runs of words that occur, except those that are too common."""
    most = max(_MIN_COMMON_CHUNKS, int(_MAX_SHARE * view.settings.chunks))
    for length in range(longest, 0, -1):
        counts = _count(islice(_list_runs(parts, spellings, length), _MAX_RUNS), "", view)
        few: dict[str, int] = {}
        for text, count in counts.items():
            if count <= most and len(text) > 1:
                few[text] = count
        if few:
            return few
    return {}


def _list_runs(parts: Sequence[str], spellings: Sequence[list[str]], length: int) -> Iterator[str]:
    """Yield the runs of words of a keyword, in all spellings, that neither begin nor end with a function word."""
    for start in range(len(parts) - length + 1):
        end = start + length
        if parts[start] in FUNCTION_WORDS or parts[end - 1] in FUNCTION_WORDS:
            continue
        for choice in product(*spellings[start:end]):
            yield " ".join(choice)


# --- terms ---


def _count(texts: Iterable[str], keyword: str, view: View) -> dict[str, int]:
    """Count the chunks that hold texts; texts with the keyword in them, and those in no chunk, are left out."""
    others = [text for text in dict.fromkeys(texts) if not keyword or keyword not in text]
    counts: dict[str, int] = {}
    for text, count in zip(others, view.count_chunks(others), strict=True):
        if count:
            counts[text] = count
    return counts


def _make_terms(
    texts: Sequence[str], counts: Mapping[str, int], view: View, *, is_respelled: bool = False
) -> tuple[Term, ...]:
    best = texts[:_MAX_TERMS]
    chunks_of = view.chunks_holding([[text] for text in best], _CHUNKS_READ)
    terms: list[Term] = []
    for text, chunks in zip(best, chunks_of, strict=True):
        spelling = _read_spelling(text, chunks.values())
        terms.append(Term(spelling, counts[text], is_respelled))
    return tuple(terms)


def _read_spelling(text: str, chunks: Iterable[Chunk]) -> str:
    """Return a text, given in lower case, as the chunks that hold it spell it, preferably as whole words."""
    as_part = ""
    for chunk in chunks:
        lowered = searchable(chunk.text)
        spelled = collapse_whitespace(chunk.text)
        whole = re.search(rf"(?<!\w){re.escape(text)}(?!\w)", lowered)
        if whole:
            return spelled[whole.start() : whole.start() + len(text)]
        start = lowered.find(text)
        as_part = as_part or spelled[start : start + len(text)]
    return as_part or text
