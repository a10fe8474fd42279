"""Replies that cannot be used: the model is asked again, once for each reason in a run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from arag.graph.state import StopReason, kind_of_reply
from arag.models.replies.reading import Doubt, find_doubt, find_end, with_doubt

_SAME_BEGINNING = 12  # characters: a second reply that begins like the first one is the whole answer again
_SENTENCE_END = re.compile(r"[.!?。！？][\])】”\"']*\s+|\n+")
_SHOWN = {None, "not_searched", "cut_off"}  # a second reply with such a doubt is an answer all the same
_SPENT: dict[Doubt, StopReason] = {"empty": "empty_reply", "cut_off": "cut_off"}


@dataclass(frozen=True)
class Judged:
    """A reply without calls, and why the run ends with it; None if it goes on."""

    reply: AIMessage
    reason: StopReason | None = None


def judge(
    reply: AIMessage,
    messages: Sequence[AnyMessage],
    replies: Sequence[AIMessage],
    steps_left: int,
    *,
    must_search: bool = True,
) -> Judged:
    """Decide whether a run ends with a reply, or the model is asked again.

    Args:
        reply: The reply.
        messages: The conversation before it.
        replies: The earlier replies of the run.
        steps_left: How often the model may be asked after this reply.
        must_search: Whether an answer needs a search.
    """
    if kind_of_reply(reply) == "calls":
        return Judged(reply)
    doubt = find_doubt(reply)
    if doubt is None and must_search:
        doubt = _find_missing_search(reply, messages)
    asked = [find_doubt(earlier) for earlier in replies]
    if doubt is not None and doubt not in asked and steps_left > 0:
        return Judged(with_doubt(reply, doubt))
    if doubt not in _SHOWN or not reply.text.strip():
        return Judged(with_doubt(reply, doubt or "empty"))
    answer = with_doubt(reply, None)
    if asked and asked[-1] == "cut_off":
        answer = _join(replies[-1], answer)
    return Judged(answer, _find_reason(reply, doubt))


def name_spent_doubt(replies: Sequence[AIMessage]) -> StopReason | None:
    """Return why a run ends if its last reply cannot be used, and the model was told so before."""
    doubts = [find_doubt(reply) for reply in replies]
    last = doubts[-1] if doubts else None
    if last is None or doubts.count(last) < 2:
        return None
    return _SPENT.get(last, "unusable_reply")


def _find_missing_search(reply: AIMessage, messages: Sequence[AnyMessage]) -> Doubt | None:
    """Return the doubt about an answer without a search; a refusal needs none."""
    if find_end(reply) == "refused":
        return None
    for message in messages:
        if isinstance(message, ToolMessage):
            return None
    return "not_searched"


def _find_reason(reply: AIMessage, doubt: Doubt | None) -> StopReason:
    if find_end(reply) == "refused":
        return "refused"
    return "cut_off" if doubt == "cut_off" else "answered"


def _join(first: AIMessage, second: AIMessage) -> AIMessage:
    """Return a reply behind the part of the one before it that was not cut off."""
    begun = first.text.strip()
    rest = second.text.strip()
    is_whole_answer = rest.casefold().startswith(begun[:_SAME_BEGINNING].casefold())
    if not begun or is_whole_answer:
        return second
    goes_on_in_sentence = rest[:1].islower() or not rest[:1].isalnum()
    if goes_on_in_sentence:
        return second.model_copy(update={"content": f"{begun} {rest}"})
    complete = ""
    for end in _SENTENCE_END.finditer(begun):
        complete = begun[: end.end()]
    return second.model_copy(update={"content": complete + rest})
