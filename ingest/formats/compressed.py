"""Unpacks a single file in gzip, such as the README.gz of a package."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from arag.ingest.formats.content import MAX_FILE_BYTES, FormatError

GZIP = ".gz"
_SAMPLE_BYTES = 4_096  # which show whether a file is text
_CONTROL = re.compile(rb"[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f]")  # no text has them, but for colours and bold


def inner_path(path: Path) -> Path:
    """Return a path without the extension of gzip: that of `README.gz` is `README`."""
    return path.with_suffix("") if path.suffix.lower() == GZIP else path


def first_text(path: Path) -> str:
    """Return the beginning of a file, unpacked from gzip, if that is text in whatever encoding, else nothing."""
    open_file = gzip.open if path.suffix.lower() == GZIP else open
    try:
        with open_file(path, "rb") as file:
            data = file.read(_SAMPLE_BYTES)
    except (OSError, EOFError, zlib.error):
        return ""
    return "" if _CONTROL.search(data) else data.decode("utf-8", "replace")


def read_packed(path: str) -> str | bytes:
    """Return what a file in gzip holds, and of another file its path, for a library that takes either.

    Raises:
        FormatError: The file is damaged, or what it holds is too large.
    """
    return _unpack(path) if path.lower().endswith(GZIP) else path


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """Yield the path of a temporary file with what a file in gzip holds, in a folder with the name of its own.

    Raises:
        FormatError: The file is damaged, or what it holds is too large.
    """
    data = _unpack(path)
    with TemporaryDirectory() as folder:
        inner = Path(folder, path.absolute().parent.name, inner_path(path).name)
        inner.parent.mkdir(exist_ok=True)
        inner.write_bytes(data)
        yield inner


def _unpack(path: Path | str) -> bytes:
    try:
        with gzip.open(path) as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise FormatError(f"a damaged gzip archive: {error}") from error
    if len(data) > MAX_FILE_BYTES:
        raise FormatError(f"more than {MAX_FILE_BYTES // 1_000_000} MB in a gzip archive")
    return data
