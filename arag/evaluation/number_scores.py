"""Decides whether an answer gives the right number, without a model.

The answer's number is the first one in its lead: its first sentence, or the first one that has a number if that has
none. A wrong number there is wrong, even if the right one follows. Some numbers are not taken for the answer: those of
the question, those behind "of" ("5 of the 12 lights"), years and days unless a year is asked for, and numbers without
the unit where others have it. Of a sum, the number behind "=" counts. A number with another unit, such as miles for
kilometres, is wrong.

Numbers may have separators of thousands, words for "million" and the like, and be words themselves, up to 99 in English
and up to 12 in German, French and Spanish. "1.234" and "1,234" are read both as decimals and with separators.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from arag.evaluation.datasets import Number
from arag.evaluation.leads import plain_text, sentences

_ROUNDING = 1e-9  # differences of floating-point numbers, relative to the number
_YEARS = range(1000, 2101)

_UNITS = [
    {"km", "kilometre", "kilometer", "公里", "千米"},
    {"m", "metre", "meter", "mètre", "metro", "米"},
    {"cm", "centimetre", "centimeter", "zentimeter", "centimètre", "厘米"},
    {"mm", "millimetre", "millimeter"},
    {"mile", "mi", "meile"},
    {"nautical mile", "nm", "seemeile"},
    {"ft", "foot", "feet", "fuß", "pied"},
    {"kg", "kilogram", "kilogramme", "kilogramm", "kilo"},
    {"g", "gram", "gramme", "gramm"},
    {"t", "ton", "tonne"},
    {"lb", "pound", "pfund"},
    {"l", "litre", "liter"},
    {"ha", "hectare", "hektar"},
    {"%", "percent", "per cent", "prozent", "pour cent", "por ciento"},
    {"€", "euro", "eur"},
    {"$", "dollar", "usd"},
    {"£", "gbp"},
    {"second", "sekunde", "seconde", "segundo", "s"},
    {"minute", "minuto", "min", "分钟"},
    {"hour", "stunde", "heure", "hora", "h", "小时"},
    {"day", "tag", "jour", "día", "天"},
    {"week", "woche", "semaine", "semana"},
    {"month", "monat", "mois", "mes", "个月"},
    {"year", "jahr", "année", "an", "año"},
]
_SCALES = {
    "k": 1e3,
    "thousand": 1e3,
    "tausend": 1e3,
    "mille": 1e3,
    "mil": 1e3,
    "million": 1e6,
    "mio": 1e6,
    "millionen": 1e6,
    "millones": 1e6,
    "millón": 1e6,
    "billion": 1e9,
    "bn": 1e9,
    "milliarde": 1e9,
    "milliarden": 1e9,
    "milliard": 1e9,
    "万": 1e4,
    "亿": 1e8,
}
_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen \
eighteen nineteen".split()
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_GERMAN = "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf".split()
_FRENCH = "zéro un deux trois quatre cinq six sept huit neuf dix onze douze".split()
_SPANISH = "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce".split()
_AMBIGUOUS = {"un", "once"}  # an article, and an adverb


def _list_words() -> dict[str, int]:
    values: dict[str, int] = {}
    for words in (_GERMAN, _FRENCH, _SPANISH, _ONES):
        for value, word in enumerate(words):
            if word not in _AMBIGUOUS:
                values[word] = value
    for tens, word in enumerate(_TENS, start=2):
        values[word] = 10 * tens
        for one in range(1, 10):
            values[f"{word}-{_ONES[one]}"] = 10 * tens + one
            values[f"{word} {_ONES[one]}"] = 10 * tens + one
    return {**values, "none": 0, "keine": 0, "keiner": 0, "aucun": 0, "aucune": 0, "ninguno": 0, "ninguna": 0}


def _join(words: Iterable[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


_WORD_VALUES = _list_words()
_UNIT_NAMES = {f"{name}{plural}" for unit in _UNITS for name in unit for plural in ("", "s", "e", "en")}
_LATIN = "A-Za-zÀ-ɏ_"  # Chinese and Japanese put no spaces around numbers
# Digits within a name, such as Q3 or MV88, are no number.
_NUMBER = re.compile(
    rf"""
    (?P<currency>[$€£]\s?)?
    (?:
        (?<![{_LATIN}\d.,])(?P<minus>[-−](?=\d))?
        (?P<digits>\d{{1,3}}(?:[,.'’\u00a0\u202f\u2009 ]\d{{3}})+(?!\d)(?:[.,]\d+)?|\d+(?:[.,]\d+)?)
        (?:st|nd|rd|th)?
        |
        (?<!\w)(?P<word>{_join(_WORD_VALUES)})(?!\w)
    )
    (?:\s?(?P<scale>{_join(_SCALES)})(?:\.|(?![{_LATIN}])))?
    (?:[\s-]?(?P<unit>{_join(_UNIT_NAMES)})(?![{_LATIN}]))?
    """,
    re.VERBOSE | re.IGNORECASE,
)
_SEPARATOR = re.compile(r"[,.'’\u00a0\u202f\u2009 ]")
_BEHIND_OF = re.compile(
    r"\b(?:of|von|sur|de|des|di)(?:\s+(?:the|all|den|allen|les|los|las|its|our))?\s*$", re.IGNORECASE
)
_MONTH = r"(?:jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)\w*\.?"
_BEFORE_YEAR = re.compile(
    rf"\b(?:in|im|since|seit|by|until|before|after|from|to|en|depuis|desde|{_MONTH}|year)\s*$", re.IGNORECASE
)
_AFTER_DAY = re.compile(rf"\s*{_MONTH}\b", re.IGNORECASE)
_NO = re.compile(r"\bno\b(?!\s*[,.;:\d])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Found:
    """A number in a text.

    Attributes:
        values: What it may mean.
        unit: Its unit, or an empty string.
        is_date: Whether it is a year or a day of a date.
        is_whole: Whether it is the whole of a share: 12 in "5 of the 12".
    """

    values: frozenset[float]
    unit: str
    is_date: bool
    is_whole: bool


def has_number(answer: str, gold: Number, question: str = "") -> bool:
    """Return whether the number that an answer gives first is the right one.

    Args:
        answer: The answer.
        gold: The right number.
        question: The question; its numbers are not taken for the answer.
    """
    for sentence in sentences(plain_text(answer)):
        found = _find_numbers(sentence.rpartition("=")[2])
        candidates = _choose(found, gold, question)
        if gold.value == 0 and not candidates and _NO.search(sentence):
            return True
        if candidates:
            return _is_right(candidates[0], gold)
    return False


def _find_numbers(text: str) -> list[_Found]:
    text = unicodedata.normalize("NFKC", text)
    return [_read(match, text) for match in _NUMBER.finditer(text)]


def _read(match: re.Match[str], text: str) -> _Found:
    before = text[: match.start()]
    after = text[match.end() :]
    values = _values(match)
    unit = (match["currency"] or match["unit"] or "").strip()
    is_year = any(value in _YEARS for value in values) and _BEFORE_YEAR.search(before) is not None
    is_day = _AFTER_DAY.match(after) is not None or _ends_in_month(before)
    return _Found(
        values=frozenset(values),
        unit=unit.casefold(),
        is_date=not unit and (is_year or is_day),
        is_whole=_BEHIND_OF.search(before) is not None,
    )


def _ends_in_month(text: str) -> bool:
    return re.search(rf"\b{_MONTH}\s*$", text, re.IGNORECASE) is not None


def _values(match: re.Match[str]) -> list[float]:
    """Return what a number may mean: a comma or a full stop may be one of decimals or of thousands."""
    scale = _SCALES[match["scale"].casefold()] if match["scale"] else 1.0
    if match["word"]:
        return [scale * _WORD_VALUES[match["word"].casefold()]]
    digits = match["digits"]
    sign = -1.0 if match["minus"] else 1.0
    readings = {_SEPARATOR.sub("", digits)}
    *whole, last = _SEPARATOR.split(digits)
    is_decimal = bool(whole) and digits[-len(last) - 1] in ",."
    if is_decimal:
        decimal = f"{''.join(whole)}.{last}"
        readings = {decimal} if len(last) != len("000") else {*readings, decimal}
    return [sign * scale * float(reading) for reading in readings]


def _choose(found: Sequence[_Found], gold: Number, question: str) -> list[_Found]:
    """Return the numbers that may be the answer, in order."""
    in_question: set[float] = set()
    for number in _find_numbers(question):
        in_question |= number.values
    candidates = [number for number in found if not number.values & in_question] or list(found)
    candidates = [number for number in candidates if not number.is_whole] or candidates
    if gold.units:
        candidates = [number for number in candidates if _has_unit(number, gold)] or candidates
    elif gold.value in _YEARS:
        candidates = [number for number in candidates if any(value in _YEARS for value in number.values)] or candidates
    if gold.units or gold.value not in _YEARS:
        candidates = [number for number in candidates if not number.is_date]
    return candidates


def _is_right(number: _Found, gold: Number) -> bool:
    if gold.units and number.unit and not _has_unit(number, gold):
        return False
    most = gold.tolerance + abs(gold.value) * _ROUNDING
    return any(abs(value - gold.value) <= most for value in number.values)


def _has_unit(number: _Found, gold: Number) -> bool:
    return any(_canonical(number.unit) == _canonical(unit.casefold()) for unit in gold.units)


def _canonical(name: str) -> str:
    """Return one name for all names of a unit."""
    for unit in _UNITS:
        for ending in ("", "s", "e", "en"):
            singular = name.removesuffix(ending)
            if singular in unit:
                return min(unit)
    return name
