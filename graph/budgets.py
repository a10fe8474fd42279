"""What of a conversation a model is sent, and the budgets after which it must answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.messages.utils import trim_messages

from arag.graph.context import Resources
from arag.graph.state import (
    SplitConversation,
    StopReason,
    as_sent,
    count_context_tokens,
    kind_of_reply,
    split_turn,
)


def fit(messages: Sequence[AnyMessage], room: int) -> SplitConversation:
    """Return the turn, behind the latest earlier questions and answers in at most half of the room."""
    earlier, turn = split_turn(messages)
    fitting = trim_messages(
        earlier,
        max_tokens=room // 2,
        token_counter=count_context_tokens,
        start_on="human",
        include_system=True,
    )
    return SplitConversation(as_sent(cast("list[AnyMessage]", fitting)), as_sent(turn))


def find_spent_budget(
    resources: Resources,
    replies: Sequence[AIMessage],
    sent: Sequence[AnyMessage],
) -> StopReason | None:
    """Return the budget that a run has used up, if any.

    Args:
        resources: The run's settings, and the room for the conversation.
        replies: The model's replies in this run.
        sent: The conversation that the model would be sent next.
    """
    if replies and kind_of_reply(replies[-1]) == "empty":
        return "empty_reply"
    if len(replies) >= resources.settings.max_steps:
        return "max_steps"
    if count_context_tokens(sent) > resources.room:
        return "token_budget"
    return None
