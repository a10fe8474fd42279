"""Runs an ingestion in a thread, for a caller in an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterator
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
    thread = loop.run_in_executor(None, context.run, work, iterate(source) if source else sources)
    try:
        return await asyncio.shield(thread)
    except asyncio.CancelledError:
        event.set()
        if next_item:
            next_item.cancel()
        await asyncio.gather(thread, return_exceptions=True)
        raise
    finally:
        if isinstance(source, AsyncGenerator):  # closes its connections now
            await source.aclose()
