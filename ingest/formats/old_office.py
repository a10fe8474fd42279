"""Files of Office before 2007: the streams in them, passwords, and what a person sees that is not read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from arag.ingest.formats.content import FormatError

START = bytes.fromhex("d0cf11e0a1b11ae1")  # of these files, and of later ones with a password
PASSWORD_NEEDED = "needs a password: save a copy without it"  # noqa: S105 - words for a person

_STREAMS = {  # by the kind that has them
    ".doc": ("WordDocument",),
    ".xls": ("Workbook", "Book"),
    ".ppt": ("PowerPoint Document",),
}
_ENTRY_START = 116  # where an entry of the directory has the number of a stream's first sector

_WORD_START = b"\xec\xa5"
_ENCRYPTED_WORD = 0x01  # a bit of the 12th byte of a document
_COMMENTS_SIZE = 190  # where a document has the size of the list of its comments
_COMMENT_BYTES = 34

# The numbers of records of a workbook.
_BEGIN = 0x0809
_NOTE = 0x001C
_PASSWORD = 0x002F
_CHART = 0x20  # in the record that begins it


def check_password(data: bytes, kind: str) -> None:
    """Refuse a file that needs a password.

    Args:
        data: The file.
        kind: The extension that fits what it is.

    Raises:
        FormatError: It needs a password.
    """
    if not data.startswith(START):
        return
    stream = _open_stream(data, kind) or b""
    is_locked = (
        _utf16("EncryptedPackage") in data
        or _utf16("EncryptedSummary") in data
        or (stream.startswith(_WORD_START) and stream[11] & _ENCRYPTED_WORD)
        or any(record == _PASSWORD for record, _ in _records(stream))
    )
    if is_locked:
        raise FormatError(PASSWORD_NEEDED)


def count_lost(data: bytes, kind: str) -> Counter[str]:
    """Return how many comments a document has, or comments and charts a workbook: they are not read."""
    lost = Counter[str]()
    stream = _open_stream(data, kind)
    if stream is None:
        return lost
    if stream.startswith(_WORD_START):
        size = int.from_bytes(stream[_COMMENTS_SIZE : _COMMENTS_SIZE + 4], "little")
        if 0 < size < len(data):
            lost["comment"] = (size - 4) // _COMMENT_BYTES
    for record, content in _records(stream):
        if record == _NOTE:
            lost["comment"] += 1
        elif record == _BEGIN and content[2:3] == bytes([_CHART]):
            lost["chart"] += 1
    return +lost


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-le")


def _open_stream(data: bytes, kind: str) -> bytes | None:
    """Return the file from where the stream of a kind begins, or None if there is no such stream."""
    for name in _STREAMS.get(kind, ()):
        entry = data.find(_utf16(f"{name}\0"))
        if entry >= 0:
            sector_size = 1 << min(data[0x1E], 16)
            first_sector = int.from_bytes(data[entry + _ENTRY_START : entry + _ENTRY_START + 4], "little")
            return data[(first_sector + 1) * sector_size :]
    return None


def _records(stream: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the content of each record of a workbook, as far as they follow each other."""
    if int.from_bytes(stream[:2], "little") != _BEGIN:
        return
    start = 0
    while start + 4 <= len(stream):
        record = int.from_bytes(stream[start : start + 2], "little")
        size = int.from_bytes(stream[start + 2 : start + 4], "little")
        if record == 0:  # the stream's end, or another part of it
            return
        yield record, stream[start + 4 : start + 4 + size]
        start += 4 + size
