"""The styles of OpenDocument: titles, raised text, hidden parts, and the numbers of lists and headings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from lxml import etree

from arag.ingest.formats.package import attribute, to_int
from arag.ingest.formats.word.numbers import BULLET, show_in_form

_FORMS = {"1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}
_BASELINES = {"super": 1, "sub": -1}
_PERCENT = re.compile(r"(-?\d+)%?")
_LIGHT = frozenset({"normal", "100", "200", "300", "400", "500"})  # weights of a font that is not bold
_TITLE = "Title"  # the name of a style, in all languages
_MAX_PARENTS = 10  # of a style: it may be among its own parents


@dataclass(frozen=True)
class _Level:
    """How one level of a list is numbered; without a form it has bullets or nothing."""

    form: str = ""
    prefix: str = ""
    suffix: str = ""
    shown_levels: int = 1
    start: int = 1
    is_bullet: bool = False


@dataclass
class ListNumbers:
    """The numbers of one list, or of all headings."""

    levels: dict[int, _Level]
    counts: dict[int, int] = field(default_factory=dict)

    def next_number(self, level: int, start: str = "") -> str:
        """Count an item and return its number, `BULLET`, or an empty string for none.

        Args:
            level: Its level, from 1.
            start: The number that it has by itself, if any.
        """
        own = self.levels.get(level, _Level(is_bullet=True))
        following = self.counts.get(level, own.start - 1) + 1
        self.counts[level] = to_int(start, following)
        for deeper in list(self.counts):
            if deeper > level:
                del self.counts[deeper]
        if own.is_bullet:
            return BULLET
        number = self._number_of(own, level) if own.form else ""
        return f"{own.prefix}{number}{own.suffix}".strip()

    def _number_of(self, own: _Level, level: int) -> str:
        """Return the number of an item with those of the levels above it that the list shows, such as 2.1."""
        first = max(1, level - own.shown_levels + 1)
        numbers: list[str] = []
        for shown in range(first, level + 1):
            definition = self.levels.get(shown, _Level())
            count = self.counts.get(shown, definition.start)
            if definition.form:
                numbers.append(show_in_form(definition.form, count))
        return ".".join(numbers)


class Styles:
    """The styles of a document.

    Args:
        roots: The parts that have styles: `styles.xml` and `content.xml`, or a flat file.
    """

    def __init__(self, roots: Iterable[etree._Element]) -> None:
        self._styles: dict[tuple[str, str], etree._Element] = {}
        self._lists: dict[str, dict[int, _Level]] = {}
        self.headings = ListNumbers({})
        for root in roots:
            for style in root.iter("{*}style"):
                key = (attribute(style, "family"), attribute(style, "name"))
                self._styles[key] = style
            for definition in root.iter("{*}list-style"):
                self._lists[attribute(definition, "name")] = _read_levels(definition)
            for definition in root.iter("{*}outline-style"):
                self.headings = ListNumbers(_read_levels(definition))

    def _with_parents(self, family: str, name: str) -> Iterator[etree._Element]:
        for _ in range(_MAX_PARENTS):
            style = self._styles.get((family, name))
            if style is None:
                return
            yield style
            name = attribute(style, "parent-style-name")

    def is_title(self, name: str) -> bool:
        """Return whether a style of paragraphs is the one of the document's title, or made from it."""
        names = {name}
        for style in self._with_parents("paragraph", name):
            names.add(attribute(style, "parent-style-name"))
        return _TITLE in names

    def is_centred(self, name: str) -> bool:
        """Return whether paragraphs of a style stand in the middle of the page."""
        for style in self._with_parents("paragraph", name):
            properties = style.find("{*}paragraph-properties")
            place = "" if properties is None else attribute(properties, "text-align")
            if place:
                return place == "center"
        return False

    def baseline(self, name: str) -> int:
        """Return whether text of a style stands above the line (more than 0), on it, or below it."""
        for style in self._with_parents("text", name):
            properties = style.find("{*}text-properties")
            if properties is None:
                continue
            position = attribute(properties, "text-position").partition(" ")[0]
            if position in _BASELINES:
                return _BASELINES[position]
            percent = _PERCENT.fullmatch(position)
            if percent is not None:
                return int(percent[1])
        return 0

    def is_bold(self, family: str, name: str) -> bool:
        """Return whether text of a style is bold."""
        for style in self._with_parents(family, name):
            properties = style.find("{*}text-properties")
            weight = "" if properties is None else attribute(properties, "font-weight")
            if weight:
                return weight not in _LIGHT
        return False

    def is_hidden(self, family: str, name: str) -> bool:
        """Return whether a style hides a part, such as a sheet or a text."""
        for style in self._with_parents(family, name):
            for properties in style:
                if attribute(properties, "display") in {"none", "false"}:
                    return True
        return False

    def make_list(self, name: str) -> ListNumbers:
        """Return the numbers of a new list."""
        return ListNumbers(self._lists.get(name, {}))


def _read_levels(definition: etree._Element) -> dict[int, _Level]:
    levels: dict[int, _Level] = {}
    for element in definition:
        level = attribute(element, "level")
        if not level.isdecimal():
            continue
        levels[int(level)] = _Level(
            form=_FORMS.get(attribute(element, "num-format"), ""),
            prefix=attribute(element, "num-prefix"),
            suffix=attribute(element, "num-suffix"),
            shown_levels=to_int(attribute(element, "display-levels"), 1),
            start=to_int(attribute(element, "start-value"), 1),
            is_bullet="bullet" in element.tag or "image" in element.tag,
        )
    return levels
