"""The conversation: its current turn, its size, and replies that can be stored and sent again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.messages.tool import invalid_tool_call, tool_call

from arag.errors import InputError
from arag.models.replies import mend_characters
from arag.retrieval.tokens import count_tokens

MESSAGE_TOKENS = 4  # that a chat format adds to a message's text


def split_turn(messages: Sequence[AnyMessage]) -> tuple[list[AnyMessage], list[AnyMessage]]:
    """Split a conversation at its last question.

    Returns:
        The system messages, questions and answers before the question; and the question with all that follows it.

    Raises:
        InputError: There is no question.
    """
    place = max((n for n, message in enumerate(messages) if isinstance(message, HumanMessage)), default=None)
    if place is None:
        raise InputError('there is no question: `messages` must contain a human message, such as [("user", "Who?")]')
    before, turn = messages[:place], messages[place:]
    instructions = [message for message in messages if isinstance(message, SystemMessage)]
    earlier = [m for m in before if isinstance(m, HumanMessage) or is_answer(m)]
    return [*instructions, *earlier], [m for m in turn if not isinstance(m, SystemMessage)]


def since_last_answer(turn: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return the messages of this run: in a parent graph, another agent may have answered the question before."""
    start = max((n for n, message in enumerate(turn, 1) if is_answer(message)), default=0)
    return list(turn[start:])


def has_calls(message: AnyMessage) -> bool:
    """Return whether a message calls tools, with arguments that are JSON or not."""
    return isinstance(message, AIMessage) and bool(message.tool_calls or message.invalid_tool_calls)


def is_answer(message: AnyMessage) -> bool:
    """Return whether a message is a model's text, without calls."""
    return isinstance(message, AIMessage) and not has_calls(message) and bool(message.text.strip())


def is_empty(message: AnyMessage) -> bool:
    """Return whether a message is a model's, without text or calls."""
    return isinstance(message, AIMessage) and not has_calls(message) and not message.text.strip()


def count_context_tokens(messages: Sequence[BaseMessage]) -> int:
    """Count the tokens of messages: their texts and tool calls. Reasoning and pictures do not count."""
    total = 0
    for message in messages:
        calls = message.tool_calls if isinstance(message, AIMessage) else []
        total += MESSAGE_TOKENS + count_tokens(message.text)
        total += sum(
            count_tokens(call["name"] + json.dumps(call["args"], ensure_ascii=False, default=str)) for call in calls
        )
    return total


def with_readable_calls(message: AnyMessage) -> AnyMessage:
    """Return a message for the prompt; providers refuse arguments that are not JSON, which the results quote."""
    if not isinstance(message, AIMessage) or not message.invalid_tool_calls:
        return message
    emptied = [tool_call(name=c["name"] or "unknown", args={}, id=c["id"]) for c in message.invalid_tool_calls]
    content = message.content
    if not isinstance(content, str):  # OpenAI's Responses API has the calls there, too
        ids = {call["id"] for call in emptied}
        content = [part for part in content if isinstance(part, str) or part.get("call_id") not in ids]
    changes = {"content": content, "tool_calls": [*message.tool_calls, *emptied], "invalid_tool_calls": []}
    return message.model_copy(update=changes)


def repair_reply(reply: AIMessage, messages: Sequence[AnyMessage]) -> AIMessage:
    """Return a reply that can be stored and sent again: ids of its own, and only what JSON can hold.

    Some servers give each reply or call the same id: it would overwrite, or answer, the one before it.

    Args:
        reply: The reply.
        messages: The conversation before it.
    """
    taken = {
        call["id"] for m in messages if isinstance(m, AIMessage) for call in (*m.tool_calls, *m.invalid_tool_calls)
    }
    given = ids = [call["id"] for call in (*reply.tool_calls, *reply.invalid_tool_calls)]
    if not all(ids) or len(set(ids)) < len(ids) or taken.intersection(ids):
        ids = [f"call_{len(messages)}_{number}" for number in range(len(ids))]  # the same in a run that is repeated
    free_ids = iter(ids)
    calls = [
        tool_call(
            name=mend_characters(call["name"]),
            args=_to_json(call["args"]),
            id=next(free_ids),
        )
        for call in reply.tool_calls
    ]
    invalid = [
        invalid_tool_call(
            name=mend_characters(call["name"] or "") or None,
            args=mend_characters(call["args"] or ""),
            id=next(free_ids),
            error=call["error"],
        )
        for call in reply.invalid_tool_calls
    ]
    content = reply.content
    if isinstance(content, str):
        content = mend_characters(content)
    else:  # Anthropic and OpenAI's Responses API have the calls there, too
        new = dict(zip(given, ids, strict=True))
        content = [
            part
            if isinstance(part, str)
            else {key: new.get(value, value) if key in {"id", "call_id"} else value for key, value in part.items()}
            for part in content
        ]
    changes: dict[str, Any] = {"content": content, "tool_calls": calls, "invalid_tool_calls": invalid}
    return reply.model_copy(
        update=changes | ({"id": str(uuid4())} if reply.id in {message.id for message in messages} else {})
    )


def _to_json(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return what JSON can hold of a call's arguments: NaN and Infinity become null."""
    text = mend_characters(json.dumps(arguments, ensure_ascii=False, default=str))
    return cast("dict[str, Any]", json.loads(text, parse_constant=lambda _: None))


def keep_end(text: str, room: int) -> str:
    """Return as much of the end of a text as fits into `room` tokens."""
    while text and (tokens := count_tokens(text)) > room:
        size = min(max(room, 0) * len(text) // tokens, len(text) - 1)
        text = text[len(text) - size :]
    return text
