"""Scores answers to questions that ask for a complete list: precision and recall of its items, without a model.

A gold item is found if one of its names is in the answer, as whole words, ignoring case. The precision needs the
items that are in the answer and not in the gold list. They are read from its structure: the bullets, the rows of a
table or the sentence with the most gold items is the list. Each bullet or row without a gold item is an extra item, and
so is each part of the sentence, between commas or words such as "and", that has the form of an item: it is not much
longer than the gold items, and it begins with a capital letter if they do.

Limits: an item that the answer names only to exclude it counts as found, and other inflections of a name are not found.
Extra items outside of the list are not seen; remarks between commas may look like items. A judge sees all of this.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from arag.evaluation.leads import plain_text, sentences
from arag.text.scripts import is_east_asian

_FOUND = "\ue000"  # stands for a gold item; a character for private use, which no text has
_ITEM_LINE = re.compile(r"\s*(?:[-*•–+‣◦]|\d{1,3}[.)])\s+(?=\S)|\s*\|")
_TABLE_RULE = re.compile(r"\s*\|[\s:|-]+\|?\s*")
_THOUSANDS = re.compile(r"(?<=\d)[,'’\u00a0\u202f](?=\d{3}(?!\d))")
_PARENTHESES = re.compile(r"[(（][^()（）]*[)）]")
_WORD = re.compile(r"\w+")
# Words that answers leave out, or replace with brackets and commas: "Tanner's Lock (Callowmere)".
_SMALL_WORDS = frozenset("a an the at in of on and de del der des die das du el la le les von zu".split())
_YEAR = re.compile(r"1\d{3}|20\d{2}")
_MONTHS = "January February March April May June July August September October November December".split()
_DATE = re.compile(rf"(?P<day>\d{{1,2}}) (?P<month>{'|'.join(_MONTHS)}) (?P<year>\d{{4}})")
# Commas within numbers are gone. "y", "e" and "o" join items in Spanish and Italian.
_JOINTS = re.compile(
    r"[,;，；、·/]|(?<=\s)(?:&|and|or|plus|as well as|und|oder|sowie|et|ou|y|e|o|u)(?=\s)|以及|和|及|与|與|と"
)
_OPENERS = frozenset("yes no overall altogether ja nein insgesamt oui non sí sì sim não да нет".split())
_PREPOSITIONS = frozenset("in on at by from since until before after during im am seit bis en au depuis desde".split())
_MORE_WORDS = 2  # that an extra item may have, compared with the longest gold item


class ListScore(NamedTuple):
    """How the items of an answer agree with those of the gold list, from 0 to 1."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def score_list(answer: str, items: Sequence[Sequence[str]], question: str = "") -> ListScore:
    """Score the items of an answer.

    Args:
        answer: The answer.
        items: The items of the gold list, each with its accepted names.
        question: The question. Dates such as "5 March 2024" need no year if it has the year.

    Returns:
        Precision and recall; both are 0 if no gold item is found.
    """
    items = _add_names(items, question)
    text = _normalise(plain_text(answer))
    found = _find_items(text, items)
    if not found:
        return ListScore(0.0, 0.0)
    extra = find_extra_items(answer, items)
    return ListScore(len(found) / (len(found) + len(extra)), len(found) / len(items))


def find_extra_items(answer: str, items: Sequence[Sequence[str]]) -> list[str]:
    """Return the items in an answer's list that are not in the gold list."""
    text = _normalise(plain_text(answer))
    blocks = [block.mark_items(items) for block in _list_blocks(text)]
    best = max(blocks, key=_Block.count_found, default=None)
    if best is None:
        return []
    if best.is_prose:
        return _extra_in_prose(best.parts[0], items)
    return [part.strip() for part in best.parts if _FOUND not in part]


# --- gold items ---


def _normalise(text: str) -> str:
    return _THOUSANDS.sub("", unicodedata.normalize("NFKC", text))


def _add_names(items: Sequence[Sequence[str]], question: str) -> list[list[str]]:
    """Add other forms of dates: with the month first, as ISO has them, and without the year if the question has it."""
    years = _YEAR.findall(question)
    extended: list[list[str]] = []
    for names in items:
        more: list[str] = []
        for name in names:
            date = _DATE.fullmatch(name)
            if date is not None:
                day, month, year = date.groups()
                number = _MONTHS.index(month) + 1
                more += [f"{month} {day} {year}", f"{year}-{number:02}-{int(day):02}"]
                if year in years:
                    more += [f"{day} {month}", f"{month} {day}"]
        extended.append([*names, *more])
    return extended


def _find_items(text: str, items: Sequence[Sequence[str]]) -> set[int]:
    """Return the positions of the items that are in a text."""
    found: set[int] = set()
    for position, pattern in _patterns(items):
        text, count = pattern.subn(_FOUND, text)
        if count:
            found.add(position)
    return found


def _patterns(items: Sequence[Sequence[str]]) -> list[tuple[int, re.Pattern[str]]]:
    """Return the patterns of all names with the positions of their items, the longest names first.

    "Cape Sorrow Light" is then not taken for "Cape Sorrow", which may be an item, too.
    """
    names = [(position, _normalise(name)) for position, item in enumerate(items) for name in item]
    names.sort(key=lambda named: len(named[1]), reverse=True)
    return [(position, _pattern(name)) for position, name in names]


def _pattern(name: str) -> re.Pattern[str]:
    words = _WORD.findall(name)
    telling = [word for word in words if word.casefold() not in _SMALL_WORDS] or words or [name]
    small = "|".join(sorted(_SMALL_WORDS))
    between = rf"[\W_]+(?:(?:{small})[\W_]+)*"
    body = between.join(map(re.escape, telling))
    if is_east_asian(name):  # words without spaces between them
        return re.compile(body, re.IGNORECASE)
    return re.compile(rf"(?<!\w){body}(?!\w)", re.IGNORECASE)


# --- the list in the answer ---


class _Block(NamedTuple):
    """A part of an answer that may be its list: bullets or the rows of a table, or one sentence."""

    parts: list[str]
    is_prose: bool

    def mark_items(self, items: Sequence[Sequence[str]]) -> _Block:
        """Put a mark in place of each gold item."""
        marked: list[str] = []
        for part in self.parts:
            for _, pattern in _patterns(items):
                part = pattern.sub(_FOUND, part)  # noqa: PLW2901
            marked.append(part)
        return _Block(marked, self.is_prose)

    def count_found(self) -> int:
        """Return the number of gold items; names in parentheses, such as those of sources, do not count."""
        return _PARENTHESES.sub("", "".join(self.parts)).count(_FOUND)


def _list_blocks(text: str) -> list[_Block]:
    blocks: list[_Block] = []
    prose: list[str] = []
    rows: list[str] = []
    for line in [*text.splitlines(), ""]:
        marker = _ITEM_LINE.match(line)
        if marker and not rows:
            blocks += _prose_blocks(prose)
            prose = []
        if marker is None and rows and line.strip():
            blocks.append(_Block(rows, is_prose=False))
            rows = []
        if _TABLE_RULE.fullmatch(line):  # the line above it has the names of the columns
            rows = rows[:-1]
        elif marker:
            rows.append(line[marker.end() :])
        else:
            prose.append(line)
    if rows:
        blocks.append(_Block(rows, is_prose=False))
    return [*blocks, *_prose_blocks(prose)]


def _prose_blocks(lines: Iterable[str]) -> list[_Block]:
    return [_Block([sentence], is_prose=True) for sentence in sentences("\n".join(lines))]


def _extra_in_prose(sentence: str, items: Sequence[Sequence[str]]) -> list[str]:
    names = [names[0] for names in items]
    longest = max(len(_WORD.findall(name)) for name in names)
    are_capital = all(name[:1].isupper() or name[:1].isdigit() for name in names)
    have_letters = all(any(character.isalpha() for character in name) for name in names)
    have_digits = any(character.isdigit() for name in names for character in name)
    extra: list[str] = []
    is_first = True
    for part in _JOINTS.split(_PARENTHESES.sub("", sentence)):
        if _FOUND not in part:
            words: Sequence[str] = _WORD.findall(part.rpartition(":")[2])
            if are_capital:
                words = _without_article(words, is_first=is_first)
            item = " ".join(words)
            has_letters = any(character.isalpha() for character in item)
            has_digits = any(character.isdigit() for character in item)
            is_opener = item.casefold() in _OPENERS
            is_long = len(words) > longest + _MORE_WORDS
            is_alike = has_letters >= have_letters and has_digits <= have_digits
            if words and is_alike and not is_opener and not is_long:
                extra.append(item)
        is_first = False
    return extra


def _without_article(words: Sequence[str], *, is_first: bool) -> Sequence[str]:
    """Return words that begin with a capital letter or a digit, maybe behind one other word; none if they do not.

    The first word of a sentence has a capital letter anyway: more words must have one, unless it is the only word.
    """
    if not words or words[0].casefold() in _PREPOSITIONS:
        return []
    if words[0][:1].islower():
        words = words[1:]
        is_first = False
    decisive = words[1:2] if is_first and len(words) > 1 else words[:1]
    if not decisive or decisive[0][:1].islower():
        return []
    return words
