"""A small shift that keeps equal vectors apart in an HNSW graph.

Sentences that occur thousands of times in a corpus ("All rights reserved.") all have the same vector. In an HNSW
graph such vectors link only to each other and cut off what lies behind them: 3,000 copies among 300 other
sentences made all of those unfindable. Shifted by a thousandth of their length, they behave like other points.
Similarities are always those of the original vectors.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from arag.retrieval.backend import Vectors

_SHIFT = 1e-3  # less is lost in float32's rounding of a cosine distance


def vector_id(chunk: int, position: int) -> str:
    """Return the id of a sentence's vector, by the number of its chunk and its place there."""
    return f"{chunk}#{position}"


def shifts_of(ids: Sequence[str], dimension: int) -> Vectors:
    """Return the shifts of vectors, which depend on their ids, shape (ids, dimension)."""
    # Two random directions, each rotated by a part of the code: dimension squared shifts, none of them stored.
    first, second = np.random.default_rng(dimension).standard_normal((2, dimension), dtype=np.float32)
    codes = np.asarray([[zlib.crc32(i.encode())] for i in ids])
    places = np.arange(dimension)
    shifts = first[(places + codes) % dimension] + second[(places + codes // dimension) % dimension]
    return np.asarray(_SHIFT / math.sqrt(2 * dimension) * shifts, dtype=np.float32)


def unshift(ids: Sequence[str], stored: Any) -> Vectors:
    """Undo the shift of vectors as they are stored, and bring them to length one."""
    stored = np.asarray(stored, dtype=np.float32)
    vectors = stored - shifts_of(ids, stored.shape[1])
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    # A text without any word that the embedder knows may have a zero vector: only its rounding error is left.
    return np.asarray(np.where(lengths < _SHIFT / 10, 0, vectors / np.maximum(lengths, 1e-12)), dtype=np.float32)
