"""The words of the corpus, by length, from which the nearest to a misspelt one are found.

The file is derived from the chunk store's table of words, which takes seconds to look through in a large corpus.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from pathlib import Path

from arag.errors import DamagedFileError
from arag.files import written_whole


def write_vocabulary(file: Path, words: Iterable[str]) -> None:
    """Write words (lower case, without diacritics) to a file, which appears when it is complete.

    Each stands on a line; the last line is the CRC-32 of those before it.
    """
    lines = "".join(f"{word}\n" for word in sorted(words, key=lambda word: (len(word), word))).encode()
    with written_whole(file) as out:
        out.write(lines)
        out.write(_checksum(lines))


class Vocabulary:
    """The words of a vocabulary file.

    Args:
        file: The file.

    Raises:
        DamagedFileError: The file is missing or damaged.
    """

    def __init__(self, file: Path) -> None:
        try:
            data = file.read_bytes()
            end = data.rfind(b"\n") + 1
            if data[end:] != _checksum(data[:end]):
                raise DamagedFileError(file, "its checksum differs")
            self._words = data[:end].decode().split("\n")[:-1]
        except (OSError, UnicodeDecodeError) as error:
            raise DamagedFileError(file, str(error)) from error

    def of_length(self, shortest: int, longest: int) -> list[str]:
        """Return the words whose lengths lie between two bounds, both included."""
        return self._words[bisect_left(self._words, shortest, key=len) : bisect_right(self._words, longest, key=len)]


def _checksum(lines: bytes) -> bytes:
    return b"%08x" % zlib.crc32(lines)
