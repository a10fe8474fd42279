"""Takes items in lists of a limited size, for queries and calls that take a limited number of values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

_Item = TypeVar("_Item")


def batches(items: Iterable[_Item], size: int) -> Iterator[list[_Item]]:
    """Yield items in lists of up to `size`."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
