"""Replies that cannot be used: what the model is told, once for each kind in a run, and what becomes of the second."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from arag.graph.state import StopReason, kind_of_reply
from arag.models.replies.reading import Doubt, find_doubt, find_end, with_doubt

_SAME_BEGINNING = 12  # characters: a second reply that begins like the first one is the whole answer again
_SENTENCE_END = re.compile(r"[.!?。！？][\])】”\"']*\s+|\n+")


@dataclass(frozen=True)
class Judged:
    """A reply without calls, and why the run ends with it; None if it goes on."""

    reply: AIMessage
    reason: StopReason | None


def judge(reply: AIMessage, messages: Sequence[AnyMessage], replies: Sequence[AIMessage], steps_left: int) -> Judged:
    """Decide whether a run ends with a reply, or the model is asked again.

    Args:
        reply: The reply.
        messages: The conversation before it.
        replies: The earlier replies of the run.
        steps_left: How often the model may be asked after this reply.
    """
    if kind_of_reply(reply) == "calls":
        return Judged(reply, None)
    doubt = find_doubt(reply)
    is_refusal = find_end(reply) == "refused"
    if doubt is None and not is_refusal and not _has_evidence(messages):
        doubt = "not_searched"
    asked = [find_doubt(earlier) for earlier in replies]
    if doubt is not None and doubt not in asked and steps_left > 0:
        return Judged(with_doubt(reply, doubt), None)
    is_usable = doubt in {None, "not_searched", "cut_off"} and reply.text.strip()
    if not is_usable:
        return Judged(with_doubt(reply, doubt or "empty"), None)
    answer = with_doubt(reply, None)
    if asked and asked[-1] == "cut_off":
        answer = _join(replies[-1], answer)
    if is_refusal:
        return Judged(answer, "refused")
    return Judged(answer, "cut_off" if doubt == "cut_off" else "answered")


def name_spent_doubt(replies: Sequence[AIMessage]) -> StopReason | None:
    """Return why a run ends if its last reply cannot be used, and the model was told so before."""
    doubts = [find_doubt(reply) for reply in replies]
    if not doubts or doubts[-1] is None or doubts.count(doubts[-1]) < 2:
        return None
    reasons: dict[Doubt, StopReason] = {"empty": "empty_reply", "cut_off": "cut_off"}
    return reasons.get(doubts[-1], "unusable_reply")


def _has_evidence(messages: Sequence[AnyMessage]) -> bool:
    return any(isinstance(message, ToolMessage) for message in messages)


def _join(first: AIMessage, second: AIMessage) -> AIMessage:
    """Return a reply with the part of the one before it that was not cut off."""
    begun = first.text.strip()
    rest = second.text.strip()
    if not begun or rest.casefold().startswith(begun[:_SAME_BEGINNING].casefold()):
        return second
    if rest[:1].islower() or not rest[:1].isalnum():  # it goes on in the middle of the sentence
        return second.model_copy(update={"content": f"{begun} {rest}"})
    ends = list(_SENTENCE_END.finditer(begun))
    complete = begun[: ends[-1].end()] if ends else ""
    return second.model_copy(update={"content": complete + rest})
