"""Code that all readers share, and the reader of plain text.

A reader of a format is a function that takes the bytes of a file and returns its `Content`, or raises `FormatError`.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath

from arag.ingest.documents import JSON, Problem

MAX_JSON_DEPTH = 100

_MAX_TITLE = 120
_MAX_DIGITS = 9
_SENTENCE_END = (".", "!", "?", "。", "！", "？", ":", ";", ",")


class FormatError(Exception):
    """The bytes of a file, or a record, do not hold a document; the message says why."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a file holds.

    Attributes:
        title: The title that the file gives, or an empty string.
        text: The whole text.
        metadata: Further fields.
        page_starts: The offset in the text at which each page starts; empty if there are no pages.
        left_out: What is left out of the text, as (the place in the file, why): `("page 3", "...")`.
    """

    title: str
    text: str
    metadata: Mapping[str, JSON] = field(default_factory=dict)
    page_starts: tuple[int, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()


def clean_characters(text: str) -> str:
    """Return the text without NUL characters and with U+FFFD for lone surrogates."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text).replace("\0", "")


def clean_text(text: str) -> str:
    r"""Return the text with clean characters, and with `\n` as the only line end."""
    return clean_characters(text).replace("\r\n", "\n").replace("\r", "\n")


def clean_json(value: JSON, depth: int = 0) -> JSON:
    """Return the value with clean characters, and with null for numbers that are not finite.

    NaN and Infinity are not JSON, but pandas and others write them for missing values.

    Raises:
        RecursionError: The value is nested deeper than `json` can write it again.
    """
    if depth > MAX_JSON_DEPTH:
        raise RecursionError
    if isinstance(value, str):
        return clean_characters(value)
    if isinstance(value, list):
        return [clean_json(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {clean_characters(key): clean_json(item, depth + 1) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def has_control_characters(text: str) -> bool:
    """Return whether there are line ends or other control characters in the text."""
    return any(unicodedata.category(character) in {"Cc", "Zl", "Zp"} for character in text)


def problem_at(source: PurePath | str, reason: Exception | str) -> Problem:
    """Return the problem of a file, or of a place in one."""
    if isinstance(reason, OSError):
        reason = reason.strerror or str(reason)
    return Problem(clean_characters(str(source)), clean_characters(str(reason)))


def folded(text: str) -> str:
    """Return the text on one line, with single spaces for runs of white space."""
    return " ".join(text.split())


def whole_number(text: str) -> int | None:
    """Return the number that an attribute holds, or None; Python refuses to convert thousands of digits."""
    return int(text) if text.isdecimal() and len(text) <= _MAX_DIGITS else None


def has_utf16_mark(data: bytes) -> bool:
    """Return whether the data begin with the byte order mark of UTF-16 (and not that of UTF-32)."""
    return data.startswith((b"\xff\xfe", b"\xfe\xff")) and not data.startswith(b"\xff\xfe\0\0")


def decode(data: bytes, codec: str = "", *, encoding: str = "") -> str:
    """Decode strictly, without the byte order mark and with clean line ends.

    Args:
        data: The bytes.
        codec: The name of a Python codec; where empty, UTF-16 if the byte order mark says so, else UTF-8.
        encoding: The name for error messages, if different.

    Raises:
        FormatError: The bytes are not in that encoding.
    """
    codec = codec or ("utf-16" if has_utf16_mark(data) else "utf-8")
    try:
        text = data.decode(codec)
    except UnicodeDecodeError as error:
        place = f"byte 0x{data[error.start]:02x} at offset {error.start}"
        raise FormatError(f"not valid {(encoding or codec).upper()} ({place}); convert it to UTF-8") from error
    return clean_text(text.removeprefix("\ufeff"))


def read_text(data: bytes) -> Content:
    """Read plain text; its title is a short first line that stands by itself.

    Raises:
        FormatError: The file is in another encoding.
    """
    text = decode(data)
    first, _, rest = text.partition("\n")
    second, second_ends, _ = rest.partition("\n")
    title = first.strip()
    stands_apart = bool(second_ends) and not second.strip()
    if not stands_apart or len(title) > _MAX_TITLE or title.endswith(_SENTENCE_END):
        title = ""
    return Content(title, text)


def read_code(data: bytes) -> Content:
    """Read a file that should be text, such as a program, or one whose name has no ending.

    Raises:
        FormatError: The file is binary, or in another encoding.
    """
    if b"\0" in data and not has_utf16_mark(data):
        raise FormatError("a binary file: it has no text")
    return Content("", decode(data))
