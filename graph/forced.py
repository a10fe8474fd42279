"""Forced answers: when a budget is used up, the model must answer from the evidence so far, without tools."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from arag.graph.prompts import NO_ANSWER, forced_question
from arag.graph.state import count_context_tokens
from arag.models.raw_replies import REASONING
from arag.models.replies.reading import find_doubt, with_doubt
from arag.text.normalise import CUT
from arag.text.surrogates import replace_surrogates
from arag.text.tokens import count_tokens


def ask_from_evidence(
    question: str,
    turn: Sequence[AnyMessage],
    head: Sequence[AnyMessage],
    max_context_tokens: int,
) -> HumanMessage:
    """Return the message that asks for a forced answer, with the turn's evidence in place of its calls.

    Args:
        question: The question.
        turn: The question's message, and everything behind it.
        head: What is sent before the message: the prompt and earlier questions and answers.
        max_context_tokens: The budget that all of it, and the answer, must fit into. The end of the evidence is kept.
    """
    reserve = max_context_tokens // 10  # for the answer, and as providers count tokens differently
    asked = HumanMessage(replace_surrogates(question))
    room = max_context_tokens - reserve - count_context_tokens([*head, asked])
    evidence = _keep_end(_join_evidence(turn), room)
    return HumanMessage(forced_question(asked.text, evidence))


def as_answer(reply: AIMessage) -> AIMessage:
    """Return a reply to such a message as an answer: with a text, and without calls."""
    is_text = find_doubt(reply) not in {"unread_call", "announced"}  # of a call, or of a search that cannot follow
    text = reply.text.strip() if is_text else ""
    thinking = reply.additional_kwargs.get(REASONING)
    return with_doubt(reply, None).model_copy(
        update={
            "content": text or NO_ANSWER,
            "tool_calls": [],  # some models call tools that they do not have
            "invalid_tool_calls": [],
            "additional_kwargs": {REASONING: thinking} if thinking else {},
            "id": reply.id if text else None,  # a changed text needs a new message id: else, it is not streamed
        }
    )


def _join_evidence(turn: Sequence[AnyMessage]) -> str:
    """Return the texts of a turn's results, each once, without errors."""
    texts: dict[str, None] = {}
    for message in turn:
        if isinstance(message, ToolMessage) and message.status != "error":
            texts[message.text] = None
    return "\n\n".join(texts)


def _keep_end(text: str, room: int) -> str:
    """Return as much of the end of a text as fits into `room` tokens, behind `…` if it is cut."""
    kept = text
    tokens = count_tokens(kept)
    while kept and tokens > room:
        # The share that fits if tokens are spread evenly; at least one character less, so that this ends.
        length = min(max(room, 0) * len(kept) // tokens, len(kept) - 1)
        kept = kept[len(kept) - length :]
        tokens = count_tokens(kept)
    if not kept or kept == text:
        return kept
    return f"{CUT}{kept}"
