"""Spellings: how the corpus spells words, and texts with the same letters or words as a keyword."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, product

from arag.retrieval.storage.contract import View
from arag.text.normalise import plain, searchable
from arag.text.scripts import SPACED

MIN_SPLIT_CHARACTERS = 2  # of each part of a word that is split; a word this short is not replaced by a similar one

_MAX_CHOICES = 8  # of spellings for all words of a keyword
_CHUNKS_LOOKED_AT = 50  # to find what is between the words of a keyword
_JOINTS = (" ", "-", " - ", ",", ".")
_NUMBER_END = r"(?!\d)(?![\W_]\d{3}(?!\d))"  # so that 5,000 is not found in 5,000,000
_SEVERAL_POINTS = re.compile(r"\d+(?:\.\d+){2,}")
_GROUPED_OR_DATE = re.compile(r"\d{1,3}(?:\.\d{3})+|\d{1,2}\.\d{1,2}\.(?:19|20)\d\d")
_YEAR = re.compile(r"(?:19|20)\d\d")
_THOUSANDS = re.compile(r"\d{1,3}(?=(?:\d{3})*$)")
_GAP = r"[\W_]{1,3}"
_SHORT_END = re.compile(r"[\W_][^\W_]{1,3}$")
_NUMBER = re.compile(
    r"(?P<before>\W*)(?P<number>(?P<whole>[1-9]\d{0,2}(?:[,.'’ ]\d{3})+|\d+)(?:[.,](?P<decimals>\d+))?)(?P<behind>\W*)"
)
_TIME = re.compile(r"(?:[01]?\d|2[0-3])[.,][0-5]\d")
_THREE_DIGITS = re.compile(r"\d{3}(?!\d)")
_APOSTROPHE = re.compile(r"(?<=\w)['’](?=\w)")
_TIMES = re.compile(r"(?<=\d) ?[x×] ?(?=\d)")
_UNIT_SIGN = re.compile(r"[%‰°§$€£¥¢₹₽₩]")  # without it, a number is another one
# Between a number and its unit. One letter would begin other words: `5 v` is in "5 votes".
_BEFORE_UNIT = re.compile(r"(?<=\d)(?=[°µ]?[^\W\d_]{2,}(?:/[^\W\d_]+)?$)")
_AFTER_NAME = re.compile(r"(?<=[^\W\d_]{3})(?=\d)")  # not in M8
_SEPARATORS = (("", "."), ("", ","), (",", "."), (".", ","), (" ", ","), (" ", "."), ("'", "."), ("’", "."))

Choice = tuple[str, ...]  # words, each in one of its spellings


def is_version(keyword: str) -> bool:
    """Return whether a keyword is the number of a version or a section, `1.6.2`, rather than `1.234.567` or a date."""
    return _SEVERAL_POINTS.fullmatch(keyword) is not None and _GROUPED_OR_DATE.fullmatch(keyword) is None


def is_number_in_pieces(keyword: str) -> bool:
    """Return whether a keyword is a number with decimals, thousands set apart, or a unit: its pieces mean nothing."""
    number = _NUMBER.fullmatch(keyword)
    if number is None:
        return False
    return not number["number"].isdecimal() or _UNIT_SIGN.search(keyword) is not None


def swap_apostrophes(text: str) -> str:
    """Return a text with printed apostrophes for typed ones, and the other way round: `don’t` for `don't`."""
    return _APOSTROPHE.sub(lambda found: "’" if found[0] == "'" else "'", text)


def respell_signs(text: str) -> list[str]:
    """Return a name with a number, or a size, with other signs and spaces: `UTF-8`, `M8 x 1.25`, `20 km/h`."""
    names = [_AFTER_NAME.sub(sign, text) for sign in (" ", "-")]
    sizes = [_TIMES.sub(sign, text) for sign in ("x", " x ", "×", " × ")]
    return [*names, *sizes, _BEFORE_UNIT.sub(" ", text)]


def spell(words: Collection[str], view: View) -> dict[str, list[str]]:
    """Return how the corpus spells words, in lower case: with which diacritics and width."""
    spelled = view.words_spelled(set(map(plain, words)))
    present = _find_present(words, spelled, view)
    spellings: dict[str, list[str]] = {}
    for word in words:
        of_corpus = spelled.get(plain(word), [])
        spellings[word] = _keep(of_corpus, present)
    return spellings


def respell(words: Sequence[str], view: View) -> Iterator[str]:
    """Yield other spellings of the same letters, in lower case."""
    regrouped = _regroup(words)
    forms = set(map(plain, chain(words, *regrouped)))
    spelled = view.words_spelled(forms)

    known = [words]
    for sequence in regrouped:
        if spelled.keys() >= set(map(plain, sequence)):
            known.append(sequence)
    present = _find_present(chain(*known), spelled, view, given=words)
    choices: list[Choice] = []
    for sequence in known:
        spellings: list[list[str]] = []
        for word in sequence:
            as_given_first = [word, *spelled.get(plain(word), [])]
            spellings.append(_keep(as_given_first, present))
        choices += choose(spellings)
    return join(choices, view)


def without_chance(texts: Iterable[str], view: View, *, is_known: bool) -> Iterator[str]:
    """Yield spellings of a word, but not two words if the second is short and only begins one.

    `La porte est` is not a spelling of `portees`, and neither is `in settings` one of `inset`.

    Args:
        texts: The spellings.
        view: The snapshot that has them.
        is_known: Whether the corpus has the word itself.
    """
    for text in dict.fromkeys(texts):
        if not _SHORT_END.search(text) or _ends_a_word(text, view, may_begin_inside=is_known):
            yield text


def _ends_a_word(text: str, view: View, *, may_begin_inside: bool) -> bool:
    """Return whether a text ends where a word ends in a chunk, and begins where one begins.

    Recorded experiments show known words that are found from the inside of a word on.
    """
    start = "" if may_begin_inside else r"(?<!\w)"
    bordered = re.compile(rf"{start}{re.escape(text)}(?![{SPACED}])")
    (chunks,) = view.chunks_holding([[text]], _CHUNKS_LOOKED_AT)
    return any(bordered.search(searchable(chunk.text)) for chunk in chunks.values())


def respell_number(keyword: str, view: View) -> Iterator[str]:
    """Yield a number as the corpus writes it: `1234.5` as `1,234.50`; with its signs if it has them so: `(0.5)`.

    A number with the sign of a unit keeps it: `5%` is `5 %`, and `€500` is `500 €`. A number may be a time: `10.30` is
    `10:30`, too.
    """
    number = _NUMBER.fullmatch(keyword)
    unit = _UNIT_SIGN.search(keyword)
    if number is None or (unit is None and _YEAR.fullmatch(number["number"])):
        return
    forms = _write_number("".join(re.findall(r"\d", number["whole"])), number["decimals"] or "")
    if unit is not None:
        yield from _keep_alone(_add_unit(forms, unit[0]), view)
        return
    if _TIME.fullmatch(keyword):
        forms.append(re.sub("[.,]", ":", keyword))
    with_signs = [f"{number['before']}{form}{number['behind']}" for form in forms]
    yield from _keep_alone(with_signs, view) or _keep_alone(forms, view)


def _add_unit(forms: Iterable[str], sign: str) -> list[str]:
    """Return the forms of a number with the sign of a unit before and behind it."""
    with_unit: list[str] = []
    for form in forms:
        with_unit += [f"{form}{sign}", f"{form} {sign}", f"{sign}{form}", f"{sign} {form}"]
    return with_unit


def _keep_alone(forms: Sequence[str], view: View) -> list[str]:
    """Return the forms of a number that the corpus has, not only within longer numbers."""
    chunks_of = view.chunks_holding([[form] for form in forms], _CHUNKS_LOOKED_AT)
    kept: list[str] = []
    for form, chunks in zip(forms, chunks_of, strict=True):
        alone = re.compile(rf"(?<!\d)(?<!\d[.,'’]){re.escape(form)}(?!\d|[.,'’]\d)")
        if any(alone.search(searchable(chunk.text)) for chunk in chunks.values()):
            kept.append(form)
    return kept


def _write_number(whole: str, decimals: str) -> list[str]:
    """Return how a number may be written: with its thousands set apart, and with or without zeros at its end."""
    groups = _THOUSANDS.findall(whole)
    without_zeros = decimals.rstrip("0")
    forms: dict[str, None] = {}
    for separator, point in _SEPARATORS:
        for ending in (without_zeros, without_zeros.ljust(2, "0")):
            form = separator.join(groups)
            forms[f"{form}{point}{ending}" if ending else form] = None
    return list(forms)


def choose(spellings: Sequence[Iterable[str]]) -> Iterator[Choice]:
    """Yield words, each in one of its spellings."""
    return islice(product(*spellings), _MAX_CHOICES)


def join(choices: Sequence[Choice], view: View) -> Iterator[str]:
    """Yield texts, in lower case, that have the words of a choice one after the other.

    The characters between them are read from the chunks that have all of them; if these are many, they are guessed.
    """
    several: list[Choice] = []
    single: list[str] = []
    for choice in choices:
        if len(choice) > 1:
            several.append(choice)
        else:
            single += choice
    chunks_of = view.chunks_holding(several, _CHUNKS_LOOKED_AT)
    for choice, chunks in zip(several, chunks_of, strict=True):
        in_a_row = _make_pattern(choice)
        for chunk in chunks.values():
            yield from in_a_row.findall(searchable(chunk.text))
        if len(chunks) == _CHUNKS_LOOKED_AT:
            for joint in _JOINTS:
                yield joint.join(choice)
    yield from single


def _find_present(
    words: Iterable[str],
    spelled: Mapping[str, Iterable[str]],
    view: View,
    *,
    given: Collection[str] = (),
) -> set[str]:
    """Return the spellings of words that a text of this view has, and the given words, which need no check."""
    candidates: set[str] = set()
    for word in words:
        candidates.update(spelled.get(plain(word), ()))
    present = view.words_present(candidates.difference(given))
    return present.union(given)


def _keep(spellings: Iterable[str], present: Collection[str]) -> list[str]:
    """Return the spellings that are present, each once."""
    kept: list[str] = []
    for spelling in dict.fromkeys(spellings):
        if spelling in present:
            kept.append(spelling)
    return kept


def _regroup(words: Sequence[str]) -> list[Sequence[str]]:
    """Return other words with the same letters: two words as one, one word as two, numbers with other separators."""
    return [
        *_join_neighbours(words),
        *_split_word(words),
        *_regroup_digits(words),
    ]


def _join_neighbours(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the words with two neighbours as one word; numbers only where the second is of thousands: 0,5 is not 05."""
    for i in range(len(words) - 1):
        has_digits_at_joint = words[i][-1].isdecimal() and words[i + 1][0].isdecimal()
        if has_digits_at_joint and not _THREE_DIGITS.match(words[i + 1]):
            continue
        joined = words[i] + words[i + 1]
        yield [*words[:i], joined, *words[i + 2 :]]


def _split_word(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield a single word as two words, but not a number."""
    if len(words) > 1 or words[0].isdecimal():
        return
    (word,) = words
    last_cut = len(word) - MIN_SPLIT_CHARACTERS
    for cut in range(MIN_SPLIT_CHARACTERS, last_cut + 1):
        yield [word[:cut], word[cut:]]


def _regroup_digits(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield numbers with their thousands set apart, and the other way round: 12500 is 12,500."""
    grouped: list[str] = []
    for word in words:
        grouped += _split_thousands(word)
    if len(grouped) > len(words):
        yield grouped
    digits = "".join(words)
    if len(words) > 2 and digits.isdecimal():
        yield ["".join(words[:-1]), words[-1]]
        yield [digits]


def _split_thousands(word: str) -> list[str]:
    """Return the groups of three digits of a number; for a year or anything else, the word itself."""
    if not word.isdecimal() or _YEAR.fullmatch(word):
        return [word]
    return _THOUSANDS.findall(word)


def _make_pattern(choice: Choice) -> re.Pattern[str]:
    """Make the pattern of words one after the other."""
    in_a_row = _GAP.join(map(re.escape, choice))
    end = ""
    if "".join(choice).isdecimal():
        end = _NUMBER_END
    return re.compile(rf"(?<!\w){in_a_row}{end}")
