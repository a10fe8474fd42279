"""Files that appear when they are complete."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_READ_BYTES = 1 << 24


@contextmanager
def written_whole(file: Path) -> Iterator[BinaryIO]:
    """Open a file for writing whose readers see the old one, or the new one when it is complete.

    What cannot be completed is deleted: it would go on filling a full disk.

    Args:
        file: The file.
    """
    temporary = file.with_name(f"{file.name}.new")
    try:
        with temporary.open("wb", buffering=1 << 20) as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def checksum(file: Path) -> int:
    """Return the CRC-32 of a file."""
    value = 0
    with file.open("rb") as opened:
        while data := opened.read(_READ_BYTES):
            value = zlib.crc32(data, value)
    return value
