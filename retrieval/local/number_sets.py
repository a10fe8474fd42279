"""Sets of row numbers that SQL can ask for.

A part of an index has up to millions of rows: too many for the variables of a query, and a temporary table would be
lost when the file is reopened. So a set is a mask with a byte for each number, which a query fetches once.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import count
from weakref import WeakValueDictionary

import numpy as np

from arag.retrieval.tables.chunks import row_numbers

_keys = count()


class NumberSet:
    """A set of row numbers, which SQL can ask for as long as the object exists.

    Args:
        numbers: The numbers.

    Raises:
        IndexFormatError: A number is impossible.
    """

    def __init__(self, numbers: Collection[int]) -> None:
        found = row_numbers(numbers)
        mask = np.zeros(found.max(initial=-1) + 1, dtype=np.uint8)
        mask[found] = 1
        self.mask = mask.tobytes()
        self._key = next(_keys)
        _sets[self._key] = self

    def holds(self, column: str) -> str:
        """Return the SQL that tells whether the set has a column's number."""
        return f"substr({MASK}({self._key}), {column} + 1, 1) = X'01'"


_sets: WeakValueDictionary[int, NumberSet] = WeakValueDictionary()

MASK = "mask_of_numbers"


def find_mask(key: int) -> bytes:
    """Return the mask of the set with a key: the SQL function `MASK`."""
    return _sets[key].mask
