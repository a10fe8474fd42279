"""Replies that cannot be used: the model is asked again, once for each reason in a run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage, AnyMessage

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
    doubt = _find_doubt(reply, messages, must_search=must_search)
    asked = [find_doubt(earlier) for earlier in replies]
    is_new = doubt not in {None, *asked}
    if is_new and steps_left > 0:
        return Judged(with_doubt(reply, doubt))
    is_answer = doubt in _SHOWN and reply.text.strip() != ""
    if not is_answer:
        return Judged(with_doubt(reply, doubt or "empty"))
    answer = with_doubt(reply, None)
    if asked[-1:] == ["cut_off"]:
        answer = _join(replies[-1], answer)
    return Judged(
        answer,
        _find_reason(reply, doubt),
    )


def name_spent_doubt(replies: Sequence[AIMessage]) -> StopReason | None:
    """Return why a run ends if its last reply cannot be used, and the model was told so before."""
    if not replies:
        return None
    doubts = [find_doubt(reply) for reply in replies]
    last = doubts[-1]
    if last is None or doubts.count(last) < 2:
        return None
    return _SPENT.get(last, "unusable_reply")


def _find_doubt(
    reply: AIMessage,
    messages: Sequence[AnyMessage],
    *,
    must_search: bool,
) -> Doubt | None:
    """Return the doubt about a reply without calls: its own, or that nothing was searched; a refusal needs none."""
    doubt = find_doubt(reply)
    if doubt is not None or not must_search:
        return doubt
    needs_none = find_end(reply) == "refused" or _has_searched(messages)
    return None if needs_none else "not_searched"


def _has_searched(messages: Sequence[AnyMessage]) -> bool:
    kinds = {message.type for message in messages}
    return "tool" in kinds


def _find_reason(reply: AIMessage, doubt: Doubt | None) -> StopReason:
    if find_end(reply) == "refused":
        return "refused"
    if doubt == "cut_off":
        return "cut_off"
    return "answered"


def _join(first: AIMessage, second: AIMessage) -> AIMessage:
    """Return a reply behind the part of the one before it that was not cut off."""
    begun = first.text.strip()
    rest = second.text.strip()
    beginning = begun[:_SAME_BEGINNING].casefold()
    if rest.casefold().startswith(beginning):  # it is the whole answer, or nothing was begun
        return second
    goes_on_in_sentence = rest[:1].islower() or not rest[:1].isalnum()
    joined = f"{begun} {rest}" if goes_on_in_sentence else _complete_sentences(begun) + rest
    return second.model_copy(update={"content": joined})


def _complete_sentences(text: str) -> str:
    """Return a text up to the end of its last complete sentence."""
    end = 0
    for match in _SENTENCE_END.finditer(text):
        end = match.end()
    return text[:end]
