"""The work of an ingestion: files to read, and text to write. The finished part tells how long the rest takes.

Bytes say little about it: most of a PDF or of slides may be pictures, and a text file is all text. So the characters
per byte are counted for each extension, and the seconds that reading takes. The rest of the time goes into text that is
new or has changed: it is cut, embedded and stored.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass

_PLAIN = 1.0  # characters per byte
_WEB = 0.4  # the rest is markup
_PACKED_EFFORT = 0.2
_PACKED = 0.02  # the rest is pictures, fonts and layout
_USUAL = {
    **dict.fromkeys((".html", ".htm", ".xhtml", ".eml", ".mht", ".mhtml", ".mbox", ".ipynb"), _WEB),
    **dict.fromkeys((".pdf", ".docx", ".xlsx", ".pptx", ".odt", ".ods", ".odp", ".epub", ".rtf"), _PACKED),
    **dict.fromkeys((".docm", ".xlsm", ".pptm", ".doc", ".xls", ".ppt", ".msg"), _PACKED),
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp"), _PACKED),
}
_USUAL_BYTES = 300_000  # of a kind: until more are read, its characters per byte are close to the usual ones
# Until something was read or written.
_SECONDS_PER_BYTE = 1e-6
_SECONDS_PER_CHARACTER = 5e-5


@dataclass(slots=True)
class _Kind:
    """The files of one extension."""

    usual: float  # characters per byte
    new: int = 0  # bytes that are not read yet, of files that are not in the index
    known: int = 0  # the same, of files that are in the index
    bytes: int = 0  # read
    characters: int = 0
    seconds: float = 0.0  # for reading

    @property
    def effort(self) -> float:
        """The time that reading a byte usually takes, in that of a byte of text."""
        if self.usual == _PACKED:
            return _PACKED_EFFORT
        return 1.0

    @property
    def characters_per_byte(self) -> float:
        characters = self.usual * _USUAL_BYTES + self.characters
        return characters / (_USUAL_BYTES + self.bytes)


@dataclass(slots=True)
class _Compared:
    """Characters of documents that were compared with the index."""

    all: int = 0
    changed: int = 0

    def share_changed(self, otherwise: float) -> float:
        if not self.all:
            return otherwise
        return self.changed / self.all


class Workload:
    """The work of one ingestion.

    Args:
        files: The bytes of each file, by its absolute path. Objects given in Python are together one file without a
            name, and count with their characters.
    """

    def __init__(self, files: Mapping[str, int]) -> None:
        self._kinds: dict[str, _Kind] = {}
        self._unread = dict(files)
        self._in_index: set[str] = set()
        self._read = 0  # characters
        self._compared = _Compared()
        self._of_known = _Compared()  # the part of files that were in the index
        self._written = 0  # characters
        self._reading = 0.0  # seconds
        self._before_writing: float | None = None  # seconds
        for path, size in files.items():
            self._kind_of(path).new += size

    def expect_unchanged(self, files: Collection[str]) -> None:
        """Take note of the files that are in the index: most have not changed."""
        self._in_index = set(files) & self._unread.keys()
        for path in self._in_index:
            kind = self._kind_of(path)
            kind.new -= self._unread[path]
            kind.known += self._unread[path]

    def read(self, path: str, size: int, characters: int, seconds: float) -> None:
        """Count a part of a file that was read."""
        size = min(max(size, 0), self._unread.get(path, 0))
        if path in self._unread:
            self._unread[path] -= size
        kind = self._kind_of(path)
        if path in self._in_index:
            kind.known -= size
        else:
            kind.new -= size
        kind.bytes += size
        kind.characters += characters
        kind.seconds += seconds
        self._read += characters
        self._reading += seconds

    def read_ahead(self, seconds: float) -> None:
        """Count time in which files were read before their turn: it says nothing about one of them."""
        self._reading += seconds

    def compare(self, path: str, characters: int, *, is_changed: bool) -> None:
        """Count a document that was compared with the index: it is unchanged, or it is to be written."""
        changed = 0
        if is_changed:
            changed = characters
        self._compared.all += characters
        self._compared.changed += changed
        if path in self._in_index:
            self._of_known.all += characters
            self._of_known.changed += changed

    def write(self, characters: float) -> None:
        """Count text that is embedded."""
        self._written += round(characters)

    def begin_writing(self, seconds: float) -> None:
        """Take note of the seconds before the first text is embedded."""
        if self._before_writing is None:
            self._before_writing = seconds - self._reading

    def estimate_share(self, seconds: float) -> float:
        """Return the finished share of the work after these seconds; 0 if it is not known."""
        left = self.estimate_seconds_left(seconds)
        if left is None or not seconds:
            return 0.0
        return seconds / (seconds + left)

    def estimate_seconds_left(self, seconds: float) -> float | None:
        """Return the seconds left after these seconds; None if most are for text, and none was written so far."""
        reading = self._estimate_reading(seconds)
        writing = self._estimate_writing(seconds)
        is_known = self._written or writing <= reading
        if not is_known:
            return None
        return reading + writing

    def _estimate_writing(self, seconds: float) -> float:
        """Return the seconds that writing the rest of the text takes."""
        per_character = _SECONDS_PER_CHARACTER
        if self._written and self._before_writing is not None:
            writing = seconds - self._reading - self._before_writing
            per_character = max(writing, 0.0) / self._written
        return self._estimate_text() * per_character

    def _estimate_text(self) -> float:
        """Return the characters that are still to be written."""
        changed = self._of_known.share_changed(otherwise=0.0)
        usual = 1.0
        if self._in_index:
            usual = changed
        of_all = self._compared.share_changed(otherwise=usual)
        waiting = max(self._read - self._compared.all, 0)  # until they are compared
        text = max(self._compared.changed - self._written, 0) + waiting * of_all
        for kind in self._kinds.values():
            text += (kind.new + kind.known * changed) * kind.characters_per_byte
        return text

    def _estimate_reading(self, seconds: float) -> float:
        """Return the seconds that reading the rest takes."""
        read = sum(kind.bytes * kind.effort for kind in self._kinds.values())
        mean = self._reading / read if read else _SECONDS_PER_BYTE
        left = 0.0
        for kind in self._kinds.values():
            # The first file of a kind loads its reader.
            per_byte = (mean * kind.effort * _USUAL_BYTES + kind.seconds) / (_USUAL_BYTES + kind.bytes)
            left += (kind.new + kind.known) * per_byte
        if self._compared.changed or not self._reading:
            return left
        return left * seconds / self._reading  # comparing with the index takes time, too

    def _kind_of(self, path: str) -> _Kind:
        extension = os.path.splitext(path)[1].lower()  # noqa: PTH122 - a Path would be slow for many files
        if extension not in self._kinds:
            self._kinds[extension] = _Kind(_USUAL.get(extension, _PLAIN))
        return self._kinds[extension]
