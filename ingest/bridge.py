"""Runs an ingestion in a thread, for a caller in an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from contextvars import ContextVar, copy_context
from threading import Event
from typing import Any, TypeVar

T = TypeVar("T")

_END = object()
_SECONDS_BETWEEN_CHECKS = 0.1  # while an item is awaited


_is_stopped: ContextVar[Event | None] = ContextVar("is_stopped", default=None)


class Stopped(BaseException):
    """The task that waits for the thread was cancelled."""


def check_stopped() -> None:
    """Raise `Stopped` in a thread whose task was cancelled."""
    if (event := _is_stopped.get()) and event.is_set():
        raise Stopped


class Bridge:
    """Connects an event loop with the thread that ingests for it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._source: AsyncIterator[Any] | None = None
        self._next: asyncio.Task[object] | None = None  # makes the source's next item

    def iterate(self, items: AsyncIterable[T]) -> Iterator[T]:
        """Yield the items in the thread; each is made in the event loop."""
        self._source = aiter(items)
        while True:
            item = asyncio.run_coroutine_threadsafe(self._make_next(self._source), self._loop)
            while not wait([item], _SECONDS_BETWEEN_CHECKS).done:
                check_stopped()
            if item.result() is _END:
                return
            yield item.result()  # type: ignore[misc]

    async def run(self, work: Callable[[], T]) -> T:
        """Run a function in a thread. If the task is cancelled, wait until the thread has stopped."""
        with ThreadPoolExecutor(1, "ingest") as pool:  # of its own: the source may need all threads of the loop
            context, event = copy_context(), Event()
            context.run(_is_stopped.set, event)
            thread = self._loop.run_in_executor(pool, context.run, work)
            try:
                return await asyncio.shield(thread)
            except asyncio.CancelledError:
                event.set()
                await _wait_for(thread)
                raise
            finally:
                if self._next is not None:
                    self._next.cancel()
                    await _wait_for(self._next)
                if isinstance(self._source, AsyncGenerator):  # closes its connections now
                    await self._source.aclose()

    async def _make_next(self, source: AsyncIterator[object]) -> object:
        self._next = asyncio.current_task()
        return await anext(source, _END)


async def _wait_for(task: asyncio.Future[Any]) -> None:
    """Wait until a task has ended, however often the waiting is cancelled; its error is raised elsewhere."""
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task])
    if not task.cancelled():
        task.exception()
