"""Word documents in the form that xberg reads whole."""

from __future__ import annotations

import re
from contextlib import suppress
from io import BytesIO
from zipfile import BadZipFile, ZipFile

from lxml import etree

from arag.ingest.formats.content import folded


def repair_word(data: bytes) -> bytes:
    """Return a Word document with its text in `document.xml`, and with tables that are plain grids.

    Word in a browser writes `document2.xml`. Pictures are left out. What is damaged stays as it is.
    """
    with suppress(BadZipFile, etree.XMLSyntaxError), ZipFile(BytesIO(data)) as archive:
        names = sorted(archive.namelist())
        main = next((name for name in names if re.fullmatch(r"word/(.*/)?document\d*\.xml", name)), None)
        if main is None:
            return data
        document = etree.fromstring(archive.read(main), etree.XMLParser(resolve_entities=False, huge_tree=True))
        _repair_tables(document, document.tag.removesuffix("document"))
        with ZipFile(repaired := BytesIO(), "w") as copy:
            copy.writestr("word/document.xml", etree.tostring(document, encoding="utf-8"))
            for name in {*names} - {main, "word/document.xml"}:
                if name.endswith((".xml", ".rels")):
                    copy.writestr(name, archive.read(name))
        return repaired.getvalue()
    return data


def _repair_tables(document: etree._Element, word: str) -> None:
    """Move inner tables below the outermost one, and repeat a cell that spans several rows in each."""
    tables = list(document.iter(f"{word}tbl"))
    for table in reversed(tables):
        if outer := [*table.iterancestors(f"{word}tbl")]:
            outer[-1].addnext(table)
    for table in tables:
        above: dict[int, str] = {}
        for row in table.iter(f"{word}tr"):
            column = 0
            for cell in row.iter(f"{word}tc"):
                merge, span = (cell.find(f"{word}tcPr/{word}{name}") for name in ("vMerge", "gridSpan"))
                if merge is None:
                    above.pop(column, None)
                else:
                    merge.getparent().remove(merge)
                    if merge.get(f"{word}val") == "restart":
                        above[column] = _text(cell, word)
                    else:
                        run = etree.SubElement(etree.SubElement(cell, f"{word}p"), f"{word}r")
                        etree.SubElement(run, f"{word}t").text = above.get(column, "")
                column += 1 if span is None else int(span.get(f"{word}val", "1"))


def _text(cell: etree._Element, word: str) -> str:
    parts = cell.iter(f"{word}p", f"{word}t", f"{word}br", f"{word}cr", f"{word}tab")
    return folded("".join(part.text or "" if part.tag == f"{word}t" else " " for part in parts))
