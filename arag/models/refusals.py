"""What servers refuse in a request, and how the request is changed then: a table, as each server refuses other things.

A request is a dictionary as OpenAI's or Anthropic's API takes it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from arag.models.pauses import find_statuses

Request: TypeAlias = dict[str, Any]
Messages: TypeAlias = list[dict[str, Any]]

_REFUSING = {400, 404, 415, 422, 501}
_BAD_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_MISTRAL_ID = 9  # characters


@dataclass(frozen=True)
class Change:
    """A change of requests, and the words of servers that ask for it."""

    name: str
    refused: re.Pattern[str]
    apply: Callable[[Request], Request]


def regular_request(request: Request) -> Request:
    """Return a request without what no server needs and some refuse: null contents, and other signs in names."""
    messages = request.get("messages")
    if not isinstance(messages, list):
        return request
    return {**request, "messages": [_regular_message(message) for message in messages]}


def _regular_message(message: Mapping[str, Any]) -> dict[str, Any]:
    changed = dict(message)
    if changed.get("content", "") is None:
        changed["content"] = ""
    if changed.get("tool_calls"):
        changed["tool_calls"] = [_with_regular_name(call) for call in changed["tool_calls"]]
    return changed


def _with_regular_name(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    name = _BAD_IN_NAMES.sub("_", function["name"])
    return {**call, "function": {**function, "name": name}}


def _without(*names: str) -> Callable[[Request], Request]:
    def apply(request: Request) -> Request:
        kept = {name: value for name, value in request.items() if name not in names}
        if "extra_body" in kept:  # where clients put what they do not know
            kept["extra_body"] = {name: value for name, value in kept["extra_body"].items() if name not in names}
        return kept

    return apply


def _renamed(name: str, other: str) -> Callable[[Request], Request]:
    def apply(request: Request) -> Request:
        if name not in request:
            return request
        return {**_without(name)(request), other: request[name]}

    return apply


def _without_strict(request: Request) -> Request:
    tools = []
    for tool in request.get("tools", []):
        function = _without("strict")(tool.get("function", {}))
        changed = _without("strict")(tool)
        tools.append({**changed, "function": function} if "function" in tool else changed)
    return {**_without("strict")(request), "tools": tools} if tools else _without("strict")(request)


def _on_messages(change: Callable[[Messages], Messages]) -> Callable[[Request], Request]:
    def apply(request: Request) -> Request:
        if "messages" not in request:
            return request
        return {**request, "messages": change(request["messages"])}

    return apply


def _join_instructions(messages: Messages) -> Messages:
    """Put the system messages before the first question."""
    instructions: list[str] = []
    others: Messages = []
    for message in messages:
        if message["role"] in ("system", "developer"):
            instructions.append(message["content"])
        else:
            others.append(message)
    for place, message in enumerate(others):
        if message["role"] == "user" and instructions and isinstance(message["content"], str):
            content = "\n\n".join([*instructions, message["content"]])
            others[place] = {**message, "content": content}
            break
    return others


def _empty_to_null(messages: Messages) -> Messages:
    changed = []
    for message in messages:
        is_empty = message["role"] == "assistant" and message.get("content") == ""
        changed.append({**message, "content": None} if is_empty else message)
    return changed


def _shorten_ids(messages: Messages) -> Messages:
    shortened = []
    for message in messages:
        changed = dict(message)
        if "tool_call_id" in changed:
            changed["tool_call_id"] = _shorten_id(changed["tool_call_id"])
        if changed.get("tool_calls"):
            changed["tool_calls"] = [{**call, "id": _shorten_id(call["id"])} for call in changed["tool_calls"]]
        shortened.append(changed)
    return shortened


def _shorten_id(call_id: str) -> str:
    if re.fullmatch(rf"[a-zA-Z0-9]{{{_MISTRAL_ID}}}", call_id):
        return call_id
    return hashlib.sha256(call_id.encode()).hexdigest()[:_MISTRAL_ID]


def _unchanged(request: Request) -> Request:
    return request


def _row(name: str, words: str, apply: Callable[[Request], Request]) -> Change:
    return Change(name, re.compile(words, re.IGNORECASE | re.DOTALL), apply)


SEND_REASONING = "send reasoning"

# A row is tried if its words are in the server's message and it changes the request. The first that does is kept.
CHANGES = (
    _row("parallel_tool_calls", r"parallel[_ ]tool[_ ]calls?|disable_parallel", _without("parallel_tool_calls")),
    _row("stream_options", r"stream_options|include_usage", _without("stream_options")),
    _row("tool_choice", r"tool_choice", _without("tool_choice")),
    _row("strict", r"\bstrict\b", _without_strict),
    _row("temperature", r"temperature", _without("temperature")),
    _row("top_p", r"top_p", _without("top_p")),
    _row("reasoning_effort", r"reasoning[_ .]effort", _without("reasoning_effort")),
    _row("max_tokens", r"max_completion_tokens.{0,40}instead", _renamed("max_tokens", "max_completion_tokens")),
    _row("max_completion_tokens", r"max_completion_tokens", _renamed("max_completion_tokens", "max_tokens")),
    _row("no token limit", r"max_(completion_)?tokens", _without("max_tokens", "max_completion_tokens")),
    _row(
        "system role",
        r"\bsystem\b.{0,30}\b(role|message|prompt)|role.{0,40}\bsystem\b",
        _on_messages(_join_instructions),
    ),
    _row("short ids", r"call.?ids?\b.{0,80}length of 9", _on_messages(_shorten_ids)),
    _row("null content", r"(content|text).{0,40}(empty|blank|min(imum)? ?length)", _on_messages(_empty_to_null)),
    _row(SEND_REASONING, r"reasoning_content", _unchanged),  # messages hold it: see `arag.models.border`
)


def find_change(error: BaseException, request: Request, made: Mapping[str, Change]) -> Change | None:
    """Return the change that a server's refusal asks for; None if it asks for none, or that change is made already."""
    text = " ".join(_list_texts(error))
    if _REFUSING.isdisjoint(find_statuses(error)):
        return None
    for change in CHANGES:
        if change.name in made or not change.refused.search(text):
            continue
        if change.name == SEND_REASONING or change.apply(request) != request:
            return change
    return None


def _list_texts(error: BaseException) -> Iterator[str]:
    yield str(error)
    body = getattr(error, "body", None)
    if body is not None:
        yield json.dumps(body, default=str)
