"""The conversation as the model sees it: its size, its pairing, and what a forced answer is made from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.messages.tool import invalid_tool_call, tool_call
from pydantic import ValidationError

from arag.errors import InputError
from arag.graph.prompts import DROPPED, NOT_RUN
from arag.models.messages import is_question
from arag.retrieval.tokens import count_tokens
from arag.retrieval.tools import whole_characters

_MESSAGE_OVERHEAD = 4  # tokens that a chat format spends on a message beside its text
_DEEPEST = 100  # levels of nested arguments; no tool takes as many, and `json` writes no more than some hundreds
_HIT = re.compile(r"\n\n(?=\[)")  # every chunk in a result begins with its id in brackets


def question_at(messages: Sequence[AnyMessage]) -> int:
    """Return the place of the question: the last human message that is the user's own.

    Raises:
        InputError: There is none.
    """
    for place in range(len(messages) - 1, -1, -1):
        if is_question(messages[place]):
            return place
    raise InputError('there is no question: `messages` must hold a human message, like [("user", "Who ...?")]')


def context_tokens(messages: Sequence[AnyMessage]) -> int:
    """Count the tokens of messages: texts, reasoning and tool calls. Each text is tokenised once, then remembered.

    Reasoning counts as far as it is text. Signatures, encrypted reasoning and images do not: they are base64, whose
    length says nothing of the tokens that a provider makes of them.
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
    """Yield a message's reasoning, which providers want back with it: each has a place of its own for it."""
    if isinstance(message.content, list):
        for block in message.content:
            if isinstance(block, dict) and block.get("type") in {"thinking", "reasoning"}:
                yield from _texts([block.get(key) for key in ("thinking", "reasoning", "summary", "content")])
    yield from _texts([message.additional_kwargs.get(key) for key in ("reasoning_content", "reasoning")])


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in a list of texts, and of parts that have one, or a summary of such parts."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
    elif isinstance(value, dict):
        yield from _texts([value.get("text"), value.get("summary")])


def acceptable(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Mend what providers refuse: calls without a result, results without a call, arguments that are not JSON.

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
        result += unanswered(messages, place)
    return result


def unanswered(messages: Sequence[AnyMessage], place: int) -> list[ToolMessage]:
    """Return results for those calls of a message that have none: they were not run."""
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


def without_old_results(messages: Sequence[AnyMessage], room: int) -> list[AnyMessage]:
    """Drop the results of earlier questions' tool calls, oldest first, until the conversation fits.

    Args:
        messages: The conversation.
        room: Tokens that it may have.

    Returns:
        The conversation, calls and results still paired.
    """
    question = question_at(messages)
    excess = context_tokens(messages) - room
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


def gathered_evidence(messages: Sequence[AnyMessage], room: int) -> str:
    """Join what came of this conversation, each text once; where room is short, the latest.

    That is what tools found, and what was said about the question besides: by a tool's own message, or by another
    node of a graph around this one.

    Args:
        messages: The conversation.
        room: Tokens that the evidence may have.
    """
    question = question_at(messages)
    results = [m.text for place, m in enumerate(messages) if _is_evidence(m, behind_question=place > question)]
    blocks = list(dict.fromkeys(block.strip() for text in results for block in _HIT.split(text) if block.strip()))
    kept: list[str] = []
    for block in reversed(blocks):
        part = beginning(block, room - 1)
        if not part:
            break
        kept.append(part)
        room -= count_tokens(part) + 1
    return "\n\n".join(reversed(kept))


def _is_evidence(message: AnyMessage, *, behind_question: bool) -> bool:
    if isinstance(message, ToolMessage):
        return message.status != "error"
    return behind_question and (isinstance(message, HumanMessage) or is_answer(message))


def is_answer(message: AnyMessage) -> bool:
    """Tell whether a message is a model's text, without calls."""
    return (
        isinstance(message, AIMessage)
        and not message.tool_calls
        and not message.invalid_tool_calls
        and bool(message.text.strip())
    )


def beginning(text: str, room: int) -> str:
    """Return as much of a text as fits into so many tokens."""
    while text and (tokens := count_tokens(text)) > room:
        text = text[: min(max(room, 0) * len(text) // tokens, len(text) - 1)]
    return text


def earlier_turns(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return the questions and answers before the current question, without tool calls and results."""
    before = messages[: question_at(messages)]
    return [
        HumanMessage(whole_characters(m.text)) if isinstance(m, HumanMessage) else AIMessage(whole_characters(m.text))
        for m in before
        if is_question(m) or is_answer(m)
    ]


def unreadable(error: ValidationError) -> AIMessage:
    """Return what stands for a reply that LangChain cannot read: a call whose arguments are JSON, but no object.

    Args:
        error: What came out of calling the model, which is raised if it is about something else.
    """
    if error.title == AIMessage.__name__:
        return AIMessage("")
    raise error


def normalised(reply: AIMessage, before: Sequence[AnyMessage]) -> AIMessage:
    """Mend what servers get wrong.

    That is: ids of messages that came before, calls without ids or with the same one, half characters, arguments that
    are nested deeper than can be written, and empty arguments, which mean none. A refusal, which OpenAI has a place
    of its own for, becomes the text of the reply.

    Args:
        reply: The reply.
        before: The conversation so far.
    """
    taken: set[str | None] = {None, ""}
    calls = [
        tool_call(name=c["name"], args=_writable(c["args"]), id=_free_id(c["id"], taken)) for c in reply.tool_calls
    ]
    invalid = []
    for call in reply.invalid_tool_calls:
        call_id = _free_id(call["id"], taken)
        if call["name"] and not (call["args"] or "").strip():
            calls.append(tool_call(name=call["name"], args={}, id=call_id))
        else:
            arguments = _writable(call["args"])
            invalid.append(invalid_tool_call(name=call["name"], args=arguments, id=call_id, error=call["error"]))
    reply_id = str(uuid4()) if reply.id in {None, *(message.id for message in before)} else reply.id
    said = reply.content if reply.text.strip() or calls or invalid else _refusal(reply) or reply.content
    content = _with_objects(_writable(said), calls)
    return reply.model_copy(
        update={"content": content, "tool_calls": calls, "invalid_tool_calls": invalid, "id": reply_id}
    )


def _free_id(wanted: str | None, taken: set[str | None]) -> str:
    """Return a call's id, or another where it has none, or an earlier call of the message has it."""
    free = str(uuid4()) if wanted is None or wanted in taken else wanted
    taken.add(free)
    return free


def _refusal(reply: AIMessage) -> str:
    """Return a refusal to answer: OpenAI's two protocols have it in two places, neither of which is the text."""
    blocks = reply.content if isinstance(reply.content, list) else []
    refusals = [reply.additional_kwargs.get("refusal")]
    refusals += [block.get("refusal") for block in blocks if isinstance(block, dict) and block.get("type") == "refusal"]
    return "\n".join(text for text in refusals if isinstance(text, str)).strip()


def _with_objects(content: Any, calls: Sequence[ToolCall]) -> Any:
    """Mend arguments that are no JSON object in the content, which OpenAI's Responses API has its calls in, too."""
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


def _writable(value: Any, depth: int = 0) -> Any:
    """Return a value with whole characters, and an ellipsis for what is nested too deeply."""
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, list | dict) and depth == _DEEPEST:
        return "…"
    if isinstance(value, list):
        return [_writable(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {_writable(key): _writable(item, depth + 1) for key, item in value.items()}
    return value
