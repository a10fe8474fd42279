"""The terms of a corpus that a keyword may mean, if the corpus holds it rarely or not at all."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, islice, product

from rapidfuzz import fuzz, process

from arag.retrieval.storage.contract import View, batches
from arag.retrieval.types import Chunk, Term
from arag.text.normalise import collapse_whitespace, plain, searchable, words
from arag.text.scripts import is_east_asian

FUNCTION_WORDS = frozenset("a an and at by de for from in la of on or the to with".split())
MAX_KEYWORD_CHARACTERS = 100  # in a longer one, no word is misspelt, and not all words are meant

_MAX_TERMS = 3
_MAX_WORDS = 8
_MAX_CHOICES = 8  # of spellings for all words of a keyword
_MAX_RUNS = 50  # of words of a keyword, each spelling counted
_CHUNKS_LOOKED_AT = 50  # for what stands between the words of a keyword
_CHUNKS_READ = 5  # for how they spell a term
_MIN_SIMILARITY = 75.0  # rapidfuzz ratio, 0 to 100
_MIN_SPLIT_CHARACTERS = 2
_MAX_SHARE = 0.01  # of all chunks: a part of a keyword in more of them is too common to help
_MIN_COMMON_CHUNKS = 3  # in a small corpus
_JOINTS = (" ", "-", " - ", ",", ".")
_NUMBER_END = r"(?!\d)(?![\W_]\d{3}(?!\d))"  # else 5,000 would be in 5,000,000
_YEAR = re.compile(r"(?:19|20)\d\d")
_GAP = r"[\W_]{1,3}"


def find_closest(keyword: str, chunks: int, view: View) -> tuple[Term, ...]:
    """Find terms that a keyword may mean and that its exact match does not count.

    First come other spellings of the same letters: other diacritics, spaces, hyphens, punctuation or width, two words
    as one or one as two. If the corpus holds neither the keyword, which `chunks` hold, nor one of these, similar words
    follow, then the longest parts of the keyword that occur, the rarest first.
    """
    parts = words(keyword)
    if not parts:
        return ()
    # Of a long keyword, only the words are looked up.
    is_term = len(parts) <= _MAX_WORDS and len(keyword) <= MAX_KEYWORD_CHARACTERS
    parts = parts[:_MAX_WORDS]
    lowered = searchable(keyword)
    if is_term:
        width = searchable(unicodedata.normalize("NFKC", keyword))
        counts = _count([width, *_respell(parts, view)], lowered, view)
        # The keyword without a bracket or a quotation mark helps only if more chunks hold it.
        counts = {text: count for text, count in counts.items() if text not in lowered or count > chunks}
        if counts:
            best = sorted(counts, key=lambda text: (-counts[text], text))
            return _make_terms(best, counts, view, is_respelled=True)
    if chunks:
        return ()
    spelled = spell(parts, view)
    spellings = [spelled[part] for part in parts]
    if is_term:
        counts = _count(_replace_unknown(parts, spellings, view), lowered, view)
        if counts:
            best = sorted(counts, key=lambda text: (-len(words(text)), -counts[text], text))
            return _make_terms(best, counts, view)
    counts = _find_parts(parts, spellings, len(parts) - 1 if is_term else 1, view)
    return _make_terms(sorted(counts, key=lambda text: (counts[text], text)), counts, view)


def telling_words(keyword: str) -> list[str]:
    """Return the words of a keyword of several words, in lower case.

    Function words and single letters tell nothing. There are none of a Chinese, Japanese or Korean keyword, and of one
    with a number or a date in pieces, such as 83.0%: they say nothing apart from each other.
    """
    parts = [words(part) for part in keyword.split()]
    in_pieces = any(len(part) > 1 and any(map(str.isdecimal, part)) for part in parts)
    if is_east_asian(keyword) or len(keyword) > MAX_KEYWORD_CHARACTERS or in_pieces:
        return []
    telling = [[word for word in part if len(word) > 1 and word not in FUNCTION_WORDS] for part in parts]
    return list(dict.fromkeys(chain.from_iterable(telling))) if sum(map(bool, telling)) > 1 else []


def spell(words: Collection[str], view: View) -> dict[str, list[str]]:
    """Return how texts of a corpus spell some words, in lower case: with which diacritics and width."""
    forms = {word: plain(word) for word in words}
    spelled = view.words_spelled(set(forms.values()))
    present = view.words_present(set(chain.from_iterable(spelled.values())))
    return {word: [each for each in spelled.get(form, ()) if each in present] for word, form in forms.items()}


def _respell(parts: Sequence[str], view: View) -> Iterator[str]:
    """Yield other spellings of the same letters, in lower case."""
    joined = [[*parts[:i], parts[i] + parts[i + 1], *parts[i + 2 :]] for i in range(len(parts) - 1)]
    sequences: list[Sequence[str]] = [parts, *joined]
    if len(parts) == 1:
        (word,) = parts
        least = _MIN_SPLIT_CHARACTERS
        sequences += [[word[:cut], word[cut:]] for cut in range(least, len(word) - least + 1)]
    # A number with its thousands set apart: 12500 is 12,500, and the other way round.
    grouped = [piece for part in parts for piece in _split_thousands(part)]
    sequences += [grouped] if len(grouped) > len(parts) else []
    if len(parts) > 2 and all(map(str.isdecimal, parts)):
        sequences += [["".join(parts[:-1]), parts[-1]], ["".join(parts)]]
    spelled = view.words_spelled({plain(part) for sequence in sequences for part in sequence})
    known = [sequence for sequence in sequences if spelled.keys() >= set(map(plain, sequence)) or sequence is parts]
    others = {word for sequence in known for part in sequence for word in spelled.get(plain(part), ())}
    present = view.words_present(others.difference(parts)).union(parts)
    choices: list[tuple[str, ...]] = []
    for sequence in known:
        spellings = [dict.fromkeys([part, *spelled.get(plain(part), ())]) for part in sequence]
        choices += _choose([[word for word in some if word in present] for some in spellings])
    return _join(choices, view)


def _split_thousands(part: str) -> list[str]:
    """Return the groups of three digits of a number; of a year and of all else, the part itself."""
    is_number = part.isdecimal() and not _YEAR.fullmatch(part)
    return re.findall(r"\d{1,3}(?=(?:\d{3})*$)", part) if is_number else [part]


def _choose(spellings: Sequence[Iterable[str]]) -> Iterator[tuple[str, ...]]:
    """Yield words, each in one of its spellings."""
    return islice(product(*spellings), _MAX_CHOICES)


def _join(choices: Sequence[tuple[str, ...]], view: View) -> Iterator[str]:
    """Yield texts, in lower case, that have the words of a choice one after the other.

    What stands between them is read from the chunks that have them all; if these are many, it is guessed.
    """
    several = [choice for choice in choices if len(choice) > 1]
    for choice, chunks in zip(several, view.chunks_holding(several, _CHUNKS_LOOKED_AT), strict=True):
        end = _NUMBER_END if all(map(str.isdecimal, choice)) else ""
        pattern = re.compile(rf"(?<!\w){_GAP.join(map(re.escape, choice))}{end}")
        for chunk in chunks.values():
            yield from pattern.findall(searchable(chunk.text))
        if len(chunks) == _CHUNKS_LOOKED_AT:
            yield from (joint.join(choice) for joint in _JOINTS)
    yield from (choice[0] for choice in choices if len(choice) == 1)


def _replace_unknown(parts: Sequence[str], spellings: Sequence[list[str]], view: View) -> Iterator[str]:
    """Yield texts in which a word that the corpus does not hold is replaced by a similar one, and the similar ones."""
    choices: list[tuple[str, ...]] = []
    for i, part in enumerate(map(plain, parts)):
        if len(part) <= _MIN_SPLIT_CHARACTERS or spellings[i]:
            continue
        reach = max(1, len(part) // 4)
        forms = view.words_of_length(len(part) - reach, len(part) + reach)
        similar = process.extract(part, forms, scorer=fuzz.ratio, score_cutoff=_MIN_SIMILARITY, limit=None)
        similar.sort(key=lambda match: (-match[1], match[0]))
        some_forms = batches((form for form, _, _ in similar), _MAX_TERMS)
        known = (spelled for some in some_forms for spelled in spell(some, view).values() if spelled)
        for spelled in islice(known, _MAX_TERMS):
            choices += [*_choose([*spellings[:i], spelled, *spellings[i + 1 :]]), *((word,) for word in spelled)]
    return _join(choices, view)


def _find_parts(parts: Sequence[str], spellings: Sequence[list[str]], longest: int, view: View) -> dict[str, int]:
    """Count the chunks with the longest runs of words that occur, apart from those that are too common."""
    most = max(_MIN_COMMON_CHUNKS, int(_MAX_SHARE * view.settings.chunks))
    for length in range(longest, 0, -1):
        runs = [range(start, start + length) for start in range(len(parts) - length + 1)]
        telling = [run for run in runs if FUNCTION_WORDS.isdisjoint((parts[run[0]], parts[run[-1]]))]
        texts = (" ".join(choice) for run in telling for choice in product(*(spellings[place] for place in run)))
        counts = _count(islice(texts, _MAX_RUNS), "", view)
        if few := {text: count for text, count in counts.items() if count <= most and len(text) > 1}:
            return few
    return {}


def _count(texts: Iterable[str], keyword: str, view: View) -> dict[str, int]:
    """Count the chunks that hold texts; texts with the keyword in them, and those in no chunk, are left out."""
    others = [text for text in dict.fromkeys(texts) if not keyword or keyword not in text]
    return {text: count for text, count in zip(others, view.count_chunks(others), strict=True) if count}


def _make_terms(
    texts: Sequence[str], counts: dict[str, int], view: View, *, is_respelled: bool = False
) -> tuple[Term, ...]:
    best = texts[:_MAX_TERMS]
    holding = view.chunks_holding([[text] for text in best], _CHUNKS_READ)
    return tuple(
        Term(_read_spelling(text, chunks.values()), counts[text], is_respelled)
        for text, chunks in zip(best, holding, strict=True)
    )


def _read_spelling(text: str, chunks: Iterable[Chunk]) -> str:
    """Return a text in lower case as chunks that hold it spell it, as whole words if one of them has these."""
    spellings: dict[bool, str] = {}
    for chunk in chunks:
        lowered = searchable(chunk.text)
        whole = re.search(rf"(?<!\w){re.escape(text)}(?!\w)", lowered)
        start = whole.start() if whole else lowered.find(text)
        spellings.setdefault(whole is not None, collapse_whitespace(chunk.text)[start : start + len(text)])
    return spellings.get(True) or spellings.get(False) or text
