"""Sets of row numbers that SQL can ask for: `has_number(<the set's key>, number)`.

A part of an index has up to millions of rows: too many for the variables of a query, and a temporary table would be
lost when the file is reopened.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from weakref import WeakValueDictionary

import numpy as np

_keys = count()


class NumberSet:
    """A set of row numbers, which SQL can ask for as long as the object exists.

    Args:
        numbers: The numbers.

    Attributes:
        key: What names it in SQL.
    """

    def __init__(self, numbers: Iterable[int]) -> None:
        found = np.fromiter(numbers, np.int64)
        mask = np.zeros(int(found.max(initial=-1)) + 1, dtype=np.uint8)
        mask[found] = 1
        self._mask = mask.tobytes()  # single bytes are read faster from bytes than from an array
        self.key = next(_keys)
        _sets[self.key] = self

    def __contains__(self, number: int) -> bool:
        return number < len(self._mask) and self._mask[number] == 1


_sets: WeakValueDictionary[int, NumberSet] = WeakValueDictionary()


def has_number(key: int, number: int) -> bool:
    """Return whether the set with a key has a number."""
    return number in _sets[key]
