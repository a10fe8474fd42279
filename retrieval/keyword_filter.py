"""A filter that names the blocks of a text which may hold a keyword, so that a search can skip the others.

Every sequence of five bytes has a hash of 17 bits, and every block of text has a bit for each hash: it is set if the
block holds a sequence with that hash. A block can hold a keyword only if the bits of all sequences in the keyword are
set. A set bit may also come from other sequences, so the blocks that remain are searched.

The bits of 64 blocks stand together: one number of 64 bits for each hash. A query reads one number for each sequence
of the keyword, not the whole filter.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

GROUP = 64  # blocks whose bits stand together
_SEQUENCE = 5  # bytes. Most blocks hold every usual sequence of 3 or 4; sequences of 6 would set too many bits.
_HASH_BITS = 17  # half of a block's bits are set by 320 KB of English
_MOST_HASHES = 64  # of one keyword: more would not rule out more blocks
GROUP_BYTES = 8 << _HASH_BITS

Filter = NDArray[np.uint64]


def make_filter(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the filter of whole groups of blocks, one group after the other."""
    is_held = np.empty(1 << _HASH_BITS, dtype=np.bool_)
    while group := list(islice(blocks, GROUP)):
        bits = np.zeros(1 << _HASH_BITS, dtype="<u8")
        for place, block in enumerate(group):
            is_held[:] = False
            is_held[_hashes(block)] = True
            bits |= is_held.astype(np.uint64) << np.uint64(place)
        yield bits.tobytes()


def read_filter(data: memoryview) -> Filter:
    """Return a view of a filter that `make_filter` has made, shape (groups, hashes)."""
    return np.frombuffer(data, dtype="<u8").reshape(-1, 1 << _HASH_BITS)


def find_blocks(blocks: Filter, keyword: bytes) -> NDArray[np.bool_]:
    """Tell which of the filter's blocks may hold a keyword: all of them where it has less than five bytes."""
    hashes = np.unique(_hashes(keyword))[:_MOST_HASHES]
    may_hold = np.bitwise_and.reduce(blocks[:, hashes], axis=1)
    return np.unpackbits(may_hold.astype("<u8").view(np.uint8), bitorder="little").view(np.bool_)


def _hashes(text: bytes) -> NDArray[np.uint32]:
    """Return the hash of every sequence of a text."""
    sequences = len(text) - _SEQUENCE + 1
    if sequences <= 0:
        return np.empty(0, dtype=np.uint32)
    # Multiplication mixes the lower bits into the upper ones, which are the hash.
    first_four = np.ndarray(sequences, "<u4", text, strides=(1,)) * np.uint32(0x9E3779B1)
    fifth = np.frombuffer(text, np.uint8, offset=_SEQUENCE - 1) * np.uint32(0x85EBCA77)
    return (first_four + fifth) >> np.uint32(32 - _HASH_BITS)
