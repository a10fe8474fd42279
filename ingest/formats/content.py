"""What a reader makes of a file, and the characters of texts."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from itertools import islice
from typing import TypeAlias

JSON: TypeAlias = "str | int | float | bool | list[JSON] | dict[str, JSON] | None"

MAX_CHARACTERS = 50_000_000  # of a file's text
MAX_FILE_BYTES = 200_000_000  # of a file that is read whole

_SAMPLE_LINES, _MAX_LINE_BYTES = 500, 10_000
# Of charset-normalizer's measures, in shares: characters that seldom stand together, and letters as often as in a known
# language. It knows no such letters of Japanese.
_MAX_MESS, _MORE_MESS, _MIN_COHERENCE, _MIN_KANA = 0.1, 0.05, 0.2, 0.3
_KANA = re.compile("[\u3041-\u30fa]")
_HALF_WIDTH = re.compile("[\uff61-\uff9f]")  # rare in texts, and what Cyrillic looks like in Shift-JIS
_ESCAPE = b"\x1b"


class FormatError(ValueError):
    """A file cannot be read; the message says why."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a file holds.

    Attributes:
        title: The title that the file gives, or an empty string.
        text: The whole text, with headings and lists as in Markdown.
        page_starts: The offset in the text at which each page starts; empty if there are no pages.
        metadata: Further fields.
        left_out: What a person sees in the file and the text does not have: `page 3: damaged`.
    """

    title: str
    text: str
    page_starts: tuple[int, ...] = ()
    metadata: Mapping[str, JSON] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


def reason(error: Exception) -> str:
    """Return why a file cannot be read: it can be damaged in more ways than its reader foresees."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error) if isinstance(error, ValueError) else f"cannot be read: {type(error).__name__}: {error}"


def clean_characters(text: str) -> str:
    """Return the text without NUL characters and with U+FFFD for lone surrogates."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text).replace("\0", "")


def clean_text(text: str) -> str:
    r"""Return the text with clean characters, and with `\n` as the only line end."""
    text = clean_characters(text).replace("\r\r\n", "\n")  # as csv files have it that were written twice as text
    return text.replace("\r\n", "\n").replace("\r", "\n")


def has_mark(data: bytes) -> bool:
    """Return whether the data begin with the byte order mark of UTF-16 or UTF-32."""
    return data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE))


def decode(data: bytes) -> str:
    """Decode UTF-8, or UTF-16 or UTF-32 with a byte order mark, with clean line ends."""
    is_long = data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE))
    codec = "utf-32" if is_long else "utf-16" if has_mark(data) else "utf-8"
    try:
        return clean_text(data.decode(codec).removeprefix("\ufeff"))
    except UnicodeDecodeError as error:
        place = f"byte 0x{data[error.start]:02x} at offset {error.start}"
        raise FormatError(f"not valid {codec.upper()} ({place})") from error


def decode_text(data: bytes, encoding: str = "", fallback: str = "") -> str:
    """Decode UTF-8 or UTF-16, else `encoding`, else what the data certainly are, else `fallback`; clean line ends."""
    try:
        if encoding and data.isascii() and _ESCAPE in data:  # such as ISO-2022-JP, which passes for UTF-8
            with suppress(UnicodeError):
                return clean_text(data.decode(encoding))
        return decode(data)
    except FormatError as error:
        name = encoding or _guess_encoding(data) or fallback
        with suppress(LookupError, UnicodeError):
            if name:
                return clean_text(data.decode(name))
        hint = f"nor valid {encoding}" if encoding else "name its encoding, as in --encoding windows-1252"
        raise FormatError(f"{error}; {hint}") from error


def _guess_encoding(data: bytes) -> str:
    """Return the encoding that gives a text in a known language if each other one gives a worse text; else nothing."""
    from charset_normalizer import from_bytes

    lines = (line for line in BytesIO(data) if not line.isascii() and len(line) < _MAX_LINE_BYTES)
    matches = from_bytes(b"".join(islice(lines, _SAMPLE_LINES)))
    best = matches.best()
    if best is None or best.chaos > _MAX_MESS or _HALF_WIDTH.search(text := str(best)):
        return ""
    if best.coherence < _MIN_COHERENCE and len(_KANA.findall(text)) <= _MIN_KANA * sum(not c.isascii() for c in text):
        return ""
    if any(other.chaos < best.chaos + _MORE_MESS and str(other) != text for other in matches):
        return ""
    return "cp1252" if "cp1252" in best.could_be_from_charset else best.encoding
