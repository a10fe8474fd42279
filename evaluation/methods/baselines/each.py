"""A node that asks for several things at once, and asks again only for what failed.

LangGraph's `Send` cancels the other branches when one meets a rate limit, and their calls are paid for twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ContextThreadPoolExecutor, ensure_config, run_in_executor

from arag.graph.nodes import Body, arun_body, run_body
from arag.models.asking import aask, ask

_AT_ONCE = 16


def merge(left: dict[str, Any] | None, right: dict[str, Any] | None) -> dict[str, Any]:
    """Merge the values of a channel; None clears it."""
    return {} if right is None else {**(left or {}), **right}


class Each(Runnable[Any, Any]):
    """A node that runs several bodies at once and puts what they return into a channel, under their keys.

    What has finished is kept although another body has failed. The node fails only if none has finished. An edge
    must lead back to it as long as there is a body to run.

    Args:
        bodies: Returns the bodies that are still to be run in a state, by key; each returns a value for the channel.
        channel: The channel: `Annotated[dict[str, Any], merge]`.
    """

    def __init__(self, bodies: Callable[[Any], Mapping[str, Body]], channel: str) -> None:
        self._bodies = bodies
        self._channel = channel

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002 - its name
        """Run the node."""
        config, bodies = ensure_config(config), self._bodies(input)
        if not bodies:
            return {}
        with ContextThreadPoolExecutor(min(len(bodies), _AT_ONCE)) as pool:
            futures = [pool.submit(run_body, body, ask, config) for body in bodies.values()]
        errors = [future.exception() for future in futures]
        values = [None if error else future.result() for future, error in zip(futures, errors, strict=True)]
        return self._finish(list(bodies), values, errors)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002
        """Run the node."""
        config = ensure_config(config)
        bodies = await run_in_executor(config, self._bodies, input)
        gate = asyncio.Semaphore(_AT_ONCE)

        async def work(body: Body) -> Any:
            async with gate:
                return await arun_body(body, aask, config)

        came = await _gather([work(body) for body in bodies.values()])
        errors = [value if isinstance(value, BaseException) else None for value in came]
        return self._finish(list(bodies), came, errors)

    def _finish(self, keys: list[str], values: list[Any], errors: list[BaseException | None]) -> dict[str, Any]:
        done = {key: value for key, value, error in zip(keys, values, errors, strict=True) if error is None}
        failed = [error for error in errors if error is not None]
        if failed and not done:
            raise failed[0]
        return {self._channel: done}


async def _gather(works: list[Awaitable[Any]]) -> list[Any]:
    return list(await asyncio.gather(*works, return_exceptions=True))
