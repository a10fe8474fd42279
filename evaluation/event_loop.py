"""One event loop per process, and concurrent work in it."""

from __future__ import annotations

import asyncio
import atexit
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

Result = TypeVar("Result")
Item = TypeVar("Item")

_MAX_THREADS = 128


def run(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine in the same event loop as all earlier ones.

    LangChain's class for OpenAI shares its connections among all models of a process. In a second loop, a call on a
    connection of the first, closed loop fails with "Event loop is closed". So all calls use one loop.

    Args:
        coroutine: What to run.

    Returns:
        Its result.

    Raises:
        RuntimeError: An event loop is running in this thread, as in a notebook.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        coroutine.close()
        raise RuntimeError("an event loop is running here, as in a notebook: await `arun` instead of calling `run`")
    return _runner().run(coroutine)  # outside the `except`, so that errors are not chained to its error


async def work_through(items: Iterable[Item], work: Callable[[Item], Coroutine[Any, Any, None]], at_once: int) -> None:
    """Work on items concurrently, a given number at a time.

    After an error no more items are started, running ones finish, and the error is raised.
    """
    waiting = iter(items)
    errors: list[Exception] = []

    async def work_on() -> None:
        for item in waiting:
            if errors:
                return
            try:
                await work(item)
            except Exception as error:  # noqa: BLE001 - it is raised below
                errors.append(error)

    await asyncio.gather(*(work_on() for _ in range(at_once)))
    if errors:
        raise errors[0]


@cache
def _runner() -> asyncio.Runner:
    runner = asyncio.Runner()
    # asyncio's own pool has six threads on two cores: with an embedder behind a network, only six questions could run
    # at a time. Threads are started when they are needed.
    runner.get_loop().set_default_executor(ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="arag"))
    atexit.register(runner.close)
    return runner
