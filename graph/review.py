"""Calls that a person must approve, in the format of LangChain's human in the loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage
from langgraph.runtime import get_runtime

from arag.errors import InputError

if TYPE_CHECKING:
    from langchain.agents.middleware import HumanInTheLoopMiddleware


@dataclass(frozen=True)
class Reviewed:
    """The calls of a message, as a person decided on them."""

    calls: Sequence[ToolCall]
    results: Mapping[str | None, ToolMessage] = field(default_factory=dict)
    """What the person said in place of a call, by the call's id."""
    edits: Mapping[str, Any] = field(default_factory=dict)
    """Keys of the state by which LangChain's middleware runs what the person wrote."""


def make_reviewer(interrupt_on: Mapping[str, Any] | None) -> HumanInTheLoopMiddleware[Any, Any, Any] | None:
    """Return LangChain's middleware for calls that a person must approve; None if there are none."""
    if not interrupt_on:
        return None
    from langchain.agents.middleware import HumanInTheLoopMiddleware

    return HumanInTheLoopMiddleware(dict(interrupt_on))


def check_names(interrupt_on: Mapping[str, Any], tools: Iterable[str]) -> None:
    """Refuse names of tools that do not exist: their calls would run without approval.

    Raises:
        InputError: There is such a name.
    """
    known = set(tools)
    unknown = sorted(interrupt_on.keys() - known)
    if unknown:
        raise InputError(f"interrupt_on names no tool: {', '.join(unknown)}. Valid names: {', '.join(sorted(known))}")


def review(
    reviewer: HumanInTheLoopMiddleware[Any, Any, Any] | None,
    messages: Sequence[AnyMessage],
) -> Reviewed:
    """Wait until a person has decided on the calls of the last message, if some of them need that.

    The run pauses, with a `HITLRequest` as the value of its interrupt. It is resumed with a `HITLResponse`.
    """
    asking = cast("AIMessage", messages[-1])
    if reviewer is None:
        return Reviewed(asking.tool_calls)
    copy = asking.model_copy(deep=True)  # the middleware changes it
    state: Any = {"messages": [*messages[:-1], copy]}
    update = reviewer.after_model(state, get_runtime())
    if update is None:
        return Reviewed(asking.tool_calls)
    revised, *results = update.pop("messages")
    return Reviewed(
        calls=revised.tool_calls,
        results={result.tool_call_id: result for result in results},
        edits=update,
    )
