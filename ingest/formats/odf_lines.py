"""The text of a paragraph of OpenDocument, and what hangs on it: shapes, notes, comments."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from lxml import etree

from arag.ingest.formats.drawings import raised
from arag.ingest.formats.odf_styles import Styles
from arag.ingest.formats.package import attribute, local_name
from arag.text.normalise import collapse_whitespace

SHAPES = frozenset(  # and what they are in
    "frame g a custom-shape rect line ellipse circle connector polygon polyline path caption measure regular-polygon "
    "scene text-box control".split()
)
_NOT_SHOWN = frozenset(
    "tracked-changes forms sequence-decls variable-decls user-field-decls change change-start change-end title desc "
    "annotation-end binary-data script event-listeners ruby-text glue-point enhanced-geometry image-map".split()
)
_MAX_SPACES = 1_000  # that one mark stands for
_WHITE_SPACE = re.compile(r"[ \t\n\r]+")  # shown as one space


@dataclass
class Line:
    """The text of a paragraph.

    Attributes:
        text: The text; line breaks inside it are kept, other white space is collapsed.
        beside: The shapes, notes and comments that belong to it.
    """

    text: str = ""
    beside: list[etree._Element] = field(default_factory=list)


def read_line(paragraph: etree._Element, styles: Styles) -> Line:
    """Read a paragraph."""
    reader = _LineReader(styles)
    reader.read(paragraph)
    lines = map(collapse_whitespace, reader.line.text.split("\n"))
    reader.line.text = "\n".join(text for text in lines if text)
    return reader.line


class _LineReader:
    def __init__(self, styles: Styles) -> None:
        self._styles = styles
        self.line = Line()

    def read(self, element: etree._Element) -> None:
        """Read what is in an element."""
        self._add(element.text)
        for child in element:
            self._read_child(child, local_name(child))
            self._add(child.tail)

    def _add(self, text: str | None) -> None:
        self.line.text += _WHITE_SPACE.sub(" ", text or "")

    def _read_child(self, child: etree._Element, name: str) -> None:
        match name:
            case "s":
                spaces = attribute(child, "c")
                self.line.text += " " * min(int(spaces) if spaces.isdecimal() else 1, _MAX_SPACES)
            case "tab":
                self.line.text += " "
            case "line-break":
                self.line.text += "\n"
            case "note" | "annotation":
                self.line.beside.append(child)
            case "span":
                self._read_span(child)
            case "ruby":
                self.read(child)
                above = child.findtext("{*}ruby-text", "")
                self.line.text += f"({above})" if above else ""
            case _ if name in SHAPES and not _is_link(child):
                self.line.beside.append(child)
            case _ if name not in _NOT_SHOWN:
                self.read(child)

    def _read_span(self, span: etree._Element) -> None:
        style = attribute(span, "style-name")
        if self._styles.is_hidden("text", style):
            return
        before = self.line.text
        self.read(span)
        baseline = self._styles.baseline(style)
        if baseline:
            self.line.text = before + raised(self.line.text[len(before) :], baseline, before)


def _is_link(element: etree._Element) -> bool:
    """Return whether an element is a link in a text, whose name is that of a link around shapes."""
    return local_name(element) == "a" and ":text:" in str(element.tag)
