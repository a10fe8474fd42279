"""Keeps what is made of a view: to make it takes long in a large corpus, and a view never changes."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from arag.retrieval.storage.contract import View

T = TypeVar("T")


class KeptByView(Generic[T]):
    """A function of a view whose results are kept as long as the views.

    Args:
        make: The function. Threads that ask at once may each call it.
        most: How many results are kept at most.
    """

    def __init__(self, make: Callable[[View], T], *, most: int) -> None:
        self._make = make
        self._most = most
        self._kept: WeakKeyDictionary[View, T] = WeakKeyDictionary()
        self._lock = Lock()

    def __call__(self, view: View) -> T:
        """Return the result for a view."""
        with self._lock:
            if view in self._kept:
                return self._kept[view]
        made = self._make(view)
        with self._lock:
            self._kept[view] = made
            for oldest in list(self._kept)[: -self._most]:
                del self._kept[oldest]
        return made
