"""Tells what a file really is, by its first bytes, where its extension may be wrong."""

from __future__ import annotations

import codecs
import re
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from arag.ingest.formats.content import FormatError, decode, is_wide

MAILBOX = ".mbox"  # of a file with many emails

_HEAD_BYTES = 8_192
_MAX_BYTES_BEFORE_PDF = 1_024  # readers of PDF look no further for its mark

_PDF = b"%PDF-"
_OLE = bytes.fromhex("d0cf11e0a1b11ae1")  # Office before 2007, Outlook, and encrypted files of Office
# The streams in such a file that show what it is. A document may hold another one, so the order counts.
_OLE_STREAMS = {
    "__properties_version1.0": ".msg",
    "WordDocument": ".doc",
    "PowerPoint Document": ".ppt",
    "Workbook": ".xls",
    "Book": ".xls",
}
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_MAX_TYPE_BYTES = 100
_ZIP = b"PK\3\4"
_ZIP_FOLDERS = {"word": ".docx", "xl": ".xlsx", "ppt": ".pptx"}
_TYPE_FILE = "mimetype"
_ZIP_TYPES = {
    b"application/epub+zip": ".epub",
    b"application/vnd.oasis.opendocument.text": ".odt",
    b"application/vnd.oasis.opendocument.spreadsheet": ".ods",
    b"application/vnd.oasis.opendocument.presentation": ".odp",
    b"application/vnd.oasis.opendocument.graphics": ".odp",
}
# Templates, shows, files with macros and flat files, which are read like documents.
SAME_KINDS = {
    ".docm": ".docx",
    ".dotx": ".docx",
    ".dotm": ".docx",
    ".xlsm": ".xlsx",
    ".xltx": ".xlsx",
    ".xltm": ".xlsx",
    ".pptm": ".pptx",
    ".potx": ".pptx",
    ".potm": ".pptx",
    ".ppsx": ".pptx",
    ".ppsm": ".pptx",
    ".ott": ".odt",
    ".fodt": ".odt",
    ".ots": ".ods",
    ".fods": ".ods",
    ".otp": ".odp",
    ".odg": ".odp",
    ".fodp": ".odp",
    ".dot": ".doc",
    ".xlt": ".xls",
    ".pot": ".ppt",
    ".pps": ".ppt",
}
# One reader reads all of a family, so none of its extensions is wrong.
_FAMILIES = (
    {".html", ".htm", ".xhtml"},
    {".eml", ".mht", ".mhtml"},
    {".eml", MAILBOX},
)
_NEVER_TEXT = {".pdf", ".doc", ".docx", ".xls", ".xlsx", ".ppt", ".pptx", ".odt", ".ods", ".odp", ".epub", ".msg"}
# What a text is whose extension is one of these; `.txt` with other ones.
_TEXT_KINDS = {
    ".xls": ".csv",
    ".xlsx": ".csv",
    ".ods": ".csv",
}
# The namespaces of files of Office 2003 that are written as XML.
_OLD_XML = {
    b"urn:schemas-microsoft-com:office:spreadsheet": "a workbook of Excel 2003 in XML: save it as .xlsx",
    b"http://schemas.microsoft.com/office/word/2003/wordml": "a document of Word 2003 in XML: save it as .docx",
    b"http://schemas.microsoft.com/office/2006/xmlPackage": "a document of Office in XML: save it as .docx or .pptx",
}
_NO_DOCUMENTS = {
    b"\x1f\x8b": "a gzip archive: unpack it",
    b"BZh91AY": "a bzip2 archive: unpack it",
    b"\xfd7zXZ\0": "an xz archive: unpack it",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive: unpack it",
    b"Rar!\x1a\x07": "a rar archive: unpack it",
    b"\x28\xb5\x2f\xfd": "a zstd archive: unpack it",
    b"\xff\xd8\xff": "a picture: rename it to .jpg, and use --ocr",
    b"\x89PNG": "a picture: rename it to .png, and use --ocr",
    b"SQLite format 3\0": "an SQLite database: export its tables as csv",
}

# Possessive, or else the time would double with each comment.
_BEFORE_HTML = rb"(?:<\?xml[^>]*+>|<!--(?:(?!-->).)*+-->|\s++)*+"
_HTML = re.compile(_BEFORE_HTML + rb"(?:<!doctype\s+html\b|<html[\s>])", re.IGNORECASE | re.DOTALL)
# Programs write a table in HTML, without a head, and name it like a sheet.
_PART_OF_HTML = re.compile(_BEFORE_HTML + rb"<(?:head|body|meta|table|style|div)\b", re.IGNORECASE | re.DOTALL)
# Above each email of a mailbox; bounded, or else the time would grow with the square of a line.
MAILBOX_LINE = re.compile(rb"From \S.{0,200}\d\d:\d\d.{0,100}\b[12]\d{3}\b.*\n")
_MAIL_FIELDS = re.compile(rb"(?:[!-9;-~]+:[^\n]*\n(?:[ \t][^\n]*\n)*)+")
_FIELD_OF_TRANSPORT = re.compile(rb"(?im)^(?:Received|Return-Path|Message-ID|MIME-Version|Content-Type):")
_FIELD_OF_PEOPLE = re.compile(rb"(?im)^(?:From|To|Subject):")
# Lines like those of an email also stand above texts with a markup of their own, which nobody sent.
_FIELD_OF_MARKUP = re.compile(rb"(?im)^Content-Type:\s*text/(?:x-)?(?:asciidoc|markdown|rst|org)\b")
_FIELD_OF_SENDING = re.compile(rb"(?im)^(?:Received|Return-Path|MIME-Version):")
# A page with its pictures, which Word names `.doc`, has no sender.
_FIELD_OF_PAGE = re.compile(rb"(?im)^Content-Type:\s*multipart/related\b")
# Other files have the extensions of manuals in DocBook and of help in Mallard, too.
MANUALS = (".docbook", ".dbk", ".page", ".xml")
_ROOT = re.compile(rb"<(?:!DOCTYPE\s+)?(?:[\w.-]+:)?([\w.-]+)[\s>]")
_ROOTS_OF_MANUALS = frozenset(
    b"set book part article chapter appendix preface section sect1 sect2 para refentry reference glossary page".split()
)
_IN_MANUALS = re.compile(rb"docbook|projectmallard|<(?:sim)?para\b|<\w*info>|<refnamediv", re.IGNORECASE)
_COMMENT = re.compile(rb"<!--.*?(?:-->|$)", re.DOTALL)
_CONTROL = re.compile(rb"[\x00-\x07\x0e-\x1a\x1c-\x1f]")


def find_kind(path: Path, extension: str, *, is_program: bool = False) -> str:
    """Return the extension that fits what a file is; the given one if it fits, or if the bytes do not tell.

    Args:
        path: The file.
        extension: The one of its name, in lower case.
        is_program: Whether the file should be a program, which may begin like a page or a mail.

    Raises:
        FormatError: It is empty, or something that has no text, such as an archive; the message says what.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if not head:
        raise FormatError("the file is empty")
    known = SAME_KINDS.get(extension, extension)
    kind = _kind_of_bytes(path, head, known)
    if not kind and not is_program:
        kind = _kind_of_text(head, known)
    if not kind or _is_same(kind, extension):
        return extension
    return kind


def _is_same(kind: str, extension: str) -> bool:
    """Return whether one reader reads both."""
    if SAME_KINDS.get(kind, kind) == SAME_KINDS.get(extension, extension):
        return True
    both = {kind, extension}
    return any(map(both.issubset, _FAMILIES))


def _kind_of_bytes(path: Path, head: bytes, extension: str) -> str:
    """Return the kind of a file that is not text, or an empty string if its first bytes do not show it."""
    mark = next(filter(head.startswith, _NO_DOCUMENTS), None)
    if mark:
        raise FormatError(_NO_DOCUMENTS[mark])
    if head.startswith(_OLE):
        return _kind_of_ole(path, extension)
    if head.startswith(_ZIP):
        return _kind_of_zip(path, extension)
    bytes_before = _MAX_BYTES_BEFORE_PDF if extension == ".pdf" else 0
    if _PDF in head[: bytes_before + len(_PDF)]:
        return ".pdf"
    return ""


def _kind_of_ole(path: Path, extension: str) -> str:
    data = path.read_bytes()
    if _ENCRYPTED in data:
        return ""  # its reader says so
    found: list[str] = []
    for name, kind in _OLE_STREAMS.items():
        if name.encode("utf-16-le") in data:
            found.append(kind)
    if not found:
        return ""
    return extension if extension in found else found[0]


def _kind_of_zip(path: Path, extension: str) -> str:
    try:
        with ZipFile(path) as archive:
            names = archive.namelist()
            declared = _declared_type(archive) if _TYPE_FILE in names else b""
    except (BadZipFile, NotImplementedError, RuntimeError):
        return ""  # damaged: its reader says how
    mime_type = next(filter(declared.startswith, _ZIP_TYPES), None)
    if mime_type:
        return _ZIP_TYPES[mime_type]
    folders = {name.partition("/")[0] for name in names}
    folder = next(filter(folders.__contains__, _ZIP_FOLDERS), None)
    if folder:
        return _ZIP_FOLDERS[folder]
    if extension in _NEVER_TEXT:
        return ""  # its reader knows other forms
    raise FormatError("a zip archive: unpack it")


def _declared_type(archive: ZipFile) -> bytes:
    with archive.open(_TYPE_FILE) as file:
        return file.read(_MAX_TYPE_BYTES).strip()  # a hostile one may be huge


def _kind_of_text(head: bytes, extension: str) -> str:
    """Return the kind of a file that is written as text, or an empty string if its beginning does not show it."""
    text = _in_utf8(head)
    is_never_text = extension in _NEVER_TEXT
    if is_never_text:
        _refuse_old_xml(text)
    if text.startswith(b"{\\rtf"):
        return ".rtf"
    if _HTML.match(text):
        return ".html"
    if is_never_text and _PART_OF_HTML.match(text):
        return ".html"
    kind = _kind_of_mail(text)
    if kind:
        return kind
    is_plain = not text.startswith(b"<") and not _CONTROL.search(text)
    if is_never_text and is_plain:
        return _TEXT_KINDS.get(extension, ".txt")
    return ""


def _in_utf8(head: bytes) -> bytes:
    """Return the first bytes of a text in UTF-8; Excel writes rows in UTF-16."""
    if not is_wide(head):
        return head.removeprefix(codecs.BOM_UTF8)
    whole_characters = len(head) - len(head) % 4
    try:
        return decode(head[:whole_characters]).encode()
    except FormatError:
        return head


def _refuse_old_xml(text: bytes) -> None:
    if not text.lstrip().startswith(b"<"):
        return
    for namespace, description in _OLD_XML.items():
        if b'"%s"' % namespace in text:
            raise FormatError(description)


def _kind_of_mail(text: bytes) -> str:
    """Return whether a text is an email or a mailbox; an empty string if it is neither."""
    mailbox_line = MAILBOX_LINE.match(text)
    start = mailbox_line.end() if mailbox_line else 0
    fields = _MAIL_FIELDS.match(text, start)
    if fields is None:
        return ""
    is_page = _FIELD_OF_PAGE.search(fields[0]) is not None
    if is_page and mailbox_line is None:
        return ".mht"
    has_people = _FIELD_OF_PEOPLE.search(fields[0]) is not None
    has_markup = _FIELD_OF_MARKUP.search(fields[0]) is not None
    is_unsent = has_markup and _FIELD_OF_SENDING.search(fields[0]) is None
    if not has_people or is_unsent:
        return ""
    if mailbox_line:
        return MAILBOX
    if _FIELD_OF_TRANSPORT.search(fields[0]):
        return ".eml"
    return ""


def is_manual(path: Path) -> bool:
    """Return whether a file begins like a manual in DocBook or a page of help in Mallard."""
    try:
        with path.open("rb") as file:
            head = _COMMENT.sub(b"", file.read(_HEAD_BYTES))
    except OSError:
        return False
    root = _ROOT.search(head)
    return root is not None and root[1] in _ROOTS_OF_MANUALS and _IN_MANUALS.search(head) is not None
