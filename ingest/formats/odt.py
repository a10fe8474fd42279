"""Text of OpenDocument texts (odt), as LibreOffice writes them."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from arag.ingest.documents import Limits
from arag.ingest.formats.blocks import Blocks
from arag.ingest.formats.content import Content, FormatError, folded, whole_number
from arag.ingest.formats.package import Package

_DROPPED = frozenset({"tracked-changes", "annotation", "sequence-decls", "forms", "ruby-text", "note-citation"})
_TITLES = frozenset({"Title", "rststyle-title"})  # of LibreOffice, and of docutils
_APART = frozenset({"note", "text-box"})  # what stands apart from the paragraph that it is in
_MAX_REPEATED = 100  # cells; an empty rest of a row is written as one cell, repeated


def read_odt(package: Package) -> Content:
    """Read an OpenDocument text; its title is the first heading of level 1, or else that of its properties.

    A footnote follows its paragraph. Deleted text and comments are left out.

    Raises:
        FormatError: It is not an OpenDocument text, or is encrypted.
    """
    if "META-INF/manifest.xml" in package and b"encryption-data" in package.read("META-INF/manifest.xml"):
        raise FormatError("encrypted: save it without a password")
    root = package.xml("content.xml")
    body = root.find("{*}body/{*}text")
    if body is None:
        raise FormatError("not an OpenDocument text")
    odt = _Odt(root, package.limits)
    odt.add(body)
    title = odt.blocks.title
    if not title and "meta.xml" in package:
        title = folded(package.xml("meta.xml").findtext("{*}meta/{*}title") or "")
    return Content(title, odt.blocks.text)


class _Odt:
    """Collects the blocks of a text.

    Attributes:
        blocks: Those found so far.
    """

    def __init__(self, root: etree._Element, limits: Limits) -> None:
        self.blocks = Blocks(limits)
        # A paragraph that differs from its style in anything has a style of its own, based on it.
        styles = root.iterfind("{*}automatic-styles/{*}style")
        bases = {_attribute(style, "name"): _attribute(style, "parent-style-name") for style in styles}
        self._titles = {"Title", *(name for name, base in bases.items() if base in _TITLES)}

    def add(self, parent: etree._Element, *, in_list: bool = False) -> None:
        for element in parent:
            tag = _tag(element)
            if tag in {"p", "h"}:
                self._add_paragraph(element, in_list=in_list)
            elif tag == "table":
                self._add_table(element)
            elif tag not in _DROPPED:
                self.add(element, in_list=in_list or tag in {"list-item", "list-header"})

    def _add_paragraph(self, paragraph: etree._Element, *, in_list: bool) -> None:
        apart: list[etree._Element] = []
        text = "".join(_text(paragraph, apart))
        if _tag(paragraph) == "h":
            self.blocks.heading(text, whole_number(_attribute(paragraph, "outline-level")) or 1)
        elif _attribute(paragraph, "style-name") in self._titles:
            self.blocks.heading(text, 1)
        elif in_list:
            self.blocks.item(text)
        else:
            self.blocks.paragraph(text)
        for each in apart:
            self.add(each)

    def _add_table(self, table: etree._Element) -> None:
        apart: list[etree._Element] = []
        self.blocks.table(_table_rows(table, apart), header=table.find("{*}table-header-rows") is not None)
        for each in apart:
            self.add(each)


def _table_rows(table: etree._Element, apart: list[etree._Element]) -> Iterator[list[str]]:
    for row in _rows(table):
        cells: list[str] = []
        for cell in row:
            times = whole_number(_attribute(cell, "number-columns-repeated")) or 1
            cells += [folded("".join(_text(cell, apart)))] * min(times, _MAX_REPEATED)
        yield cells


def _rows(table: etree._Element) -> Iterator[etree._Element]:
    for element in table:
        if _tag(element) == "table-row":
            yield element
        elif _tag(element) in {"table-header-rows", "table-rows", "table-row-group"}:
            yield from _rows(element)


def _text(element: etree._Element, apart: list[etree._Element]) -> Iterator[str]:
    """Yield the text of a paragraph or a cell; the text boxes and notes in it are added to `apart`."""
    yield element.text or ""
    for child in element:
        tag = _tag(child)
        if tag in _APART:
            apart.append(child)
        elif tag in {"s", "tab"}:
            yield " "
        elif tag == "line-break":
            yield "\n"
        elif tag not in _DROPPED and isinstance(child.tag, str):
            yield from _text(child, apart)
            if tag in {"p", "h"}:
                yield "\n"
        yield child.tail or ""


def _tag(element: etree._Element) -> str:
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def _attribute(element: etree._Element, name: str) -> str:
    return next((str(value) for key, value in element.attrib.items() if key.endswith(f"}}{name}")), "")
