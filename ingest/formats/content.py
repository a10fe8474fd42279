"""The content of a file, as its reader returns it, and the decoding and cleaning of texts."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from arag.ingest.formats.encoding import guess_encoding
from arag.text.normalise import count

JSON: TypeAlias = "str | int | float | bool | list[JSON] | dict[str, JSON] | None"

MAX_CHARACTERS = 50_000_000  # of a file's text; a higher limit takes more memory at once
MAX_FILE_BYTES = 200_000_000  # of a file that is read whole, which takes several times as much memory

_GAP = "\n\n"  # between blocks and between pages
_ESCAPE = b"\x1b"
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class FormatError(ValueError):
    """A file cannot be read; the message says why."""


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a file.

    Attributes:
        title: The title that the file gives, or an empty string.
        text: The whole text, with headings and lists as in Markdown.
        page_starts: The offset in the text at which each page starts; empty if there are no pages.
        metadata: Further fields.
        left_out: Parts that a person sees in the file and that are missing in the text: `page 3: damaged`.
    """

    title: str
    text: str
    page_starts: tuple[int, ...] = ()
    metadata: Mapping[str, JSON] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


def join_blocks(blocks: Iterable[str]) -> str:
    """Return the blocks that have text, with a blank line between them."""
    return _GAP.join(block for block in blocks if block)


def name_lost(lost: Mapping[str, int]) -> tuple[str, ...]:
    """Return what a text lacks, such as `2 charts`, by the number of each kind."""
    return tuple(count(number, noun) for noun, number in lost.items())


def join_pages(pages: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    """Return the text of pages with a blank line between them, and the offset at which each page starts."""
    starts: list[int] = []
    start = 0
    for page in pages:
        starts.append(start)
        start += len(page) + len(_GAP)
    return _GAP.join(pages), tuple(starts)


def reason(error: Exception) -> str:
    """Return why a file cannot be read: it can be damaged in more ways than its reader foresees."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if isinstance(error, ValueError):
        return str(error)
    return f"cannot be read: {type(error).__name__}: {error}"


def clean_characters(text: str) -> str:
    """Return the text without NUL characters and with U+FFFD for lone surrogates."""
    return _LONE_SURROGATE.sub("\ufffd", text).replace("\0", "")


def clean_text(text: str) -> str:
    r"""Return the text with clean characters, and with `\n` as the only line end."""
    text = clean_characters(text)
    text = text.replace("\r\r\n", "\n")  # a csv file has these if it was written as text twice
    return text.replace("\r\n", "\n").replace("\r", "\n")


def has_byte_order_mark(data: bytes) -> bool:
    """Return whether the data begin with the byte order mark of UTF-16 or UTF-32."""
    return _marked_encoding(data) != "utf-8"


def _marked_encoding(data: bytes) -> str:
    # UTF-32 comes first: its mark begins with the one of UTF-16.
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    return "utf-8"


def decode(data: bytes) -> str:
    """Decode UTF-8, or UTF-16 or UTF-32 with a byte order mark, with clean line ends.

    Raises:
        FormatError: The data are not valid in that encoding.
    """
    encoding = _marked_encoding(data)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        byte = f"byte 0x{data[error.start]:02x} at offset {error.start}"
        raise FormatError(f"not valid {encoding.upper()} ({byte})") from error
    return clean_text(text.removeprefix("\ufeff"))


def decode_text(data: bytes, encoding: str = "", fallback: str = "") -> str:
    """Decode a text whose encoding may be unknown, with clean line ends.

    Unicode is tried first, then `encoding`; without one, the encoding that the data certainly have, then `fallback`.

    Args:
        data: The bytes of the text.
        encoding: Of a text that is not Unicode, or an empty string.
        fallback: Of a text whose encoding is not named and cannot be guessed, or an empty string.

    Raises:
        FormatError: None of them decodes the data.
    """
    if encoding and _may_be_in_seven_bits(data):
        text = _try_decode(data, encoding)
        if text is not None:
            return text
    try:
        return decode(data)
    except FormatError as error:
        text = _try_decode(data, encoding or guess_encoding(data) or fallback)
        if text is not None:
            return text
        hint = "name its encoding, as in --encoding windows-1252"
        if encoding:
            hint = f"nor valid {encoding}"
        raise FormatError(f"{error}; {hint}") from error


def _may_be_in_seven_bits(data: bytes) -> bool:
    """Return whether the data may be in an encoding such as ISO-2022-JP, which also passes for UTF-8."""
    return data.isascii() and _ESCAPE in data


def _try_decode(data: bytes, encoding: str) -> str | None:
    """Return the text, or nothing if the encoding is empty, unknown or not the one of the data."""
    try:
        return clean_text(data.decode(encoding))
    except (LookupError, UnicodeError):
        return None
