"""One event loop for all that a process runs, and work in it on many things at once."""

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
    """Run a coroutine, in the loop in which all before it ran.

    LangChain's class for OpenAI shares its connections among all models of a process: in a second loop, a call on a
    connection of the first, closed one fails with "Event loop is closed". So there is no second one.

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
    return _runner().run(coroutine)  # outside the `except`: its error would else be a part of what goes wrong there


async def work_through(items: Iterable[Item], work: Callable[[Item], Coroutine[Any, Any, None]], at_once: int) -> None:
    """Work on many things, so many at once.

    After an error no more are begun, what is under way is finished, and the error is raised.
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
    # asyncio's own pool has six threads on two cores: where an embedder is asked over a network, six questions would
    # wait for it at a time. A thread is started when it is needed.
    runner.get_loop().set_default_executor(ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="arag"))
    atexit.register(runner.close)
    return runner
