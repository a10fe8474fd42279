"""Office documents, e-books and emails of Outlook."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from lxml import etree

from arag.ingest.formats.content import JSON, Content, FormatError
from arag.ingest.formats.sheets import read_sheets
from arag.ingest.formats.slides import read_slides
from arag.ingest.formats.tables import table_lines
from arag.text.normalise import collapse_whitespace

_TEXTS = (".docx", ".docm")
_SHEETS = (".xlsx", ".xlsm", ".xls", ".ods")
_READERS = {".xlsx": read_sheets, ".xlsm": read_sheets, ".pptx": read_slides, ".pptm": read_slides}

_OLE = bytes.fromhex("d0cf11e0a1b11ae1")  # begins an encrypted file, and one of Office before 2007
_MAX_TABLE_CELLS = 5_000_000
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_MARK = re.compile(r"\[(?:\^|cmt:)\d+\]")  # where a note or a comment belongs
# The cells of a Word table come in Markdown.
_LINK = re.compile(r"\[([^\[\]]*)\]\((?:https?:|mailto:|#)[^\s()]*\)")
_EMPHASIS = re.compile(r"</?u>|(?<!\w)(\*{2,3}|\*(?=\S)|~~)(.+?)\1")


def read_office(path: Path) -> Content:
    """Read an office document, an e-book or an email of Outlook.

    Excel's workbooks and PowerPoint's presentations are read by modules that know percentages, dates and charts. All
    else, and what these refuse, is read by xberg. Headers, footers, comments and pictures are left out.

    Raises:
        FormatError: The file is damaged, encrypted or in another format, or the extra `office` is not installed.
    """
    ending, data = path.suffix.lower(), path.read_bytes()
    if data.startswith(_OLE) and ending in {*_TEXTS, *_READERS}:
        raise FormatError("encrypted, or from before 2007: save it again, without a password")
    try:
        content = _read_sheets_or_slides(path, ending)
        if not content.text:
            content = _read_tree(data, ending)
    except ImportError as error:
        raise FormatError(f"{error}; install the extra: pip install 'langgraph-arag[office]'") from error
    return replace(content, metadata={**_properties(data), **content.metadata})


def _properties(data: bytes) -> dict[str, JSON]:
    """Return who wrote a document and when it was changed last, as its properties say."""
    try:
        with ZipFile(BytesIO(data)) as archive:
            (name,) = {"docProps/core.xml", "meta.xml"} & set(archive.namelist())  # of Office, or of LibreOffice
            properties = etree.fromstring(archive.read(name), etree.XMLParser(resolve_entities=False))
    except (BadZipFile, ValueError, etree.XMLSyntaxError):
        return {}
    author = collapse_whitespace(properties.findtext(".//{*}creator") or "")
    times = (properties.findtext(f".//{{*}}{name}") or "" for name in ("modified", "created", "date"))
    date = next((time[:10] for time in times if _DATE.match(time)), "")
    return {name: value for name, value in (("author", author), ("date", date)) if value}


def _read_sheets_or_slides(path: Path, ending: str) -> Content:
    """Read a workbook or a presentation; of others, and of what the libraries refuse, there is no text."""
    try:
        return _READERS[ending](path) if ending in _READERS else Content("", "")
    except (FormatError, ImportError, MemoryError):
        raise
    except Exception:  # noqa: BLE001 - they refuse what Office does not mind, with all kinds of errors
        return Content("", "")


def _read_tree(data: bytes, ending: str) -> Content:
    """Read a document from the tree that xberg makes of it."""
    import xberg

    if ending in _TEXTS:
        data = _prepare_word(data)
    config = xberg.ExtractionConfig(
        include_document_structure=True,
        mime_detection_policy="trust_extension",
        disable_ocr=True,
        use_cache=False,
        enable_quality_processing=False,
        max_archive_depth=0,  # of attachments
        content_filter=xberg.ContentFilterConfig(include_footnotes=True, strip_repeating_text=False),
        security_limits=xberg.SecurityLimits(max_table_cells=_MAX_TABLE_CELLS),
    )
    try:
        source = xberg.ExtractInput(kind="bytes", bytes=data, filename=f"file{ending}")
        document = asyncio.run(xberg.extract(source, config)).results[0]
    except RuntimeError as error:
        raise FormatError(f"damaged, or in another format: {error}") from error
    if document.document is None:
        return Content("", document.content)
    in_order = sorted(document.document.nodes, key=lambda node: str(node.content_layer) == "footnote")  # notes last
    nodes = [json.loads(str(node.content)) for node in in_order]
    blocks = [_block(node, ending) for node in nodes]
    text = re.sub(r"^(- .*)\n\n(?=- )", r"\1\n", "\n\n".join(filter(None, blocks)), flags=re.MULTILINE)
    about = document.metadata
    if ending in {".epub", ".msg"}:
        metadata = {"author": ", ".join(about.authors)} if about.authors else {}
        return Content(about.title or about.subject or "", text, metadata=metadata)
    return Content(next((node["text"] for node in nodes if node.get("level") == 1), ""), text)


def _prepare_word(data: bytes) -> bytes:
    """Return a Word document as xberg reads it: its text in `document.xml`, each cell in all rows that it spans.

    Word in a browser writes `document2.xml`.
    """
    copy = BytesIO()
    try:
        with ZipFile(BytesIO(data)) as archive, ZipFile(copy, "w") as prepared:
            for name in archive.namelist():
                if re.fullmatch(r"word/document\d*\.xml", name):
                    prepared.writestr("word/document.xml", _repeat_cells(archive.read(name)))
                elif name.endswith((".xml", ".rels")):
                    prepared.writestr(name, archive.read(name))
    except BadZipFile:
        return data
    return copy.getvalue()


def _repeat_cells(document: bytes) -> bytes:
    if b"<w:vMerge" not in document:
        return document
    try:
        root = etree.fromstring(document, etree.XMLParser(resolve_entities=False))
    except etree.XMLSyntaxError:  # the library says what is wrong, or reads it
        return document
    for table in root.iter("{*}tbl"):
        above: dict[int, etree._Element] = {}
        for row in table.iterfind("{*}tr"):
            column = 0
            for cell in row.iterfind("{*}tc"):
                merge, span = cell.find("{*}tcPr/{*}vMerge"), cell.find("{*}tcPr/{*}gridSpan")
                if merge is not None and "restart" not in merge.values() and column in above:
                    merge.getparent().remove(merge)
                    cell[:] = [cell[0], *map(deepcopy, above[column][1:])]  # the first one has the properties
                above[column] = cell
                column += 1 if span is None else int(*span.values())
    repeated: bytes = etree.tostring(root)
    return repeated


def _block(node: Mapping[str, Any], ending: str) -> str:
    text = _MARK.sub("", node.get("text") or "")
    match node["node_type"]:
        case "heading" | "title":
            block = f"{'#' * min(node.get('level', 1), 6)} {collapse_whitespace(text)}"
        case "slide":
            block = f"# {node.get('title') or 'Slide {number}'.format(**node)}"
        case "list_item":
            block = f"- {collapse_whitespace(text)}"
        case "definition_item":
            block = f"{node['term']}: {node['definition']}"
        case "table":
            block = "\n".join(table_lines(_rows(node["grid"]["cells"]), header=ending in _SHEETS))
        case "metadata_block":
            block = "\n".join(f"{entry['key']}: {entry['value']}" for entry in node["entries"])
        case "comment":
            block = ""
        case _:
            block = "\n".join(filter(None, map(collapse_whitespace, text.split("\n"))))
    return block


def _rows(cells: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    for _, row in groupby(cells, key=lambda cell: cell["row"]):
        texts = {cell["col"]: _EMPHASIS.sub(r"\2", _LINK.sub(r"\1", _MARK.sub("", cell["content"]))) for cell in row}
        yield [texts.get(column, "") for column in range(max(texts) + 1)]
