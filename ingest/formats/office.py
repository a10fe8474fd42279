"""Office documents, e-books and emails of Outlook."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from arag.ingest.formats.content import Content, FormatError, folded
from arag.ingest.formats.tables import table_lines

# xberg takes some zip archives for archives of files, unless it is told the format.
_OFFICE_XML = "application/vnd.openxmlformats-officedocument"
_MIME_TYPES = {
    ".docx": f"{_OFFICE_XML}.wordprocessingml.document",
    ".docm": f"{_OFFICE_XML}.wordprocessingml.document",
    ".pptx": f"{_OFFICE_XML}.presentationml.presentation",
    ".pptm": f"{_OFFICE_XML}.presentationml.presentation",
    ".xlsx": f"{_OFFICE_XML}.spreadsheetml.sheet",
    ".xlsm": f"{_OFFICE_XML}.spreadsheetml.sheet",
    ".odt": "application/vnd.oasis.opendocument.text",
    ".epub": "application/epub+zip",
}
OFFICE_ENDINGS = (*_MIME_TYPES, ".odp", ".ods", ".rtf", ".doc", ".ppt", ".xls", ".msg")

_OLE = bytes.fromhex("d0cf11e0a1b11ae1")  # begins an encrypted file, and one of Office before 2007
_MAX_TABLE_CELLS = 5_000_000
_SHOWN_FIELDS = ("Subject", "From", "To", "CC", "Date")  # of an email
_MARK = re.compile(r"\[(?:\^|cmt:)\d+\]")  # where a note or a comment belongs
# The cells of a Word table come in Markdown.
_LINK = re.compile(r"\[([^\[\]]*)\]\((?:https?:|mailto:|#)[^\s()]*\)")
_EMPHASIS = re.compile(r"</?u>|(?<!\w)(\*{2,3}|\*(?=\S)|~~)(.+?)\1")


def read_office(path: Path) -> Content:
    """Read an office document, an e-book or an email of Outlook.

    Excel's and PowerPoint's are read by openpyxl and python-pptx, which know percentages, dates and charts. All else,
    and what those two refuse, is read by xberg. Headers, footers, comments and pictures are left out.

    Raises:
        FormatError: The file is damaged, encrypted or in another format, or the extra `office` is not installed.
    """
    ending, data = path.suffix.lower(), path.read_bytes()
    if data.startswith(_OLE) and ending in _MIME_TYPES:
        raise FormatError("encrypted, or from before 2007: save it again, without a password")
    try:
        return _read_excel_or_powerpoint(path, ending) or _read_tree(data, ending)
    except ImportError as error:
        raise FormatError(f"{error}; install the extra: pip install 'langgraph-arag[office]'") from error


def _read_excel_or_powerpoint(path: Path, ending: str) -> Content | None:
    try:
        if ending in {".xlsx", ".xlsm"}:
            from arag.ingest.formats.sheets import read_sheets as read
        elif ending in {".pptx", ".pptm"}:
            from arag.ingest.formats.slides import read_slides as read
        else:
            return None
        content = read(path)
    except (FormatError, ImportError, MemoryError):
        raise
    except Exception:  # noqa: BLE001 - they refuse what Office does not mind, with all kinds of errors
        return None
    return content if content.text else None


def _read_tree(data: bytes, ending: str) -> Content:
    """Read a document from the tree that xberg makes of it."""
    import xberg

    source = xberg.ExtractInput(kind="bytes", bytes=data, filename=f"file{ending}", mime_type=_MIME_TYPES.get(ending))
    config = xberg.ExtractionConfig(
        output_format="plain",
        include_document_structure=True,
        disable_ocr=True,
        use_cache=False,
        enable_quality_processing=False,
        max_archive_depth=0,  # of attachments
        content_filter=xberg.ContentFilterConfig(include_footnotes=True, strip_repeating_text=False),
        security_limits=xberg.SecurityLimits(max_table_cells=_MAX_TABLE_CELLS),
    )
    try:
        document = asyncio.run(xberg.extract(source, config)).results[0]
    except RuntimeError as error:
        raise FormatError(f"damaged, or in another format: {error}") from error
    if document.document is None:
        return Content("", document.content)
    nodes = [json.loads(str(node.content)) for node in document.document.nodes]
    places = {number: number for number in range(len(nodes))}
    places |= {link.target: link.source for link in document.document.relationships if "note" in str(link.kind)}
    blocks = [_block(nodes[number]) for number in sorted(places, key=lambda number: (places[number], number))]
    text = re.sub(r"^(- .*)\n\n(?=- )", r"\1\n", "\n\n".join(filter(None, blocks)), flags=re.MULTILINE)
    title = document.metadata.title if ending == ".epub" else ""
    fields = {"author": ", ".join(document.metadata.authors or [])} if ending == ".epub" else {}
    for node in nodes:
        if node["node_type"] == "metadata_block" and ending == ".msg":
            fields = {name.lower(): value for name, value in _fields(node).items() if name in {"From", "Date"}}
        title = title or _fields(node).get("Subject") or (node["text"] if node.get("level") == 1 else "")
    return Content(title or "", text, metadata=fields)


def _fields(node: Mapping[str, Any]) -> dict[str, str]:
    fields = {entry["key"]: entry["value"] for entry in node.get("entries", [])}
    return {name: fields[name] for name in _SHOWN_FIELDS if name in fields}


def _block(node: Mapping[str, Any]) -> str:
    """Return the text of a node."""
    text = _MARK.sub("", node.get("text") or "")
    match node["node_type"]:
        case "title" | "heading":
            block = f"{'#' * min(node.get('level', 1), 6)} {folded(text)}"
        case "slide":
            block = f"# {node.get('title') or 'Slide {number}'.format(**node)}"
        case "list_item":
            block = f"- {folded(text)}"
        case "definition_item":
            block = f"{node['term']}: {node['definition']}"
        case "table":
            block = "\n".join(table_lines(_rows(node["grid"]["cells"])))
        case "metadata_block":
            block = "\n".join(f"{name}: {value}" for name, value in _fields(node).items())
        case "comment":
            block = ""
        case _:
            block = "\n".join(filter(None, map(folded, text.split("\n"))))
    return block


def _rows(cells: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    for _, row in groupby(cells, key=lambda cell: cell["row"]):
        texts = {cell["col"]: _EMPHASIS.sub(r"\2", _LINK.sub(r"\1", _MARK.sub("", cell["content"]))) for cell in row}
        yield [texts.get(column, "") for column in range(max(texts) + 1)]
