"""The budgets of a question's search: steps, tokens, invalid replies, and LangGraph's recursion limit."""

from __future__ import annotations

from typing import Any, cast

from langchain_core.messages import AnyMessage

from arag.graph.messages import acceptable, context_tokens, question_at, without_old_results
from arag.graph.prompts import EMPTY_REPLY
from arag.graph.settings import Settings
from arag.graph.state import State, StopReason
from arag.models.messages import feedback

_FEWEST_STEPS = 3  # left, the present one counted, that a node needs: another may follow, and a forced answer


def budgets(settings: Settings, state: State, update: dict[str, Any]) -> dict[str, Any]:
    """Return what a node's update leaves of the budgets, for the route behind it.

    It is kept in the state: where a person changes the state between two steps, the route is taken outside any run.
    """
    after = cast("State", {**state, **update, "messages": [*state["messages"], *update["messages"]]})
    return {"spent": spent(settings, after), "out_of_steps": out_of_steps(state)}


def spent(settings: Settings, state: State) -> StopReason | None:
    """Return the budget that is used up, if one is."""
    if not is_new_question(state):
        if invalid_replies(state) >= settings.max_invalid_replies:
            return "invalid_replies"
        if steps(state) >= settings.max_steps:
            return "max_steps"
    return "token_budget" if context_tokens(conversation(settings, state)) > settings.room else None


def conversation(settings: Settings, state: State) -> list[AnyMessage]:
    """Return the conversation as the search's next prompt has it.

    An empty reply is left out, as some providers refuse a conversation with one in it; the model is told of it here
    only, so that nobody takes that for a word of the user's.
    """
    messages = acceptable(state["messages"])
    if not is_new_question(state) and any(call["empty"] for call in state.get("model_calls", ())[-1:]):
        messages = [*messages, feedback(EMPTY_REPLY)]
    return without_old_results(messages, settings.room)


def question_id(state: State) -> str:
    """Return what tells the question from those before it."""
    message = state["messages"][question_at(state["messages"])]
    return message.id or message.text


def is_new_question(state: State) -> bool:
    """Tell whether the counts in the state belong to an earlier question, or to a run that has ended."""
    return bool(state.get("stop_reason")) or state.get("question_id") != question_id(state)


def out_of_steps(state: State) -> bool:
    """Tell whether the recursion limit leaves room for a forced answer only."""
    return state["remaining_steps"] < _FEWEST_STEPS


def steps(state: State) -> int:
    """Return the steps of this question's search so far."""
    return 0 if is_new_question(state) else state.get("steps", 0)


def invalid_replies(state: State) -> int:
    """Return the invalid replies in a row so far."""
    return 0 if is_new_question(state) else state.get("invalid_replies", 0)
