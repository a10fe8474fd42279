"""Nodes of the graph that are written once, for synchronous and asynchronous runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeAlias

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import run_in_executor
from langgraph.types import Command
from pydantic import ValidationError

from arag.graph.state import State
from arag.models.replies.reading import with_doubt


@dataclass(frozen=True)
class Call:
    """A call of the model or of the tools, with its input."""

    runnable: Runnable[Any, Any]
    input: Any


Steps: TypeAlias = Generator[Call, Any, Any]
"""A node at work: it yields each call, is sent the results of the call as a list, and returns the state's update."""


class Node(Runnable[Any, Any]):
    """A node that is a generator function, for synchronous and asynchronous runs.

    In asynchronous runs, the code between the calls runs in a thread. LangChain's `RunnableLambda` would show every
    step twice in traces and events.
    """

    def __init__(self, function: Callable[[State], Steps]) -> None:
        self._function = function

    def invoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002
        """Run the node."""
        steps = self._function(input)
        step = advance(steps)
        while isinstance(step, Call):
            began = time.perf_counter()
            try:
                output = step.runnable.invoke(step.input, config)
            except ValidationError as error:
                output = as_unread_reply(error)
            except Exception as error:  # noqa: BLE001 - the node may go on; else, it is raised again there
                step = fail(steps, error)
                continue
            results = _list_results(output, time.perf_counter() - began)
            step = advance(steps, results)
        return step

    async def ainvoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002
        """Run the node."""
        steps = self._function(input)
        step = await run_in_executor(config, advance, steps)
        while isinstance(step, Call):
            began = time.perf_counter()
            try:
                output = await step.runnable.ainvoke(step.input, config)
            except ValidationError as error:
                output = as_unread_reply(error)
            except Exception as error:  # noqa: BLE001
                step = await run_in_executor(config, fail, steps, error)
                continue
            results = _list_results(output, time.perf_counter() - began)
            step = await run_in_executor(config, advance, steps, results)
        return step


def advance(steps: Generator[Any, Any, Any], results: Any = None) -> Any:
    """Run a node up to its next call and return that; after the last one, return the state's update."""
    try:
        return steps.send(results)
    except StopIteration as end:
        return end.value


def fail(steps: Generator[Any, Any, Any], error: Exception) -> Any:
    """Raise the error of a call in its node, which may go on to another call; return as `advance` does."""
    try:
        return steps.throw(error)
    except StopIteration as end:
        return end.value


def as_unread_reply(error: ValidationError) -> AIMessage:
    """Return what stands for a reply that LangChain cannot read: a call has arguments that are JSON but not an object.

    Other errors are raised again.
    """
    if error.title != AIMessage.__name__:
        raise error
    return with_doubt(AIMessage(""), "unread_call")


def _list_results(output: Any, seconds: float) -> list[Any]:
    """Return the messages of an output, with the seconds that they took, and the commands of tools as they are."""
    parts = output if isinstance(output, list) else [output]
    results: list[Any] = []
    for part in parts:
        if isinstance(part, Command):
            results.append(part)
            continue
        messages = part["messages"] if isinstance(part, dict) else [part]
        for message in messages:
            results.append(with_seconds(message, seconds))
    return results


def with_seconds(message: AnyMessage, seconds: float) -> AnyMessage:
    """Return a message that says how long it took, if it does not: a reply that an experiment has stored does."""
    metadata = {"seconds": seconds, **message.response_metadata}
    return message.model_copy(update={"response_metadata": metadata})
