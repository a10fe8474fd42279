"""What of a conversation a model is sent, and the budgets after which it must answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.messages.utils import trim_messages

from arag.graph.asking import name_spent_doubt
from arag.graph.context import Resources
from arag.graph.costs import would_exceed
from arag.graph.repeats import find_repetition
from arag.graph.state import (
    SplitConversation,
    StopReason,
    as_sent,
    count_context_tokens,
    kind_of_reply,
    split_turn,
)
from arag.models.usage import ModelCall
from arag.retrieval.tools.base import RetrievalTool


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
    *,
    steps: int,
    calls: Sequence[ModelCall],
    room: int,
) -> StopReason | None:
    """Return the budget that a run has used up, if any.

    Args:
        resources: The run's settings and tools.
        replies: The model's replies in this run.
        sent: The conversation that the model would be sent next.
        steps: Model calls of this run.
        calls: The records of all model calls that the run has cost.
        room: Tokens that the conversation may have.

    Raises:
        InputError: There is a `max_cost`, and the cost is unknown.
    """
    if replies and kind_of_reply(replies[-1]) == "empty":
        return "empty_reply"
    searches = {name for name, tool in resources.tools.tools_by_name.items() if isinstance(tool, RetrievalTool)}
    stuck = name_spent_doubt(replies) or find_repetition(replies, sent, searches)
    if stuck is not None:
        return stuck
    if steps >= resources.settings.max_steps:
        return "max_steps"
    max_cost = resources.settings.max_cost
    last_calls = 1 if resources.structurer is None else 2
    if max_cost is not None and would_exceed(max_cost, calls, last_calls):
        return "max_cost"
    if count_context_tokens(sent) > room:
        return "token_budget"
    return None
