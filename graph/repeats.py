"""Calls that a model makes again and again: a short notice, then the end of the search."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.messages.tool import ToolCall
from langchain_core.tools import BaseTool

from arag.graph.review import find_call
from arag.graph.state import StopReason
from arag.retrieval.tools.base import RetrievalTool
from arag.retrieval.tools.seen import find_artifacts

MOST_REPEATS = 3  # replies with the same calls, or results with the same error, that end a search
_NOTICE = "This call was made before: its result stands above. Search for something else, or answer."


def find_repetition(
    replies: Sequence[AIMessage],
    turn: Sequence[AnyMessage],
    searches: Collection[str],
) -> StopReason | None:
    """Return why a search that goes in circles ends, if it does.

    Args:
        replies: The model's replies in this run.
        turn: The question and everything behind it.
        searches: The names of tools that show the same for the same call.
    """
    if replies and _is_repeated(replies, searches):
        return "repeated_call"
    if len(replies) >= MOST_REPEATS and _is_same_error(_list_errors(turn)[-MOST_REPEATS:]):
        return "repeated_error"
    return None


def notice_of_repeat(
    call: ToolCall,
    turn: Sequence[AnyMessage],
    tool: BaseTool | None,
) -> ToolMessage | None:
    """Return the result of a search that was made before in a turn and would give the same; None for other calls.

    The search before may be that of another agent with another index; or another scope may hold now.
    """
    if not isinstance(tool, RetrievalTool) or tool.name == "chunk_read":  # which has a notice of its own
        return None
    stamp = tool.stamp()
    asked: dict[str | None, ToolCall] = {}
    for message in turn:
        if isinstance(message, AIMessage):
            asked.update({each["id"]: each for each in message.tool_calls})
        elif isinstance(message, ToolMessage) and message.tool_call_id in asked and message.status != "error":
            made = find_call(message, asked[message.tool_call_id])
            stamps = [artifact.get("stamp") for artifact in find_artifacts([message])]
            if (made["name"], made["args"]) == (call["name"], call["args"]) and stamp in stamps:
                return ToolMessage(
                    _NOTICE,
                    tool_call_id=call["id"] or "",
                    name=call["name"],
                )
    return None


def _is_repeated(replies: Sequence[AIMessage], searches: Collection[str]) -> bool:
    """Return whether the calls of the last reply, all of them searches, were made in enough replies."""
    calls = replies[-1].tool_calls
    if not calls:
        return False
    for call in calls:
        if call["name"] not in searches:
            return False
    keys = [_make_key(reply.tool_calls) for reply in replies]
    return keys.count(keys[-1]) >= MOST_REPEATS


def _list_errors(turn: Sequence[AnyMessage]) -> list[list[str]]:
    """Return the errors of each reply's calls; none if a call did not fail."""
    errors: list[list[str]] = []
    results = 0
    for message in turn:
        if isinstance(message, AIMessage):
            errors.append([])
            results = 0
        elif isinstance(message, ToolMessage) and errors:
            results += 1
            if message.status == "error":
                errors[-1].append(message.text)
            if len(errors[-1]) < results:
                errors[-1] = []
    return errors


def _is_same_error(errors: Sequence[list[str]]) -> bool:
    return len(errors) == MOST_REPEATS and errors[0] != [] and errors.count(errors[0]) == MOST_REPEATS


def _make_key(calls: Sequence[ToolCall]) -> str:
    made = [[call["name"], call["args"]] for call in calls]
    return json.dumps(made, sort_keys=True, default=str)
