"""The conversation as the model sees it: its size, the pairing of calls and results, and a forced answer's evidence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call

from arag.errors import InputError
from arag.graph.prompts import DROPPED, NOT_RUN
from arag.models.messages import is_question
from arag.models.replies import mend_characters
from arag.retrieval.tokens import count_tokens

_MESSAGE_OVERHEAD = 4  # tokens that a chat format adds to a message's text
_HIT = re.compile(r"\n\n(?=\[)")  # every chunk in a result begins with its id in brackets


def find_question(messages: Sequence[AnyMessage]) -> int:
    """Return the position of the question: the last human message that is the user's own.

    Raises:
        InputError: There is no question.
    """
    for place in range(len(messages) - 1, -1, -1):
        if is_question(messages[place]):
            return place
    raise InputError('there is no question: `messages` must contain a human message, such as [("user", "Who ...?")]')


def count_context_tokens(messages: Sequence[AnyMessage]) -> int:
    """Count the tokens of messages: texts, reasoning and tool calls. Each text is tokenised once and cached.

    Reasoning counts if it is text. Signatures, encrypted reasoning and images do not count: they are base64, and its
    length does not tell how many tokens a provider counts.
    """
    total = 0
    for message in messages:
        total += _MESSAGE_OVERHEAD + count_tokens(message.text)
        if isinstance(message, AIMessage):
            total += sum(count_tokens(text) for text in _reasoning(message))
            for call in message.tool_calls:
                total += count_tokens(call["name"]) + count_tokens(json.dumps(call["args"], ensure_ascii=False))
            for invalid in message.invalid_tool_calls:
                total += count_tokens(invalid["name"] or "")
    return total


def _reasoning(message: AIMessage) -> Iterator[str]:
    """Yield a message's reasoning, which providers expect back; each stores it in a different place."""
    if isinstance(message.content, list):
        for block in message.content:
            if isinstance(block, dict) and block.get("type") in {"thinking", "reasoning"}:
                yield from _texts([block.get(key) for key in ("thinking", "reasoning", "summary", "content")])
    yield from _texts([message.additional_kwargs.get(key) for key in ("reasoning_content", "reasoning")])


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in a nested list of texts and of parts that have a text or a summary."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
    elif isinstance(value, dict):
        yield from _texts([value.get("text"), value.get("summary")])


def mend_conversation(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Repair what providers refuse: calls without a result, results without a call, arguments that are not JSON.

    Arguments that are not JSON are left empty; the call's result quotes them.
    """
    result: list[AnyMessage] = []
    waiting: set[str | None] = set()  # ids of calls whose results may follow
    for place, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            if message.tool_call_id in waiting:
                result.append(message)
            waiting.discard(message.tool_call_id)
            continue
        calls_made = [*message.tool_calls, *message.invalid_tool_calls] if isinstance(message, AIMessage) else []
        waiting = {call["id"] for call in calls_made}
        if isinstance(message, AIMessage) and message.invalid_tool_calls:
            emptied = [tool_call(name=c["name"] or "unknown", args={}, id=c["id"]) for c in message.invalid_tool_calls]
            calls = {"tool_calls": [*message.tool_calls, *emptied], "invalid_tool_calls": []}
            result.append(message.model_copy(update=calls))
        else:
            result.append(message)
        result += write_missing_results(messages, place)
    return result


def write_missing_results(messages: Sequence[AnyMessage], place: int) -> list[ToolMessage]:
    """Return results for the calls of a message that have none, because they were not run."""
    message = messages[place]
    if not isinstance(message, AIMessage):
        return []
    results = takewhile(lambda later: isinstance(later, ToolMessage), messages[place + 1 :])
    answered = {result.tool_call_id for result in results if isinstance(result, ToolMessage)}
    calls = [*message.tool_calls, *message.invalid_tool_calls]
    return [
        ToolMessage(NOT_RUN, tool_call_id=call["id"], name=call["name"] or "unknown", status="error", id=str(uuid4()))
        for call in calls
        if call["id"] is not None and call["id"] not in answered
    ]


def drop_old_results(messages: Sequence[AnyMessage], room: int) -> list[AnyMessage]:
    """Drop the results of earlier questions' tool calls, oldest first, until the conversation fits.

    Args:
        messages: The conversation.
        room: Tokens available for it.

    Returns:
        The conversation, with calls and results still paired.
    """
    question = find_question(messages)
    excess = count_context_tokens(messages) - room
    result = list(messages)
    for place in range(question):
        if excess <= 0:
            break
        message = messages[place]
        if isinstance(message, ToolMessage) and len(message.text) > len(DROPPED):
            # Without the artifact the chunks do not count as read, and can be read again.
            result[place] = message.model_copy(update={"content": DROPPED, "artifact": None})
            excess -= count_tokens(message.text) - count_tokens(DROPPED)
    return result


def gather_evidence(messages: Sequence[AnyMessage], room: int) -> str:
    """Join the evidence in this conversation, each text once; if room is short, the latest.

    Evidence is what tools found, and messages that followed the question: from a tool, or from another node of a parent
    graph.

    Args:
        messages: The conversation.
        room: Tokens available for the evidence.
    """
    question = find_question(messages)
    results = [m.text for place, m in enumerate(messages) if _is_evidence(m, behind_question=place > question)]
    blocks = list(dict.fromkeys(block.strip() for text in results for block in _HIT.split(text) if block.strip()))
    kept: list[str] = []
    for block in reversed(blocks):
        part = truncate(block, room - 1)
        if not part:
            break
        kept.append(part)
        room -= count_tokens(part) + 1
    return "\n\n".join(reversed(kept))


def _is_evidence(message: AnyMessage, *, behind_question: bool) -> bool:
    if isinstance(message, ToolMessage):
        return message.status != "error"
    return behind_question and (isinstance(message, HumanMessage) or is_answer(message))


def find_tool_messages(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return the messages behind the question that only a search needs: tool calls, results, and other feedback."""
    behind = messages[find_question(messages) + 1 :]
    return [
        m
        for m in behind
        if isinstance(m, ToolMessage | HumanMessage)  # not the user's own: the question is the last of those
        or (isinstance(m, AIMessage) and (m.tool_calls or m.invalid_tool_calls))
    ]


def is_answer(message: AnyMessage) -> bool:
    """Return whether a message is a model's text, without calls."""
    return (
        isinstance(message, AIMessage)
        and not message.tool_calls
        and not message.invalid_tool_calls
        and bool(message.text.strip())
    )


def truncate(text: str, room: int) -> str:
    """Return as much of a text as fits into `room` tokens."""
    while text and (tokens := count_tokens(text)) > room:
        text = text[: min(max(room, 0) * len(text) // tokens, len(text) - 1)]
    return text


def find_earlier_turns(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return the questions and answers before the current question, without tool calls and results."""
    before = messages[: find_question(messages)]
    return [
        HumanMessage(mend_characters(m.text)) if isinstance(m, HumanMessage) else AIMessage(mend_characters(m.text))
        for m in before
        if is_question(m) or is_answer(m)
    ]
