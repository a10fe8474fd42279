"""Prompts that are longer than the model's context: the oldest results go, and the model is asked again."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.runnables import Runnable

from arag.graph.forced import ask_from_evidence
from arag.graph.node import Call
from arag.graph.state import count_context_tokens
from arag.models.failures import is_overflow
from arag.text.tokens import count_tokens

_LEFT_OUT = "This result is left out: the context is full."
_LEAST_EVIDENCE = 100  # tokens; less answers nothing
_LOST = "arag_left_out"  # a key of a reply's metadata: the calls whose results the model was not sent


def ask_with_less(
    model: Runnable[Any, AIMessage],
    head: Sequence[AnyMessage],
    turn: Sequence[AnyMessage],
) -> Generator[Call, list[Any], AIMessage]:
    """Ask a model. While the prompt is too long for it, leave the older half of the turn's results out.

    Returns:
        The reply; `drop_left_out` knows what was left out of its prompt.

    Raises:
        Exception: The prompt with the last result alone is too long, or the call failed for another reason.
    """
    while True:
        try:
            results = yield Call(model, _join_questions([*head, *turn]))
        except Exception as error:
            shorter = _leave_out_oldest(turn)
            if shorter is None or not is_overflow(error):
                raise
            turn = shorter
        else:
            return _note_left_out(cast("AIMessage", results[0]), turn)


def drop_left_out(turn: Sequence[AnyMessage], reply: AIMessage) -> list[AnyMessage]:
    """Return a turn without the results that were left out of a reply's prompt: the model may ask for them again."""
    lost = reply.response_metadata.get(_LOST, ())
    kept: list[AnyMessage] = []
    for message in turn:
        if not isinstance(message, ToolMessage) or message.tool_call_id not in lost:
            kept.append(message)
    return kept


def force_with_less(
    model: Runnable[Any, AIMessage],
    head: Sequence[AnyMessage],
    turn: Sequence[AnyMessage],
    max_context_tokens: int,
) -> Generator[Call, list[Any], AIMessage]:
    """Ask for a forced answer. While the prompt is too long for the model, send half of the evidence.

    Raises:
        Exception: Little evidence is too long, too, or the call failed for another reason.
    """
    budget = max_context_tokens
    fixed = count_context_tokens([*head, turn[0]])
    while True:
        request = ask_from_evidence(turn[0].text, turn, head, budget)
        try:
            results = yield Call(model, _join_questions([*head, request]))
        except Exception as error:
            evidence = count_tokens(request.text) // 2
            if evidence < _LEAST_EVIDENCE or not is_overflow(error):
                raise
            budget = (fixed + evidence) * 10 // 9  # a tenth is kept for the answer
        else:
            return cast("AIMessage", results[0])


def has_results(turn: Sequence[AnyMessage]) -> bool:
    """Return whether a turn has results from which an answer can be forced."""
    return any(isinstance(message, ToolMessage) and message.status != "error" for message in turn)


def _leave_out_oldest(turn: Sequence[AnyMessage]) -> list[AnyMessage] | None:
    """Return a turn without the older half of its results; None if it has only one left."""
    shown = []
    for place, message in enumerate(turn):
        if isinstance(message, ToolMessage) and message.text != _LEFT_OUT:
            shown.append(place)
    if len(shown) < 2:
        return None
    shorter = list(turn)
    for place in shown[: len(shown) // 2]:
        shorter[place] = shorter[place].model_copy(update={"content": _LEFT_OUT})
    return shorter


def _note_left_out(reply: AIMessage, turn: Sequence[AnyMessage]) -> AIMessage:
    lost = [message.tool_call_id for message in turn if isinstance(message, ToolMessage) and message.text == _LEFT_OUT]
    if not lost:
        return reply
    return reply.model_copy(update={"response_metadata": {**reply.response_metadata, _LOST: lost}})


def _join_questions(prompt: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return a prompt with messages of a user that follow each other as one: some providers refuse them otherwise."""
    joined: list[AnyMessage] = []
    for message in prompt:
        last = joined[-1] if joined else None
        if not isinstance(message, HumanMessage) or not isinstance(last, HumanMessage):
            joined.append(message)
        elif isinstance(message.content, str) and isinstance(last.content, str):
            joined[-1] = last.model_copy(update={"content": f"{last.content}\n\n{message.content}"})
        else:
            joined.append(message)
    return joined
