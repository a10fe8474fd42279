"""E-books (epub): their chapters in order, each read like a web page."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urldefrag
from zipfile import BadZipFile, ZipFile

from lxml import etree

from arag.ingest.formats.content import JSON, Content, FormatError, join_blocks, name_pictures
from arag.ingest.formats.html import has_picture, html_content
from arag.ingest.formats.html_pages import decode_html
from arag.ingest.formats.package import DamagedError
from arag.ingest.formats.plain_titles import first_heading
from arag.text.normalise import collapse_whitespace, count

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_PAGES = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml")
_MAX_CHAPTER_BYTES = 50_000_000
_DATE = re.compile(r"\d{4}(?:-\d\d-\d\d)?")


def read_ebook(path: Path) -> Content:
    """Read the chapters of an e-book, without its table of contents.

    Raises:
        DamagedError: It does not say which chapters it has.
        FormatError: Its chapters are encrypted.
    """
    try:
        with ZipFile(path) as archive:
            content = _read(archive)
    except (BadZipFile, KeyError, etree.XMLSyntaxError) as error:
        raise DamagedError(str(error)) from error
    if content.title == path.stem:  # a program's guess
        return replace(content, title=first_heading(content.text))
    return content


def _read(archive: ZipFile) -> Content:
    package_name = _parse(archive.read(_CONTAINER)).find(".//{*}rootfile").get("full-path")
    package = _parse(archive.read(package_name))
    folder = posixpath.dirname(package_name)
    chapters = list(dict.fromkeys(_chapter_names(package, folder)))  # several items may be places in one file
    if not chapters:
        raise DamagedError("no chapters")
    if _ENCRYPTION in archive.namelist():
        _check_encryption(archive.read(_ENCRYPTION), chapters)
    texts: list[str] = []
    missing: list[str] = []
    left_out: list[str] = []
    barred_lines: list[str] = []
    pictures: set[str] = set()  # chapters without text
    for name in chapters:
        try:
            info = archive.getinfo(name)
        except KeyError:
            missing.append(f"{name}: missing")
            continue
        if info.file_size > _MAX_CHAPTER_BYTES:
            missing.append(f"{name}: more than {_MAX_CHAPTER_BYTES // 1_000_000} MB")
            continue
        html = decode_html(archive.read(info))
        content = html_content(html)
        if not content.text and has_picture(html):
            pictures.add(name)
        texts.append(content.text)
        left_out += content.left_out
        barred_lines += content.barred_lines
    if any(texts):
        pictures.discard(chapters[0])  # the cover
    if pictures:
        parts = f"{len(pictures):,} of {count(len(chapters), 'chapter')}"
        phrase = name_pictures(parts, len(pictures))
        left_out.append(f"{phrase} (scanned?)")
    return Content(
        title=collapse_whitespace(package.findtext(".//{*}metadata/{*}title", "")),
        text=join_blocks(texts),
        metadata=_metadata(package),
        left_out=tuple(left_out),
        barred_lines=tuple(barred_lines),
        damage=tuple(missing),
    )


def _parse(data: bytes) -> etree._Element:
    return etree.fromstring(data, etree.XMLParser(resolve_entities=False, recover=True))


def _chapter_names(package: etree._Element, folder: str) -> Iterator[str]:
    """Yield the names of the chapters' files in the order of reading."""
    items = {item.get("id"): item for item in package.iterfind(".//{*}manifest/{*}item")}
    for reference in package.iterfind(".//{*}spine/{*}itemref"):
        item = items.get(reference.get("idref"))
        if item is None or item.get("media-type") not in _PAGES:
            continue
        if "nav" not in item.get("properties", "").split():
            name, _ = urldefrag(item.get("href", ""))
            yield posixpath.normpath(posixpath.join(folder, unquote(name)))


def _check_encryption(data: bytes, chapters: list[str]) -> None:
    """Check that no chapter is encrypted; fonts may be."""
    for reference in _parse(data).iterfind(".//{*}CipherReference"):
        if unquote(reference.get("URI", "")) in chapters:
            raise FormatError("protected against copying: its text is encrypted")


def _metadata(package: etree._Element) -> dict[str, JSON]:
    metadata: dict[str, JSON] = {}
    authors = [collapse_whitespace(name.text or "") for name in package.iterfind(".//{*}metadata/{*}creator")]
    if any(authors):
        metadata["author"] = ", ".join(filter(None, authors))
    date = _DATE.match(package.findtext(".//{*}metadata/{*}date", "").strip())
    if date:
        metadata["date"] = date[0]
    return metadata
