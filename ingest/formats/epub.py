"""Text of e-books (epub)."""

from __future__ import annotations

import posixpath
import re
from urllib.parse import unquote

from arag.ingest.documents import JSON
from arag.ingest.formats.content import Content, FormatError, folded
from arag.ingest.formats.html import read_html
from arag.ingest.formats.package import Package

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_PAGE_TYPES = {"application/xhtml+xml", "text/html"}
# XHTML may close these in the tag; HTML takes what follows for their text.
_CLOSED = re.compile(rb"<((title|script|style|iframe|textarea|template|noscript)\b[^<>]*)/>", re.IGNORECASE)


def read_epub(package: Package) -> Content:
    """Read an e-book chapter by chapter, without its table of contents. The author becomes metadata.

    Raises:
        FormatError: It is not an e-book, or its chapters are encrypted.
    """
    found = package.xml(_CONTAINER).find("{*}rootfiles/{*}rootfile") if _CONTAINER in package else None
    if found is None:
        raise FormatError("not an e-book")
    opf = found.get("full-path", "")
    book = package.xml(opf)
    folder = posixpath.dirname(opf)
    items = {item.get("id", ""): item for item in book.iterfind("{*}manifest/{*}item")}
    chapters = []
    for entry in book.iterfind("{*}spine/{*}itemref"):
        item = items.get(entry.get("idref", ""))
        if (
            item is not None
            and item.get("media-type") in _PAGE_TYPES
            and "nav" not in item.get("properties", "").split()
        ):
            chapters.append(posixpath.normpath(posixpath.join(folder, unquote(item.get("href", "").partition("#")[0]))))
    encrypted = _list_encrypted(package)
    if encrypted.intersection(chapters):
        raise FormatError("encrypted: its chapters are protected against copying")
    pages = [read_html(_CLOSED.sub(rb"<\1></\2>", package.read(chapter))).text for chapter in chapters]
    title = folded(book.findtext("{*}metadata/{*}title") or "")
    authors: list[JSON] = [folded(author.text or "") for author in book.iterfind("{*}metadata/{*}creator")]
    metadata: dict[str, JSON] = {"author": authors[0] if len(authors) == 1 else authors} if authors else {}
    return Content(title, "\n\n".join(filter(None, pages)), metadata)


def _list_encrypted(package: Package) -> set[str]:
    if _ENCRYPTION not in package:
        return set()
    references = package.xml(_ENCRYPTION).iter("{*}CipherReference")
    return {unquote(reference.get("URI", "")) for reference in references}
