"""One event loop for all that a process runs."""

from __future__ import annotations

import asyncio
import atexit
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

Result = TypeVar("Result")

_THREADS = 128


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
    if _is_loop_running():
        coroutine.close()
        raise RuntimeError("an event loop is running here, as in a notebook: await `arun` instead of calling `run`")
    return _runner().run(coroutine)


def _is_loop_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@cache
def _runner() -> asyncio.Runner:
    runner = asyncio.Runner()
    # asyncio's own pool has six threads on two cores: where an embedder is asked over a network, six questions would
    # wait for it at a time. A thread is started when it is needed.
    runner.get_loop().set_default_executor(ThreadPoolExecutor(_THREADS, thread_name_prefix="arag"))
    atexit.register(runner.close)
    return runner
