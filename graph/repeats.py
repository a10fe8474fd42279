"""Calls that a model makes again and again: a short notice, then the end of the search."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.messages.tool import ToolCall

from arag.graph.state import StopReason

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
    keys = [_make_key(reply.tool_calls) for reply in replies]
    called = replies[-1].tool_calls if replies else []
    are_searches = all(call["name"] in searches for call in called)
    if called and are_searches and keys.count(keys[-1]) >= MOST_REPEATS:
        return "repeated_call"
    last = _group_results(turn)[-MOST_REPEATS:]
    are_same = len(last) == MOST_REPEATS and last[0] == last[1] == last[2]
    if are_same and last[0] and all(text is not None for text in last[0]):
        return "repeated_error"
    return None


def _group_results(turn: Sequence[AnyMessage]) -> list[list[str | None]]:
    """Return the errors among the results of each reply; None stands for another result."""
    groups: list[list[str | None]] = []
    for message in turn:
        if isinstance(message, AIMessage):
            groups.append([])
        elif isinstance(message, ToolMessage) and groups:
            groups[-1].append(message.text if message.status == "error" else None)
    return groups


def notice_of_repeat(
    call: ToolCall,
    turn: Sequence[AnyMessage],
    searches: Collection[str],
) -> ToolMessage | None:
    """Return the result of a call that was made before in a turn and did not fail; None for other calls."""
    if call["name"] not in searches:
        return None
    key = _make_key([call])
    earlier = {made["id"] for made in _list_calls(turn) if _make_key([made]) == key}
    for message in turn:
        if isinstance(message, ToolMessage) and message.tool_call_id in earlier and message.status != "error":
            return ToolMessage(_NOTICE, tool_call_id=call["id"] or "", name=call["name"])
    return None


def _list_calls(turn: Sequence[AnyMessage]) -> list[ToolCall]:
    calls: list[ToolCall] = []
    for message in turn:
        if isinstance(message, AIMessage):
            calls += message.tool_calls
    return calls


def _make_key(calls: Sequence[ToolCall]) -> str:
    made = [[call["name"], call["args"]] for call in calls]
    return json.dumps(made, sort_keys=True, default=str)
