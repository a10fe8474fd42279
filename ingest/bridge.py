"""Runs an ingestion in a thread, for a caller in an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from threading import Event
from typing import Any, TypeVar

T = TypeVar("T")

_END = object()


class Stopped(BaseException):
    """The task that waits for the thread was cancelled."""


class Bridge:
    """Connects an event loop with the thread that ingests for it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopped = Event()
        self._next: Future[object] | None = None  # the item that the thread waits for
        self._making: asyncio.Task[object] | None = None  # the task that makes it
        self._source: AsyncIterator[Any] | None = None

    def check(self) -> None:
        """End the thread's work if the task was cancelled.

        Raises:
            Stopped: It was.
        """
        if self._stopped.is_set():
            raise Stopped

    def take(self, items: AsyncIterable[T]) -> Iterator[T]:
        """Yield the items in the thread; each is made in the event loop."""
        self._source = aiter(items)
        while True:
            self.check()
            self._next = asyncio.run_coroutine_threadsafe(self._make(self._source), self._loop)
            if self._stopped.is_set():  # since the check
                self._next.cancel()
            item = self._next.result()
            if item is _END:
                return
            yield item  # type: ignore[misc]

    async def run(self, work: Callable[[], T]) -> T:
        """Run a function in a thread. If the task is cancelled, wait until the thread has stopped."""
        # A thread of its own: the source may need all those of the loop.
        with ThreadPoolExecutor(1, thread_name_prefix="ingest") as pool:
            task = self._loop.run_in_executor(pool, copy_context().run, work)
            try:
                return await asyncio.shield(task)
            except asyncio.CancelledError:
                self._stop()
                await _end(task)
                raise
            finally:
                await self._close()

    def _stop(self) -> None:
        self._stopped.set()
        if self._next is not None:
            self._next.cancel()

    async def _make(self, source: AsyncIterator[object]) -> object:
        self._making = asyncio.current_task()
        return await anext(source, _END)

    async def _close(self) -> None:
        """Let an asynchronous generator do now what it does in the end, such as closing a connection."""
        if self._making is not None:
            await _end(self._making)
        if isinstance(self._source, AsyncGenerator):
            await self._source.aclose()


async def _end(task: asyncio.Future[Any]) -> None:
    """Wait until a task has ended, however often the waiting is cancelled; its error is known elsewhere."""
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task])
    if not task.cancelled():
        task.exception()
