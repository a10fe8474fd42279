"""The conversation as the model sees it: its size, its pairing, and what a forced answer is made from."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import invalid_tool_call, tool_call

from arag.graph.prompts import DROPPED, NOT_RUN
from arag.retrieval.errors import InputError
from arag.retrieval.tokens import count_tokens

_MESSAGE_OVERHEAD = 4  # tokens that a chat format spends on a message beside its text
_FEEDBACK = "arag_feedback"
_HIT = re.compile(r"\n\n(?=\[)")  # every chunk in a result begins with its id in brackets


def feedback(text: str) -> HumanMessage:
    """Return a message to the model that is not the user's question."""
    return HumanMessage(text, additional_kwargs={_FEEDBACK: True}, id=str(uuid4()))


def question_at(messages: Sequence[AnyMessage]) -> int:
    """Return the place of the question: the last human message that is the user's own.

    Raises:
        InputError: There is none.
    """
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if isinstance(message, HumanMessage) and not message.additional_kwargs.get(_FEEDBACK):
            return place
    raise InputError('there is no question: `messages` must hold a human message, like [("user", "Who ...?")]')


def context_tokens(messages: Sequence[AnyMessage]) -> int:
    """Count the tokens of messages: texts and tool calls. Each text is tokenised once, then remembered."""
    total = 0
    for message in messages:
        total += _MESSAGE_OVERHEAD + count_tokens(message.text)
        if isinstance(message, AIMessage):
            for call in message.tool_calls:
                total += count_tokens(call["name"]) + count_tokens(json.dumps(call["args"], ensure_ascii=False))
    return total


def paired(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Give every tool call a result, because providers refuse a conversation in which one lacks it."""
    result: list[AnyMessage] = []
    for place, message in enumerate(messages):
        result.append(message)
        if isinstance(message, AIMessage):
            result += unanswered(messages, place)
    return result


def unanswered(messages: Sequence[AnyMessage], place: int) -> list[ToolMessage]:
    """Return results for those calls of a message that have none: they were not run."""
    message = messages[place]
    if not isinstance(message, AIMessage):
        return []
    answered = {m.tool_call_id for m in messages[place + 1 :] if isinstance(m, ToolMessage)}
    calls = [*message.tool_calls, *message.invalid_tool_calls]
    return [
        ToolMessage(NOT_RUN, tool_call_id=call["id"], name=call["name"] or "unknown", status="error", id=str(uuid4()))
        for call in calls
        if call["id"] is not None and call["id"] not in answered
    ]


def without_old_results(messages: Sequence[AnyMessage], room: int) -> tuple[list[AnyMessage], set[str]]:
    """Drop the results of earlier questions' tool calls, oldest first, until the conversation fits.

    Args:
        messages: The conversation.
        room: Tokens that it may have.

    Returns:
        The conversation, calls and results still paired, and the ids of chunks whose texts are in it no more.
    """
    question = question_at(messages)
    excess = context_tokens(messages) - room
    result = list(messages)
    dropped: set[str] = set()
    for place in range(question):
        if excess <= 0:
            break
        message = messages[place]
        if isinstance(message, ToolMessage) and len(message.text) > len(DROPPED):
            result[place] = message.model_copy(update={"content": DROPPED})
            excess -= count_tokens(message.text) - count_tokens(DROPPED)
            dropped |= _new_chunks(message)
    still_there = {
        chunk_id
        for message in result
        if isinstance(message, ToolMessage) and message.text != DROPPED
        for chunk_id in _new_chunks(message)
    }
    return result, dropped - still_there


def gathered_evidence(messages: Sequence[AnyMessage], room: int) -> str:
    """Join what the tools found in this conversation, each text once, the latest kept where room is short.

    Args:
        messages: The conversation.
        room: Tokens that the evidence may have.
    """
    results = [m.text for m in messages if isinstance(m, ToolMessage) and m.status != "error"]
    blocks = list(dict.fromkeys(block.strip() for text in results for block in _HIT.split(text) if block.strip()))
    kept: list[str] = []
    for block in reversed(blocks):
        room -= count_tokens(block) + 1
        if room < 0:
            break
        kept.append(block)
    return "\n\n".join(reversed(kept))


def earlier_turns(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return the questions and answers before the current question, without tool calls and results."""
    before = messages[: question_at(messages)]
    return [
        HumanMessage(m.text) if isinstance(m, HumanMessage) else AIMessage(m.text)
        for m in before
        if (isinstance(m, HumanMessage) and not m.additional_kwargs.get(_FEEDBACK))
        or (isinstance(m, AIMessage) and not m.tool_calls and not m.invalid_tool_calls and m.text.strip())
    ]


def normalised(reply: AIMessage) -> AIMessage:
    """Mend what servers get wrong: calls without ids, and empty arguments, which mean none."""
    calls = [tool_call(name=c["name"], args=c["args"], id=c["id"] or str(uuid4())) for c in reply.tool_calls]
    invalid = []
    for call in reply.invalid_tool_calls:
        call_id = call["id"] or str(uuid4())
        if call["name"] and not (call["args"] or "").strip():
            calls.append(tool_call(name=call["name"], args={}, id=call_id))
        else:
            invalid.append(invalid_tool_call(name=call["name"], args=call["args"], id=call_id, error=call["error"]))
    return reply.model_copy(update={"tool_calls": calls, "invalid_tool_calls": invalid, "id": reply.id or str(uuid4())})


def _new_chunks(message: ToolMessage) -> set[str]:
    artifact = message.artifact
    return set(artifact.get("new_chunks", ())) if isinstance(artifact, dict) else set()
