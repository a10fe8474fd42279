"""The word index of a snapshot in a folder: a file with one segment after another."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np

from arag.errors import StorageError
from arag.retrieval.storage.check import Passes
from arag.retrieval.storage.sql import TableReader
from arag.retrieval.storage.words.build import build_segments, find_new, is_right
from arag.retrieval.storage.words.index import StoredSegment, WordIndex
from arag.retrieval.storage.words.segment import Integers, Segment, keep_chunks, read_segment
from arag.system.files import written_whole


def read_words(file: Path) -> WordIndex | None:
    """Open a word index; None if it is missing, as in an index of an earlier version, or damaged."""
    with suppress(OSError, ValueError):
        opened = _OpenFile(file)
        segments: list[StoredSegment] = []
        for start, segment in opened.segments():
            segments.append(StoredSegment(segment, partial(opened.read, start)))
        return WordIndex(segments)
    return None


def write_words(file: Path, chunks: TableReader, before: Path | None) -> None:
    """Write the word index of all chunks; it appears when it is complete.

    Args:
        file: The file.
        chunks: Reads the chunks.
        before: The file of an earlier snapshot, whose segments are kept as far as they are right.
    """
    row_ids = np.array(sorted(chunks.ordered_row_ids()), dtype=np.int64)
    segments = [] if before is None else _read_kept(before, row_ids)
    kept, new = find_new([segment.row_ids for segment in segments], row_ids)
    with written_whole(file) as out:
        for segment in chain(segments[:kept], build_segments(new, chunks.texts_by_row_id)):
            out.write(segment.postings)
            out.write(segment.head())


def has_right_words(file: Path, chunks: TableReader, passes: Passes) -> bool:
    """Return whether a word index is what is made of all chunks; one that is missing is not wrong."""
    row_ids = np.array(sorted(chunks.ordered_row_ids()), dtype=np.int64)
    try:
        if file.stat().st_size == 0:  # right if all chunks are scanned: their words are not those of their lines
            return next(build_segments(row_ids, chunks.texts_by_row_id), None) is None
        segments = [segment for _, segment in _OpenFile(file).segments()]
        return all(is_right(segment, row_ids, passes.counting(chunks.texts_by_row_id)) for segment in segments)
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        return False


def _read_kept(file: Path, row_ids: Integers) -> list[Segment]:
    """Return the segments of a word index with those of their chunks that are left; none if any are damaged."""
    segments: list[Segment] = []
    with suppress(OSError, ValueError):
        for _, segment in _OpenFile(file).segments():
            is_kept = np.isin(segment.row_ids, row_ids)
            if is_kept.all():
                segments.append(segment)
            elif is_kept.any():
                segments.append(keep_chunks(segment, is_kept))
        return segments
    return []


class _OpenFile:
    """The file of a word index, which may be deleted while it is open here.

    Raises:
        ValueError: It is something else.
        OSError: It cannot be opened.
    """

    def __init__(self, file: Path) -> None:
        if not file.is_file():  # opening a pipe would block
            raise FileNotFoundError(f"{file} is not a file")
        self._file = file
        self._size = file.stat().st_size
        with file.open("rb") as opened:
            self._map = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)

    def segments(self) -> list[tuple[int, Segment]]:
        """Return the segments in order, each with the place of its postings in the file."""
        found: list[tuple[int, Segment]] = []
        end = len(self._map)
        while end > 0:
            segment, end = read_segment(memoryview(self._map)[:end])
            found.append((end, segment))
        return found[::-1]

    def read(self, start: int, spans: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return parts of the postings that begin at a place of the file."""
        # To read past the end of a file that somebody has truncated would kill the process.
        if self._map.size() < self._size:
            raise StorageError(f"{self._file} was truncated while it was open")
        return [self._map[start + first : start + after] for first, after in spans]
