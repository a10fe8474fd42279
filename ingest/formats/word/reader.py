"""Documents of Word: what a person sees in them, in its order."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, filterfalse
from operator import attrgetter
from pathlib import Path, PurePosixPath

from lxml import etree

from arag.ingest.formats.content import Content, FormatError, decode_text, name_lost
from arag.ingest.formats.drawings import drawing_texts
from arag.ingest.formats.package import Package, Relation, attribute, find_child, find_part, local_name, value_of
from arag.ingest.formats.pictures import is_text
from arag.ingest.formats.tables import table_lines
from arag.ingest.formats.title_texts import opening_title
from arag.ingest.formats.word.drawings import Drawing
from arag.ingest.formats.word.numbers import BULLET, Numbering
from arag.ingest.formats.word.runs import NoteReference, read_line
from arag.ingest.formats.word.styles import Styles
from arag.ingest.formats.word.tables import has_header, lay_out, rows_of, shown_children
from arag.ingest.outline import escape_structure
from arag.text.contents import is_heading_of_contents
from arag.text.normalise import collapse_whitespace

_ANY_MAIN_PART = re.compile(r"word/document\d*\.xml")  # Word in a browser writes `document2.xml`
_HEADERS = frozenset({"header", "footer"})
_NO_NOTES = frozenset({"separator", "continuationSeparator", "continuationNotice"})
_PAGE_WORDS = re.compile(r"(?:page|of|seite|von|sur|p|\W|_)*", re.IGNORECASE)  # around the numbers of pages
_ITEM_NUMBER = re.compile(r"\d{1,3}[.)]")
_NOT_MOVED = frozenset({"pPr", "del", "moveFrom"})  # to another paragraph
_MAX_DEPTH = 5  # of documents that are attached to each other


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
    first_heading: str | None = None  # of the first level
    opening: str | None = None  # its first paragraph if that is centred as a title is
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
    root = package.xml(main)
    if root is None:
        raise FormatError("damaged: it has no document.xml")
    relations = package.relations(main)
    styles = Styles(package.xml(find_part(relations, "styles", "word/styles.xml")))
    numbers = package.xml(find_part(relations, "numbering", "word/numbering.xml"))
    document = _Document(
        package=package,
        styles=styles,
        numbering=Numbering(numbers, styles.lists()),
        depth=depth,
    )
    reader = _PartReader(document, main)
    blocks = list(reader.read(root.iterfind("{*}body")))
    title = document.title or document.first_heading or document.opening or ""
    blocks += _read_headers(document, relations.values())
    text = _join(blocks)
    if any(map(is_text, map(attrgetter("plain"), blocks))):
        del document.lost["picture"]  # it may be an ornament
    return Content(
        title=title,
        text=text,
        left_out=name_lost(document.lost),
    )


def _find_main_part(package: Package) -> str:
    """Return the name of the part with the text; an empty string if there is none."""
    named = package.main_part()
    if package.read(named) is not None:
        return named
    return next(filter(_ANY_MAIN_PART.fullmatch, package.names.values()), "")


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


def _read_headers(document: _Document, relations: Iterable[Relation]) -> Iterator[_Block]:
    """Yield the headers and footers, each text once; numbers of pages are left out."""
    seen: set[str] = {""}
    for relation in relations:
        if relation.kind not in _HEADERS:
            continue
        text = _header_text(document, relation.part)
        if text not in seen:
            seen.add(text)
            yield _Block(f"{relation.kind.capitalize()}: {text}", text)


def _header_text(document: _Document, part: str) -> str:
    root = document.package.xml(part)
    if root is None:
        return ""
    blocks = _PartReader(document, part, has_pages=True).read([root])
    texts = map(attrgetter("plain"), blocks)
    return " ".join(filterfalse(_PAGE_WORDS.fullmatch, texts))


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
                after = self._after
                self._after = []
                yield from after

    def _blocks(self, container: etree._Element) -> Iterator[_Block]:
        for element in shown_children(container):
            match local_name(element):
                case "p":
                    if not _move_to_next(element):
                        yield self._read_paragraph(element)
                case "tbl":
                    yield from self._read_table(element)
                case "altChunk":
                    yield from self._read_attached(attribute(element, "id"))

    # --- paragraphs ---

    def _read_paragraph(self, paragraph: etree._Element) -> _Block:
        line = read_line(paragraph, self._document.styles, has_pages=self._has_pages)
        for drawing in line.drawings:
            self._read_drawing(drawing)
        for reference in line.notes:
            self._read_note(reference)
        styles = self._document.styles
        properties = find_child(paragraph, "{*}pPr")
        style = value_of(properties, "{*}pStyle") or styles.default
        number = self._count(style, properties)
        if not line.text:
            return _Block("", "")
        level = styles.heading_level(style, properties)
        if self._document.opening is None:
            self._document.opening = opening_title(line.text, is_centred=styles.is_centred(style, properties))
        if level:
            name = collapse_whitespace(line.text)
            self._note_title(name, number, level, is_title=styles.is_title(style))
            return _make_heading(name, number, level)
        return _make_paragraph(line.text, number)

    def _note_title(self, heading: str, number: str, level: int, *, is_title: bool) -> None:
        if is_heading_of_contents(heading):
            return
        if is_title:
            self._document.title = self._document.title or heading
        elif level == 1 and self._document.first_heading is None:
            self._document.first_heading = "" if number else heading  # a chapter's title is not the document's

    def _count(self, style: str, properties: etree._Element | None) -> str:
        """Count a paragraph if it belongs to a list, and return its number."""
        numbering = self._document.numbering
        own_list = value_of(properties, "{*}numPr/{*}numId")
        own_level = value_of(properties, "{*}numPr/{*}ilvl")
        if own_list:
            return numbering.next_number(own_list, int(own_level or 0))
        of_style = self._document.styles.list_of(style)
        level = own_level or of_style.level or numbering.level_of(of_style.list_id, of_style.style)
        return numbering.next_number(of_style.list_id, int(level))

    # --- tables ---

    def _read_table(self, table: etree._Element) -> Iterator[_Block]:
        """Yield a table's title and rows; the cells of a single column, which is a box around text, as blocks."""
        title = collapse_whitespace(value_of(table, "{*}tblPr/{*}tblCaption"))
        if title:
            yield _Block(title, title)
        rows = rows_of(table)
        widths = {len(row.cells) for row in rows}
        if widths <= {1}:
            for row in rows:
                yield from self._blocks(row.cells[0])
            return
        grid = lay_out(rows, self._cell_text)
        lines = table_lines(grid, header=has_header(table, rows, self._document.styles))
        cells = filter(None, chain.from_iterable(grid))
        yield _Block("\n".join(lines), " ".join(cells))

    def _cell_text(self, cell: etree._Element) -> str:
        texts = [block.plain for block in self._blocks(cell)]
        return collapse_whitespace(" ".join(texts))

    # --- what belongs to a paragraph ---

    def _read_drawing(self, drawing: Drawing) -> None:
        match drawing.kind:
            case "box":
                self._after += self._blocks(drawing.element)
            case "text":
                self._after.append(_Block(escape_structure(drawing.text), drawing.text))
            case "chart" | "diagram":
                texts = self._texts_of_part(drawing.text)
                self._after += [_Block(text, text) for text in texts]
                if not texts:
                    self._document.lost[drawing.kind] += 1
            case "picture":
                self._document.lost["picture"] += 1
                self._after.append(_Block(drawing.text, drawing.text))
            case lost:
                self._document.lost[lost] += 1

    def _texts_of_part(self, relation_id: str) -> list[str]:
        """Return the texts of a chart or a diagram, none if it is missing."""
        relation = self._relations.get(relation_id)
        if relation is None:
            return []
        root = self._document.package.xml(relation.part)
        if root is None:
            return []
        return list(filter(None, drawing_texts(root)))

    def _read_note(self, reference: NoteReference) -> None:
        note = self._notes_of(reference.kind).get(reference.id)
        if note is None:
            return
        reader = _PartReader(self._document, find_part(self._relations, reference.kind))
        blocks = reader.read([note])
        text = " ".join(block.plain for block in blocks if block.plain)
        if reference.kind == "comments":
            author = attribute(note, "author") or "an unknown author"
            text = f"Comment by {author}: {text}"
        self._after.append(_Block(escape_structure(text), text))

    def _notes_of(self, kind: str) -> dict[str, etree._Element]:
        """Return the notes or comments of a kind by their ids."""
        if kind not in self._notes:
            root = self._document.package.xml(find_part(self._relations, kind))
            self._notes[kind] = {} if root is None else _notes_by_id(root)
        return self._notes[kind]

    def _read_attached(self, relation_id: str) -> Iterator[_Block]:
        """Yield the text of a file that Word shows in the place of a paragraph."""
        document = self._document
        relation = self._relations.get(relation_id)
        if relation is None:
            document.lost["attached file"] += 1
            return
        data = document.package.read(relation.part)
        if data is None or document.depth >= _MAX_DEPTH:
            document.lost["attached file"] += 1
            return
        extension = PurePosixPath(relation.part).suffix
        text = _attached_text(data, extension.lower(), document.depth)
        if text is None:
            document.lost[f"attached {extension.lstrip('.')} file"] += 1
            return
        for paragraph in text.split("\n\n"):
            yield _Block(paragraph, paragraph)


def _move_to_next(paragraph: etree._Element) -> bool:
    """Move the text of a paragraph that belongs to the next one to that one's beginning; return whether it does."""
    following = paragraph.getnext()
    if following is None or local_name(following) != "p":
        return False
    if not _belongs_to_next(paragraph):
        return False
    start = 0
    if find_child(following, "{*}pPr") is not None:
        start = 1
    shown: list[etree._Element] = []
    for child in paragraph:
        if local_name(child) not in _NOT_MOVED:
            shown.append(child)
    following[start:start] = shown
    return True


def _belongs_to_next(paragraph: etree._Element) -> bool:
    """Return whether the end of a paragraph is deleted, or it is the large first letter of the next one."""
    if find_child(paragraph, "{*}pPr/{*}rPr/{*}del") is not None:
        return True
    frame = find_child(paragraph, "{*}pPr/{*}framePr")
    if frame is None:
        return False
    return attribute(frame, "dropCap") in {"drop", "margin"}


def _make_heading(name: str, number: str, level: int) -> _Block:
    text = name if number in {"", BULLET} else f"{number} {name}"
    marks = "#" * level
    return _Block(f"{marks} {text}", text)


def _make_paragraph(text: str, number: str) -> _Block:
    if number == BULLET:
        item = collapse_whitespace(text)
        return _Block(f"- {item}", item, is_item=True)
    numbered = f"{number} {text}".strip()
    return _Block(
        shown=escape_structure(numbered),
        plain=numbered,
        is_item=_ITEM_NUMBER.fullmatch(number) is not None,
    )


def _notes_by_id(root: etree._Element) -> dict[str, etree._Element]:
    notes: dict[str, etree._Element] = {}
    for note in root:
        if attribute(note, "type") not in _NO_NOTES:
            notes[attribute(note, "id")] = note
    return notes


def _attached_text(data: bytes, extension: str, depth: int) -> str | None:
    """Return the text of an attached file, or None if its kind is not read."""
    match extension:
        case ".html" | ".htm" | ".xhtml":
            from arag.ingest.formats.html import html_content
            from arag.ingest.formats.html_pages import decode_html

            return html_content(decode_html(data)).text
        case ".txt":
            return escape_structure(decode_text(data))
        case ".docx" | ".docm" | ".dotx":
            return word_content(data, depth + 1).text
    return None
