"""The blocks of OpenDocument: paragraphs, headings, lists and tables, and what hangs on them."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from lxml import etree

from arag.ingest.formats.odf.lines import SHAPES, read_line
from arag.ingest.formats.odf.rows import has_header, plain_value, read_rows
from arag.ingest.formats.odf.styles import ListNumbers, Styles
from arag.ingest.formats.package import Package, attribute, local_name, to_int
from arag.ingest.formats.pictures import describe
from arag.ingest.formats.tables import table_lines
from arag.ingest.formats.title_texts import opening_title
from arag.ingest.formats.word.numbers import BULLET
from arag.ingest.outline import escape_structure
from arag.text.normalise import collapse_whitespace

_AROUND = frozenset(
    "index-body table-of-content illustration-index table-index object-index user-index alphabetical-index "
    "bibliography index-title numbered-paragraph".split()
)
_BESIDE_PICTURES = frozenset("title desc glue-point event-listeners image-map contour-polygon contour-path".split())
_MAX_LEVEL = 6  # of a heading in Markdown
_ITEM = re.compile(r"-|\d{1,3}[.)] ")


@dataclass
class Document:
    """What the parts of a document share.

    Attributes:
        styles: Its styles.
        package: The file, which may have other documents inside this one; None for a single file of XML.
        folder: Where it lies in the file.
        depth: How many documents it is inside of.
        title: Its title, as far as it is read.
        opening: Its first paragraph if that is centred as a title is, else an empty string; None before it is read.
        first_heading: That of the first level, or an empty string if it has a number; None before it is read.
        lost: The parts that the text lacks, by their kinds.
    """

    styles: Styles
    package: Package | None = None
    folder: str = ""
    depth: int = 0
    title: str = ""
    opening: str | None = None
    first_heading: str | None = None
    lost: Counter[str] = field(default_factory=Counter)


# Yields the text of a document inside another one, from its root and its folder.
_ReadEmbedded: TypeAlias = "Callable[[Document, etree._Element, str], Iterator[str]]"  # noqa: SLF001 - its name


class BlockReader:
    """Reads the blocks of a document.

    Args:
        document: The document.
        read_embedded: Reads a document inside it.
    """

    def __init__(self, document: Document, read_embedded: _ReadEmbedded) -> None:
        self.document = document
        self._read_embedded = read_embedded
        self._beside: list[etree._Element] = []  # shapes and notes of the current block
        self._lists: dict[str, ListNumbers] = {}  # by the ids that other lists continue
        self._is_in_cell = False  # where headings and items have no marks
        self._readers: dict[str, Callable[[etree._Element], Iterable[str]]] = {
            "p": self._read_paragraph,
            "h": self._read_heading,
            "list": self._read_list,
            "table": self._read_table,
            "section": self._read_section,
            **dict.fromkeys(_AROUND, self.read),
            **dict.fromkeys(SHAPES, self.read_beside),
        }

    def read(self, container: etree._Element) -> Iterator[str]:
        """Yield paragraphs, items and tables; what hangs on one follows it."""
        for element in container:
            for block in self._read_block(element):
                yield block
                yield from self.take_beside()

    def blocks_of(self, containers: Iterable[etree._Element]) -> list[str]:
        """Return the blocks of elements that have text."""
        blocks: list[str] = []
        for container in containers:
            blocks += filter(None, self.read(container))
        return blocks

    def _read_block(self, element: etree._Element) -> Iterable[str]:
        reader = self._readers.get(local_name(element))
        return () if reader is None else reader(element)

    # --- paragraphs ---

    def _read_paragraph(self, element: etree._Element) -> Iterator[str]:
        text = self.text_of(element)
        style = attribute(element, "style-name")
        is_title = self.document.styles.is_title(style)
        if text and self.document.opening is None:
            self.document.opening = opening_title(text, is_centred=self.document.styles.is_centred(style))
        if text and is_title:
            self.document.title = collapse_whitespace(text)
            yield self._marked(1, self.document.title)
        elif self._is_in_cell:
            yield text
        else:
            yield escape_structure(text)

    def _read_heading(self, element: etree._Element) -> Iterator[str]:
        level = _heading_level(element)
        number = self.document.styles.headings.next_number(level, attribute(element, "start-value"))
        yield self._heading_text(element, level, number)

    def _heading_text(self, element: etree._Element, level: int, number: str) -> str:
        """Return a heading with its marks and its number, which may be that of a list item around it."""
        text = collapse_whitespace(self.text_of(element))
        if not text:
            return ""  # its shapes follow
        is_numbered = number not in {"", BULLET}
        if level == 1 and self.document.first_heading is None:
            self.document.first_heading = "" if is_numbered else text  # a chapter's title is not the document's
        self.document.opening = self.document.opening or ""
        if is_numbered:
            text = f"{number} {text}"
        return self._marked(level, text)

    def _marked(self, level: int, heading: str) -> str:
        if self._is_in_cell:
            return heading
        marks = "#" * min(level, _MAX_LEVEL)
        return f"{marks} {heading}"

    def text_of(self, element: etree._Element) -> str:
        """Return the text of a paragraph; what hangs on it is kept for later."""
        line = read_line(element, self.document.styles)
        self._beside += line.beside
        return line.text

    def _read_section(self, element: etree._Element) -> Iterator[str]:
        if attribute(element, "display") != "none":
            yield from self.read(element)

    # --- lists ---

    def _read_list(self, element: etree._Element) -> Iterator[str]:
        yield from self._read_items(element, 1, self._start_list(element))

    def _start_list(self, element: etree._Element) -> ListNumbers:
        style = attribute(element, "style-name")
        earlier = self._lists.get(attribute(element, "continue-list"))
        if earlier is None and attribute(element, "continue-numbering") == "true":
            earlier = self._lists.get(f"style {style}")
        numbers = earlier or self.document.styles.make_list(style)
        self._lists[attribute(element, "id")] = numbers
        self._lists[f"style {style}"] = numbers
        self._lists.pop("", None)  # many lists have no id
        return numbers

    def _read_items(self, element: etree._Element, level: int, numbers: ListNumbers) -> Iterator[str]:
        """Yield the items of a list and of the lists in it."""
        for item in element.iterchildren("{*}list-item", "{*}list-header"):
            yield from self._read_item(item, level, numbers)

    def _read_item(self, item: etree._Element, level: int, numbers: ListNumbers) -> Iterator[str]:
        """Yield an item: its first paragraph with its number, and the others without one."""
        needs_number = local_name(item) == "list-item"
        for element in item:
            if local_name(element) == "list":
                yield from self._read_items(element, level + 1, numbers)
                continue
            if local_name(element) == "h" and needs_number:
                number = numbers.next_number(level, attribute(item, "start-value"))
                needs_number = False
                yield self._heading_text(element, _heading_level(element), number)
                continue
            for text in self._read_block(element):
                if needs_number:
                    number = numbers.next_number(level, attribute(item, "start-value"))
                    needs_number = False
                    yield self._with_number(number, text)
                else:
                    yield text

    def _with_number(self, number: str, text: str) -> str:
        if number == BULLET and self._is_in_cell:
            number = ""
        if not number:
            return text
        return f"{number} {collapse_whitespace(text)}".strip()

    # --- tables ---

    def _read_table(self, table: etree._Element) -> Iterator[str]:
        if not self._is_in_cell:
            yield self.table_text(table)
            return
        cells: list[str] = []
        for row in self.rows_of(table):
            cells += filter(None, row)
        yield " ".join(cells)

    def table_text(self, table: etree._Element) -> str:
        """Return the rows of a table, each with the names of its columns."""
        rows = list(self.rows_of(table))
        return "\n".join(table_lines(rows, header=has_header(table, self.document.styles)))

    def rows_of(self, table: etree._Element) -> Iterator[list[str]]:
        """Yield the texts of the cells of each row."""
        return read_rows(table, self._cell_text)

    def _cell_text(self, cell: etree._Element) -> str:
        """Return the text that a cell shows; a date in the form of ISO 8601."""
        text = self._text_in_cell(cell)
        self._beside += cell.iterfind("{*}annotation")
        kind = attribute(cell, "value-type")
        if kind == "date":
            return attribute(cell, "date-value").replace("T", " ").removesuffix(" 00:00:00") or text
        has_value = kind != "" or text != ""
        if not has_value and attribute(cell, "formula"):
            self.document.lost["formula"] += 1
        return text or plain_value(cell, kind)

    def _text_in_cell(self, cell: etree._Element) -> str:
        was_in_cell = self._is_in_cell
        self._is_in_cell = True
        texts: list[str] = []
        for element in cell:
            texts += map(collapse_whitespace, self._read_block(element))
        self._is_in_cell = was_in_cell
        return " ".join(filter(None, texts))

    # --- what hangs on a block ---

    def take_beside(self) -> Iterator[str]:
        """Yield what hangs on the blocks that were read last, once."""
        beside = self._beside
        self._beside = []
        for element in beside:
            yield from self.read_beside(element)

    def read_beside(self, element: etree._Element) -> Iterator[str]:
        """Yield the blocks of a note, a comment or a shape."""
        match local_name(element):
            case "note":
                yield join_with_lists(self.blocks_of(element.iterfind("{*}note-body")))
            case "annotation":
                author = element.findtext("{*}creator") or "an unknown author"
                text = collapse_whitespace(" ".join(self.blocks_of([element])))
                yield f"Comment by {author}: {text}"
            case "frame":
                yield from self._read_frame(element)
            case _:
                yield from self.read(element)

    def _read_frame(self, frame: etree._Element) -> Iterator[str]:
        """Yield what a frame shows: its contents that have text; the others are pictures of them."""
        contents = [content for content in frame if local_name(content) not in _BESIDE_PICTURES]
        if contents and all(local_name(content) == "image" for content in contents):
            self.document.lost["picture"] += 1
            title = frame.findtext("{*}title") or ""
            yield describe(frame.findtext("{*}desc") or title)
        for content in contents:
            match local_name(content):
                case "object":
                    yield from self._read_object(content)
                case "object-ole":
                    self.document.lost["embedded document"] += 1
                case _:
                    yield from self._read_block(content)

    def _read_object(self, element: etree._Element) -> Iterator[str]:
        """Yield the text of a chart, a formula or another document inside this one."""
        folder = posixpath.normpath(posixpath.join(self.document.folder, attribute(element, "href")))
        root: etree._Element | None = next(element.iterchildren("{*}math", "{*}document"), None)
        if root is None and self.document.package is not None:
            root = self.document.package.xml(f"{folder}/content.xml")
        if root is None:
            self.document.lost["embedded document"] += 1
        elif local_name(root) == "math":
            yield _formula(root)
        else:
            yield from self._read_embedded(self.document, root, folder)


def _heading_level(heading: etree._Element) -> int:
    return max(1, to_int(attribute(heading, "outline-level"), 1))  # some programs give the title a 0


def _formula(root: etree._Element) -> str:
    source = root.findtext(".//{*}annotation")  # as the author wrote it
    return collapse_whitespace(source or " ".join(root.itertext()))


def join_with_lists(blocks: Sequence[str]) -> str:
    """Return the text of blocks, with a blank line between them, and none between items of a list."""
    text = ""
    follows_item = False
    for block in filter(None, blocks):
        is_item = _ITEM.match(block) is not None and "\n" not in block
        if text:
            text += "\n" if follows_item and is_item else "\n\n"
        text += block
        follows_item = is_item
    return text
