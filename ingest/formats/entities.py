"""XML with entities, such as `&product;` and `&mdash;`, which stand for texts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html.entities import html5
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
_PREDEFINED = {"lt", "gt", "amp", "quot", "apos"}
_ALL = "all"
_DOCTYPE_OF_ALL = b'<!DOCTYPE all SYSTEM "all"'
_END_OF_DOCTYPE = b">"


def parse_with_entities(path: Path) -> tuple[etree._Element, list[str]]:
    """Parse XML with the entities that it, files beside it or web pages define; others stay as they are: `&product;`.

    Nothing else is opened, neither on this machine nor elsewhere.

    Returns:
        The root, and the names of the entities that nothing defines.

    Raises:
        DamagedError: It is not well-formed.
    """
    parser = etree.XMLParser(
        load_dtd=True,
        resolve_entities=True,
        no_network=True,
        remove_comments=True,
        remove_pis=True,
    )
    data = path.read_bytes()
    start = _DECLARATION.match(data)
    head = start[0] if start else b""
    prolog = _PROLOG.match(data, len(head))
    declared = _DOCTYPE.match(data, prolog.end() if prolog else len(head))
    names = sorted(set(_ENTITY.findall(data.decode(errors="replace"))) - _PREDEFINED)
    parser.resolvers.add(_Definitions(path, names, declared))
    rest = data[declared.end() :] if declared else _END_OF_DOCTYPE + data[len(head) :]
    try:
        root = _parse(head + _DOCTYPE_OF_ALL, rest, parser)
    except etree.XMLSyntaxError as error:
        raise DamagedError(f"damaged: {error.msg}") from error
    shown = set(_ENTITY.findall("".join(root.itertext())))
    return root, [name for name in names if name in shown]


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

    def __init__(self, path: Path, names: Iterable[str], declared: re.Match[bytes] | None) -> None:
        super().__init__()
        self._folder = path.parent
        address = declared["address"] if declared else None
        lines: list[str] = []
        if address is not None:
            lines.append(f'<!ENTITY % own SYSTEM "{address.decode(errors="replace")}"> %own;')
        for name in names:
            codes = [f"&#38;#{ord(character)};" for character in html5.get(f"{name};", f"&{name};")]
            lines.append(f'<!ENTITY {name} "{"".join(codes)}">')
        self._all = "\n".join(lines)

    def resolve(self, url: str, _: str, context: Any) -> Any:
        if url == _ALL:
            return self.resolve_string(self._all, context)
        file = self._folder / unquote(url).rpartition("/")[2]
        has_definitions = file.suffix in (".dtd", ".ent", ".mod") and not file.is_symlink() and file.is_file()
        return self.resolve_string(file.read_bytes() if has_definitions else b"", context)
