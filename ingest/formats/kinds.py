"""Finds what kind of file a file really is, by its first bytes: names are often wrong."""

from __future__ import annotations

import re
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from arag.ingest.formats.content import FormatError

PASSWORD_NEEDED = "needs a password: save a copy without it"  # noqa: S105 - words for a person

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

_OLE = bytes.fromhex("d0cf11e0a1b11ae1")  # begins files of Office before 2007, and those with a password
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
_STREAMS = {  # of a file before 2007, by the kind that has them
    ".doc": ("WordDocument",),
    ".xls": ("Workbook", "Book"),
    ".ppt": ("PowerPoint Document",),
    ".msg": ("__properties_version1.0",),
}
_HTML = re.compile(
    rb"<(?:!doctype html|html|head|body|meta|table|style|div|p|h[1-6]|span|center|font)\b", re.IGNORECASE
)
_XML = re.compile(rb"(?:<\?(?!xml\b).*?\?>|<\?xml.*?\?>|<!--.*?-->|\s)*", re.DOTALL)
_TEXT_KINDS = {  # of text that is named like a document or a sheet
    **dict.fromkeys((".doc", ".docx", ".odt"), ".txt"),
    **dict.fromkeys((".xls", ".xlsx", ".ods"), ".csv"),
}

_WORD_START = b"\xec\xa5"
_BOOK_START = b"\x09"
_FILEPASS = 0x2F  # the record of a workbook before 2007 that is encrypted
_FIRST_RECORDS = 20
_ENCRYPTED_WORD = 0x01  # a bit of the 12th byte of a document before 2007


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
    if head.startswith(_OLE):
        return _kind_of_ole(path.read_bytes(), kind)
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


def _kind_of_ole(data: bytes, kind: str) -> str:
    if _utf16("EncryptedPackage") in data or _utf16("EncryptedSummary") in data:
        raise FormatError(PASSWORD_NEEDED)
    kinds = [kind, *(other for other in _STREAMS if other != kind)]  # a document may have others in it
    for each in kinds:
        for stream in _STREAMS.get(each, ()):
            entry = data.find(_utf16(f"{stream}\0"))
            if entry >= 0:
                _check_password(data[_stream_offset(data, entry) :], each)
                return each
    return kind


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-le")


def _stream_offset(data: bytes, entry: int) -> int:
    """Return where a stream begins, by its entry in the directory."""
    sector_size = 1 << data[0x1E] if data[0x1E] < 16 else 512
    first_sector = int.from_bytes(data[entry + 116 : entry + 120], "little")
    return (first_sector + 1) * sector_size


def _check_password(stream: bytes, kind: str) -> None:
    if kind == ".doc" and stream.startswith(_WORD_START) and stream[11] & _ENCRYPTED_WORD:
        raise FormatError(PASSWORD_NEEDED)
    if kind != ".xls" or stream[:1] != _BOOK_START:
        return
    start = 0
    for _ in range(_FIRST_RECORDS):
        record = int.from_bytes(stream[start : start + 2], "little")
        if record == _FILEPASS:
            raise FormatError(PASSWORD_NEEDED)
        start += 4 + int.from_bytes(stream[start + 2 : start + 4], "little")


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
