"""The work of an ingestion: files to read, and text to write. What is left is estimated from what is finished.

Bytes say little about it: most of a PDF or of slides may be pictures, and a text file is all text. So the characters
per byte are counted for each extension, and the seconds that reading takes. Folders differ, too: so some files from all
of them are read before their turn. The rest of the time goes into text that is new or has changed: it is cut, embedded
and stored.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

_USUAL_TEXT = 1.0  # characters per byte
_MARKED_UP = 0.4
_PACKED = 0.02  # the rest is pictures, fonts and layout
_LESS_TEXT = {
    **dict.fromkeys(
        (".html", ".htm", ".xhtml", ".page", ".docbook", ".dbk", ".xml", ".eml", ".mht", ".mhtml", ".mbox", ".ipynb"),
        _MARKED_UP,
    ),
    **dict.fromkeys((".pdf", ".docx", ".xlsx", ".pptx", ".odt", ".ods", ".odp", ".epub", ".rtf"), _PACKED),
    **dict.fromkeys((".docm", ".xlsm", ".pptm", ".doc", ".xls", ".ppt", ".msg"), _PACKED),
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp"), _PACKED),
}
_USUAL_BYTES = 300_000  # of a kind: until more are read, the estimates for it are close to the usual ones
_SAMPLE_FILES = 60  # that are read before their turn, if there are so many
_SAMPLE_SHARE = 0.25  # of the files, at most: if the run is killed, these are read again
_MAX_SAMPLE_BYTES = 2_000_000  # of each: its text is held in memory until its turn


@dataclass(slots=True)
class _Kind:
    """The files of one extension."""

    usual: float  # characters per byte
    new: int = 0  # bytes that are not read yet, of files that are not in the index
    known: int = 0  # the same, of files that are in the index
    bytes: int = 0  # read
    characters: int = 0
    seconds: float = 0.0  # for reading
    ahead: dict[str, float] = field(default_factory=dict)  # characters per byte, of files that were read ahead

    def estimate_characters(self, size: float) -> float:
        """Return the characters in so many bytes: files whose turn is yet to come say more than those of before."""
        per_byte = (self.usual * _USUAL_BYTES + self.characters) / (_USUAL_BYTES + self.bytes)
        ratios = [per_byte, per_byte, *self.ahead.values()]
        return size * sum(ratios) / len(ratios)

    def estimate_seconds(self, size: float, per_character: float) -> float:
        """Return the seconds that so many bytes take to read, given those of a character in other files."""
        return size * (self.usual * _USUAL_BYTES * per_character + self.seconds) / (_USUAL_BYTES + self.bytes)


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
        self._sampled: set[str] = set()
        self._waiting = 0.0  # characters that were read, and are neither unchanged nor written
        self._written = 0.0  # characters
        self._known_read = 0  # characters of files that were in the index...
        self._known_changed = 0  # ...and those of them that have changed
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

    def choose_sample(self) -> list[str]:
        """Return files to read before their turn: new ones, evenly spread over the bytes of all."""
        sizes: dict[str, int] = {}
        for path, size in self._unread.items():
            if path not in self._in_index and size <= _MAX_SAMPLE_BYTES:
                sizes[path] = size
        most = min(_SAMPLE_FILES, int(_SAMPLE_SHARE * len(sizes)))
        if not most:
            return []
        step = max(sum(sizes.values()) / most, 1)
        chosen: list[str] = []
        end = 0
        for path, size in sizes.items():
            start = end
            end += size
            if end // step > start // step:
                chosen.append(path)
        return chosen

    def sample(self, path: str, characters: int, seconds: float) -> None:
        """Count a file that was read before its turn."""
        size = self._unread.get(path, 0)
        self.read(path, size, characters, seconds)
        self._sampled.add(path)
        self._kind_of(path).ahead[path] = characters / max(size, 1)

    def read(self, path: str, size: int, characters: int, seconds: float) -> None:
        """Count a part of a file that was read."""
        if path in self._sampled:  # it is counted already
            self._kind_of(path).ahead.pop(path, None)
            return
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
        self._waiting += characters
        self._reading += seconds

    def read_ahead(self, seconds: float) -> None:
        """Count time in which files were read before their turn: it says nothing about one of them."""
        self._reading += seconds

    def compare(self, path: str, characters: int, *, is_changed: bool) -> None:
        """Count a document that was compared with the index: it is unchanged, or it is to be written."""
        if not is_changed:
            self._waiting -= characters
        if path in self._in_index:
            self._known_read += characters
            self._known_changed += characters if is_changed else 0

    def write(self, characters: float) -> None:
        """Count text that is embedded."""
        self._waiting -= characters
        self._written += characters

    def begin_writing(self, seconds: float) -> None:
        """Take note of the seconds before the first text is embedded."""
        if self._before_writing is None:
            self._before_writing = seconds - self._reading

    def estimate_share(self, seconds: float) -> float:
        """Return the finished share of the work after these seconds; 0 if it is not known."""
        left = self.estimate_seconds_left(seconds)
        return 0.0 if left is None or not seconds else seconds / (seconds + left)

    def estimate_seconds_left(self, seconds: float) -> float | None:
        """Return the seconds left after these seconds; None if text is left, and none was written so far."""
        reading = self._estimate_reading()
        text = self._estimate_text()
        if self._written and self._before_writing is not None:
            writing = seconds - self._reading - self._before_writing
            return reading + text * max(writing, 0.0) / self._written
        if text >= 1 or not self._reading:
            return None
        return reading * seconds / self._reading  # comparing with the index takes time, too

    def _estimate_text(self) -> float:
        """Return the characters that are still to be written."""
        changed = self._known_changed / self._known_read if self._known_read else 0.0
        text = max(self._waiting, 0.0)
        for kind in self._kinds.values():
            text += kind.estimate_characters(kind.new + kind.known * changed)
        return text

    def _estimate_reading(self) -> float:
        """Return the seconds that reading the rest takes."""
        usual = sum(kind.bytes * kind.usual for kind in self._kinds.values())  # characters
        per_character = self._reading / usual if usual else 0.0
        return sum(kind.estimate_seconds(kind.new + kind.known, per_character) for kind in self._kinds.values())

    def _kind_of(self, path: str) -> _Kind:
        extension = os.path.splitext(path)[1].lower()  # noqa: PTH122 - a Path would be slow for many files
        if extension not in self._kinds:
            self._kinds[extension] = _Kind(_LESS_TEXT.get(extension, _USUAL_TEXT))
        return self._kinds[extension]
