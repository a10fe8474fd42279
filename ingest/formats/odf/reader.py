"""Documents of OpenDocument: texts, workbooks and presentations of LibreOffice and others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lxml import etree

from arag.ingest.formats.content import Content, FormatError, join_blocks, join_pages, name_lost
from arag.ingest.formats.odf.blocks import BlockReader, Document, join_with_lists
from arag.ingest.formats.odf.headers import read_headers
from arag.ingest.formats.odf.pages import read_pages
from arag.ingest.formats.odf.styles import Styles
from arag.ingest.formats.old_office import PASSWORD_NEEDED
from arag.ingest.formats.package import DamagedError, Package, attribute, local_name, parse_xml
from arag.ingest.formats.tables import table_lines
from arag.text.normalise import count

_MAX_DEPTH = 5  # of documents in documents


def read_opendocument(path: Path) -> Content:
    """Read a text, a workbook or a presentation of OpenDocument.

    Raises:
        FormatError: It is damaged, or needs a password.
    """
    data = path.read_bytes()
    is_one_file = not data.startswith(b"PK")
    if is_one_file:
        root = parse_xml(data)
        return _read_document(Document(Styles([root])), root, root)
    package = Package(data)
    manifest = package.read("META-INF/manifest.xml") or b""
    if b"encryption-data" in manifest:
        raise FormatError(PASSWORD_NEEDED)
    content = package.xml("content.xml")
    if content is None:
        raise DamagedError("damaged: it has no content.xml")
    styles = package.xml("styles.xml")
    if styles is None:
        return _read_document(Document(Styles([content]), package), content, content)
    return _read_document(Document(Styles([styles, content]), package), content, styles)


def _read_document(document: Document, root: etree._Element, headers_root: etree._Element) -> Content:
    """Read a document, or one that is embedded in another.

    Args:
        document: What its parts share.
        root: The root of its content.
        headers_root: The root that has its headers and footers.
    """
    page_starts: tuple[int, ...] = ()
    reader = BlockReader(document, _read_embedded)
    main = _find_main(root)
    match local_name(main):
        case "spreadsheet":
            text = join_blocks(_read_sheets(main, reader))
        case "presentation" | "drawing":
            text, page_starts = join_pages(read_pages(main, reader))
        case _:
            blocks = list(reader.read(main))
            blocks += read_headers(headers_root, reader)
            text = join_with_lists(blocks)
    return Content(
        title=document.title or document.first_heading or document.opening or "",
        text=text,
        page_starts=page_starts,
        left_out=_name_left_out(document),
    )


def _find_main(root: etree._Element) -> etree._Element:
    """Return the element that has the text, the sheets or the pages."""
    for element in root.iterfind("{*}body/*"):
        if local_name(element) != "forms":
            return element
    raise DamagedError("damaged: it has no text")


def _name_left_out(document: Document) -> tuple[str, ...]:
    formulas = document.lost.pop("formula", 0)
    left_out = name_lost(document.lost)
    if not formulas:
        return left_out
    phrase = f"{count(formulas, 'formula')} without a saved value (open and save the file in a spreadsheet program)"
    return (phrase, *left_out)


def _read_sheets(spreadsheet: etree._Element, reader: BlockReader) -> Iterator[str]:
    """Yield the name of each sheet that is not empty, its rows, and then its comments and shapes."""
    for table in spreadsheet.iterfind("{*}table"):
        rows = table_lines(reader.rows_of(table), sheet=True)
        blocks = [
            "\n".join(rows),
            *reader.take_beside(),
            *reader.blocks_of(table.iterfind("{*}shapes")),
        ]
        if any(blocks):
            yield _heading_of_sheet(table, reader.document.styles)
            yield from blocks


def _heading_of_sheet(table: etree._Element, styles: Styles) -> str:
    heading = f"# {attribute(table, 'name')}"
    if styles.is_hidden("table", attribute(table, "style-name")):
        heading += " (hidden)"
    return heading


def _read_embedded(outer: Document, root: etree._Element, folder: str) -> Iterator[str]:
    """Yield the text of a chart or another document inside a document."""
    has_text = root.find("{*}body") is not None
    if not has_text or outer.depth >= _MAX_DEPTH:
        outer.lost["embedded document"] += 1
        return
    inner = Document(
        styles=Styles([root]),
        package=outer.package,
        folder=folder,
        depth=outer.depth + 1,
    )
    chart = root.find("{*}body/{*}chart/{*}chart")
    if chart is None:
        yield _read_document(inner, root, root).text
    else:
        yield from _read_chart(chart, BlockReader(inner, _read_embedded))


def _read_chart(chart: etree._Element, reader: BlockReader) -> Iterator[str]:
    """Yield the titles of a chart and its values as a table."""
    for title in chart.iter("{*}title", "{*}subtitle"):
        text = " ".join(map(reader.text_of, title.iterfind("{*}p")))
        is_of_axis = title.getparent().tag.endswith("}axis")
        kind = "Axis" if is_of_axis else "Chart"
        if text:
            yield f"{kind}: {text}"
    for table in chart.iterfind("{*}table"):
        yield reader.table_text(table)
