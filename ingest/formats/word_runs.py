"""The text of a paragraph of Word, and what hangs on it: drawings, notes, comments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from lxml import etree

from arag.ingest.formats.drawings import raised, text_on_one_line
from arag.ingest.formats.package import attribute, find_child, local_name, value_of
from arag.ingest.formats.word_styles import Styles, is_on
from arag.text.normalise import collapse_whitespace

_LEFT_OUT = frozenset(  # properties, and what is deleted or says how to make a text
    "pPr rPr sdtPr sdtEndPr smartTagPr customXmlPr rubyPr oMathParaPr del moveFrom delText instrText".split()
)
_CHARACTERS = {"tab": " ", "ptab": " ", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_NOTES = {"footnoteReference": "footnotes", "endnoteReference": "endnotes", "commentReference": "comments"}
_BASELINES = {"superscript": 1, "subscript": -1}
# Signs that fonts of symbols have at other places than Unicode.
_LATIN_KEYS = "abgdezhqiklmnxoprstufcyw"
_GREEK_LETTERS = "αβγδεζηθικλμνξοπρστυφχψω"
_SYMBOL = dict(zip(map(ord, _LATIN_KEYS + _LATIN_KEYS.upper()), _GREEK_LETTERS + _GREEK_LETTERS.upper(), strict=True))
_SYMBOL |= {0xA3: "≤", 0xB3: "≥", 0xB1: "±", 0xB4: "×", 0xB0: "°", 0xB9: "≠", 0xBB: "≈", 0xA5: "∞", 0xB7: "•"}
_SYMBOL |= {0xAC: "←", 0xAE: "→", 0xDE: "⇒", 0xD6: "√", 0xE5: "∑", 0xB8: "÷", 0xA2: "′"}
_WINGDINGS = {0xFC: "✓", 0xFB: "✗", 0xFE: "☑", 0xA8: "☐", 0x6F: "☐", 0xFD: "☒", 0xE0: "→", 0xDF: "←", 0xA7: "▪"}
_ZERO_WIDTH_SPACE = "\u200b"  # in fields of forms that are not filled in
_MATHS_MARKS = {"sup": "^", "sub": "_", "den": "/"}


class Drawing(NamedTuple):
    """Something that stands beside the text.

    Attributes:
        kind: `box` with paragraphs, `text`, `chart` or `diagram`; or a noun for what is not read.
        element: The box's content.
        text: The text, or the id of the reference to a chart or diagram.
    """

    kind: str
    element: etree._Element
    text: str = ""


@dataclass
class Line:
    """The text of a paragraph.

    Attributes:
        text: The text; line breaks inside it are kept, other white space is collapsed.
        drawings: Boxes, charts and more.
        notes: The notes and comments that it refers to: the kind of the part that has them, and the id.
    """

    text: str = ""
    drawings: list[Drawing] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)


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

    def read(self, element: etree._Element) -> None:
        """Read what is in an element."""
        for child in element:
            name = local_name(child)
            if name not in _LEFT_OUT:
                self._read_child(child, name)
            elif name == "instrText":
                self._see_instruction(child.text or "")

    def _read_child(self, child: etree._Element, name: str) -> None:
        match name:
            case "r":
                self._read_run(child)
            case "t":
                self._add(child.text or "")
            case "tab" | "ptab" | "br" | "cr" | "noBreakHyphen":
                self._add(_CHARACTERS[name])
            case "sym":
                self._add(_symbol(child))
            case "drawing" | "pict" | "object":
                self.line.drawings += _find_drawings(child)
            case "AlternateContent":
                self._read_alternatives(child)
            case "footnoteReference" | "endnoteReference" | "commentReference":
                self.line.notes.append((_NOTES[name], attribute(child, "id")))
            case "ruby":
                self._read_ruby(child)
            case "oMath":
                self._add(_maths(child))
            case "fldChar" if attribute(child, "fldCharType") == "end":
                self._is_page_number = False
            case "fldSimple":
                self._see_instruction(attribute(child, "instr"))
                self.read(child)
                self._is_page_number = False
            case _:
                self.read(child)

    def _add(self, text: str) -> None:
        if not self._is_page_number:
            self.text += text

    def _see_instruction(self, instruction: str) -> None:
        if self._has_pages and "PAGE" in instruction:
            self._is_page_number = True

    def _read_run(self, run: etree._Element) -> None:
        properties = find_child(run, "{*}rPr")
        if properties is None:
            self.read(run)
            return
        style = value_of(properties, "{*}rStyle")
        if is_on(properties, "vanish") or (style and self._styles.is_hidden(style)):
            return
        before = self.text
        self.read(run)
        baseline = _BASELINES.get(value_of(properties, "{*}vertAlign"), 0)
        if baseline:
            self.text = before + raised(self.text[len(before) :], baseline, before)

    def _read_alternatives(self, block: etree._Element) -> None:
        """Read the first alternative that has anything: programs differ in what they can show."""
        for alternative in block:
            before = len(self.text), len(self.line.drawings)
            self.read(alternative)
            if before != (len(self.text), len(self.line.drawings)):
                return

    def _read_ruby(self, ruby: etree._Element) -> None:
        """Read a text, and in brackets the small letters above it that say how it is spoken."""
        for base in ruby.iterfind("{*}rubyBase"):
            self.read(base)
        above = "".join(text.text or "" for text in ruby.iterfind("{*}rt//{*}t"))
        if above:
            self._add(f"({above})")


def _symbol(element: etree._Element) -> str:
    """Return a sign of a font of symbols in Unicode; an unknown one is left out."""
    font = attribute(element, "font").lower()
    try:
        code = int(attribute(element, "char"), 16)
    except ValueError:
        return ""
    if not 0xF000 <= code <= 0xF0FF:
        return chr(code)
    code -= 0xF000
    if font == "symbol":
        return _SYMBOL.get(code, chr(code) if code < 0x7F else "")
    if font.startswith("wingdings"):
        return _WINGDINGS.get(code, "")
    return ""


def _find_drawings(element: etree._Element) -> Iterator[Drawing]:
    """Yield what a drawing has: all boxes of a group, also those of groups in groups."""
    name = local_name(element)
    match name:
        case "txbxContent":
            yield Drawing("box", element)
            return
        case "chart":
            yield Drawing("chart", element, attribute(element, "id"))
        case "relIds":
            yield Drawing("diagram", element, attribute(element, "dm"))
        case "txBody":
            yield Drawing("text", element, text_on_one_line(element))
            return
        case "pic" | "imagedata":
            yield Drawing("picture", element)
        case "textpath" if element.get("string"):
            yield Drawing("text", element, element.get("string", ""))
        case "OLEObject":
            is_equation = attribute(element, "ProgID").startswith("Equation")
            yield Drawing("equation" if is_equation else "embedded document", element)
        case "AlternateContent":
            alternatives = [list(_find_drawings(alternative)) for alternative in element]
            yield from next(filter(None, alternatives), [])
            return
    for child in element:
        yield from _find_drawings(child)


def _maths(element: etree._Element) -> str:
    """Return a formula on one line: x^2, a_1, (a + b)/2."""
    name = local_name(element)
    if name == "t":
        return element.text or ""
    if name.endswith("Pr"):
        return ""
    text = "".join(_maths(child) for child in element)
    properties = element.find(f"{{*}}{name}Pr")
    match name:
        case "d":
            opening = value_of(properties, "{*}begChr") or "("
            closing = value_of(properties, "{*}endChr") or ")"
            text = f"{opening}{text}{closing}"
        case "nary":
            text = (value_of(properties, "{*}chr") or "∫") + text
        case "rad":
            text = f"√{_in_brackets(text)}"
        case "sup" | "sub" | "den" if text:
            text = _MATHS_MARKS[name] + _in_brackets(text)
        case "num":
            text = _in_brackets(text)
    return text


def _in_brackets(text: str) -> str:
    return text if len(text) == 1 or text.isalnum() else f"({text})"
