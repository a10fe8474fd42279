"""Human messages: the user's questions, and feedback to the model in the same role."""

from __future__ import annotations

from uuid import uuid4

from langchain_core.messages import BaseMessage, HumanMessage

_FEEDBACK = "arag_feedback"


def feedback(text: str) -> HumanMessage:
    """Return a message to the model that is not the user's question."""
    return marked_feedback(HumanMessage(text, id=str(uuid4())))


def marked_feedback(message: HumanMessage) -> HumanMessage:
    """Return a message marked as one that is not the user's question."""
    return message.model_copy(update={"additional_kwargs": message.additional_kwargs | {_FEEDBACK: True}})


def is_question(message: BaseMessage) -> bool:
    """Return whether a message is the user's own."""
    return isinstance(message, HumanMessage) and not message.additional_kwargs.get(_FEEDBACK)
