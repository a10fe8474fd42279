"""Text of Word documents (docx).

Read with lxml: python-docx leaves out text boxes, notes, inserted text and content controls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lxml import etree

from arag.ingest.formats.blocks import Blocks
from arag.ingest.formats.content import Content, FormatError, folded, whole_number
from arag.ingest.formats.package import Package

# What is not in the text that Word prints: deleted and moved text, the second version of a text box, phonetic guides.
_DROPPED = frozenset({"del", "moveFrom", "Fallback", "rt", "pPr", "rPr", "sectPr", "tblPr", "tblGrid", "instrText"})
_CHARACTERS = {"tab": " ", "ptab": " ", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_NOTES = {"footnoteReference": "footnotes", "endnoteReference": "endnotes"}
_HEADING = re.compile(r"heading (\d)$", re.IGNORECASE)
_BODY_LEVEL = 9  # the outline level of text that is not a heading
_MAX_SPAN = 100  # columns of a cell; Word has 63
_MAX_STYLES = 20  # that are based on each other


def read_docx(package: Package) -> Content:
    """Read a Word document.

    Its title is the paragraph in the style Title, or else the first heading of level 1. Headers and footers are left
    out, and so are comments and the numbers of lists. A footnote follows its paragraph. Macros are ignored.

    Raises:
        FormatError: It is not a Word document.
    """
    return _Docx(package).read()


class _Docx:
    def __init__(self, package: Package) -> None:
        main = package.main_part()
        self._blocks = Blocks(package.limits)
        self._body = package.xml(main)
        parts = dict(package.relations(main).values())
        self._levels: dict[str, int] = {}
        self._lists: set[str] = set()
        if parts.get("styles", "") in package:
            self._read_styles(package.xml(parts["styles"]))
        self._notes = {
            (kind, _attribute(note, "id")): note
            for kind in _NOTES.values()
            if parts.get(kind, "") in package
            for note in package.xml(parts[kind])
            if _attribute(note, "type") in {"", "normal"}
        }

    def read(self) -> Content:
        found = False
        for body in self._body.iterchildren("{*}body"):
            found = True
            self._add(body)
        if not found:
            raise FormatError("not a Word document")
        return Content(self._blocks.title, self._blocks.text)

    def _read_styles(self, styles: etree._Element) -> None:
        """Find the heading level of each style, 1 being the highest, and the styles of lists."""
        found = {_attribute(style, "styleId"): style for style in styles.iter("{*}style")}
        for name, first in found.items():
            style = first
            for _ in range(_MAX_STYLES):
                title = _value(style, "name")
                heading = _HEADING.match(title)
                outline = whole_number(_value(style, "pPr/outlineLvl"))
                if heading or outline is not None or title.lower() == "title":
                    level = int(heading[1]) if heading else (outline or 0) + 1
                    if level <= _BODY_LEVEL:
                        self._levels[name] = level
                    break
                if _value(style, "pPr/numPr/numId") not in {"", "0"}:
                    self._lists.add(name)
                at = _value(style, "basedOn")
                if at not in found:
                    break
                style = found[at]

    def _add(self, parent: etree._Element) -> None:
        """Add what is in the body, a text box, a table's cell or a note."""
        for element in parent:
            tag = _tag(element)
            if tag == "p":
                self._add_paragraph(element)
            elif tag == "tbl":
                self._add_table(element)
            elif tag not in _DROPPED:
                self._add(element)

    def _add_paragraph(self, paragraph: etree._Element) -> None:
        later: list[etree._Element] = []
        text = "".join(_text(paragraph, later))
        style = _value(paragraph, "pPr/pStyle")
        list_id = _value(paragraph, "pPr/numPr/numId")
        outline = whole_number(_value(paragraph, "pPr/outlineLvl"))
        level = self._levels.get(style, _BODY_LEVEL + 1) if outline is None else outline + 1
        if level <= _BODY_LEVEL:
            self._blocks.heading(text, level)
        elif list_id not in {"", "0"} or (not list_id and style in self._lists):
            self._blocks.item(text)
        else:
            self._blocks.paragraph(text)
        self._add_later(later)

    def _add_later(self, later: list[etree._Element]) -> None:
        """Add the text boxes and notes of a paragraph."""
        for element in later:
            note = self._notes.pop((_NOTES.get(_tag(element), ""), _attribute(element, "id")), None)
            self._add(element if note is None else note)

    def _add_table(self, table: etree._Element) -> None:
        rows = [list(_children(row, "tc")) for row in _children(table, "tr")]
        if all(len(row) < 2 for row in rows):  # a frame around text
            for cell in (cell for row in rows for cell in row):
                self._add(cell)
            return
        later: list[etree._Element] = []
        first = next(_children(table, "tr"))
        self._blocks.table(_table_rows(rows, later), header=first.find("{*}trPr/{*}tblHeader") is not None)
        self._add_later(later)


def _table_rows(rows: list[list[etree._Element]], later: list[etree._Element]) -> Iterator[list[str]]:
    above: list[str] | None = None
    for row in rows:
        cells: list[str] = []
        for cell in row:
            text = folded("".join(_text(cell, later)))
            merge = cell.find("{*}tcPr/{*}vMerge")
            if merge is not None and _attribute(merge, "val") != "restart" and above is not None:
                text = next(iter(above[len(cells) : len(cells) + 1]), "")  # the cell above reaches down here
            span = whole_number(_value(cell, "tcPr/gridSpan")) or 1
            cells += [text, *[""] * (min(span, _MAX_SPAN) - 1)]
        yield cells
        above = cells


def _text(element: etree._Element, later: list[etree._Element]) -> Iterator[str]:
    """Yield the text of a paragraph or a cell; its text boxes and notes are added to `later`."""
    for child in element:
        tag = _tag(child)
        if tag == "t":
            yield child.text or ""
        elif tag in _CHARACTERS:
            yield _CHARACTERS[tag]
        elif tag == "txbxContent" or tag in _NOTES:
            later.append(child)
        elif tag not in _DROPPED:
            yield from _text(child, later)
            if tag == "p":
                yield "\n"


def _children(element: etree._Element, tag: str) -> Iterator[etree._Element]:
    """Yield the rows of a table, or the cells of a row; content controls may be around them."""
    for child in element:
        if _tag(child) == tag:
            yield child
        elif _tag(child) not in _DROPPED | {"tbl", "tr", "tc"}:
            yield from _children(child, tag)


def _tag(element: etree._Element) -> str:
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def _attribute(element: etree._Element, name: str) -> str:
    """Return an attribute in whatever namespace: strict and transitional documents have different ones."""
    return next((str(value) for key, value in element.attrib.items() if etree.QName(key).localname == name), "")


def _value(element: etree._Element, path: str) -> str:
    found = element.find("/".join(f"{{*}}{step}" for step in path.split("/")))
    return "" if found is None else _attribute(found, "val")
