"""Finds what kind of file a file really is, by its first bytes: names are often wrong."""

from __future__ import annotations

import re
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from arag.ingest.formats import old_office
from arag.ingest.formats.content import FormatError

# Templates and shows, which are read like documents.
SAME_KINDS = {
    **dict.fromkeys((".docm", ".dotx", ".dotm"), ".docx"),
    **dict.fromkeys((".xlsm", ".xltx", ".xltm"), ".xlsx"),
    **dict.fromkeys((".pptm", ".potx", ".potm", ".ppsx", ".ppsm"), ".pptx"),
    **dict.fromkeys((".ott", ".fodt"), ".odt"),
    **dict.fromkeys((".ots", ".fods"), ".ods"),
    **dict.fromkeys((".otp", ".odg", ".fodp"), ".odp"),
    ".dot": ".doc",
    ".xlt": ".xls",
    **dict.fromkeys((".pot", ".pps"), ".ppt"),
}
OFFICE = (".docx", ".xlsx", ".pptx", ".odt", ".ods", ".odp", ".epub", ".rtf", ".doc", ".xls", ".ppt", ".msg")

_ZIP = b"PK\3\4"
_HEAD_BYTES = 4_096

_MAIN_TYPES = [  # in the list of a file's parts
    (re.compile(rb"wordprocessingml\.(?:document|template)\.main|word\.(?:document|template)\.macroEnabled"), ".docx"),
    (re.compile(rb"spreadsheetml\.(?:sheet|template)\.main|excel\.(?:sheet|template)\.macroEnabled"), ".xlsx"),
    (
        re.compile(
            rb"presentationml\.(?:presentation|template|slideshow)\.main"
            rb"|powerpoint\.(?:presentation|template|slideshow)\.macroEnabled"
        ),
        ".pptx",
    ),
]
_OPEN_DOCUMENT = {"text": ".odt", "spreadsheet": ".ods", "presentation": ".odp", "graphics": ".odp"}
_HTML = re.compile(
    rb"<(?:!doctype html|html|head|body|meta|table|style|div|p|h[1-6]|span|center|font)\b", re.IGNORECASE
)
_XML = re.compile(rb"(?:<\?(?!xml\b).*?\?>|<\?xml.*?\?>|<!--.*?-->|\s)*", re.DOTALL)
_TEXT_KINDS = {  # of text that is named like a document or a sheet
    **dict.fromkeys((".doc", ".docx", ".odt"), ".txt"),
    **dict.fromkeys((".xls", ".xlsx", ".ods"), ".csv"),
}


def find_kind(path: Path) -> str:
    """Return the extension that fits what a file contains; its own one if nothing else is certain.

    Raises:
        FormatError: It is empty or needs a password.
    """
    extension = path.suffix.lower()
    kind = SAME_KINDS.get(extension, extension)
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if head.startswith(_ZIP):
        return _kind_of_zip(path) or kind
    if head.startswith(old_office.START):
        return old_office.find_kind(path.read_bytes(), kind)
    if head.startswith(b"{\\rtf"):
        return ".rtf"
    if b"%PDF-" in head[:1_024]:
        return ".pdf"
    if kind in OFFICE:
        return _kind_of_text(head, kind)
    return kind


def _kind_of_zip(path: Path) -> str:
    """Return the kind of an archive with a document's parts, or an empty string."""
    try:
        with ZipFile(path) as archive:
            names = set(archive.namelist())
            if "mimetype" in names:
                return _kind_of_type(archive.read("mimetype").decode("ascii", "replace"))
            if "[Content_Types].xml" in names:
                types = archive.read("[Content_Types].xml")
                return next((kind for pattern, kind in _MAIN_TYPES if pattern.search(types)), "")
    except (BadZipFile, NotImplementedError, OSError, RuntimeError):
        return ""
    return ""


def _kind_of_type(media_type: str) -> str:
    if "epub" in media_type:
        return ".epub"
    _, _, name = media_type.strip().partition("opendocument.")
    return _OPEN_DOCUMENT.get(name.removesuffix("-template"), "")


def _kind_of_text(head: bytes, kind: str) -> str:
    """Return the kind of a file that is named like one of Office but may be text."""
    if not head:
        raise FormatError("the file is empty")
    start = head.removeprefix(b"\xef\xbb\xbf")
    if start[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        start = start.decode("utf-16", "ignore").encode()
    elif b"\0" in start:
        return kind
    start = start[_XML.match(start).end() :]  # type: ignore[union-attr]
    if start.startswith(b"<"):
        return ".html" if _HTML.match(start) else kind
    is_binary = any(byte < 9 or 13 < byte < 32 for byte in start)
    return kind if is_binary else _TEXT_KINDS.get(kind, kind)
