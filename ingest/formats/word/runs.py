"""The text of a paragraph of Word, and what hangs on it: drawings, notes, comments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from lxml import etree

from arag.ingest.formats.drawings import raised
from arag.ingest.formats.package import attribute, find_child, local_name, to_int, value_of
from arag.ingest.formats.word.drawings import Drawing, find_drawings
from arag.ingest.formats.word.maths import maths
from arag.ingest.formats.word.styles import Styles, is_on
from arag.ingest.formats.word.symbols import symbol
from arag.text.normalise import collapse_whitespace

_LEFT_OUT = frozenset(  # properties, and what is deleted or says how to make a text
    "pPr rPr sdtPr sdtEndPr smartTagPr customXmlPr rubyPr oMathParaPr del moveFrom delText".split()
)
_CHARACTERS = {"tab": " ", "ptab": " ", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_NOTES = {"footnoteReference": "footnotes", "endnoteReference": "endnotes", "commentReference": "comments"}
_DRAWINGS = ("drawing", "pict", "object")
_BASELINES = {"superscript": 1, "subscript": -1}
_CHECKED = "☒"
_NOT_CHECKED = "☐"
_ZERO_WIDTH_SPACE = "\u200b"  # in fields of forms that are not filled in


@dataclass(frozen=True)
class NoteReference:
    """A reference to a note or a comment: the kind of the part that has it, and its id."""

    kind: str
    id: str


@dataclass
class Line:
    """The text of a paragraph.

    Attributes:
        text: The text; line breaks inside it are kept, other white space is collapsed.
        drawings: Boxes, charts and more.
        notes: The notes and comments that it refers to.
    """

    text: str = ""
    drawings: list[Drawing] = field(default_factory=list)
    notes: list[NoteReference] = field(default_factory=list)


def read_line(paragraph: etree._Element, styles: Styles, *, has_pages: bool = False) -> Line:
    """Read a paragraph.

    Args:
        paragraph: The paragraph.
        styles: The document's styles.
        has_pages: Whether the numbers of pages are left out.
    """
    reader = _LineReader(styles, has_pages)
    reader.read(paragraph)
    lines = map(collapse_whitespace, reader.text.split("\n"))
    reader.line.text = "\n".join(line for line in lines if line.strip(_ZERO_WIDTH_SPACE))
    return reader.line


class _LineReader:
    def __init__(self, styles: Styles, has_pages: bool) -> None:
        self._styles = styles
        self._has_pages = has_pages
        self._is_page_number = False
        self.text = ""
        self.line = Line()
        self._readers: dict[str, Callable[[etree._Element], None]] = {
            "r": self._read_run,
            "t": self._read_text,
            "sym": self._read_symbol,
            "ruby": self._read_ruby,
            "oMath": self._read_formula,
            "instrText": self._read_instruction,
            "fldSimple": self._read_field,
            "fldChar": self._read_field_mark,
            "AlternateContent": self._read_alternatives,
            **dict.fromkeys(_DRAWINGS, self._read_drawing),
            **dict.fromkeys(_NOTES, self._read_reference),
        }

    def read(self, element: etree._Element) -> None:
        """Read what is in an element."""
        for child in element:
            name = local_name(child)
            if name in _CHARACTERS:
                self._add(_CHARACTERS[name])
            elif name not in _LEFT_OUT:
                reader = self._readers.get(name, self.read)
                reader(child)

    def _add(self, text: str) -> None:
        if not self._is_page_number:
            self.text += text

    # --- characters ---

    def _read_text(self, element: etree._Element) -> None:
        self._add(element.text or "")

    def _read_symbol(self, element: etree._Element) -> None:
        self._add(symbol(element))

    def _read_formula(self, element: etree._Element) -> None:
        self._add(maths(element))

    # --- fields ---

    def _read_instruction(self, element: etree._Element) -> None:
        self._begin_field(element.text or "")

    def _read_field(self, field_element: etree._Element) -> None:
        self._begin_field(attribute(field_element, "instr"))
        self.read(field_element)
        self._is_page_number = False

    def _read_field_mark(self, mark: etree._Element) -> None:
        self._add(_entry(find_child(mark, "{*}ffData")))
        if attribute(mark, "fldCharType") == "end":
            self._is_page_number = False

    def _begin_field(self, instruction: str) -> None:
        if self._has_pages and "PAGE" in instruction:
            self._is_page_number = True

    # --- what hangs on the text ---

    def _read_drawing(self, element: etree._Element) -> None:
        self.line.drawings += find_drawings(element)

    def _read_reference(self, element: etree._Element) -> None:
        kind = _NOTES[local_name(element)]
        self.line.notes.append(NoteReference(kind, attribute(element, "id")))

    # --- runs and what is around them ---

    def _read_run(self, run: etree._Element) -> None:
        properties = find_child(run, "{*}rPr")
        if properties is None:
            self.read(run)
            return
        style = value_of(properties, "{*}rStyle")
        if is_on(properties, "vanish") or self._styles.is_hidden(style):
            return
        before = self.text
        self.read(run)
        baseline = _BASELINES.get(value_of(properties, "{*}vertAlign"))
        if baseline is not None:
            inside = self.text[len(before) :]
            self.text = before + raised(inside, baseline, before)

    def _read_alternatives(self, block: etree._Element) -> None:
        """Read the first alternative that has anything: programs differ in what they can show."""
        before = self._size()
        for alternative in block:
            self.read(alternative)
            if self._size() != before:
                return

    def _size(self) -> int:
        return len(self.text) + len(self.line.drawings)

    def _read_ruby(self, ruby: etree._Element) -> None:
        """Read a text, and in brackets the small letters above it that say how it is spoken."""
        for base in ruby.iterfind("{*}rubyBase"):
            self.read(base)
        letters = [text.text or "" for text in ruby.iterfind("{*}rt//{*}t")]
        above = "".join(letters)
        if above:
            self._add(f"({above})")


def _entry(form_field: etree._Element | None) -> str:
    """Return what the field of a form shows that is not text of the paragraph: a box, or the chosen item of a list."""
    box = find_child(form_field, "{*}checkBox")
    if box is not None:
        name = "checked" if find_child(box, "{*}checked") is not None else "default"
        return _CHECKED if is_on(box, name) else _NOT_CHECKED
    items = find_child(form_field, "{*}ddList")
    if items is None:
        return ""
    chosen = to_int(value_of(items, "{*}result") or value_of(items, "{*}default"), 0)
    for item in items.findall("{*}listEntry")[chosen : chosen + 1]:
        return attribute(item, "val")
    return ""
