"""Calls that a model makes again and again: a short notice, then the end of the search."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

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
    is_repeated = bool(replies) and _is_repeated(replies, searches)
    if is_repeated and not _offers_more(_find_last_results(turn)):
        return "repeated_call"
    if len(replies) >= MOST_REPEATS and _has_same_errors(turn):
        return "repeated_error"
    return None


def notice_of_repeat(
    call: ToolCall,
    turn: Sequence[AnyMessage],
    tool: BaseTool | None,
) -> ToolMessage | None:
    """Return the result of a search that was made before in a turn and would give the same; None for other calls.

    The search before may be that of another agent with another index; or another scope may hold now; or it may have
    shown a part of what it found, and said that the same call shows more.
    """
    if not isinstance(tool, RetrievalTool) or tool.name == "chunk_read":  # which has a notice of its own
        return None
    stamp = tool.stamp()
    asked: dict[str | None, ToolCall] = {}
    for message in turn:
        if isinstance(message, AIMessage):
            for made in message.tool_calls:
                asked[made["id"]] = made
        elif isinstance(message, ToolMessage) and _is_result(message, call, asked, stamp):
            return ToolMessage(
                _NOTICE,
                tool_call_id=call["id"] or "",
                name=call["name"],
            )
    return None


def _is_result(message: ToolMessage, call: ToolCall, asked: Mapping[str | None, ToolCall], stamp: str) -> bool:
    """Return whether a message has the result of a call like this one, made before in the same index and scope."""
    made = asked.get(message.tool_call_id)
    if made is None or message.status == "error" or _offers_more([message]):
        return False
    stamps = [artifact.get("stamp") for artifact in find_artifacts([message])]
    if stamp not in stamps:
        return False
    carried_out = find_call(message, made)
    return (carried_out["name"], carried_out["args"]) == (call["name"], call["args"])


def _offers_more(results: Sequence[ToolMessage]) -> bool:
    """Return whether one of some results says that the same call shows more."""
    return any(artifact.get("has_more") for artifact in find_artifacts(results))


def _is_repeated(replies: Sequence[AIMessage], searches: Collection[str]) -> bool:
    """Return whether the calls of the last reply, all of them searches, were made in enough replies."""
    names = {call["name"] for call in replies[-1].tool_calls}
    if not names or not names.issubset(searches):
        return False
    keys = [_make_key(reply.tool_calls) for reply in replies]
    return keys.count(keys[-1]) >= MOST_REPEATS


def _has_same_errors(turn: Sequence[AnyMessage]) -> bool:
    """Return whether all calls of the last replies failed, each time with the same errors."""
    last = _group_results(turn)[-MOST_REPEATS:]
    errors = [_list_errors(results) for results in last]
    if len(errors) < MOST_REPEATS or not errors[0]:
        return False
    return errors.count(errors[0]) == MOST_REPEATS


def _find_last_results(turn: Sequence[AnyMessage]) -> list[ToolMessage]:
    """Return the results of the last reply that has some."""
    for results in reversed(_group_results(turn)):
        if results:
            return results
    return []


def _group_results(turn: Sequence[AnyMessage]) -> list[list[ToolMessage]]:
    """Return the results of each reply's calls."""
    groups: list[list[ToolMessage]] = []
    for message in turn:
        if isinstance(message, AIMessage):
            groups.append([])
        elif isinstance(message, ToolMessage) and groups:
            groups[-1].append(message)
    return groups


def _list_errors(results: Sequence[ToolMessage]) -> list[str]:
    """Return the errors of a reply's calls; none if a call did not fail."""
    statuses = {result.status for result in results}
    if statuses != {"error"}:
        return []
    return [result.text for result in results]


def _make_key(calls: Sequence[ToolCall]) -> str:
    made = [[call["name"], call["args"]] for call in calls]
    return json.dumps(made, sort_keys=True, default=str)
