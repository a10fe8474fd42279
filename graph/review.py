"""Calls that a person must approve, in the format of LangChain's human in the loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage
from langgraph.runtime import get_runtime

from arag.errors import InputError

if TYPE_CHECKING:
    from langchain.agents.middleware import HumanInTheLoopMiddleware
    from langgraph.prebuilt.tool_node import ToolCallRequest

_EDITS = "hitl_edited_tool_calls"  # the key of the state in which LangChain's middleware keeps what people wrote
_MADE = "made_call"  # the key of a result's metadata


@dataclass(frozen=True)
class Reviewed:
    """The calls of a message, as a person decided on them."""

    calls: Sequence[ToolCall]
    """The calls to run. What a person wrote stands in place of the model's call."""
    results: Mapping[str | None, ToolMessage] = field(default_factory=dict)
    """What the person said in place of a call, by the call's id."""
    edits: Mapping[str, Any] = field(default_factory=dict)
    """Keys of the state by which LangChain's middleware tells the model what the person wrote."""


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
        calls=[edit_call(call, update) for call in revised.tool_calls],
        results={result.tool_call_id: result for result in results},
        edits=update,
    )


def edit_call(call: ToolCall, state: Mapping[str, Any]) -> ToolCall:
    """Return what a person wrote in place of a call; if nobody did, the call."""
    edits = state.get(_EDITS) or {}
    edit = edits.get(call["id"])
    if edit is None:
        return call
    return {**call, "name": edit["name"], "args": edit["args"]}


def edit_request(request: ToolCallRequest) -> ToolCallRequest:
    """Return the request of what a person wrote in place of a call. Middleware that runs it may come behind ours."""
    call = edit_call(request.tool_call, request.state)
    if call is request.tool_call:
        return request
    tools = {tool.name: tool for tool in request.runtime.tools}
    return replace(request, tool_call=call, tool=tools.get(call["name"]))


def note_call(result: ToolMessage, call: ToolCall, asking: AIMessage) -> ToolMessage:
    """Return the result of a call, which says what was called if the model had asked for something else."""
    made = {"name": call["name"], "args": call["args"]}
    for asked in asking.tool_calls:
        if asked["id"] == call["id"] and {"name": asked["name"], "args": asked["args"]} == made:
            return result
    return result.model_copy(update={"response_metadata": {**result.response_metadata, _MADE: made}})


def find_call(result: ToolMessage, asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the call that a result is of: what the model asked for, or what a person wrote in its place."""
    made: Mapping[str, Any] = result.response_metadata.get(_MADE, asked)
    return made
