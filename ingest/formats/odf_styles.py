"""The styles of OpenDocument: titles, raised text, hidden parts, and the numbers of lists and headings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from lxml import etree

from arag.ingest.formats.package import attribute
from arag.ingest.formats.word_numbers import BULLET, show_in_form

_FORMS = {"1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman"}
_MAX_LEVEL = 10


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
        if start.isdecimal():
            self.counts[level] = int(start)
        else:
            self.counts[level] = self.counts.get(level, own.start - 1) + 1
        for deeper in [other for other in self.counts if other > level]:
            del self.counts[deeper]
        if own.is_bullet:
            return BULLET
        if not own.form:
            return f"{own.prefix}{own.suffix}".strip()
        numbers: list[str] = []
        for shown in range(max(1, level - own.shown_levels + 1), level + 1):
            definition = self.levels.get(shown, _Level())
            count = self.counts.get(shown, definition.start)
            if definition.form:
                numbers.append(show_in_form(definition.form, count))
        return f"{own.prefix}{'.'.join(numbers)}{own.suffix}".strip()


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
                self._styles[(attribute(style, "family"), attribute(style, "name"))] = style
            for definition in root.iter("{*}list-style"):
                self._lists[attribute(definition, "name")] = _read_levels(definition)
            for definition in root.iter("{*}outline-style"):
                self.headings = ListNumbers(_read_levels(definition))

    def _with_parents(self, family: str, name: str) -> Iterator[etree._Element]:
        for _ in range(_MAX_LEVEL):
            style = self._styles.get((family, name))
            if style is None:
                return
            yield style
            name = attribute(style, "parent-style-name")

    def is_title(self, name: str) -> bool:
        """Return whether a style of paragraphs is the one of the document's title, or made from it."""
        names = [name, *(attribute(style, "parent-style-name") for style in self._with_parents("paragraph", name))]
        return "Title" in names

    def baseline(self, name: str) -> int:
        """Return whether text of a style stands above the line (more than 0), on it, or below it."""
        for style in self._with_parents("text", name):
            properties = style.find("{*}text-properties")
            position = "" if properties is None else attribute(properties, "text-position")
            first = position.partition(" ")[0]
            if first in {"super", "sub"}:
                return 1 if first == "super" else -1
            if first.rstrip("%").lstrip("-").isdecimal():
                return int(first.rstrip("%"))
        return 0

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
        if level.isdecimal():
            levels[int(level)] = _Level(
                form=_FORMS.get(attribute(element, "num-format"), ""),
                prefix=attribute(element, "num-prefix"),
                suffix=attribute(element, "num-suffix"),
                shown_levels=_to_int(attribute(element, "display-levels")),
                start=_to_int(attribute(element, "start-value")),
                is_bullet="bullet" in element.tag or "image" in element.tag,
            )
    return levels


def _to_int(text: str) -> int:
    return int(text) if text.isdecimal() else 1
