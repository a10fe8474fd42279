"""Numbers of clauses, headings and list items of Word, computed as Word does: it does not store them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from lxml import etree

from arag.ingest.formats.package import attribute, to_int, value_of

BULLET = "-"  # the number of an item of a list without numbers

_PLACE = re.compile(r"%([1-9])")
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"),
    (50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip
_MAX_LETTERS = 1_000
_MAX_ROMAN = 4_000
_CHINESE_DIGITS = "〇一二三四五六七八九"
_ORDINAL_ENDS = {1: "st", 2: "nd", 3: "rd"}


@dataclass(frozen=True)
class _Level:
    """How one level of a list is numbered."""

    start: int = 1
    form: str = "decimal"
    text: str = ""
    is_legal: bool = False  # all numbers in it are decimal
    restarts_after: int = -1  # a number of this level or a higher one starts it again; -1: of any higher level

    def restarts(self, own: int, other: int) -> bool:
        """Return whether a number of another level starts this one again."""
        if self.restarts_after < 0:
            return other < own
        return other < self.restarts_after


@dataclass
class _List:
    """The lists with one definition, which count together."""

    levels: dict[int, _Level]
    level_of_style: dict[str, int]
    style: str = ""  # that has the definition in its place
    counts: dict[int, int] = field(default_factory=dict)


class Numbering:
    """The numbers of a document. Ask for them in the order of the paragraphs.

    Args:
        root: The part `numbering.xml`, or None.
        list_of_style: The id of the list that each style of paragraphs has.
    """

    def __init__(self, root: etree._Element | None, list_of_style: dict[str, str]) -> None:
        self._lists: dict[str, _List] = {}
        self._definition_of: dict[str, str] = {}
        self._starts: dict[str, dict[int, int]] = defaultdict(dict)  # by list and level, where it starts by itself
        if root is not None:
            self._read(root)
            self._follow_styles(list_of_style)

    def _read(self, root: etree._Element) -> None:
        for definition in root.iterfind("{*}abstractNum"):
            self._lists[attribute(definition, "abstractNumId")] = _read_list(definition)
        for instance in root.iterfind("{*}num"):
            number = attribute(instance, "numId")
            self._definition_of[number] = value_of(instance, "{*}abstractNumId")
            for override in instance.iterfind("{*}lvlOverride"):
                start = value_of(override, "{*}startOverride")
                if start:
                    level = to_int(attribute(override, "ilvl"), 0)
                    self._starts[number][level] = to_int(start, 0)

    def _follow_styles(self, list_of_style: dict[str, str]) -> None:
        for number, definition in self._definition_of.items():
            style = self._lists[definition].style if definition in self._lists else ""
            target = self._definition_of.get(list_of_style.get(style, ""), "")
            if style and target in self._lists:
                self._definition_of[number] = target

    def level_of(self, list_id: str, style: str) -> int:
        """Return the level that a style of paragraphs has in a list."""
        found = self._lists.get(self._definition_of.get(list_id, ""))
        return 0 if found is None else found.level_of_style.get(style, 0)

    def next_number(self, list_id: str, level: int) -> str:
        """Count a paragraph of a list and return its number, `BULLET`, or an empty string for none."""
        found = self._lists.get(self._definition_of.get(list_id, ""))
        if found is None or level not in found.levels:
            return ""
        definition = found.levels[level]
        self._count(found, list_id, level)
        if definition.form == "bullet":
            return BULLET
        if definition.form == "none":
            return _PLACE.sub("", definition.text).strip()

        def shown(place: re.Match[str]) -> str:
            return _shown_place(found, definition, int(place[1]) - 1)

        return _PLACE.sub(shown, definition.text).strip()

    def _count(self, found: _List, list_id: str, level: int) -> None:
        start = self._starts[list_id].pop(level, None)
        if start is not None:
            found.counts[level] = start
        elif level in found.counts:
            found.counts[level] += 1
        else:
            found.counts[level] = found.levels[level].start
        for other, definition in found.levels.items():
            if definition.restarts(other, level):
                found.counts.pop(other, None)


def _read_list(definition: etree._Element) -> _List:
    levels: dict[int, _Level] = {}
    level_of_style: dict[str, int] = {}
    for element in definition.iterfind("{*}lvl"):
        level = to_int(attribute(element, "ilvl"), 0)
        legal = element.find("{*}isLgl")
        levels[level] = _Level(
            start=to_int(value_of(element, "{*}start"), 1),
            form=_form(element),
            text=value_of(element, "{*}lvlText"),
            is_legal=legal is not None and attribute(legal, "val") not in {"0", "false"},
            restarts_after=to_int(value_of(element, "{*}lvlRestart"), -1),
        )
        level_of_style[value_of(element, "{*}pStyle")] = level
    return _List(levels, level_of_style, style=value_of(definition, "{*}numStyleLink"))


def _form(level: etree._Element) -> str:
    for element in level.iter("{*}numFmt"):  # a newer form stands in a block of alternatives
        return attribute(element, "val")
    return "decimal"


def _shown_place(found: _List, definition: _Level, level: int) -> str:
    """Return the number that the text of a level has in the place of one of its levels."""
    its_definition = found.levels.get(level, _Level())
    count = found.counts.get(level, its_definition.start)
    if definition.is_legal:
        return str(count)
    return show_in_form(its_definition.form, count)


def show_in_form(form: str, number: int) -> str:
    """Return a number in a form that Word names, such as `lowerRoman`; an unknown one is decimal."""
    return _FORMS.get(form, str)(number)


def _letters(number: int) -> str:
    """Return a letter, which is doubled after `z`: aa, bb."""
    if not 0 < number < _MAX_LETTERS:
        return str(number)
    times, index = divmod(number - 1, 26)
    return chr(ord("a") + index) * (times + 1)


def _roman(number: int) -> str:
    if not 0 < number < _MAX_ROMAN:
        return str(number)
    text = ""
    for value, letters in _ROMAN:
        times, number = divmod(number, value)
        text += letters * times
    return text


def _ordinal(number: int) -> str:
    is_teen = number // 10 % 10 == 1
    end = "th" if is_teen else _ORDINAL_ENDS.get(number % 10, "th")
    return f"{number}{end}"


def _chinese(number: int) -> str:
    tens, ones = divmod(number, 10)
    if not 0 < tens < 10:
        return _CHINESE_DIGITS[number] if 0 <= number < 10 else str(number)
    first = "" if tens == 1 else _CHINESE_DIGITS[tens]
    last = _CHINESE_DIGITS[ones] if ones else ""
    return f"{first}十{last}"


_FORMS: dict[str, Callable[[int], str]] = {
    "decimalZero": lambda number: f"{number:02}",
    "lowerLetter": _letters,
    "upperLetter": lambda number: _letters(number).upper(),
    "lowerRoman": _roman,
    "upperRoman": lambda number: _roman(number).upper(),
    "ordinal": _ordinal,
    "bullet": lambda _: "",
    "none": lambda _: "",
    **dict.fromkeys(
        ["chineseCounting", "chineseCountingThousand", "japaneseCounting", "taiwaneseCountingThousand"],
        _chinese,
    ),
}
