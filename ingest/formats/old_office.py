"""Files of Office before 2007: the streams in them, passwords, and what a person sees that is not read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from arag.ingest.formats.content import FormatError

START = bytes.fromhex("d0cf11e0a1b11ae1")  # of these files, and of later ones with a password
PASSWORD_NEEDED = "needs a password: save a copy without it"  # noqa: S105 - words for a person

_STREAMS = {  # by the kind that has them
    ".doc": ("WordDocument",),
    ".xls": ("Workbook", "Book"),
    ".ppt": ("PowerPoint Document",),
}
_SECTOR_SHIFT_AT = 0x1E  # where a file has the size of its sectors, as a power of 2
_FIRST_SECTOR_AT = 116  # where an entry of the directory has the number of a stream's first sector

_WORD_START = b"\xec\xa5"
_FLAGS_AT = 11  # where a document has the next bit
_ENCRYPTED_WORD = 0x01
_COMMENTS_SIZE_AT = 190  # where a document has the size of the list of its comments
_COMMENT_BYTES = 34

_RECORD_HEAD = Struct("<HH")  # the number of a record, and the size of its content
# The numbers of records of a workbook.
_BEGIN = 0x0809
_NOTE = 0x001C
_PASSWORD = 0x002F
_CHART = b"\x20"  # in the record that begins it


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
    has_locked_parts = _utf16("EncryptedPackage") in data or _utf16("EncryptedSummary") in data
    if has_locked_parts or _is_stream_locked(_open_stream(data, kind)):
        raise FormatError(PASSWORD_NEEDED)


def _is_stream_locked(stream: bytes) -> bool:
    if stream.startswith(_WORD_START):
        flags = stream[_FLAGS_AT]
        return flags & _ENCRYPTED_WORD != 0
    return any(record.number == _PASSWORD for record in _records(stream))


def count_lost(data: bytes, kind: str) -> Counter[str]:
    """Return how many comments a document has, or comments and charts a workbook: they are not read."""
    lost = Counter[str]()
    stream = _open_stream(data, kind)
    if stream.startswith(_WORD_START):
        size = _number(stream, _COMMENTS_SIZE_AT, 4)
        if 0 < size < len(data):
            lost["comment"] = (size - 4) // _COMMENT_BYTES
    for record in _records(stream):
        is_chart = record.number == _BEGIN and record.content[2:3] == _CHART
        if record.number == _NOTE:
            lost["comment"] += 1
        elif is_chart:
            lost["chart"] += 1
    return +lost


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-le")


def _number(data: bytes, start: int, size: int) -> int:
    return int.from_bytes(data[start : start + size], "little")


def _open_stream(data: bytes, kind: str) -> bytes:
    """Return the file from where the stream of a kind begins, or nothing if there is no such stream."""
    for name in _STREAMS.get(kind, ()):
        entry = data.find(_utf16(f"{name}\0"))
        if entry < 0:
            continue
        sector_size = 1 << min(data[_SECTOR_SHIFT_AT], 16)
        first_sector = _number(data, entry + _FIRST_SECTOR_AT, 4)
        return data[(first_sector + 1) * sector_size :]
    return b""


class _Record(NamedTuple):
    """A record of a workbook."""

    number: int
    content: bytes


def _records(stream: bytes) -> Iterator[_Record]:
    """Yield the records of a workbook, as far as they follow each other; none of another stream."""
    if _number(stream, 0, 2) != _BEGIN:
        return
    start = 0
    while start + _RECORD_HEAD.size <= len(stream):
        number, size = _RECORD_HEAD.unpack_from(stream, start)
        if number == 0:  # the stream's end, or another part of it
            return
        start += _RECORD_HEAD.size
        yield _Record(number, stream[start : start + size])
        start += size
