"""Runs an ingestion in a thread, for a caller in an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar, copy_context
from threading import Event
from typing import Any, TypeVar

T = TypeVar("T")

_END = object()
_is_cancelled: ContextVar[Event | None] = ContextVar("is_cancelled", default=None)


class Cancelled(BaseException):
    """The task that waits for the thread was cancelled."""


def check_cancelled() -> None:
    """Raise `Cancelled` in a thread whose task was cancelled."""
    if (event := _is_cancelled.get()) and event.is_set():
        raise Cancelled


async def run_in_thread(work: Callable[[Any], T], sources: Any) -> T:
    """Call a function with sources in a thread; those of an asynchronous iterable are made in this event loop.

    If the task is cancelled, it waits until the thread has stopped.
    """
    loop, event = asyncio.get_running_loop(), Event()
    source = aiter(sources) if isinstance(sources, AsyncIterable) else None
    next_item: asyncio.Task[Any] | None = None

    async def make_next(source: AsyncIterator[Any]) -> Any:
        nonlocal next_item
        next_item = asyncio.current_task()
        check_cancelled()
        return await anext(source, _END)

    def iterate(source: AsyncIterator[Any]) -> Iterator[Any]:
        while (item := asyncio.run_coroutine_threadsafe(make_next(source), loop).result()) is not _END:
            yield item

    context = copy_context()
    context.run(_is_cancelled.set, event)
    pool = ThreadPoolExecutor(1, "ingest")  # of its own: the sources may need all threads of the loop
    thread = loop.run_in_executor(pool, context.run, work, iterate(source) if source else sources)
    pool.shutdown(wait=False)
    try:
        return await asyncio.shield(thread)
    except asyncio.CancelledError:
        event.set()
        if next_item:
            next_item.cancel()
        while not thread.done():  # however often the waiting is cancelled
            with suppress(asyncio.CancelledError):
                await asyncio.wait([thread])
        thread.exception()  # else asyncio logs that nobody asked for it
        raise
    finally:
        if isinstance(source, AsyncGenerator):  # closes its connections now
            await source.aclose()
