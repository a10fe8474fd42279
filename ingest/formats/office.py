"""Office documents, e-books and emails of Outlook."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from zipfile import BadZipFile, ZipFile

from lxml import etree

from arag.ingest.formats.content import JSON, Content, FormatError, join_blocks, name_lost
from arag.ingest.formats.ebook import read_ebook
from arag.ingest.formats.kinds import SAME_KINDS
from arag.ingest.formats.odf.reader import read_opendocument
from arag.ingest.formats.old_office import check_password, count_lost
from arag.ingest.formats.outlook import outlook_content
from arag.ingest.formats.package import DamagedError, parse_xml
from arag.ingest.formats.rtf import BAR, find_heading, prepare_rtf, without_marks
from arag.ingest.formats.sheets import read_sheets
from arag.ingest.formats.slides import read_slides
from arag.ingest.formats.tables import table_lines
from arag.ingest.formats.word.reader import read_word
from arag.ingest.formats.word97 import CELL_END, mark_tables, split_rows
from arag.ingest.outline import escape_structure, has_marked_headings
from arag.text.normalise import collapse_whitespace

if TYPE_CHECKING:
    from xberg import ExtractedDocument

_Node: TypeAlias = "Mapping[str, Any]"  # of the tree that xberg makes of a document

_SHEETS = (".xls", ".xlsx", ".ods")
_READERS = {
    ".epub": read_ebook,
    ".docx": read_word,
    ".xlsx": read_sheets,
    ".pptx": read_slides,
    ".odt": read_opendocument,
    ".ods": read_opendocument,
    ".odp": read_opendocument,
}

_MAX_TABLE_CELLS = 5_000_000  # a higher limit reads larger tables, and takes more of the child process's memory
_PROPERTIES = {"docProps/core.xml", "meta.xml"}  # of Office, or of LibreOffice
_NO_TITLE = re.compile(  # what programs write into the title by themselves
    r"|microsoft.*|(?:untitled|unnamed|unbenannt|book|sheet|workbook|mappe|classeur|libro|export|report)[\s\d._()-]*"
    r"|.*\.(?:xlsx?|xlsm|ods|csv|rpt)|.*[\\/].*",
    re.IGNORECASE,
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_MARK = re.compile(r"^\[\^\d+\]: (?:\d+ )?|\[(?:\^|cmt:)\d+\]")  # before a note, and where a note or a comment belongs
# xberg shows error values by names of its own.
_ERROR_VALUES = {
    "Div0": "#DIV/0!",
    "NA": "#N/A",
    "Name": "#NAME?",
    "Null": "#NULL!",
    "Num": "#NUM!",
    "Ref": "#REF!",
    "Value": "#VALUE!",
}
_ERROR_VALUE = re.compile(rf"#ERR: ({'|'.join(_ERROR_VALUES)})\b")
_UNREADABLE = "\ufffd"  # a byte of Chinese, Japanese or Korean in Excel 95
# xberg returns the cells of a Word table in Markdown.
_LINK = re.compile(r"\[([^\[\]]*)\]\((?:https?:|mailto:|#)[^\s()]*\)")
_EMPHASIS = re.compile(r"</?u>|(?<!\w)(\*{2,3}|\*(?=\S)|~~)(.+?)\1")
_GAP_BETWEEN_ITEMS = re.compile(r"^(- .*)\n\n(?=- )", re.MULTILINE)


def read_office(path: Path, extension: str = "") -> Content:
    """Read an office document, an e-book or an email of Outlook; the extension says which, else its name.

    Files of Office since 2007 and of OpenDocument are read by modules of their own. All other files are read by xberg,
    and so are those that these modules refuse. Pictures are left out.

    Raises:
        FormatError: The file is damaged, needs a password or is in another format, or the extra `office` is missing.
    """
    extension = extension or path.suffix.lower()
    kind = SAME_KINDS.get(extension, extension)
    data = path.read_bytes()
    check_password(data, kind)
    try:
        content = _read_in_own_way(path, kind) or _read_tree(data, kind)
    except ImportError as error:
        raise FormatError(f"{error}; install the extra: pip install 'langgraph-arag[office]'") from error
    content = replace(content, marks_headings=has_marked_headings(content.text))
    return _with_properties(content, data, kind)


def _with_properties(content: Content, data: bytes, kind: str) -> Content:
    """Add who wrote a document and when it was last changed; to a workbook also its title."""
    properties = _read_properties(data)
    if properties is None:
        return content
    found: dict[str, JSON] = {}
    author = _property(properties, "creator")
    if author:
        found["author"] = author
    date = _find_date(properties)
    if date:
        found["date"] = date
    title = content.title
    own_title = _property(properties, "title")
    is_useful = not _NO_TITLE.fullmatch(own_title)
    if kind in _SHEETS and not title and is_useful:
        title = own_title
    return replace(
        content,
        title=title,
        metadata={**found, **content.metadata},
    )


def _property(properties: etree._Element, name: str) -> str:
    return collapse_whitespace(properties.findtext(f".//{{*}}{name}", ""))


def _find_date(properties: etree._Element) -> str:
    """Return the day of the last change or, if there is none, of the beginning."""
    for name in ("modified", "created", "date"):
        date = _DATE.match(_property(properties, name))
        if date:
            return date[0]
    return ""


def _read_properties(data: bytes) -> etree._Element | None:
    try:
        with ZipFile(BytesIO(data)) as archive:
            (name,) = _PROPERTIES & set(archive.namelist())
            return parse_xml(archive.read(name))
    except (BadZipFile, ValueError):
        return None


def _read_in_own_way(path: Path, kind: str) -> Content | None:
    """Read a file with a module for its kind; None if there is none, or if it finds nothing in the file."""
    reader = _READERS.get(kind)
    if reader is None:
        return None
    try:
        content = reader(path)
    except DamagedError:
        return None
    except (FormatError, ImportError, MemoryError):
        raise
    except Exception:  # noqa: BLE001 - they refuse files that Office opens, with all kinds of errors
        return None
    return content if content.text or content.left_out else None


def _read_tree(data: bytes, extension: str) -> Content:
    """Read a document from the tree that xberg makes of it."""
    if extension == ".rtf":
        data = prepare_rtf(data)
    elif extension == ".doc":
        data = mark_tables(data)
    document = _extract(data, extension)
    if document.document is None:
        return Content(title="", text=document.content)
    nodes = _nodes_with_notes_last(document.document, extension)
    if extension == ".msg":
        blocks = [_block(node, extension) for node in nodes]
        return outlook_content(nodes, blocks, _read_attachments(document))
    text = _GAP_BETWEEN_ITEMS.sub(r"\1\n", join_blocks(_blocks(nodes, extension)))
    if extension == ".epub":
        return _with_title_and_authors(text, document)
    if extension == ".rtf":
        text = without_marks(text)
    lost = count_lost(data, extension)
    if extension == ".xls":
        text = _ERROR_VALUE.sub(lambda match: _ERROR_VALUES[match[1]], text)
        lost["unreadable letter"] = text.count(_UNREADABLE)
    return Content(
        title=_first_heading(nodes),
        text=text,
        left_out=name_lost(+lost),
    )


def _blocks(nodes: Sequence[_Node], extension: str) -> Iterator[str]:
    """Yield the texts of nodes, as in Markdown, and the tables whose rows are marked in them."""
    rows: list[list[str]] = []
    for node in nodes:
        if CELL_END not in str(node.get("text")):
            block = _block(node, extension)
            if block:
                yield from _take_table(rows)
                yield block
            continue
        for line in split_rows(node["text"]):
            if isinstance(line, str):
                yield from _take_table(rows)
                yield escape_structure(collapse_whitespace(line))
            else:
                rows.append(line)
    yield from _take_table(rows)


def _take_table(rows: list[list[str]]) -> Iterator[str]:
    """Yield the table of the rows that were read, and forget them."""
    yield "\n".join(table_lines(rows))
    rows.clear()


def _read_attachments(document: ExtractedDocument) -> list[str]:
    """Return the names of the attachments of an email that have text."""
    names: list[str] = []
    for child in document.children or ():
        if child.result.content.strip():
            names.append(child.path)
    return names


def _extract(data: bytes, extension: str) -> ExtractedDocument:
    import xberg

    config = xberg.ExtractionConfig(
        include_document_structure=True,
        mime_detection_policy="trust_extension",
        disable_ocr=True,
        use_cache=False,
        enable_quality_processing=False,
        max_archive_depth=1 if extension == ".msg" else 0,  # of attachments
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


def _nodes_with_notes_last(tree: Any, extension: str) -> list[_Node]:
    nodes: list[_Node] = []
    notes: list[_Node] = []
    for node in tree.nodes:
        text = str(node.content)
        content = json.loads(text.replace(BAR, "|") if extension == ".rtf" else text)
        if str(node.content_layer) == "footnote":
            notes.append(content)
        else:
            nodes.append(content)
    return nodes + notes


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
    heading = find_heading(text) if extension == ".rtf" else None
    if heading is not None:
        return heading
    match node["node_type"]:
        case "heading" | "title":
            level = 1 if extension in _SHEETS else min(node.get("level", 1), 6)
            block = f"{'#' * level} {collapse_whitespace(text)}"
        case "slide":
            title = node.get("title") or f"Slide {node['number']}"
            block = f"# {title}"
        case "list_item":
            block = f"- {collapse_whitespace(text)}"
        case "definition_item":
            block = escape_structure(f"{node['term']}: {node['definition']}")
        case "table":
            rows = _table_rows(node["grid"]["cells"])
            block = "\n".join(table_lines(rows, sheet=extension in _SHEETS))
        case "metadata_block":
            lines = [f"{entry['key']}: {entry['value']}" for entry in node["entries"]]
            block = escape_structure("\n".join(lines))
        case "comment":
            block = ""
        case _:
            block = escape_structure(_lines_with_text(text))
    return block


def _lines_with_text(text: str) -> str:
    lines = map(collapse_whitespace, text.split("\n"))
    return "\n".join(line for line in lines if line)


def _table_rows(cells: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    for _, row in groupby(cells, key=itemgetter("row")):
        texts: list[str] = []
        for cell in row:
            column = cell["col"]
            texts.extend([""] * (column + 1 - len(texts)))
            texts[column] = _without_marks(cell["content"])
        yield texts


def _without_marks(cell: str) -> str:
    """Return a cell's text without marks of notes, links and emphasis."""
    text = _MARK.sub("", cell)
    text = _LINK.sub(r"\1", text)
    return _EMPHASIS.sub(r"\2", text)
