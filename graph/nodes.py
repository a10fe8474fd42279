"""Nodes that call a model or a tool, in synchronous and asynchronous runs."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any, TypeAlias

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config, run_in_executor

# A node's body yields a runnable and its input, is sent the result and the seconds that it took, and returns the
# node's update.
Wanted: TypeAlias = tuple[Runnable[Any, Any], Any]
Body: TypeAlias = Generator[Wanted, tuple[Any, float], Any]


class Node(Runnable[Any, Any]):
    """A node whose body is written once for both kinds of runs.

    In asynchronous runs the body runs in threads: counting tokens, opening an index and searching it would block the
    event loop. (`RunnableLambda`, which takes two functions, creates a run of its own inside the node's: every step
    would appear twice in traces and events.)

    Args:
        body: Creates the body for a state; a graph may have a state of its own.
        call: Calls what the body yields.
        acall: Does the same asynchronously.
    """

    def __init__(
        self, body: Callable[[Any], Body], call: Callable[..., Any], acall: Callable[..., Awaitable[Any]]
    ) -> None:
        self._body = body
        self._call = call
        self._acall = acall

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002 - its name
        """Run the node."""
        return run_body(self._body(input), self._call, ensure_config(config))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002
        """Run the node."""
        return await arun_body(self._body(input), self._acall, ensure_config(config))


def run_body(body: Body, call: Callable[..., Any], config: RunnableConfig) -> Any:
    """Make the calls that a body asks for, and return its return value.

    Args:
        body: The body. An error of a call is raised where it asked for it.
        call: Calls what the body yields.
        config: The run's configuration.
    """
    wanted, update = _resume(partial(next, body))
    while wanted is not None:
        began = time.perf_counter()
        try:
            came = call(*wanted, config)
        except Exception as error:  # noqa: BLE001 - the body raises it, unless it knows better
            wanted, update = _resume(partial(body.throw, error))
        else:
            wanted, update = _resume(partial(body.send, (came, time.perf_counter() - began)))
    return update


async def arun_body(body: Body, acall: Callable[..., Awaitable[Any]], config: RunnableConfig) -> Any:
    """Do the same asynchronously."""
    wanted, update = await run_in_executor(config, _resume, partial(next, body))
    while wanted is not None:
        began = time.perf_counter()
        try:
            came = await acall(*wanted, config)
        except Exception as error:  # noqa: BLE001 - the body raises it, unless it knows better
            resume = partial(body.throw, error)
        else:
            resume = partial(body.send, (came, time.perf_counter() - began))
        wanted, update = await run_in_executor(config, _resume, resume)
    return update


def _resume(resume: Callable[[], Wanted]) -> tuple[Wanted | None, Any]:
    """Resume a body; return the call that it yields, or its return value."""
    try:
        return resume(), None
    except StopIteration as end:
        return None, end.value
