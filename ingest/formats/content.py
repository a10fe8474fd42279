"""The content of a file, as its reader returns it, and the decoding and cleaning of texts."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from arag.ingest.formats.encoding import guess_encoding
from arag.text.normalise import count, without_division_signs

JSON: TypeAlias = "str | int | float | bool | list[JSON] | dict[str, JSON] | None"

MAX_CHARACTERS = 50_000_000  # of a file's text; a higher limit takes more memory at once
MAX_FILE_BYTES = 200_000_000  # of a file that is read whole, which takes several times as much memory

_MAX_NAMES = 5  # of parts that are left out
_GAP = "\n\n"  # between blocks and between pages
_ESCAPE = b"\x1b"
_MARKS = {  # UTF-32 comes first: its mark begins with the one of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_SAMPLE_BYTES = 4_096  # in which the bytes of UTF-16 and of files without text are counted
_MANY_TIMES = 20
_MIN_NULS = 4  # of a file without text; a damaged text may have one
_ENCODING_HINT = "name its encoding, as in --encoding windows-1252"
BINARY = "a binary file: it has no text"
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_LIGATURE = re.compile("[\ufb00-\ufb06]")


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
        left_out: Parts that a person sees in the file and the text lacks, as short phrases: `2 charts`,
            `1 attachment (plan.dwg)`. They are named in a note.
        damage: Parts that cannot be read, and why: `page 3: damaged`. Each is a problem.
        ocr_pages: The numbers of the pages whose text was read by OCR.
        marks_headings: Whether all headings are marked as in Markdown, so that no plain line is taken for one.
        headings_apart: Whether no plain line inside a paragraph is taken for a heading.
        is_plain: Whether it is written by hand: a bar is text where it does not certainly divide the cells of a row.
        is_code: Whether it is a program or settings, without headings.
        barred_lines: The lines, without white space around them, in which bars are text: they are not rows of tables.
        why_skipped: Why the file is not a document, if nothing is wrong with it: it only leads to another.
    """

    title: str
    text: str
    page_starts: tuple[int, ...] = ()
    metadata: Mapping[str, JSON] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    damage: tuple[str, ...] = ()
    ocr_pages: tuple[int, ...] = ()
    marks_headings: bool = False
    headings_apart: bool = False
    is_plain: bool = False
    is_code: bool = False
    barred_lines: Collection[str] = ()
    why_skipped: str = ""


def name_parts(noun: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return a phrase for parts that are left out, such as `2 attachments (a.dwg, b.dwg)`; none for no parts."""
    if not names:
        return ()
    return (f"{count(len(names), noun)} ({_first_names(names)})",)


def _first_names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MAX_NAMES])
    others = len(names) - _MAX_NAMES
    if others > 0:
        shown += f" and {others:,} more"
    return shown


def join_blocks(blocks: Iterable[str]) -> str:
    """Return the blocks that have text, with a blank line between them."""
    return _GAP.join(block for block in blocks if block)


def name_lost(lost: Mapping[str, int]) -> tuple[str, ...]:
    """Return what a text lacks, such as `2 charts`, by the number of each kind."""
    return tuple(count(number, noun) for noun, number in lost.items())


def name_pages(pages: Sequence[int]) -> str:
    """Return the numbers of pages as a phrase, such as `page 12` or `pages 3, 7, 8 and 5 more`."""
    noun = "page" if len(pages) == 1 else "pages"
    return f"{noun} {_first_names(list(map(str, pages)))}"


def name_pictures(parts: str, number: int) -> str:
    """Return a phrase for parts that are pictures without text, such as `page 12, which is a picture`."""
    verb = "is a picture" if number == 1 else "are pictures"
    return f"{parts}, which {verb}"


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


def plain_letters(text: str) -> str:
    """Return a text with letters that are found as they are seen.

    An accent is a part of its letter, `fi` stands for its ligature, and what shows where a word may be divided is gone.
    """
    if text.isascii():
        return text
    text = without_division_signs(text)
    text = _LIGATURE.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)
    return unicodedata.normalize("NFC", text)


def is_wide(data: bytes) -> bool:
    """Return whether the data are in UTF-16 or UTF-32, where NUL bytes belong to characters."""
    return _unicode_encoding(data) != "utf-8"


def _unicode_encoding(data: bytes) -> str:
    mark = next(filter(data.startswith, _MARKS), None)
    if mark:
        return _MARKS[mark]
    # Without a mark, every second byte of Latin letters shows the encoding.
    head = data[:_SAMPLE_BYTES]
    pairs = len(head) // 2
    first = head[0::2].count(0)
    second = head[1::2].count(0)
    is_one_mostly_null = 2 * max(first, second) > pairs
    is_other_hardly_null = _MANY_TIMES * min(first, second) <= pairs
    if not (is_one_mostly_null and is_other_hardly_null):
        return "utf-8"
    return "utf-16-be" if first > second else "utf-16-le"


def decode(data: bytes) -> str:
    """Decode UTF-8, or UTF-16 or UTF-32 with a byte order mark, with clean line ends.

    Raises:
        FormatError: The data are not valid in that encoding.
    """
    encoding = _unicode_encoding(data)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        byte = f"byte 0x{data[error.start]:02x} at offset {error.start}"
        raise FormatError(f"not valid {encoding.upper()} ({byte})") from error
    return clean_text(text.removeprefix("\ufeff"))


def decode_text(data: bytes, encoding: str = "", *, declared: str = "", fallback: str = "") -> str:
    """Decode a text whose encoding may be unknown, with clean line ends.

    Unicode is tried first, then what the text declares. Without that, the encoding that the data certainly have comes
    before `encoding`, which was named for a whole folder: in it, some texts may have another one.

    Args:
        data: The bytes of the text.
        encoding: Of a text whose encoding is in doubt, or an empty string.
        declared: The encoding that the text itself names, or an empty string.
        fallback: Of a text whose encoding is in doubt and was not named, or an empty string.

    Raises:
        FormatError: None of them decodes the data.
    """
    named = declared or encoding
    if named and _may_be_in_seven_bits(data):
        text = _try_decode(data, named)
        if text is not None:
            return text
    try:
        return decode(data)
    except FormatError as error:
        is_binary = data.count(0, 0, _SAMPLE_BYTES) >= _MIN_NULS
        if is_binary and not named:
            raise FormatError(BINARY) from error
        likely = declared or guess_encoding(data) or encoding or fallback
        text = _try_decode(data, likely)
        if text is not None:
            return text
        hint = f"nor valid {named}" if named else _ENCODING_HINT
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
