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
    **dict.fromkeys((".pdf", ".docx", ".xlsx", ".pptx", ".odt", ".ods", ".odp", ".rtf"), _PACKED),
    **dict.fromkeys((".docm", ".xlsm", ".pptm", ".doc", ".xls", ".ppt", ".msg"), _PACKED),
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp"), _PACKED),
}
_USUAL_SECONDS = 1.3e-4  # for writing a character: a small embedder on a processor
_USUAL_WRITTEN = 5_000  # characters: until more are written, a character is expected to take about the usual time
_HALF_LIFE = 200_000  # characters after which a measured time counts half: a machine's load changes
_SAMPLE_WEIGHT = 300_000  # characters: until more are written, sentences are about as long as those of the sample
_USUAL_UNCHANGED = 20_000  # the same, of files in the index that have not changed
_USUAL_READING = 1e-6  # seconds for reading a byte
_USUAL_READ = 30_000  # bytes of a kind: until more are read, reading is expected to take about the usual time
_USUAL_BYTES = 300_000  # of a kind: until more are read, the estimates for it are close to the usual ones
_SAMPLE_FILES = 60  # of a sample, if there are so many
_SAMPLE_SHARE = 0.25  # of the files, at most
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

    def estimate_seconds(self) -> float:
        """Return the seconds that reading the rest takes."""
        per_byte = (_USUAL_READ * _USUAL_READING + self.seconds) / (_USUAL_READ + self.bytes)
        return (self.new + self.known) * per_byte


def _spread(sizes: Mapping[str, int]) -> list[str]:
    """Return some files that are evenly spread over the bytes of all."""
    most = min(_SAMPLE_FILES, round(_SAMPLE_SHARE * len(sizes)))
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


class Workload:
    """The work of one ingestion.

    Args:
        files: The bytes of each file, by its absolute path. Objects given in Python are together one file without a
            name, and count with their characters.

    Attributes:
        files: Files to read.
        files_read: Files of which everything was read in their turn.
        sample_files: Files to read before their turn.
        has_changes: Whether a document is new or has changed.
    """

    def __init__(self, files: Mapping[str, int]) -> None:
        self._kinds: dict[str, _Kind] = {}
        self._unread = dict(files)
        self._in_index: set[str] = set()
        self._sampled: set[str] = set()
        self.files = len(self._unread) - ("" in self._unread)
        self.files_read = 0
        self.sample_files = 0
        self.has_changes = False
        self._waiting = 0.0  # characters that were read, and are neither unchanged nor written
        self._waiting_known = 0  # the same, of files that are in the index and were not yet compared with it
        self._written = 0.0  # characters
        self._writing = 0.0  # seconds until the last text was written
        self._recent_seconds = 0.0  # for writing, of which older ones count less...
        self._recent_written = 0.0  # ...and the characters
        self._sample_characters = 0  # that were cut into sentences
        self._sample_sentences = 0
        self._known_read = 0  # characters of files that were in the index...
        self._known_changed = 0  # ...and those of them that have changed
        self._reading = 0.0  # seconds
        self._per_character = _USUAL_SECONDS  # to write
        self._before_reading = 0.0  # seconds
        self._before_writing: float | None = None  # seconds, without those for reading
        for path, size in files.items():
            self._kind_of(path).new += size

    def expect_unchanged(self, files: Collection[str]) -> None:
        """Take note of the files that are in the index: most have not changed."""
        self._in_index = set(files) & self._unread.keys()
        for path in self._in_index:
            kind = self._kind_of(path)
            kind.new -= self._unread[path]
            kind.known += self._unread[path]

    def choose_sample(self) -> tuple[list[str], list[str]]:
        """Return files to read before their turn, if they are new: a sample, and the others.

        The sample is evenly spread over the bytes of all. Of the others, the largest come first, which say most about
        the rest.
        """
        sizes: dict[str, int] = {}
        for path, size in self._unread.items():
            is_new_file = path != "" and path not in self._in_index
            if is_new_file and 0 < size <= _MAX_SAMPLE_BYTES:  # the first one is read already
                sizes[path] = size
        sample = _spread(sizes)
        others = sorted(sizes.keys() - set(sample), key=sizes.__getitem__, reverse=True)
        self.sample_files = self.files if sample else 0
        return sample, others

    @property
    def sampled_files(self) -> int:
        """Files that were read before their turn."""
        return len(self._sampled)

    def sample(self, path: str, characters: int, seconds: float) -> None:
        """Count a file that was read before its turn."""
        size = self._unread.get(path, 0)
        self.read(path, size, characters, seconds)
        self._sampled.add(path)
        self._kind_of(path).ahead[path] = characters / max(size, 1)

    def sample_sentences(self, characters: int, sentences: int) -> None:
        """Count the sentences in a part of a file that was read before its turn."""
        self._sample_characters += characters
        self._sample_sentences += sentences

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
        if path in self._in_index:
            self._waiting_known += characters
        else:
            self._waiting += characters
        self._reading += seconds

    def finish_file(self) -> None:
        """Count a file of which everything was read."""
        self.files_read += 1

    def read_ahead(self, seconds: float) -> None:
        """Count time in which files were read before their turn: it says nothing about one of them."""
        self._reading += seconds

    def compare(self, path: str, characters: int, *, is_changed: bool) -> None:
        """Count a document that was compared with the index: it is unchanged, or it is to be written."""
        self.has_changes = self.has_changes or is_changed
        if path in self._in_index:
            self._waiting_known -= characters
            self._known_read += characters
            self._known_changed += characters if is_changed else 0
            self._waiting += characters if is_changed else 0
        elif not is_changed:
            self._waiting -= characters

    def write(self, characters: float, seconds: float) -> None:
        """Count text that is embedded after these seconds."""
        self._waiting -= characters
        self._written += characters
        writing = self._count_writing(seconds)
        elapsed = writing - self._writing
        fading = 0.5 ** (characters / _HALF_LIFE)
        self._recent_seconds = fading * self._recent_seconds + elapsed
        self._recent_written = fading * self._recent_written + characters
        self._writing = writing

    def begin_reading(self, seconds: float) -> None:
        """Take note of the seconds before anything is read."""
        self._before_reading = seconds

    def expect_rate(self, per_character: float) -> None:
        """Take note of the seconds that a character takes to be embedded, as a few sentences show."""
        self._per_character = per_character

    def begin_writing(self, seconds: float) -> None:
        """Take note of the seconds before the first text is embedded."""
        if self._before_writing is None:
            self._before_writing = seconds - self._reading
            self._recent_written = _USUAL_WRITTEN
            self._recent_seconds = _USUAL_WRITTEN * self._per_character

    @property
    def is_measured(self) -> bool:
        """Whether the seconds left are estimated from this run alone: some text was written, or none is expected."""
        return self._written > 0 or (self._reading > 0 and self._estimate_text() < 1)

    def estimate_share(self, seconds: float) -> float:
        """Return the finished share of the work after these seconds."""
        return seconds / (seconds + self.estimate_seconds_left(seconds)) if seconds else 0.0

    def estimate_seconds_left(self, seconds: float) -> float:
        """Return the seconds left after these seconds."""
        reading = sum(kind.estimate_seconds() for kind in self._kinds.values())
        text = self._estimate_text()
        if self._before_writing is None:
            busy = seconds - self._before_reading
            slower = max(busy / self._reading, 1.0) if self._reading else 1.0  # comparing takes time, too
            return reading * slower + text * self._per_character
        waiting = self._count_writing(seconds) - self._writing
        return reading + text * (self._recent_seconds + waiting) / self._recent_written

    def _count_writing(self, seconds: float) -> float:
        """Return how many of these seconds went into writing."""
        before = self._before_writing or 0.0
        return max(seconds - self._reading - before, self._writing)

    def estimate_sentences(self, embedded: int) -> int:
        """Return how many sentences there will be, given those that were embedded."""
        if not self._written:
            return embedded
        sample = self._sample_sentences / max(self._sample_characters, 1)
        weight = _SAMPLE_WEIGHT if self._sample_characters else 0
        per_character = (weight * sample + embedded) / (weight + self._written)
        return embedded + round(self._estimate_text() * per_character)

    def _estimate_text(self) -> float:
        """Return the characters that are still to be written."""
        changed = self._known_changed / (self._known_read + _USUAL_UNCHANGED)
        text = max(self._waiting, 0.0) + changed * self._waiting_known
        for kind in self._kinds.values():
            text += kind.estimate_characters(kind.new + kind.known * changed)
        return text

    def _kind_of(self, path: str) -> _Kind:
        extension = os.path.splitext(path)[1].lower()  # noqa: PTH122 - a Path would be slow for many files
        if extension not in self._kinds:
            self._kinds[extension] = _Kind(_LESS_TEXT.get(extension, _USUAL_TEXT))
        return self._kinds[extension]
