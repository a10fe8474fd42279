"""Nodes that call a model or a tool, in synchronous and asynchronous runs."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeAlias

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config, run_in_executor

from arag.graph.state import State

# A node's body yields a runnable and its input, is sent the result and the seconds that it took, and returns the
# node's update.
Body: TypeAlias = Generator[tuple[Runnable[Any, Any], Any], tuple[Any, float], Any]


class Node(Runnable[State, Any]):
    """A node whose body is written once for both kinds of runs.

    In asynchronous runs the body runs in threads: counting tokens, opening an index and searching it would block the
    event loop. (`RunnableLambda`, which takes two functions, creates a run of its own inside the node's: every step
    would appear twice in traces and events.)

    Args:
        body: Creates the body for a state.
        call: Calls what the body yields.
        acall: Does the same asynchronously.
    """

    def __init__(
        self, body: Callable[[State], Body], call: Callable[..., Any], acall: Callable[..., Awaitable[Any]]
    ) -> None:
        self._body = body
        self._call = call
        self._acall = acall

    def invoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002 - its name
        """Run the node."""
        config, body = ensure_config(config), self._body(input)
        wanted, update = _resume(body, None)
        while wanted is not None:
            began = time.perf_counter()
            came = self._call(*wanted, config)
            wanted, update = _resume(body, (came, time.perf_counter() - began))
        return update

    async def ainvoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002
        """Run the node."""
        config, body = ensure_config(config), self._body(input)
        wanted, update = await run_in_executor(config, _resume, body, None)
        while wanted is not None:
            began = time.perf_counter()
            came = await self._acall(*wanted, config)
            wanted, update = await run_in_executor(config, _resume, body, (came, time.perf_counter() - began))
        return update


def _resume(body: Body, came: Any) -> tuple[tuple[Runnable[Any, Any], Any] | None, Any]:
    """Resume a body; return the call that it yields, or its return value."""
    try:
        return body.send(came), None
    except StopIteration as end:
        return None, end.value
