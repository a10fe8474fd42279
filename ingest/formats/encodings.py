"""Texts that are in other encodings than Unicode's."""

from __future__ import annotations

import re
from contextlib import suppress
from io import BytesIO
from itertools import islice

from arag.ingest.formats.content import FormatError, clean_text, decode

_SAMPLE_LINES, _MAX_LINE_BYTES = 500, 10_000
# Of charset-normalizer's measures, in shares: characters that seldom stand together, and letters as often as in a known
# language. It knows no such letters of Japanese.
_MAX_MESS, _MORE_MESS, _MIN_COHERENCE, _MIN_KANA = 0.1, 0.05, 0.2, 0.3
_ESCAPE = b"\x1b"
_KANA = re.compile("[\u3041-\u30fa]")
_HALF_WIDTH = re.compile("[\uff61-\uff9f]")  # rare in texts, and what Cyrillic looks like in Shift-JIS


def decode_text(data: bytes, encoding: str = "", fallback: str = "") -> str:
    """Decode UTF-8 or UTF-16, else `encoding`, else what the data certainly are, else `fallback`; clean line ends."""
    try:
        if encoding and data.isascii() and _ESCAPE in data:  # such as ISO-2022-JP, which passes for UTF-8
            with suppress(UnicodeError):
                return clean_text(data.decode(encoding))
        return decode(data)
    except FormatError as error:
        name = encoding or guess_encoding(data) or fallback
        with suppress(LookupError, UnicodeError):
            if name:
                return clean_text(data.decode(name))
        hint = f"nor valid {name}" if name else "name its encoding, as in --encoding windows-1252"
        raise FormatError(f"{error}; {hint}") from error


def guess_encoding(data: bytes) -> str:
    """Return the encoding that gives a text in a known language if each other one gives a worse text; else nothing."""
    from charset_normalizer import from_bytes

    lines = (line for line in BytesIO(data) if not line.isascii() and len(line) < _MAX_LINE_BYTES)
    best, *others = [*from_bytes(b"".join(islice(lines, _SAMPLE_LINES))), None]
    if best is None or best.chaos > _MAX_MESS or _HALF_WIDTH.search(text := str(best)):
        return ""
    if any(other and other.chaos < best.chaos + _MORE_MESS and str(other) != text for other in others):
        return ""
    if best.coherence < _MIN_COHERENCE and len(_KANA.findall(text)) <= _MIN_KANA * sum(not c.isascii() for c in text):
        return ""
    return "cp1252" if "cp1252" in best.could_be_from_charset else best.encoding
