"""A segment of the word index: the lines of some chunks, and for each word its postings, the lines that have it.

A segment is a head and postings. The postings of a word are the numbers of its lines, rising, once for each time that
a line has the word. Of each number, the difference to the one before is stored, in bytes of seven bits, the lowest
first; all but the last have their highest bit set.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

_MARK = b"ARAGWO02"
# The mark; how many chunks, hidden lines and words; bytes of the words, the postings; the checksum of the head.
_FOOTER = struct.Struct("<8s6Q")
FOOTER_BYTES = _FOOTER.size
_MAX_BYTES = 5  # of a difference
_BYTES_AT_ONCE = 4 << 20  # of postings that are changed together: more take more memory


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment, without its postings where these are stored elsewhere."""

    row_ids: Integers  # of its chunks, rising
    line_counts: Integers  # of its chunks
    hidden: Integers  # lines that patterns do not find: titles, and what is between the lines
    words: bytes  # in UTF-8, sorted, one a line
    sizes: Integers  # of the words' postings, in bytes
    postings: bytes | memoryview = b""

    def head(self) -> bytes:
        """Return everything but the postings, as it is stored."""
        arrays = [
            self.row_ids.astype("<i8"),
            self.line_counts.astype("<i4"),
            self.hidden.astype("<i8"),
            self.sizes.astype("<i4"),
        ]
        head = b"".join([*(array.tobytes() for array in arrays), self.words])
        footer = _FOOTER.pack(
            _MARK,
            len(self.row_ids),
            len(self.hidden),
            len(self.sizes),
            len(self.words),
            self.sizes.sum(),
            zlib.crc32(head),
        )
        return head + footer


def read_segment(stored: memoryview) -> tuple[Segment, int]:
    """Read the segment that ends where some bytes end: its postings, and then its head.

    Args:
        stored: The bytes; what is in front of the segment does not matter. There may be no postings.

    Returns:
        The segment, and where it begins.

    Raises:
        ValueError: The bytes are something else.
    """
    if len(stored) < FOOTER_BYTES:
        raise ValueError("a segment is truncated")
    mark, chunks, hidden, words, word_bytes, posting_bytes, checksum = _FOOTER.unpack(stored[-FOOTER_BYTES:])
    sizes = [8 * chunks, 4 * chunks, 8 * hidden, 4 * words, word_bytes]
    head = len(stored) - FOOTER_BYTES - sum(sizes)
    if mark != _MARK or head < 0:
        raise ValueError("a segment is truncated, or something else")
    if zlib.crc32(stored[head:-FOOTER_BYTES]) != checksum:
        raise ValueError("the head of a segment is damaged")
    parts: list[memoryview] = []
    place = head
    for size in sizes:
        parts.append(stored[place : place + size])
        place += size
    start = max(0, head - posting_bytes) if head else 0
    segment = Segment(
        row_ids=np.frombuffer(parts[0], "<i8").astype(np.int64),
        line_counts=np.frombuffer(parts[1], "<i4").astype(np.int64),
        hidden=np.frombuffer(parts[2], "<i8").astype(np.int64),
        words=bytes(parts[4]),
        sizes=np.frombuffer(parts[3], "<i4").astype(np.int64),
        postings=stored[start:head],
    )
    _check(segment, posting_bytes)
    return segment, start


def _check(segment: Segment, posting_bytes: int) -> None:
    """Refuse a segment whose numbers do not fit together: its file may be somebody else's."""
    lines = int(segment.line_counts.sum())
    is_possible = (
        np.all(np.diff(segment.row_ids) > 0)
        and np.all(segment.line_counts >= 0)
        and np.all((segment.hidden >= 0) & (segment.hidden < lines))
        and np.all(segment.sizes > 0)
        and segment.sizes.sum() == posting_bytes
        and len(segment.sizes) == (segment.words.count(b"\n") + 1 if segment.words else 0)
        and len(segment.postings) in {0, posting_bytes}
    )
    if not is_possible:
        raise ValueError("the numbers of a segment do not fit together")


def keep_chunks(segment: Segment, is_kept: NDArray[np.bool_]) -> Segment:
    """Return a segment with some of its chunks only, as if it had been made of these."""
    is_kept_line = np.repeat(is_kept, segment.line_counts)
    new_numbers = np.cumsum(is_kept_line) - 1
    ends = np.cumsum(segment.sizes)
    sizes = np.zeros_like(segment.sizes)
    postings: list[NDArray[np.uint8]] = []
    first = 0
    while first < len(ends):
        start = int(ends[first] - segment.sizes[first])
        after = max(first + 1, int(np.searchsorted(ends, start + _BYTES_AT_ONCE)))
        end = int(ends[after - 1])
        parts = np.split(np.frombuffer(segment.postings[start:end], np.uint8), ends[first : after - 1] - start)
        lines, counts = decode([part.data for part in parts], len(is_kept_line))
        words = np.repeat(np.arange(first, after), counts)[is_kept_line[lines]]
        gaps, firsts = find_gaps(words, new_numbers[lines[is_kept_line[lines]]])
        encoded, value_sizes = encode(gaps)
        sizes[words[firsts]] = np.add.reduceat(value_sizes, firsts) if len(firsts) else 0
        postings.append(encoded)
        first = after
    stored = segment.words.split(b"\n") if segment.words else []
    words_left = [word for word, size in zip(stored, sizes.tolist(), strict=True) if size]
    hidden = segment.hidden[is_kept_line[segment.hidden]]
    return Segment(
        row_ids=segment.row_ids[is_kept],
        line_counts=segment.line_counts[is_kept],
        hidden=new_numbers[hidden],
        words=b"\n".join(words_left),
        sizes=sizes[sizes > 0],
        postings=b"".join(part.data for part in postings),
    )


def find_gaps(words: Integers, lines: Integers) -> tuple[Integers, Integers]:
    """Return the differences between the lines of words, one word after another, and where each word begins."""
    firsts = np.flatnonzero(np.diff(words, prepend=-1))
    gaps = np.diff(lines, prepend=0)
    gaps[firsts] = lines[firsts]
    return gaps, firsts


def encode(gaps: Integers) -> tuple[NDArray[np.uint8], Integers]:
    """Return differences as they are stored, and how many bytes each one takes."""
    sizes = np.ones(len(gaps), np.int64)
    for place in range(1, _MAX_BYTES):
        sizes += gaps >= 1 << 7 * place
    ends = np.cumsum(sizes)
    starts = ends - sizes
    encoded = np.empty(ends[-1] if len(ends) else 0, np.uint8)
    for place in range(_MAX_BYTES):
        longer = np.flatnonzero(sizes > place)
        if not len(longer):
            break
        more = (sizes[longer] > place + 1) << 7
        encoded[starts[longer] + place] = ((gaps[longer] >> 7 * place) & 0x7F) | more
    return encoded, sizes


def decode(postings: Sequence[bytes | memoryview], lines: int) -> tuple[Integers, Integers]:
    """Read the postings of some words.

    Args:
        postings: The words' postings.
        lines: How many lines the segment has.

    Returns:
        The numbers of the lines, word after word, and how many there are of each word.

    Raises:
        ValueError: They are something else.
    """
    encoded = np.frombuffer(b"".join(postings), np.uint8)
    last_bytes = np.flatnonzero(encoded < 0x80)
    word_ends = np.cumsum([len(each) for each in postings])
    firsts = np.append(0, last_bytes[:-1] + 1)
    further = last_bytes - firsts
    if not len(last_bytes) or last_bytes[-1] != len(encoded) - 1 or further.max() >= _MAX_BYTES:
        raise ValueError("postings are damaged")
    gaps = (encoded[firsts] & 0x7F).astype(np.int64)
    longer = np.flatnonzero(further)
    for place in range(1, _MAX_BYTES):
        if not len(longer):
            break
        gaps[longer] |= (encoded[firsts[longer] + place] & 0x7F).astype(np.int64) << 7 * place
        longer = longer[further[longer] > place]
    value_ends = np.searchsorted(last_bytes, word_ends)
    counts = np.diff(value_ends, prepend=0)
    numbers = np.cumsum(gaps)
    before = np.append(0, numbers[value_ends[:-1] - 1])
    numbers -= np.repeat(before, counts)
    if numbers.max() >= lines:
        raise ValueError("postings are damaged")
    return numbers, counts
