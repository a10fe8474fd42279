"""Whether a sentence answers a question, by rules on what the question asks for. Most know English questions only.

A question that begins with "who" asks for a name that it does not have, "when" for a number or a month, and so on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property

from arag.text.languages import SHARED_WORDS, is_foreign
from arag.text.words import content_words, find_names

_MAX_DEFINED = 2  # content words of a question for what something is
_ASKS = re.compile(r"(?:[?？][\"'”’」』)\]*_]*|^(?:[A-Z\d]{1,3}\.)+\d*\.?)$")
_COUNT = re.compile(r"(?:No line of )?[\d,]+ \w+(?: in [\d,]+ \w+)? match(?:es)?")  # as `grep` writes it
_STATEMENT = re.compile(r"[.!;:。！][\"'”’)\]*_]*$|…$| \| |: ")

_NUMBER = re.compile(
    r"\d|\b(?:no|none|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|twenty|thirty|forty|fifty"
    r"|hundred|thousand|million|once|twice|half|always|never)\b",
    re.IGNORECASE,
)
_DIGIT = re.compile(r"\d")
# German, French, Spanish, Italian, Portuguese, Russian, Chinese and Japanese; "one" is often an article.
_FOREIGN_NUMBER = re.compile(
    r"\d|\b(?:keine?[mnrs]?|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|dutzend|zwanzig|hundert|tausend"
    r"|aucune?|deux|trois|quatre|cinq|six|sept|huit|neuf|dix|onze|douze|vingt|cent|mille"
    r"|ningun[ao]|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|doce|veinte|cien|mil"
    r"|nessun[ao]?|due|tre|quattro|cinque|sei|sette|otto|nove|dieci|dodici|venti|cento"
    r"|nenhuma?|dois|duas|três|quatro|sete|oito|dez|doze|vinte|cem"
    r"|ни|два|две|двух|три|трёх|четыре|четырёх|пять|шесть|семь|восемь|девять|десять|двадцать|сто|тысячи?)\b"
    r"|[二三四五六七八九十百千万两]",
    re.IGNORECASE,
)
_DAY = re.compile(
    r"\b(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?|today|spring|summer|autumn|winter|noon|midnight)\b"
)
_YEAR = re.compile(r"\b(?:1\d|20)\d\d\b")
_PLACE = re.compile(r"/\w|\b(?:in|at|on|under|inside|near|below|above) \w", re.IGNORECASE)
_DEFINES = re.compile(
    r"[^.]{0,60}\b(?:(?:is|are|was|were) (?:an?|the|any|one|when|not)\b|means?\b|refers? to\b|denotes?\b|stands? for\b)"
)

# At the beginning, or behind one word: elsewhere, as in "the man who came when it rained", these words ask for nothing.
_ASKS_WHO = re.compile(r"^(?:\w+ )?who(?:m|se)?\b|\bwhom?\W*$", re.IGNORECASE)
_ASKS_WHEN = re.compile(r"^(?:\w+ )?when\b|\b(?:what|which) (?:year|date|day|month|century)\b", re.IGNORECASE)
_ASKS_HOW_MANY = re.compile(
    r"\bhow (?:many|much|long|far|old|tall|high|often|large|big|fast|deep|wide|heavy)\b",
    re.IGNORECASE,
)
_ASKS_FOREIGN_HOW_MANY = re.compile(
    r"^\W*(?:\w+ )?(?:wie ?viele?[nr]?|combien|cuánt[ao]s?|quant[aeio]s?|сколько)\b"
    r"|\b(?:in welchem jahr|en quelle année|en qué año|in quale anno|em que ano|в каком году)\b"
    r"|いくら|いくつ|何[年人件回個台]|多少|哪一?年",
    re.IGNORECASE,
)
_VERSION = re.compile(r"\d+(?:\.\d+)+")
_DATE = re.compile(r"\d\d?\.\d\d?\.\d{4}")
# Behind "v", "version" or a name inside a sentence. Elsewhere a number with one point may be a time or a measure, which
# a text writes in other ways.
_NAMED_VERSION = re.compile(
    r"(?:\b[vV]\.? ?|\b[vV]ersion |\s(?P<name>\w*[A-Z]\w*)[ -])(?P<version>\d+\.\d+)(?!\.?\w|[%°€$£])"
    r"(?!\s?(?:[kmcµ]?[glm]|[kKMGT]B|[ap]\.?m|o['’]clock|hours?|minutes?|seconds?|met(?:er|re)s?|lit(?:er|re)s?|kilos?"
    r"|miles?|degrees?|per ?cent|thousand|million|billion|trains?|bus|%|°|€)(?!\w))"
)
_CURRENCY = re.compile(r"CHF|EUR|GBP|JPY|USD")
_ASKS_FIGURE = re.compile(
    r"\bwhat (?:is|was|are) the (?:\w+ )?(?:number|size|length|height|port|speed|percentage|price|cost|weight|age)\b",
    re.IGNORECASE,
)
_ASKS_WHERE = re.compile(r"^(?:\w+ )?where\b", re.IGNORECASE)
_ASKS_WHAT_IS = re.compile(r"^what(?:'s| is| are) ", re.IGNORECASE)


@dataclass(frozen=True)
class Candidate:
    """A sentence that may answer a question, and the title of its document, with the questions that stand above it."""

    title: str
    text: str

    @cached_property
    def words(self) -> set[str]:
        """The content words of both; "die" is none in a German sentence."""
        words = telling_words(f"{self.title} {self.text}")
        return words - SHARED_WORDS if is_foreign(self.text) else words


def telling_words(text: str) -> set[str]:
    """Return the content words of a text, and its versions as a whole: `3.9.2`."""
    return content_words(text).union(find_versions(text))


def find_versions(text: str) -> list[str]:
    """Return the versions, and other numbers with a point, in a text."""
    return _VERSION.findall(text)


def find_asked_versions(question: str) -> list[str]:
    """Return the versions in a question, which an answer must have: no dates, times or measures."""
    asked: list[str] = []
    for number in find_versions(question):
        if number.count(".") > 1 and not _DATE.fullmatch(number):
            asked.append(number)
    for match in _NAMED_VERSION.finditer(question):
        if _may_have_version(match["name"]):
            asked.append(match["version"])
    return asked


def _may_have_version(name: str | None) -> bool:
    """Return whether a number behind a name is a version: not behind a day, a currency or a common word."""
    if name is None:
        return True
    return bool(content_words(name)) and not _DAY.search(name) and not _CURRENCY.fullmatch(name)


def only_asks(text: str) -> bool:
    """Return whether a sentence is a question, as headings and lists of contents have them, or only their number."""
    return _ASKS.search(text) is not None


def leads_in(text: str) -> bool:
    """Return whether a sentence only announces what comes after it: `Use this command:`."""
    return text.rstrip().endswith((":", "："))


def may_answer(question: str, words: set[str], text: str) -> bool:
    """Return whether a sentence is a statement that says more than a question's content words, and what it asks for."""
    return _says_more(text, words) and _has_kind(text, question, words)


def title_tells_when(question: str, words: Collection[str], title: str) -> bool:
    """Return whether a question asks when, and a title has a year beside the question's content words."""
    told = telling_words(title).difference(words)
    return _ASKS_WHEN.search(question) is not None and any(map(_YEAR.search, told))


def tells_when(question: str, words: set[str], text: str) -> bool:
    """Return whether a sentence may answer a question, and has a year or a day that the question does not have."""
    said = _without_asked(text, question)
    is_dated = _YEAR.search(said) is not None or _DAY.search(said) is not None
    return is_dated and may_answer(question, words, text)


def may_answer_foreign(question: str, title: str, text: str) -> bool:
    """Return whether a sentence has what a question in another language than English asks for.

    It must be a statement. A question for a number or a year needs one that it does not have itself, and a version must
    be the one asked for.
    """
    if only_asks(text) or not is_statement(text):
        return False
    if _ASKS_FOREIGN_HOW_MANY.search(question) and not _FOREIGN_NUMBER.search(_without_asked(text, question)):
        return False
    said = find_versions(f"{title} {text}")
    return all(version in said for version in find_versions(question))


def describe_count(result: str, pattern: str) -> str:
    """Return what a `grep` counted as a sentence, such as `3 lines in 2 documents match "lock".`; empty if nothing."""
    counted = _COUNT.match(result)
    if counted is None:
        return ""
    names = [re.sub(r"\\(\W)", r"\1", name) for name in pattern.split("|")]
    quoted = " or ".join(f'"{name}"' for name in names)
    return f"{counted[0]} {quoted}."


def is_statement(text: str) -> bool:
    """Return whether a text ends as a sentence does, or has the value of a field."""
    return _STATEMENT.search(text) is not None


def _says_more(text: str, words: set[str]) -> bool:
    """Return whether a sentence is a statement, and more than the question's words."""
    if only_asks(text) or leads_in(text) or not is_statement(text):
        return False
    return not content_words(text) <= words


def _list_names(text: str) -> set[str]:
    """Return the names in a text, in lower case; those that "and" joins are several."""
    names: set[str] = set()
    for name in find_names(text):
        if name[0].isalpha():
            names.update(name.lower().split(" and "))
    return names


def _has_kind(text: str, question: str, words: set[str]) -> bool:
    """Return whether a sentence has what the question's words ask for."""
    for asks, has in _KINDS:
        if asks.search(question):
            return has(text, question)
    is_definition = _ASKS_WHAT_IS.search(question) and len(words) <= _MAX_DEFINED
    return not is_definition or _defines(text, words)


def _defines(text: str, words: Collection[str]) -> bool:
    """Return whether a sentence says of one of some words what it is."""
    lowered = text.lower()
    places = [lowered.find(word) for word in words]
    return any(place >= 0 and _DEFINES.match(lowered, place) for place in places)


def _has_new_name(text: str, question: str) -> bool:
    lowered = question.lower()
    return any(name not in lowered for name in _list_names(text))


def _has_new_number(text: str, question: str) -> bool:
    return _NUMBER.search(_without_asked(text, question)) is not None


def _without_asked(text: str, question: str) -> str:
    """Return a text without the numbers of a question."""
    for number in re.findall(r"\d+", question):
        text = text.replace(number, "")
    return text


def _has_new_figure(text: str, question: str) -> bool:
    return _DIGIT.search(_without_asked(text, question)) is not None


def _has_new_date(text: str, question: str) -> bool:
    return _DAY.search(text) is not None or _has_new_figure(text, question)


def _has_place(text: str, question: str) -> bool:
    return _PLACE.search(text) is not None or _has_new_name(text, question)


_KINDS: tuple[tuple[re.Pattern[str], Callable[[str, str], bool]], ...] = (
    (_ASKS_HOW_MANY, _has_new_number),
    (_ASKS_FIGURE, _has_new_figure),
    (_ASKS_WHEN, _has_new_date),
    (_ASKS_WHERE, _has_place),
    (_ASKS_WHO, _has_new_name),
)
