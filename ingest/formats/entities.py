"""XML with entities, such as `&product;` and `&mdash;`, which stand for texts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from html.entities import html5, name2codepoint
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from lxml import etree

from arag.ingest.formats.package import DamagedError

_DECLARATION = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>)?")
_PROLOG = re.compile(rb"(?:\s+|<!--.*?-->|<\?.*?\?>)*+", re.DOTALL)  # between it and the declaration of a type
_DOCTYPE = re.compile(
    rb"<!DOCTYPE\s+[\w.:-]+\s*(?:(?:SYSTEM|PUBLIC\s*(?:\"[^\"]*\"|'[^']*'))\s*[\"'](?P<address>[^\"'<>%&]*)[\"'])?\s*"
)
_ENTITY = re.compile(r"&([A-Za-z_][\w.-]*);")
_TEXT_ENTITY = re.compile(r"<!ENTITY\s+([A-Za-z_][\w.-]*)\s+(\"[^\"%]*\"|'[^'%]*')\s*>")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_BOOK = "index.docbook"  # beside its chapters, which leave their entities to it
_UNDEFINED = re.compile("\ue000(.+?)\ue001")  # in a parsed text: the name of an entity
_ONLY_UNDEFINED = re.compile("(?:\\s*\ue000[^\ue001]+\ue001)+\\s*")
_PARTS = re.compile("article|book|chapter|appendix|preface|part|section|sect[1-5]|legalnotice")
_KEYS = ("{*}keycombo", "{*}keyseq")
_NEXT_KEY = re.compile("\ue001\\s*(?=\ue000)")
_TEXTS = html5 | {"eg;": "e.g.", "ie;": "i.e.", "etc;": "etc."}  # with KDE's abbreviations
_NO_TEXT = {"Sm", "Cc", "Cf"}  # mathematical signs and control characters
_PREDEFINED = {"lt", "gt", "amp", "quot", "apos"}
_ALL = "all"
_DOCTYPE_OF_ALL = b'<!DOCTYPE all SYSTEM "all"'
_END_OF_DOCTYPE = b">"


def parse_with_entities(path: Path) -> tuple[etree._Element, list[str]]:
    """Parse XML with the entities that it, files beside it or web pages define.

    Of others, the name is shown: `&okular;` is okular. A name with dots, as `&install.intro;`, stays as it is.
    Nothing else is opened, neither on this machine nor elsewhere.

    Returns:
        The root, and the names of the entities that nothing defines.

    Raises:
        DamagedError: It is not well-formed.
    """
    data = path.read_bytes()
    start = _DECLARATION.match(data)
    head = start[0] if start else b""
    prolog = _PROLOG.match(data, len(head))
    declared = _DOCTYPE.match(data, prolog.end() if prolog else len(head))
    book = _read_beside(path.parent / _BOOK).decode(errors="replace")
    of_book = _find_definitions(data.decode(errors="replace"), book)
    rest = data[declared.end() :] if declared else _END_OF_DOCTYPE + data[len(head) :]
    try:
        root = _parse(head + _DOCTYPE_OF_ALL, rest, _make_parser(_Definitions(path, of_book, declared)))
    except etree.XMLSyntaxError:
        undefined = dict.fromkeys(of_book, "")  # the fault may lie in the book's definitions
        try:
            root = _parse(head + _DOCTYPE_OF_ALL, rest, _make_parser(_Definitions(path, undefined, declared)))
        except etree.XMLSyntaxError as error:
            raise DamagedError(f"damaged: {error.msg}") from error
    return root, sorted(_show_names(root))


def _make_parser(definitions: _Definitions) -> etree.XMLParser:
    parser = etree.XMLParser(
        load_dtd=True,
        resolve_entities=True,
        no_network=True,
        remove_comments=True,
        remove_pis=True,
    )
    parser.resolvers.add(definitions)
    return parser


def _find_definitions(text: str, book: str) -> dict[str, str]:
    """Return what the entities of a text stand for in its book, in quotation marks, or an empty string; by name."""
    in_book: dict[str, str] = {}
    for name, value in _TEXT_ENTITY.findall(_COMMENT.sub("", book)):
        in_book.setdefault(name, value)  # as in XML, the first one counts
    definitions: dict[str, str] = {}
    names = _ENTITY.findall(text)
    while names:
        name = names.pop()
        if name not in _PREDEFINED and name not in definitions:
            definitions[name] = in_book.get(name, "")
            names += _ENTITY.findall(definitions[name])
    return definitions


def _show_names(root: etree._Element) -> set[str]:
    """Show the names of the entities that nothing defines, and return them."""
    undefined = set(_UNDEFINED.findall("".join(root.itertext())))
    for keys in root.iter(*_KEYS):
        _separate_keys(keys)
    for element in root.iter(etree.Element):
        _leave_out_notices(element)
        element.text = _UNDEFINED.sub(_name_shown, element.text or "")
        element.tail = _UNDEFINED.sub(_name_shown, element.tail or "")
    return undefined


def _separate_keys(keys: etree._Element) -> None:
    """Put a plus between keys that are entities, as in `&Ctrl;&Shift;`."""
    keys.text = _NEXT_KEY.sub("\ue001+", keys.text or "")
    for key in keys:
        key.tail = _NEXT_KEY.sub("\ue001+", key.tail or "")


def _leave_out_notices(element: etree._Element) -> None:
    """Leave out entities that stand for whole paragraphs, as `&underFDL;`: their names say nothing."""
    name = etree.QName(element).localname
    is_part = _PARTS.fullmatch(name)
    is_paragraph = name == "para" and not len(element)
    if (is_part or is_paragraph) and _ONLY_UNDEFINED.fullmatch(element.text or ""):
        element.text = ""
    if is_part:
        for child in element:
            if _ONLY_UNDEFINED.fullmatch(child.tail or ""):
                child.tail = ""


def _name_shown(match: re.Match[str]) -> str:
    name = match[1]
    return f"&{name};" if "." in name else name


def _find_text(name: str) -> str:
    """Return what an entity stands for if it is an abbreviation or a character of texts, or else an empty string.

    Web pages have names for many more signs, but in manuals `&Del;` and `&Tab;` are keys.
    """
    text = _TEXTS.get(f"{name};", "")
    if name in name2codepoint or (text.isascii() and text.isprintable()):
        return text
    return "" if unicodedata.category(text[0]) in _NO_TEXT else text


def _read_beside(file: Path) -> bytes:
    is_own_file = not file.is_symlink() and file.is_file()
    return file.read_bytes() if is_own_file else b""


def _parse(prolog: bytes, rest: bytes, parser: etree.XMLParser) -> etree._Element:
    """Parse a document, or a part of one, which other files include: it may have several roots."""
    try:
        return etree.fromstring(prolog + rest, parser)
    except etree.XMLSyntaxError as error:
        is_part = error.code == etree.ErrorTypes.ERR_DOCUMENT_END and rest.startswith(_END_OF_DOCTYPE)
        if not is_part:
            raise
    content = rest.removeprefix(_END_OF_DOCTYPE)
    return etree.fromstring(prolog + _END_OF_DOCTYPE + b"<section>" + content + b"</section>", parser)


class _Definitions(etree.Resolver):  # type: ignore[misc]
    """Finds what entities stand for: the names of products, or characters."""

    def __init__(self, path: Path, definitions: Mapping[str, str], declared: re.Match[bytes] | None) -> None:
        super().__init__()
        self._folder = path.parent
        address = declared["address"] if declared else None
        lines: list[str] = []
        if address is not None:
            lines.append(f'<!ENTITY % own SYSTEM "{address.decode(errors="replace")}"> %own;')
        for name, definition in definitions.items():
            text = _find_text(name) or f"\ue000{name}\ue001"
            codes = "".join(f"&#38;#{ord(character)};" for character in text)
            value = definition or f'"{codes}"'
            lines.append(f"<!ENTITY {name} {value}>")
        self._all = "\n".join(lines)

    def resolve(self, url: str, _: str, context: Any) -> Any:
        if url == _ALL:
            return self.resolve_string(self._all, context)
        file = self._folder / unquote(url).rpartition("/")[2]
        has_definitions = file.suffix in (".dtd", ".ent", ".mod")
        return self.resolve_string(_read_beside(file) if has_definitions else b"", context)
