"""The headers and footers of pages of OpenDocument."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from arag.ingest.formats.odf.blocks import BlockReader
from arag.ingest.formats.package import local_name
from arag.text.normalise import collapse_whitespace

_KINDS = {
    "header": "Header",
    "header-left": "Header",
    "header-first": "Header",
    "footer": "Footer",
    "footer-left": "Footer",
    "footer-first": "Footer",
}
_PAGE_NUMBERS = ("{*}page-number", "{*}page-count", "{*}page-continuation")


def read_headers(root: etree._Element, reader: BlockReader) -> Iterator[str]:
    """Yield the headers and footers of pages, each text once, without the numbers of pages."""
    seen: set[str] = set()
    for element in root.iterfind("{*}master-styles/{*}master-page/*"):
        kind = _KINDS.get(local_name(element))
        if kind is None:
            continue
        for number in element.iter(*_PAGE_NUMBERS):
            number.text = ""
        text = collapse_whitespace(" ".join(reader.read(element)))
        has_letters = any(map(str.isalpha, text))
        if has_letters and text not in seen:
            seen.add(text)
            yield f"{kind}: {text}"
