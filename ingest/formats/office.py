"""Office documents, e-books and emails of Outlook."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from zipfile import BadZipFile, ZipFile

from lxml import etree

from arag.ingest.formats.content import JSON, Content, FormatError, join_blocks
from arag.ingest.formats.sheets import read_sheets
from arag.ingest.formats.slides import read_slides
from arag.ingest.formats.tables import table_lines
from arag.ingest.formats.word import prepare_word
from arag.text.normalise import collapse_whitespace

if TYPE_CHECKING:
    from xberg import ExtractedDocument

_Node: TypeAlias = "Mapping[str, Any]"  # of the tree that xberg makes of a document

_TEXTS = (".docx", ".docm")
_SHEETS = (".xlsx", ".xlsm", ".xls", ".ods")
_READERS = {".xlsx": read_sheets, ".xlsm": read_sheets, ".pptx": read_slides, ".pptm": read_slides}

_OLE = bytes.fromhex("d0cf11e0a1b11ae1")  # begins an encrypted file, and a file of Office before 2007
_MAX_TABLE_CELLS = 5_000_000  # a higher limit reads larger tables, and takes more of the child process's memory
_PROPERTIES = {"docProps/core.xml", "meta.xml"}  # of Office, or of LibreOffice
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_MARK = re.compile(r"\[(?:\^|cmt:)\d+\]")  # where a note or a comment belongs
# xberg returns the cells of a Word table in Markdown.
_LINK = re.compile(r"\[([^\[\]]*)\]\((?:https?:|mailto:|#)[^\s()]*\)")
_EMPHASIS = re.compile(r"</?u>|(?<!\w)(\*{2,3}|\*(?=\S)|~~)(.+?)\1")
_GAP_BETWEEN_ITEMS = re.compile(r"^(- .*)\n\n(?=- )", re.MULTILINE)


def read_office(path: Path, extension: str = "") -> Content:
    """Read an office document, an e-book or an email of Outlook; the extension says which, else its name.

    Excel's workbooks and PowerPoint's presentations are read by modules that know percentages, dates and charts. All
    other files are read by xberg, and so are those that these modules refuse. Headers, footers, comments and pictures
    are left out.

    Raises:
        FormatError: The file is damaged, encrypted or in another format, or the extra `office` is not installed.
    """
    extension = extension or path.suffix.lower()
    data = path.read_bytes()
    if data.startswith(_OLE) and extension in {*_TEXTS, *_READERS}:
        raise FormatError("encrypted, or from before 2007: save it again, without a password")
    try:
        content = _read_sheets_or_slides(path, extension)
        if not content.text:
            content = _read_tree(data, extension)
    except ImportError as error:
        raise FormatError(f"{error}; install the extra: pip install 'langgraph-arag[office]'") from error
    return replace(content, metadata={**_properties(data), **content.metadata})


def _properties(data: bytes) -> dict[str, JSON]:
    """Return who wrote a document and when it was last changed, from its properties."""
    try:
        with ZipFile(BytesIO(data)) as archive:
            (name,) = _PROPERTIES & set(archive.namelist())
            properties = etree.fromstring(archive.read(name), etree.XMLParser(resolve_entities=False))
    except (BadZipFile, ValueError, etree.XMLSyntaxError):
        return {}
    found: dict[str, JSON] = {}
    author = collapse_whitespace(properties.findtext(".//{*}creator", ""))
    if author:
        found["author"] = author
    for name in ("modified", "created", "date"):
        time = properties.findtext(f".//{{*}}{name}", "")
        if _DATE.match(time):
            found["date"] = time[: len("2024-12-31")]
            break
    return found


def _read_sheets_or_slides(path: Path, extension: str) -> Content:
    """Read a workbook or a presentation; the text of others, and of those that the libraries refuse, is empty."""
    reader = _READERS.get(extension)
    if reader is None:
        return Content(title="", text="")
    try:
        return reader(path)
    except (FormatError, ImportError, MemoryError):
        raise
    except Exception:  # noqa: BLE001 - they refuse files that Office opens, with all kinds of errors
        return Content(title="", text="")


def _read_tree(data: bytes, extension: str) -> Content:
    """Read a document from the tree that xberg makes of it."""
    if extension in _TEXTS:
        data = prepare_word(data)
    document = _extract(data, extension)
    if document.document is None:
        return Content(title="", text=document.content)
    nodes = _nodes_with_notes_last(document.document)
    blocks = [_block(node, extension) for node in nodes]
    text = _GAP_BETWEEN_ITEMS.sub(r"\1\n", join_blocks(blocks))
    if extension in {".epub", ".msg"}:
        return _with_title_and_authors(text, document)
    return Content(title=_first_heading(nodes), text=text)


def _extract(data: bytes, extension: str) -> ExtractedDocument:
    import xberg

    config = xberg.ExtractionConfig(
        include_document_structure=True,
        mime_detection_policy="trust_extension",
        disable_ocr=True,
        use_cache=False,
        enable_quality_processing=False,
        max_archive_depth=0,  # of attachments
        content_filter=xberg.ContentFilterConfig(
            include_footnotes=True,
            strip_repeating_text=False,
        ),
        security_limits=xberg.SecurityLimits(max_table_cells=_MAX_TABLE_CELLS),
    )
    try:
        source = xberg.ExtractInput(
            kind="bytes",
            bytes=data,
            filename=f"file{extension}",
        )
        return asyncio.run(xberg.extract(source, config)).results[0]
    except RuntimeError as error:
        raise FormatError(f"damaged, or in another format: {error}") from error


def _nodes_with_notes_last(tree: Any) -> list[_Node]:
    in_order = sorted(tree.nodes, key=_is_note)
    return [json.loads(str(node.content)) for node in in_order]


def _is_note(node: Any) -> bool:
    return str(node.content_layer) == "footnote"


def _with_title_and_authors(text: str, document: ExtractedDocument) -> Content:
    about = document.metadata
    metadata: dict[str, JSON] = {}
    if about.authors:
        metadata["author"] = ", ".join(about.authors)
    return Content(
        title=about.title or about.subject or "",
        text=text,
        metadata=metadata,
    )


def _first_heading(nodes: Sequence[_Node]) -> str:
    for node in nodes:
        if node.get("level") == 1:
            heading: str = node["text"]
            return heading
    return ""


def _block(node: _Node, extension: str) -> str:
    """Return the text of a node, as in Markdown; some have none."""
    text = _MARK.sub("", node.get("text") or "")
    match node["node_type"]:
        case "heading" | "title":
            level = min(node.get("level", 1), 6)
            block = f"{'#' * level} {collapse_whitespace(text)}"
        case "slide":
            title = node.get("title") or f"Slide {node['number']}"
            block = f"# {title}"
        case "list_item":
            block = f"- {collapse_whitespace(text)}"
        case "definition_item":
            block = f"{node['term']}: {node['definition']}"
        case "table":
            rows = _table_rows(node["grid"]["cells"])
            block = "\n".join(table_lines(rows, header=extension in _SHEETS))
        case "metadata_block":
            block = "\n".join(f"{entry['key']}: {entry['value']}" for entry in node["entries"])
        case "comment":
            block = ""
        case _:
            block = _lines_with_text(text)
    return block


def _lines_with_text(text: str) -> str:
    lines = map(collapse_whitespace, text.split("\n"))
    return "\n".join(line for line in lines if line)


def _table_rows(cells: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    for _, row in groupby(cells, key=lambda cell: cell["row"]):
        texts = {cell["col"]: _without_marks(cell["content"]) for cell in row}
        width = max(texts) + 1
        yield [texts.get(column, "") for column in range(width)]


def _without_marks(cell: str) -> str:
    """Return a cell's text without marks of notes, links and emphasis."""
    text = _MARK.sub("", cell)
    text = _LINK.sub(r"\1", text)
    return _EMPHASIS.sub(r"\2", text)
