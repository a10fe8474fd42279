"""Documents of Word: what a person sees in them, in its order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from lxml import etree

from arag.ingest.formats.content import Content, FormatError, decode_text, name_lost
from arag.ingest.formats.drawings import drawing_texts
from arag.ingest.formats.package import Package, attribute, find_child, local_name, value_of
from arag.ingest.formats.tables import table_lines
from arag.ingest.formats.word_numbers import BULLET, Numbering
from arag.ingest.formats.word_runs import Drawing, Line, read_line
from arag.ingest.formats.word_styles import Styles, is_on
from arag.ingest.outline import escape_structure
from arag.text.normalise import collapse_whitespace

_ANY_MAIN_PART = re.compile(r"word/document\d*\.xml")  # Word in a browser writes `document2.xml`
_AROUND = frozenset(  # elements around paragraphs, tables, rows or cells that do not show
    "sdt sdtContent customXml smartTag ins moveTo AlternateContent Choice".split()
)
_DELETED = frozenset("del moveFrom".split())
_NO_NOTES = frozenset("separator continuationSeparator continuationNotice".split())
_PAGE_WORDS = re.compile(r"(?:page|of|seite|von|sur|p|\W|_)*", re.IGNORECASE)  # around the numbers of pages
_MAX_DEPTH = 5  # of documents that are attached to each other
_MAX_SPAN = 1_000  # columns that a cell spans: more would fill the memory


@dataclass(frozen=True)
class _Block:
    """A paragraph or a table."""

    shown: str
    plain: str  # its text without marks, for a cell
    is_item: bool = False


@dataclass
class _Document:
    """What the parts of a document share."""

    package: Package
    styles: Styles
    numbering: Numbering
    depth: int
    title: str = ""
    lost: Counter[str] = field(default_factory=Counter)


def read_word(path: Path) -> Content:
    """Read a document of Word, with the numbers of its clauses, its boxes, charts, notes, comments and headers.

    Raises:
        FormatError: It is damaged.
    """
    return word_content(path.read_bytes())


def word_content(data: bytes, depth: int = 0) -> Content:
    """Return the content of a document of Word; see `read_word`."""
    package = Package(data)
    main = _find_main_part(package)
    relations = package.relations(main)
    of_kind = {relation.kind: relation.part for relation in relations.values()}
    styles = Styles(package.xml(of_kind.get("styles", "word/styles.xml")))
    document = _Document(
        package=package,
        styles=styles,
        numbering=Numbering(package.xml(of_kind.get("numbering", "word/numbering.xml")), styles.lists()),
        depth=depth,
    )
    reader = _PartReader(document, main)
    root = package.xml(main)
    if root is None:
        raise FormatError("damaged: it has no document.xml")
    blocks = list(reader.read(root.iterfind("{*}body")))
    blocks += _read_headers(document, {r.part: r.kind for r in relations.values() if r.kind in {"header", "footer"}})
    text = _join(blocks)
    if text:
        del document.lost["picture"]  # it may be an ornament
    return Content(
        title=document.title,
        text=text,
        left_out=name_lost(document.lost),
    )


def _find_main_part(package: Package) -> str:
    named = package.main_part()
    if package.read(named) is not None:
        return named
    for name in package.names.values():
        if _ANY_MAIN_PART.fullmatch(name):
            return name
    raise FormatError("damaged: it has no document.xml")


def _join(blocks: Iterable[_Block]) -> str:
    """Return the text of blocks, with a blank line between them, and none between items of a list."""
    text = ""
    follows_item = False
    for block in blocks:
        if not block.shown:
            continue
        if text:
            text += "\n" if follows_item and block.is_item else "\n\n"
        text += block.shown
        follows_item = block.is_item
    return text


def _read_headers(document: _Document, parts: dict[str, str]) -> Iterator[_Block]:
    """Yield the headers and footers, each text once; numbers of pages are left out."""
    seen: set[str] = set()
    for part, kind in parts.items():
        root = document.package.xml(part)
        if root is None:
            continue
        reader = _PartReader(document, part, has_pages=True)
        texts = [block.plain for block in reader.read([root])]
        text = " ".join(text for text in texts if not _PAGE_WORDS.fullmatch(text))
        if text and text not in seen:
            seen.add(text)
            yield _Block(f"{kind.capitalize()}: {text}", text)


class _PartReader:
    """Reads a part of a document: its text, its notes or a header.

    Args:
        document: The document.
        part: The part's name.
        has_pages: Whether the numbers of pages are left out.
    """

    def __init__(self, document: _Document, part: str, *, has_pages: bool = False) -> None:
        self._document = document
        self._relations = document.package.relations(part)
        self._has_pages = has_pages
        self._after: list[_Block] = []  # what belongs to the current paragraph or table: boxes, charts, notes
        self._notes: dict[str, dict[str, etree._Element]] = {}  # by their kind and their ids

    def read(self, containers: Iterable[etree._Element]) -> Iterator[_Block]:
        """Yield the blocks of elements; what belongs to a block follows it."""
        for container in containers:
            for block in self._blocks(container):
                yield block
                after, self._after = self._after, []
                yield from after

    def _blocks(self, container: etree._Element) -> Iterator[_Block]:
        for element in _children(container):
            match local_name(element):
                case "p":
                    yield self._read_paragraph(element)
                case "tbl":
                    yield from self._read_table(element)
                case "altChunk":
                    yield from self._read_attached(attribute(element, "id"))

    def _read_paragraph(self, paragraph: etree._Element) -> _Block:
        line = read_line(paragraph, self._document.styles, has_pages=self._has_pages)
        for drawing in line.drawings:
            self._read_drawing(drawing)
        self._read_notes(line)
        properties = find_child(paragraph, "{*}pPr")
        styles = self._document.styles
        style = value_of(properties, "{*}pStyle") or styles.default
        number = self._count(style, properties)
        if not line.text:
            return _Block("", "")
        level = styles.heading_level(style, properties)
        if level:
            return self._make_heading(line, number, level, is_title=styles.is_title(style))
        if number == BULLET:
            text = collapse_whitespace(line.text)
            return _Block(f"- {text}", text, is_item=True)
        text = f"{number} {line.text}".strip()
        return _Block(escape_structure(text), text, is_item=re.fullmatch(r"\d{1,3}[.)]", number) is not None)

    def _make_heading(self, line: Line, number: str, level: int, *, is_title: bool) -> _Block:
        name = collapse_whitespace(line.text)
        if is_title or (level == 1 and not self._document.title):
            self._document.title = name
        text = name if number in {"", BULLET} else f"{number} {name}"
        return _Block(f"{'#' * level} {text}", text)

    def _count(self, style: str, properties: etree._Element | None) -> str:
        """Count a paragraph if it belongs to a list, and return its number."""
        list_id = value_of(properties, "{*}numPr/{*}numId")
        level = value_of(properties, "{*}numPr/{*}ilvl")
        numbering = self._document.numbering
        style_list, style_level, giver = self._document.styles.list_of(style)
        if not list_id:
            list_id = style_list
            level = level or style_level or str(numbering.level_of(list_id, giver))
        return numbering.next_number(list_id, int(level or "0"))

    def _read_table(self, table: etree._Element) -> Iterator[_Block]:
        """Yield the rows of a table; the cells of a single column, which is a box around text, as blocks."""
        rows = [row for row in _children(table) if local_name(row) == "tr" and not _is_deleted(row)]
        cells_of_rows = [[cell for cell in _children(row) if local_name(cell) == "tc"] for row in rows]
        if all(len(cells) == 1 for cells in cells_of_rows):
            for cells in cells_of_rows:
                yield from self._blocks(cells[0])
            return
        grid = self._lay_out(rows, cells_of_rows)
        is_marked = is_on(find_child(rows[0], "{*}trPr"), "tblHeader")
        plain = " ".join(cell for row in grid for cell in row if cell)
        yield _Block("\n".join(table_lines(grid, header=is_marked)), plain)

    def _lay_out(self, rows: list[etree._Element], cells_of_rows: list[list[etree._Element]]) -> list[list[str]]:
        """Return the texts of each row by their columns; a cell that spans several rows has its text in each."""
        grid: list[list[str]] = []
        above: dict[int, str] = {}  # the text of the last cell that begins in each column
        for row, cells in zip(rows, cells_of_rows, strict=True):
            texts = [""] * _span(find_child(row, "{*}trPr"), "gridBefore", 0)
            for cell in cells:
                properties = find_child(cell, "{*}tcPr")
                merge = find_child(properties, "{*}vMerge")
                goes_on = merge is not None and attribute(merge, "val") != "restart"
                column = len(texts)
                text = self._cell_text(cell)
                if goes_on and not text:
                    text = above.get(column, "")
                above[column] = text
                texts.append(text)
                texts += [""] * (_span(properties, "gridSpan", 1) - 1)
            grid.append(texts)
        return grid

    def _cell_text(self, cell: etree._Element) -> str:
        return collapse_whitespace(" ".join(block.plain for block in self._blocks(cell)))

    # --- what belongs to a paragraph ---

    def _read_drawing(self, drawing: Drawing) -> None:
        document = self._document
        match drawing.kind:
            case "box":
                self._after += list(self._blocks(drawing.element))
            case "text":
                self._after.append(_Block(escape_structure(drawing.text), drawing.text))
            case "chart" | "diagram":
                relation = self._relations.get(drawing.text)
                root = None if relation is None else document.package.xml(relation.part)
                texts = [] if root is None else [text for text in drawing_texts(root) if text]
                self._after += [_Block(text, text) for text in texts]
                if not texts:
                    document.lost[drawing.kind] += 1
            case lost:
                document.lost[lost] += 1

    def _read_notes(self, line: Line) -> None:
        for kind, note_id in line.notes:
            note = self._find_notes(kind).get(note_id)
            if note is None:
                continue
            reader = _PartReader(self._document, self._note_part(kind))
            texts = [block.plain for block in reader.read([note]) if block.plain]
            if kind == "comments":
                author = attribute(note, "author") or "an unknown author"
                text = f"Comment by {author}: {' '.join(texts)}"
            else:
                text = " ".join(texts)
            self._after.append(_Block(escape_structure(text), text))

    def _note_part(self, kind: str) -> str:
        for relation in self._relations.values():
            if relation.kind == kind:
                return relation.part
        return ""

    def _find_notes(self, kind: str) -> dict[str, etree._Element]:
        if kind not in self._notes:
            root = self._document.package.xml(self._note_part(kind))
            notes = [] if root is None else [note for note in root if attribute(note, "type") not in _NO_NOTES]
            self._notes[kind] = {attribute(note, "id"): note for note in notes}
        return self._notes[kind]

    def _read_attached(self, relation_id: str) -> Iterator[_Block]:
        """Yield the text of a file that Word shows in the place of a paragraph."""
        document = self._document
        relation = self._relations.get(relation_id)
        data = None if relation is None else document.package.read(relation.part)
        if relation is None or data is None or document.depth >= _MAX_DEPTH:
            document.lost["attached file"] += 1
            return
        text = _attached_text(data, PurePosixPath(relation.part).suffix.lower(), document.depth)
        if text is None:
            document.lost[f"attached {PurePosixPath(relation.part).suffix.lstrip('.')} file"] += 1
            return
        for paragraph in text.split("\n\n"):
            yield _Block(paragraph, paragraph)


def _attached_text(data: bytes, extension: str, depth: int) -> str | None:
    """Return the text of an attached file, or None if its kind is not read."""
    if extension in {".html", ".htm", ".xhtml"}:
        from arag.ingest.formats.html import decode_html, html_content

        return html_content(decode_html(data)).text
    if extension == ".txt":
        return escape_structure(decode_text(data))
    if extension in {".docx", ".docm", ".dotx"}:
        return word_content(data, depth + 1).text
    return None


def _children(container: etree._Element) -> Iterator[etree._Element]:
    """Yield the elements of a container, and in the place of those that do not show what is in them."""
    for element in container:
        name = local_name(element)
        if name in _AROUND:
            yield from _children(element)
        elif name not in _DELETED:
            yield element


def _is_deleted(row: etree._Element) -> bool:
    return find_child(row, "{*}trPr/{*}del") is not None


def _span(properties: etree._Element | None, name: str, default: int) -> int:
    value = value_of(properties, f"{{*}}{name}")
    return min(int(value), _MAX_SPAN) if value.isdecimal() else default
