"""Changes Word documents so that xberg reads all of their text."""

from __future__ import annotations

import re
from copy import deepcopy
from io import BytesIO
from zipfile import BadZipFile, ZipFile

from lxml import etree

_MAIN_PART = "word/document.xml"
_ANY_MAIN_PART = re.compile(r"word/document\d*\.xml")  # Word in a browser writes `document2.xml`


def prepare_word(data: bytes) -> bytes:
    """Return a Word document with its text in `document.xml`, and each cell in all rows that it spans."""
    copy = BytesIO()
    try:
        with ZipFile(BytesIO(data)) as archive, ZipFile(copy, "w") as prepared:
            for name in archive.namelist():
                if _ANY_MAIN_PART.fullmatch(name):
                    prepared.writestr(_MAIN_PART, _repeat_merged_cells(archive.read(name)))
                elif name.endswith((".xml", ".rels")):  # no pictures
                    prepared.writestr(name, archive.read(name))
    except BadZipFile:
        return data
    return copy.getvalue()


def _repeat_merged_cells(document: bytes) -> bytes:
    """Give a cell that spans several rows to each of them, so that every row has all of its values."""
    if b"<w:vMerge" not in document:
        return document
    try:
        root = etree.fromstring(document, etree.XMLParser(resolve_entities=False))
    except etree.XMLSyntaxError:  # xberg reads it, or names the fault
        return document
    for table in root.iter("{*}tbl"):
        _repeat_in_table(table)
    repeated: bytes = etree.tostring(root)
    return repeated


def _repeat_in_table(table: etree._Element) -> None:
    above: dict[int, etree._Element] = {}  # the last cell that begins in each column
    for row in table.iterfind("{*}tr"):
        column = 0
        for cell in row.iterfind("{*}tc"):
            merge = cell.find("{*}tcPr/{*}vMerge")
            if merge is not None and "restart" not in merge.values() and column in above:
                merge.getparent().remove(merge)
                properties = cell[0]
                _, *content = deepcopy(above[column])
                cell[:] = [properties, *content]
            above[column] = cell
            column += _columns(cell)


def _columns(cell: etree._Element) -> int:
    """Return the number of columns that a cell spans."""
    span = cell.find("{*}tcPr/{*}gridSpan")
    if span is None:
        return 1
    return int(*span.values())  # of its only attribute
