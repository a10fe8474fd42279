"""Takes items in lists of a limited size, for queries and calls that take a limited number of values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def batches(items: Iterable[_Item], size: int) -> Iterator[list[_Item]]:
    """Yield items in lists of up to `size`."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def read_ahead(read: Callable[[list[_Item]], _Result], items: Iterable[_Item], size: int) -> Iterator[_Result]:
    """Yield what a function reads for each batch of some items; the next one is read while the caller uses the last."""
    waiting: Future[_Result] | None = None
    with ThreadPoolExecutor(1) as pool:
        for batch in batches(items, size):
            following = pool.submit(read, batch)
            if waiting is not None:
                yield waiting.result()
            waiting = following
        if waiting is not None:
            yield waiting.result()
