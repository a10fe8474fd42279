"""Web pages from bytes to a tree of elements."""

from __future__ import annotations

import re
from collections.abc import Iterable

import webencodings
from lxml import etree

from arag.ingest.formats.content import FormatError, clean_text, decode_text

_DECLARATION = re.compile(rb"""(?:<\?xml[^>]+encoding|<meta[^>]+charset)\s*=\s*["']?\s*([^\s"'/;>]+)""", re.IGNORECASE)
# In XHTML, any element may be written as an empty one: `<title/>`. In HTML, that begins one.
_XHTML = re.compile(r"<\?xml|xmlns=[\"']http://www\.w3\.org/1999/xhtml")
_EMPTY_ELEMENT = re.compile(r"<(title|script|style|iframe|textarea|a|b|i|em|span|div|p|h[1-6]|td|th|li)\b([^<>]*)/>")
_CHARACTERS_FOR_A_WRONG_BYTE = 1_000  # at least: in another encoding, more bytes would be wrong
_DECLARATION_CHARACTERS = 1_000
_DECLARATION_BYTES = 100_000  # at the start of a page: scripts and styles can come before the declaration


def decode_html(data: bytes, encoding: str = "") -> str:
    """Decode a page in Unicode, else in the encoding that it declares, else in `encoding`, else in Windows-1252.

    As in browsers, a wrong byte in a page in UTF-8 is U+FFFD.
    """
    declared = _declared_encoding(data)
    if declared == "gbk":
        declared = "gb18030"  # its superset, which browsers read
    if declared in ("", "utf-8") and _is_damaged_utf8(data, is_declared=bool(declared)):
        return clean_text(data.decode("utf-8-sig", "replace"))
    if declared == "utf-8":  # if the page is not, nothing says what it is in
        return decode_text(data, encoding)
    return decode_text(data, encoding, declared=declared, fallback="windows-1252")


def _is_damaged_utf8(data: bytes, *, is_declared: bool) -> bool:
    """Return whether the data are UTF-8 except for a few bytes."""
    text = data.decode("utf-8", "replace")
    wrong = text.count("\ufffd")
    beyond_ascii = len(text) - len(text.encode("ascii", "ignore"))
    is_mostly_valid = wrong < beyond_ascii - wrong
    is_rare = is_declared and wrong * _CHARACTERS_FOR_A_WRONG_BYTE < len(text)
    return wrong > 0 and (is_mostly_valid or is_rare)


def _declared_encoding(data: bytes) -> str:
    declaration = _DECLARATION.search(data, 0, _DECLARATION_BYTES)
    if declaration is None:
        return ""
    declared = webencodings.lookup(declaration[1].decode("latin-1"))
    if declared is None:
        return ""
    name: str = declared.codec_info.name
    return name


def parse_html(html: str) -> etree._Element:
    """Parse a page as browsers do.

    Raises:
        FormatError: A part of it would be lost.
    """
    if _XHTML.search(html, 0, _DECLARATION_CHARACTERS):
        html = _EMPTY_ELEMENT.sub(r"<\1\2></\1>", html)
    parser = etree.HTMLParser(
        encoding="utf-8",
        huge_tree=True,
        remove_comments=True,
        remove_pis=True,
    )
    page = etree.fromstring(b"<html>" + html.encode("utf-8", "replace"), parser)
    fatal_errors = parser.error_log.filter_from_fatals()
    if fatal_errors:  # such as tags that are nested too deeply: the rest of the page would be lost
        raise FormatError(f"cannot be read: {fatal_errors[0].message}")
    after_the_end = list(page.itersiblings())
    page.extend(after_the_end)
    return page


def find_inside(elements: Iterable[etree._Element], *tags: str) -> set[etree._Element]:
    """Return all elements with some tags that are in others, or among these; without tags, all elements."""
    inside: set[etree._Element] = set()
    for element in elements:
        inside.update(element.iter(*tags))
    return inside
