"""Stops work in threads: what nobody waits for any more should not go on.

A thread cannot be ended from outside. So work that may take long looks at `check_stop`, and worker processes are ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from arag.errors import ARAGError


class StoppedError(ARAGError):
    """The work was stopped: nobody waits for its result."""


class _Stop:
    """Whether some work was stopped, and what ends it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._enders: list[Callable[[], None]] = []
        self.is_set = False

    def set(self) -> None:
        with self._lock:
            self.is_set = True
            for end in self._enders:
                end()

    def add(self, end: Callable[[], None]) -> None:
        with self._lock:
            self._enders.append(end)
            if self.is_set:
                end()

    def remove(self, end: Callable[[], None]) -> None:
        with self._lock:
            self._enders.remove(end)


_STOP: ContextVar[_Stop | None] = ContextVar("stop", default=None)


@contextmanager
def stopping_at_exit() -> Iterator[None]:
    """Stop work of the block that still runs in other threads when an error, or a cancellation, leaves the block."""
    stop = _Stop()
    token = _STOP.set(stop)
    try:
        yield
    except BaseException:
        stop.set()
        raise
    finally:
        _STOP.reset(token)


@contextmanager
def ended_by_stop(end: Callable[[], None]) -> Iterator[None]:
    """Call a function if the work is stopped while the block runs."""
    stop = _STOP.get()
    if stop is None:
        yield
        return
    stop.add(end)
    try:
        yield
    finally:
        stop.remove(end)


def check_stop() -> None:
    """Check that the work is still wanted.

    Raises:
        StoppedError: It was stopped.
    """
    stop = _STOP.get()
    if stop is not None and stop.is_set:
        raise StoppedError("stopped: nobody waits for the result")
