"""Repairs to model replies, so that they can be stored and sent again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, ToolCall
from langchain_core.messages.tool import invalid_tool_call, tool_call

_MAX_DEPTH = 100  # levels of nested arguments; no tool takes that many, and `json` fails at a few hundred


def mend_characters(text: str) -> str:
    """Replace lone surrogates: models write them as escapes, and they cannot be encoded."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def mend_reply(reply: AIMessage, before: Sequence[AnyMessage]) -> AIMessage:
    """Repair what servers get wrong.

    That is: repeated message ids, missing or repeated call ids, lone surrogates, arguments nested too deeply to be
    written, and empty arguments, which mean none. A refusal, which OpenAI stores separately, becomes the text of the
    reply.

    Args:
        reply: The reply.
        before: The conversation so far.
    """
    taken: set[str | None] = {None, ""}
    calls = [
        tool_call(name=c["name"], args=_make_writable(c["args"]), id=_take_id(c["id"], taken)) for c in reply.tool_calls
    ]
    invalid = []
    for call in reply.invalid_tool_calls:
        call_id = _take_id(call["id"], taken)
        if call["name"] and not (call["args"] or "").strip():
            calls.append(tool_call(name=call["name"], args={}, id=call_id))
        else:
            arguments = _make_writable(call["args"])
            invalid.append(invalid_tool_call(name=call["name"], args=arguments, id=call_id, error=call["error"]))
    reply_id = str(uuid4()) if reply.id in {None, *(message.id for message in before)} else reply.id
    said = reply.content if reply.text.strip() or calls or invalid else _find_refusal(reply) or reply.content
    content = _mend_arguments(_make_writable(said), calls)
    return reply.model_copy(
        update={"content": content, "tool_calls": calls, "invalid_tool_calls": invalid, "id": reply_id}
    )


def _take_id(wanted: str | None, taken: set[str | None]) -> str:
    """Return a call's id, or a new one if it has none or an earlier call of the message has it."""
    free = str(uuid4()) if wanted is None or wanted in taken else wanted
    taken.add(free)
    return free


def _find_refusal(reply: AIMessage) -> str:
    """Return a refusal to answer; OpenAI's two protocols store it in different places, outside the text."""
    blocks = reply.content if isinstance(reply.content, list) else []
    refusals = [reply.additional_kwargs.get("refusal")]
    refusals += [block.get("refusal") for block in blocks if isinstance(block, dict) and block.get("type") == "refusal"]
    return "\n".join(text for text in refusals if isinstance(text, str)).strip()


def _mend_arguments(content: Any, calls: Sequence[ToolCall]) -> Any:
    """Replace arguments that are not a JSON object in the content, where OpenAI's Responses API repeats its calls."""
    if isinstance(content, str):
        return content
    arguments = {call["id"]: json.dumps(call["args"], ensure_ascii=False) for call in calls}
    return [
        block | {"arguments": arguments.get(block.get("call_id"), "{}")}
        if isinstance(block, dict) and block.get("type") == "function_call" and not _is_object(block.get("arguments"))
        else block
        for block in content
    ]


def _is_object(text: Any) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (TypeError, ValueError, RecursionError):
        return False


def _make_writable(value: Any, depth: int = 0) -> Any:
    """Return a value without lone surrogates, and with an ellipsis for parts nested too deeply."""
    if isinstance(value, str):
        return mend_characters(value)
    if isinstance(value, list | dict) and depth == _MAX_DEPTH:
        return "…"
    if isinstance(value, list):
        return [_make_writable(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {_make_writable(key): _make_writable(item, depth + 1) for key, item in value.items()}
    return value
