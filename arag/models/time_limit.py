"""A time limit for a call of a model, whoever its provider is: bytes that keep a connection open do not extend it.

Clients limit the pauses between bytes at most, so that a server that sends comments for ever is never left.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, TypeVar

Result = TypeVar("Result")


class TimeLimitError(TimeoutError):
    """A call took longer than its limit."""

    def __init__(self, seconds: float | None) -> None:
        limit = "the client's own limit" if seconds is None else f"{seconds:,.10g} seconds"
        super().__init__(f"no complete reply within {limit}")
        self.seconds = seconds


class _Worker:
    """A thread that puts the items of an iterator into a queue until the reader goes away.

    Threads cannot be ended: one that waits for a server that hangs ends when its connection does. It is a daemon, so
    that a process need not wait for it.
    """

    def __init__(self, make: Callable[[], Iterator[Any]]) -> None:
        self._make = make
        self._items: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self.is_left = threading.Event()
        context = contextvars.copy_context()  # callbacks find their run there
        threading.Thread(target=context.run, args=(self._work,), daemon=True).start()

    def _work(self) -> None:
        try:
            for item in self._make():
                if self.is_left.is_set():
                    return
                self._items.put(("item", item))
        except BaseException as error:  # noqa: BLE001 - it is raised again in the thread that reads
            self._items.put(("error", error))
        else:
            self._items.put(("end", None))

    def take(self, seconds: float) -> tuple[str, Any]:
        return self._items.get(timeout=max(seconds, 0.0))


def stream_within(seconds: float | None, make: Callable[[], Iterator[Result]]) -> Iterator[Result]:
    """Yield what an iterator yields, for as many seconds in total.

    Raises:
        TimeLimitError: It has not ended by then.
    """
    if seconds is None:
        yield from make()
        return
    end = time.monotonic() + seconds
    worker = _Worker(make)
    try:
        while True:
            try:
                kind, value = worker.take(end - time.monotonic())
            except queue.Empty:
                raise TimeLimitError(seconds) from None
            if kind == "end":
                return
            if kind == "error":
                raise value
            yield value
    finally:
        worker.is_left.set()


def run_within(seconds: float | None, function: Callable[[], Result]) -> Result:
    """Return what a function returns.

    Raises:
        TimeLimitError: It takes longer than so many seconds.
    """

    def make() -> Iterator[Result]:
        yield function()

    (result,) = stream_within(seconds, make)
    return result


async def await_within(seconds: float | None, awaitable: Awaitable[Result]) -> Result:
    """Return what an awaitable returns.

    Raises:
        TimeLimitError: It takes longer than so many seconds.
    """
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await awaitable
    except TimeoutError:
        if not limit.expired():  # the client's own limit
            raise
        raise TimeLimitError(seconds) from None


async def astream_within(seconds: float | None, iterator: AsyncIterator[Result]) -> AsyncIterator[Result]:
    """Yield what an asynchronous iterator yields, for as many seconds in total.

    Raises:
        TimeLimitError: It has not ended by then.
    """
    end = None if seconds is None else time.monotonic() + seconds
    while True:
        left = None if end is None else max(end - time.monotonic(), 0.0)
        try:
            item = await await_within(left, anext(iterator))
        except StopAsyncIteration:
            return
        except TimeLimitError:
            raise TimeLimitError(seconds) from None
        yield item
