"""Runs an ingestion in a thread, for a caller in an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from threading import Event
from typing import TypeVar

from arag.ingest.progress import Progress, ShowProgress

T = TypeVar("T")

_END = object()


class Stopped(BaseException):
    """The task that waits for the thread was cancelled."""


class Bridge:
    """Connects an event loop with the thread that ingests for it.

    Args:
        show: Called with the progress, in the thread.
    """

    def __init__(self, show: ShowProgress | None) -> None:
        self._show = show
        self._loop = asyncio.get_running_loop()
        self._stopped = Event()
        self._next: Future[object] | None = None  # the item that the thread waits for

    def show(self, progress: Progress) -> None:
        """Show the progress, or end the thread's work: it is called at every step."""
        self._check()
        if self._show is not None:
            self._show(progress)

    def take(self, items: AsyncIterable[T]) -> Iterator[T]:
        """Yield the items in the thread; each is made in the event loop."""
        source = aiter(items)
        while True:
            self._check()
            self._next = asyncio.run_coroutine_threadsafe(_next(source), self._loop)
            item = self._next.result()
            if item is _END:
                return
            yield item  # type: ignore[misc]

    async def run(self, work: Callable[[], T]) -> T:
        """Run a function in a thread. If the task is cancelled, wait until the thread has stopped."""
        task = asyncio.ensure_future(asyncio.to_thread(work))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._stop()
            await asyncio.wait([task])
            if not task.cancelled():
                task.exception()  # it is known why
            raise

    def _stop(self) -> None:
        self._stopped.set()
        if self._next is not None:
            self._next.cancel()

    def _check(self) -> None:
        if self._stopped.is_set():
            raise Stopped


async def _next(source: AsyncIterator[object]) -> object:
    return await anext(source, _END)
