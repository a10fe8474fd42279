"""The text of a paragraph of OpenDocument, and what hangs on it: shapes, notes, comments."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from lxml import etree

from arag.ingest.formats.drawings import raised
from arag.ingest.formats.odf.styles import Styles
from arag.ingest.formats.package import attribute, local_name, to_int
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
    reader.line.text = "\n".join(filter(None, lines))
    return reader.line


class _LineReader:
    def __init__(self, styles: Styles) -> None:
        self._styles = styles
        self.line = Line()
        self._readers: dict[str, Callable[[etree._Element], None]] = {
            "s": self._read_spaces,
            "tab": self._read_tab,
            "line-break": self._read_line_break,
            "note": self.line.beside.append,
            "annotation": self.line.beside.append,
            "span": self._read_span,
            "ruby": self._read_ruby,
        }

    def read(self, element: etree._Element) -> None:
        """Read what is in an element."""
        self._add(element.text)
        for child in element:
            self._read_child(child)
            self._add(child.tail)

    def _add(self, text: str | None) -> None:
        self.line.text += _WHITE_SPACE.sub(" ", text or "")

    def _read_child(self, child: etree._Element) -> None:
        name = local_name(child)
        reader = self._readers.get(name)
        is_shape = name in SHAPES and not _is_link(child)
        if reader is not None:
            reader(child)
        elif is_shape:
            self.line.beside.append(child)
        elif name not in _NOT_SHOWN:
            self.read(child)

    def _read_spaces(self, mark: etree._Element) -> None:
        number = to_int(attribute(mark, "c"), 1)
        self.line.text += " " * min(number, _MAX_SPACES)

    def _read_tab(self, _: etree._Element) -> None:
        self.line.text += " "

    def _read_line_break(self, _: etree._Element) -> None:
        self.line.text += "\n"

    def _read_ruby(self, ruby: etree._Element) -> None:
        """Read a text, and in brackets the small letters above it that say how it is spoken."""
        self.read(ruby)
        above = ruby.findtext("{*}ruby-text")
        if above:
            self.line.text += f"({above})"

    def _read_span(self, span: etree._Element) -> None:
        style = attribute(span, "style-name")
        if self._styles.is_hidden("text", style):
            return
        before = self.line.text
        self.read(span)
        baseline = self._styles.baseline(style)
        if baseline:
            inside = self.line.text[len(before) :]
            self.line.text = before + raised(inside, baseline, before)


def _is_link(element: etree._Element) -> bool:
    """Return whether an element is a link in a text, whose name is that of a link around shapes."""
    return local_name(element) == "a" and ":text:" in str(element.tag)
