"""Documents of OpenDocument: texts, workbooks and presentations of LibreOffice and others."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from lxml import etree

from arag.ingest.formats.content import Content, FormatError, join_blocks, join_pages, name_lost
from arag.ingest.formats.odf_lines import SHAPES, read_line
from arag.ingest.formats.odf_rows import plain_value, read_rows
from arag.ingest.formats.odf_styles import ListNumbers, Styles
from arag.ingest.formats.old_office import PASSWORD_NEEDED
from arag.ingest.formats.package import DamagedError, Package, attribute, local_name, parse_xml
from arag.ingest.formats.reading_order import Place, in_reading_order
from arag.ingest.formats.tables import table_lines
from arag.ingest.formats.word_numbers import BULLET
from arag.ingest.outline import escape_structure
from arag.text.normalise import collapse_whitespace, count

_MAX_DEPTH = 5  # of documents in documents
_AROUND = frozenset(
    "section index-body table-of-content illustration-index table-index object-index user-index alphabetical-index "
    "bibliography index-title numbered-paragraph".split()
)
_PAGE_NUMBERS = frozenset({"page-number", "page-count", "page-continuation"})
_LENGTH = re.compile(r"(-?[\d.]+)(cm|mm|in|pt|pc|px)?")
_CENTIMETRES = {"mm": 0.1, "in": 2.54, "pt": 2.54 / 72, "pc": 2.54 / 6, "px": 2.54 / 96}


def read_opendocument(path: Path) -> Content:
    """Read a text, a workbook or a presentation of OpenDocument.

    Raises:
        FormatError: It is damaged, or needs a password.
    """
    data = path.read_bytes()
    if not data.startswith(b"PK"):  # one file of XML
        root = parse_xml(data)
        return _OpenDocument(Styles([root])).read(root, None)
    package = Package(data)
    manifest = package.read("META-INF/manifest.xml") or b""
    if b"encryption-data" in manifest:
        raise FormatError(PASSWORD_NEEDED)
    content = package.xml("content.xml")
    if content is None:
        raise DamagedError("damaged: it has no content.xml")
    styles = package.xml("styles.xml")
    roots = [content] if styles is None else [styles, content]
    return _OpenDocument(Styles(roots), package).read(content, styles)


class _OpenDocument:
    """Reads a document, or one that is embedded in another."""

    def __init__(self, styles: Styles, package: Package | None = None, folder: str = "", depth: int = 0) -> None:
        self._styles = styles
        self._package = package
        self._folder = folder
        self._depth = depth
        self._title = ""
        self._lost = Counter[str]()
        self._beside: list[etree._Element] = []  # shapes and notes of the current block
        self._lists: dict[str, ListNumbers] = {}  # by the ids that other lists continue
        self._is_in_cell = False  # where headings and items have no marks

    def read(self, root: etree._Element, styles_root: etree._Element | None) -> Content:
        """Return the content."""
        page_starts: tuple[int, ...] = ()
        body = root.find("{*}body")
        kinds = [] if body is None else [element for element in body if local_name(element) != "forms"]
        if not kinds:
            raise DamagedError("damaged: it has no text")
        main = kinds[0]
        match local_name(main):
            case "spreadsheet":
                text = join_blocks(self._read_sheets(main))
            case "presentation" | "drawing":
                text, page_starts = join_pages(list(self._read_pages(main)))
            case _:
                blocks = [*self._read_blocks(main), *self._read_headers(root if styles_root is None else styles_root)]
                text = _join(blocks)
        formulas = self._lost.pop("formula", 0)
        left_out = name_lost(self._lost)
        if formulas:
            left_out = (_formulas_without_values(formulas), *left_out)
        return Content(self._title, text, page_starts, left_out=left_out)

    # --- blocks ---

    def _read_blocks(self, container: etree._Element) -> Iterator[str]:
        """Yield paragraphs, items and tables; what hangs on one follows it."""
        for element in container:
            for block in self._read_block(element):
                yield block
                yield from self._take_beside()

    def _take_beside(self) -> Iterator[str]:
        beside, self._beside = self._beside, []
        for element in beside:
            yield from self._read_beside(element)

    def _read_block(self, element: etree._Element) -> Iterator[str]:
        name = local_name(element)
        match name:
            case "p":
                yield self._read_paragraph(element)
            case "h":
                yield self._read_heading(element)
            case "list":
                yield from self._read_list(element, 1)
            case "table" if self._is_in_cell:
                yield " ".join(text for row in read_rows(element, self._cell_text) for text in row if text)
            case "table":
                yield self._read_table(element)
            case "section" if attribute(element, "display") == "none":
                return
            case _ if name in _AROUND:
                yield from self._read_blocks(element)
            case _ if name in SHAPES:
                yield from self._read_beside(element)

    def _read_paragraph(self, element: etree._Element) -> str:
        text = self._text(element)
        if text and self._styles.is_title(attribute(element, "style-name")):
            self._title = collapse_whitespace(text)
            return self._marked(1, self._title)
        return text if self._is_in_cell else escape_structure(text)

    def _marked(self, level: int, heading: str) -> str:
        return heading if self._is_in_cell else f"{'#' * min(level, 6)} {heading}"

    def _read_heading(self, element: etree._Element) -> str:
        text = collapse_whitespace(self._text(element))
        level = attribute(element, "outline-level")
        level_number = int(level) if level.isdecimal() else 1
        number = self._styles.headings.next_number(level_number, attribute(element, "start-value"))
        if not text:
            return ""
        if level_number == 1 and not self._title:
            self._title = text
        if number and number != BULLET:
            text = f"{number} {text}"
        return self._marked(level_number, text)

    def _read_list(self, element: etree._Element, level: int, numbers: ListNumbers | None = None) -> Iterator[str]:
        """Yield the items of a list with their numbers, and the paragraphs that have none."""
        if numbers is None:
            numbers = self._start_list(element)
        for item in element:
            name = local_name(item)
            if name not in {"list-item", "list-header"}:
                continue
            is_first = name == "list-item"
            for block in item:
                if local_name(block) == "list":
                    yield from self._read_list(block, level + 1, numbers)
                    continue
                for text in self._read_block(block):
                    number = numbers.next_number(level, attribute(item, "start-value")) if is_first else ""
                    is_first = False
                    if number == BULLET and self._is_in_cell:
                        number = ""
                    yield f"{number} {collapse_whitespace(text)}".strip() if number else text

    def _start_list(self, element: etree._Element) -> ListNumbers:
        style = attribute(element, "style-name")
        earlier = self._lists.get(attribute(element, "continue-list"))
        if earlier is None and attribute(element, "continue-numbering") == "true":
            earlier = self._lists.get(f"style {style}")
        numbers = earlier or self._styles.make_list(style)
        self._lists[attribute(element, "id")] = numbers
        self._lists[f"style {style}"] = numbers
        return numbers

    def _read_headers(self, root: etree._Element) -> Iterator[str]:
        """Yield the headers and footers of pages, each text once, without the numbers of pages."""
        seen: set[str] = set()
        for element in root.iterfind("{*}master-styles/{*}master-page/*"):
            kind = "Header" if "header" in local_name(element) else "Footer"
            if "header" not in local_name(element) and "footer" not in local_name(element):
                continue
            for number in list(element.iter(*(f"{{*}}{name}" for name in _PAGE_NUMBERS))):
                number.text = ""
            text = collapse_whitespace(" ".join(self._read_blocks(element)))
            if text and text not in seen and any(map(str.isalpha, text)):
                seen.add(text)
                yield f"{kind}: {text}"

    def _text(self, element: etree._Element) -> str:
        """Return the text of a paragraph; what hangs on it is kept for later."""
        line = read_line(element, self._styles)
        self._beside += line.beside
        return line.text

    # --- notes and shapes ---

    def _read_beside(self, element: etree._Element) -> Iterator[str]:
        name = local_name(element)
        if name == "note":
            yield _join(self._blocks_of(element.iterfind("{*}note-body")))
        elif name == "annotation":
            author = element.findtext("{*}creator", "") or "an unknown author"
            text = " ".join(self._blocks_of([element]))
            yield f"Comment by {author}: {collapse_whitespace(text)}"
        elif name == "frame":
            yield from self._read_frame(element)
        else:
            yield from self._read_blocks(element)

    def _blocks_of(self, containers: Iterable[etree._Element]) -> list[str]:
        return [block for container in containers for block in self._read_blocks(container) if block]

    def _read_frame(self, frame: etree._Element) -> Iterator[str]:
        """Yield what a frame shows: its first content that has text; the others are pictures of it."""
        for content in frame:
            match local_name(content):
                case "text-box":
                    yield from self._read_blocks(content)
                case "table":
                    yield self._read_table(content)
                case "object":
                    yield from self._read_object(content)
                case "object-ole":
                    self._lost["embedded document"] += 1
                case "image" if len(frame) == 1:
                    self._lost["picture"] += 1

    def _read_object(self, element: etree._Element) -> Iterator[str]:
        """Yield the text of a chart, a formula or another document inside this one."""
        root: etree._Element | None = next(element.iterchildren("{*}math", "{*}document"), None)
        folder = posixpath.normpath(posixpath.join(self._folder, attribute(element, "href")))
        if root is None and self._package is not None:
            root = self._package.xml(f"{folder}/content.xml")
        if root is not None and local_name(root) == "math":
            yield _formula(root)
            return
        if root is None or root.find("{*}body") is None or self._depth >= _MAX_DEPTH:
            self._lost["embedded document"] += 1
            return
        chart = root.find("{*}body/{*}chart/{*}chart")
        inner = _OpenDocument(Styles([root]), self._package, folder, self._depth + 1)
        if chart is not None:
            yield from inner.read_chart(chart)
        else:
            yield inner.read(root, None).text

    def read_chart(self, chart: etree._Element) -> Iterator[str]:
        """Yield the titles of a chart and its values as a table."""
        for element in chart.iter("{*}title", "{*}subtitle"):
            parent = element.getparent()
            is_axis = parent is not None and local_name(parent) == "axis"
            text = " ".join(map(self._text, element.iterfind("{*}p")))
            if text:
                yield f"{'Axis' if is_axis else 'Chart'}: {text}"
        for table in chart.iterfind("{*}table"):
            yield self._read_table(table)

    # --- tables ---

    def _read_table(self, table: etree._Element) -> str:
        rows = list(read_rows(table, self._cell_text))
        is_marked = table.find("{*}table-header-rows") is not None
        return "\n".join(table_lines(rows, header=is_marked))

    def _cell_text(self, cell: etree._Element) -> str:
        """Return the text that a cell shows; a date in the form of ISO 8601."""
        kind = attribute(cell, "value-type")
        is_in_cell, self._is_in_cell = self._is_in_cell, True
        texts = [collapse_whitespace(text) for element in cell for text in self._read_block(element)]
        self._is_in_cell = is_in_cell
        text = " ".join(text for text in texts if text)
        for annotation in cell.iterfind("{*}annotation"):
            self._beside.append(annotation)
        if kind == "date":
            return attribute(cell, "date-value").replace("T", " ").removesuffix(" 00:00:00") or text
        if kind == "" and not text and attribute(cell, "formula"):
            self._lost["formula"] += 1
        return text or plain_value(cell, kind)

    def _read_sheets(self, spreadsheet: etree._Element) -> Iterator[str]:
        for table in spreadsheet.iterfind("{*}table"):
            rows = table_lines(read_rows(table, self._cell_text), sheet=True)
            beside = [block for block in self._take_beside() if block]
            for shapes in table.iterfind("{*}shapes"):
                beside += self._blocks_of([shapes])
            if rows or beside:
                is_hidden = self._styles.is_hidden("table", attribute(table, "style-name"))
                yield f"# {attribute(table, 'name')}{' (hidden)' if is_hidden else ''}"
                yield "\n".join(rows)
                yield from beside

    # --- pages of presentations and drawings ---

    def _read_pages(self, presentation: etree._Element) -> Iterator[str]:
        """Yield the text of each slide: its title or number, its shapes, the speaker's notes."""
        pictures = 0
        for number, page in enumerate(presentation.iterfind("{*}page"), 1):
            titles = [shape for shape in page if attribute(shape, "class") == "title"]
            heading = collapse_whitespace(" ".join(self._blocks_of(titles)))
            self._title = self._title or heading
            shapes = [shape for shape in page if shape not in titles and local_name(shape) in SHAPES]
            blocks: list[str] = []
            for shape in _sort(shapes):
                blocks += self._read_page_shape(shape)
            blocks += self._blocks_of_comments(page)
            notes = self._blocks_of(shape for shape in page.iterfind("{*}notes/*") if local_name(shape) in SHAPES)
            pictures += not heading and not blocks and page.find(".//{*}image") is not None
            if number == 1:
                blocks += self._read_footers(presentation)
            if notes:
                blocks.append("Notes: " + "\n".join(notes))
            yield join_blocks([f"# {heading or f'Slide {number}'}", *blocks])
        self._lost.pop("picture", None)
        if pictures:
            self._lost["slide with nothing but a picture"] = pictures

    def _read_page_shape(self, shape: etree._Element) -> list[str]:
        texts = [text for text in [*self._read_beside(shape), *self._take_beside()] if text]
        if attribute(shape, "class") in {"outline", "subtitle"} and len(texts) > 1:
            texts = [text if text.startswith("- ") else f"- {text}" for text in texts]
        return [_join(texts)]

    def _blocks_of_comments(self, page: etree._Element) -> Iterator[str]:
        for annotation in page.iterfind("{*}annotation"):
            yield from self._read_beside(annotation)

    def _read_footers(self, presentation: etree._Element) -> Iterator[str]:
        for element in presentation.iter("{*}footer-decl"):
            text = collapse_whitespace("".join(element.itertext()))
            if text:
                yield f"Footer: {text}"


def _formulas_without_values(number: int) -> str:
    return f"{count(number, 'formula')} without a saved value (open and save the file in a spreadsheet program)"


def _join(blocks: Sequence[str]) -> str:
    """Return the text of blocks, with a blank line between them, and none between items of a list."""
    text = ""
    follows_item = False
    for block in blocks:
        if not block:
            continue
        is_item = _ITEM.match(block) is not None and "\n" not in block
        if text:
            text += "\n" if follows_item and is_item else "\n\n"
        text += block
        follows_item = is_item
    return text


_ITEM = re.compile(r"-|\d{1,3}[.)] ")


def _formula(root: etree._Element) -> str:
    annotation = root.find(".//{*}annotation")
    if annotation is not None and annotation.text:
        return collapse_whitespace(annotation.text)
    return collapse_whitespace(" ".join(root.itertext()))


def _sort(shapes: list[etree._Element]) -> list[etree._Element]:
    """Return shapes in the order in which a person reads them; as they are if the place of one is unknown."""
    places: dict[etree._Element, Place] = {}
    for shape in shapes:
        left, top, height = (_length(attribute(shape, name)) for name in ("x", "y", "height"))
        if left is None or top is None:
            return shapes
        places[shape] = Place(left, top, height or 0)
    return in_reading_order(places)


def _length(text: str) -> float | None:
    match = _LENGTH.fullmatch(text)
    if match is None:
        return None
    return float(match[1]) * _CENTIMETRES.get(match[2] or "cm", 1)
