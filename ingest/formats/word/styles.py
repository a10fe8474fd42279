"""The styles of Word's paragraphs: which are headings, which belong to lists, and which hide their text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from lxml import etree

from arag.ingest.formats.package import attribute, find_child, value_of

_MAX_LEVEL = 6  # of a heading in Markdown
_BODY = 10  # an outline level above 9 is text
_HEADING = re.compile(r"heading ?([1-9])", re.IGNORECASE)  # the name is English in all languages of Word
_OFF = frozenset({"0", "false", "off"})


def is_on(properties: etree._Element | None, name: str) -> bool:
    """Return whether properties switch something on, such as `vanish`."""
    if properties is None:
        return False
    found = find_child(properties, f"{{*}}{name}")
    return found is not None and attribute(found, "val") not in _OFF


@dataclass(frozen=True)
class _Style:
    name: str
    parent: str
    properties: etree._Element | None  # of its paragraphs
    list_id: str
    is_hidden: bool
    has_bold_first_row: bool  # in a table


@dataclass(frozen=True)
class StyleList:
    """The list of the paragraphs of a style.

    Attributes:
        list_id: Its id; empty if there is none.
        level: The level of the paragraphs in it, if one is given.
        style: The style that says so: this one or one that it is made from.
    """

    list_id: str = ""
    level: str = ""
    style: str = ""


@dataclass
class Styles:
    """The styles of a document.

    Args:
        root: The part `styles.xml`, or None.
    """

    root: etree._Element | None
    default: str = ""
    _styles: dict[str, _Style] = field(default_factory=dict)
    _levels: dict[str, int] = field(default_factory=dict)  # of headings, for each style that was asked for
    _lists: dict[str, StyleList] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.root is None:
            return
        for element in self.root.iterfind("{*}style"):
            style_id = attribute(element, "styleId")
            properties = find_child(element, "{*}pPr")
            self._styles[style_id] = _Style(
                name=value_of(element, "{*}name"),
                parent=value_of(element, "{*}basedOn"),
                properties=properties,
                list_id=value_of(properties, "{*}numPr/{*}numId"),
                is_hidden=is_on(find_child(element, "{*}rPr"), "vanish"),
                has_bold_first_row=any(map(_is_bold_first_row, element.iterfind("{*}tblStylePr"))),
            )
            is_default = attribute(element, "default") not in {"", *_OFF}
            if is_default and attribute(element, "type") == "paragraph":
                self.default = style_id

    def _with_parents(self, style_id: str) -> Iterator[tuple[str, _Style]]:
        seen: set[str] = set()
        while style_id in self._styles and style_id not in seen:
            seen.add(style_id)
            style = self._styles[style_id]
            yield style_id, style
            style_id = style.parent

    def is_title(self, style_id: str) -> bool:
        """Return whether a style is the one of the document's title."""
        style = self._styles.get(style_id)
        name = style_id if style is None else style.name
        return name.lower() == "title"

    def is_centred(self, style_id: str, properties: etree._Element | None) -> bool:
        """Return whether a paragraph stands in the middle of the page; see `heading_level`."""
        own = value_of(properties, "{*}jc")
        for _, style in self._with_parents(style_id):
            own = own or value_of(style.properties, "{*}jc")
        return own == "center"

    def heading_level(self, style_id: str, properties: etree._Element | None) -> int:
        """Return the level of a heading in Markdown; 0 for other paragraphs.

        Args:
            style_id: The style of the paragraph.
            properties: Of the paragraph itself.
        """
        own = _outline_level(properties)
        if own:
            return own % _BODY
        if style_id not in self._levels:
            self._levels[style_id] = self._level_of_style(style_id)
        return self._levels[style_id]

    def _level_of_style(self, style_id: str) -> int:
        if self.is_title(style_id):
            return 1
        for _, style in self._with_parents(style_id):
            level = _outline_level(style.properties) or _level_in_name(style.name)
            if level:
                return level % _BODY
        return 0 if style_id in self._styles else _level_in_name(style_id)

    def list_of(self, style_id: str) -> StyleList:
        """Return the list of a style's paragraphs."""
        if style_id not in self._lists:
            self._lists[style_id] = self._find_list(style_id)
        return self._lists[style_id]

    def _find_list(self, style_id: str) -> StyleList:
        level = ""  # a style may have its own in the list of its parent
        for each_id, style in self._with_parents(style_id):
            level = level or value_of(style.properties, "{*}numPr/{*}ilvl")
            if style.list_id:
                return StyleList(style.list_id, level, each_id)
        return StyleList()

    def lists(self) -> dict[str, str]:
        """Return the id of the list of each style that has one, also of the styles of lists."""
        found: dict[str, str] = {}
        for style_id, style in self._styles.items():
            if style.list_id:
                found[style_id] = style.list_id
        return found

    def has_bold_first_row(self, style_id: str) -> bool:
        """Return whether a style of tables sets the first row in bold."""
        return any(style.has_bold_first_row for _, style in self._with_parents(style_id))

    def is_hidden(self, style_id: str) -> bool:
        """Return whether a style hides its text."""
        return any(style.is_hidden for _, style in self._with_parents(style_id))


def _is_bold_first_row(part: etree._Element) -> bool:
    return attribute(part, "type") == "firstRow" and is_on(find_child(part, "{*}rPr"), "b")


def _outline_level(properties: etree._Element | None) -> int:
    """Return the level that properties give: 1 to 6, 10 for text, or 0 if they give none."""
    value = value_of(properties, "{*}outlineLvl")
    if not value.isdecimal():
        return 0
    level = int(value) + 1
    return _BODY if level >= _BODY else min(level, _MAX_LEVEL)


def _level_in_name(name: str) -> int:
    match = _HEADING.fullmatch(name)
    return min(int(match[1]), _MAX_LEVEL) if match else 0
