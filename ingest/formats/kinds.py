"""Finds what kind of file a file really is, by its first bytes: names are often wrong."""

from __future__ import annotations

import codecs
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
MAILBOX = ".mbox"  # of a file with many emails

_OLE = bytes.fromhex("d0cf11e0a1b11ae1")  # begins files of Office before 2007, and those with a password
_ZIP = b"PK\3\4"
_PDF = b"%PDF-"
_HEAD_BYTES = 8_192
_MAX_BYTES_BEFORE_PDF = 1_024  # readers of PDF look no further for its mark

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
_MAX_TYPE_BYTES = 100
_MAX_TYPES_BYTES = 1_000_000
_OPEN_DOCUMENT = {"text": ".odt", "spreadsheet": ".ods", "presentation": ".odp", "graphics": ".odp"}
_STREAMS = {  # of a file before 2007, by the kind that has them
    ".doc": ("WordDocument",),
    ".xls": ("Workbook", "Book"),
    ".ppt": ("PowerPoint Document",),
    ".msg": ("__properties_version1.0",),
}
_NO_DOCUMENTS = {
    b"\x1f\x8b": "a gzip archive: unpack it",
    b"BZh91AY": "a bzip2 archive: unpack it",
    b"\xfd7zXZ\0": "an xz archive: unpack it",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive: unpack it",
    b"Rar!\x1a\x07": "a rar archive: unpack it",
    b"\x28\xb5\x2f\xfd": "a zstd archive: unpack it",
    b"SQLite format 3\0": "an SQLite database: export its tables as csv",
}

_HTML = re.compile(rb"(?:<\?xml[^>]*>|<!--.*?-->|\s)*(?:<!doctype\s+html\b|<html[\s>])", re.IGNORECASE | re.DOTALL)
MAILBOX_LINE = re.compile(rb"From \S.*\d\d:\d\d.*\b[12]\d{3}\b.*\n")  # above each email of a mailbox
_MAIL_FIELDS = re.compile(rb"(?:[!-9;-~]+:[^\n]*\n(?:[ \t][^\n]*\n)*)+")
_FIELD_OF_TRANSPORT = re.compile(rb"(?im)^(?:Received|Return-Path|Message-ID|MIME-Version|Content-Type):")
_FIELD_OF_PEOPLE = re.compile(rb"(?im)^(?:From|To|Subject):")
_PART_OF_PAGE = re.compile(
    rb"<(?:!doctype html|html|head|body|meta|table|style|div|p|h[1-6]|span|center|font)\b", re.IGNORECASE
)
_XML = re.compile(rb"(?:<\?(?!xml\b).*?\?>|<\?xml.*?\?>|<!--.*?-->|\s)*", re.DOTALL)
_SHEETS = (".xls", ".xlsx", ".ods")
# One reader reads all of a family, so none of its extensions is wrong.
_FAMILIES = ({".html", ".htm", ".xhtml"}, {".eml", ".mht", ".mhtml"}, {".eml", MAILBOX})

_FILEPASS = 0x2F  # the record of a workbook before 2007 that is encrypted
_FIRST_RECORDS = 20
_ENCRYPTED_WORD = 0x01  # a bit of the 12th byte of a document before 2007


def find_kind(path: Path, extension: str | None = None, *, is_program: bool = False) -> str:
    """Return the extension that fits what a file contains; its own one if nothing else is certain.

    Args:
        path: The file.
        extension: The one that its name stands for, in lower case; by default, the name's.
        is_program: Whether the file should be a program, which may begin like a page or a mail.

    Raises:
        FormatError: It is empty, needs a password, or is something that has no text, such as an archive.
    """
    if extension is None:
        extension = path.suffix.lower()
    own_kind = SAME_KINDS.get(extension, extension)
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if not head:
        raise FormatError("the file is empty")
    kind = _kind_of_bytes(path, head, own_kind)
    if not kind and not is_program:
        kind = _kind_of_text(head, own_kind)
    if not kind or any(kind in family and own_kind in family for family in _FAMILIES):
        return own_kind
    return kind


def _kind_of_bytes(path: Path, head: bytes, own_kind: str) -> str:
    """Return the kind of a file that is not text, or an empty string if its first bytes do not show it."""
    for mark, description in _NO_DOCUMENTS.items():
        if head.startswith(mark):
            raise FormatError(description)
    if head.startswith(_OLE):
        return _kind_of_ole(path.read_bytes(), own_kind)
    if head.startswith(_ZIP):
        kind = _kind_of_zip(path)
        if not kind and own_kind not in OFFICE:
            raise FormatError("a zip archive: unpack it")
        return kind
    bytes_before = _MAX_BYTES_BEFORE_PDF if own_kind in {*OFFICE, ".pdf"} else 0
    if _PDF in head[: bytes_before + len(_PDF)]:
        return ".pdf"
    return ""


def _kind_of_zip(path: Path) -> str:
    """Return the kind of an archive with a document's parts, or an empty string."""
    try:
        with ZipFile(path) as archive:
            names = set(archive.namelist())
            if "mimetype" in names:
                return _kind_of_type(_start_of(archive, "mimetype", _MAX_TYPE_BYTES).decode("ascii", "replace"))
            if "[Content_Types].xml" in names:
                types = _start_of(archive, "[Content_Types].xml", _MAX_TYPES_BYTES)
                return next((kind for pattern, kind in _MAIN_TYPES if pattern.search(types)), "")
    except (BadZipFile, NotImplementedError, OSError, RuntimeError):
        return ""
    return ""


def _start_of(archive: ZipFile, name: str, size: int) -> bytes:
    with archive.open(name) as file:
        return file.read(size)  # a hostile one may be huge


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
    if kind == ".doc" and len(stream) > 11 and stream[11] & _ENCRYPTED_WORD:
        raise FormatError(PASSWORD_NEEDED)
    if kind != ".xls":
        return
    start = 0
    for _ in range(_FIRST_RECORDS):
        record = int.from_bytes(stream[start : start + 2], "little")
        if record == _FILEPASS:
            raise FormatError(PASSWORD_NEEDED)
        start += 4 + int.from_bytes(stream[start + 2 : start + 4], "little")


def _kind_of_text(head: bytes, own_kind: str) -> str:
    """Return the kind of a file that is written as text, or an empty string if its beginning does not show it."""
    text = head.removeprefix(codecs.BOM_UTF8)
    if text.startswith(b"{\\rtf"):
        return ".rtf"
    if _HTML.match(text):
        return ".html"
    mailbox_line = MAILBOX_LINE.match(text)
    fields = _MAIL_FIELDS.match(text, mailbox_line.end() if mailbox_line else 0)
    if fields and _FIELD_OF_PEOPLE.search(fields[0]):
        if mailbox_line:
            return MAILBOX
        if _FIELD_OF_TRANSPORT.search(fields[0]):
            return ".eml"
    return _kind_of_plain_text(text, own_kind) if own_kind in {*OFFICE, ".pdf"} else ""


def _kind_of_plain_text(text: bytes, own_kind: str) -> str:
    """Return the kind of a file that is named like a document, but may be text; an empty string if it is not."""
    if text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = text.decode("utf-16", "ignore").encode()
    start = text[_XML.match(text).end() :]  # type: ignore[union-attr]
    if start.startswith(b"<"):
        return ".html" if _PART_OF_PAGE.match(start) else ""
    is_binary = any(byte < 9 or 13 < byte < 32 for byte in start)
    if is_binary:
        return ""
    return ".csv" if own_kind in _SHEETS else ".txt"
