"""A question's search: its start, its budgets and its end."""

from __future__ import annotations

from typing import Any, TypeAlias, cast

from langchain_core.messages import AIMessage, AnyMessage, RemoveMessage
from langgraph.graph.message import add_messages

from arag.graph.citations import find_shown_chunks, parse_citations
from arag.graph.messages import (
    count_context_tokens,
    drop_old_results,
    find_question,
    find_tool_messages,
    mend_conversation,
)
from arag.graph.prompts import EMPTY_REPLY
from arag.graph.settings import Resources
from arag.graph.state import State, StopReason, union
from arag.models.messages import feedback
from arag.models.usage import model_call, total
from arag.retrieval.index import Index
from arag.retrieval.tools import find_read_chunks

_MIN_REMAINING_STEPS = 3  # of the recursion limit: the current step, the next node, and a forced answer

Update: TypeAlias = dict[str, Any]


def begin_question(index: Index, state: State) -> Update:
    """Return the values that a new question resets, or nothing if the question is not new.

    The chunks read earlier in the conversation are kept; a caller may pass a conversation without its state.

    Raises:
        InputError: There is no question.
    """
    question = state["messages"][find_question(state["messages"])]
    question_id = question.id or question.text
    if state.get("question_id") == question_id and not state.get("stop_reason"):
        return {}
    return {
        "question_id": question_id,
        "steps": 0,
        "invalid_replies": 0,
        "trace": [],
        "model_calls": [],
        "read_chunks": union(state.get("read_chunks"), find_read_chunks(state["messages"], index)),
        "seen_chunks": union(state.get("seen_chunks"), find_shown_chunks(state["messages"], index)),
        "answer": "",
        "citations": [],
        "stop_reason": None,
    }


def select_messages(state: State, room: int) -> list[AnyMessage]:
    """Return the conversation for the search's next prompt.

    An empty reply is left out, because some providers refuse a conversation that contains one. The feedback about it
    is only in this prompt, so that nobody mistakes it for a message from the user.

    Args:
        state: The state; its counts belong to the question.
        room: Tokens that the conversation may have.
    """
    messages = mend_conversation(state["messages"])
    if any(call["empty"] for call in state["model_calls"][-1:]):
        messages.append(feedback(EMPTY_REPLY))
    return drop_old_results(messages, room)


def find_spent_budget(resources: Resources, state: State) -> StopReason | None:
    """Return the budget that a question's search has used up, if any."""
    if state["invalid_replies"] >= resources.settings.max_invalid_replies:
        return "invalid_replies"
    if state["steps"] >= resources.settings.max_steps:
        return "max_steps"
    if count_context_tokens(select_messages(state, resources.room)) > resources.room:
        return "token_budget"
    return None


def is_out_of_steps(state: State) -> bool:
    """Return whether the recursion limit, whoever set it, leaves room only for a forced answer."""
    return state["remaining_steps"] < _MIN_REMAINING_STEPS


def check_budgets(resources: Resources, state: State, update: Update) -> Update:
    """Add to a node's update which budgets it used up, for the route that follows the node."""
    messages = add_messages(cast("Any", state["messages"]), update["messages"])
    after = cast("State", {**state, **update, "messages": messages})
    return update | {"spent_budget": find_spent_budget(resources, after), "out_of_steps": is_out_of_steps(state)}


def count_call(state: State, reply: AIMessage, seconds: float, *, forced: bool = False) -> Update:
    """Return the records of the question's model calls, including this one."""
    calls = [*state["model_calls"], model_call(reply, seconds, step=state["steps"] + 1, forced=forced)]
    return {"model_calls": calls, "usage": total(calls)}


def end_question(resources: Resources, state: State, reply: AIMessage, reason: StopReason) -> Update:
    """Return the final values of a question: the answer, and its citations checked against what was shown."""
    index, messages = resources.index, state["messages"]
    answer = reply.text.strip()
    seen = union(state.get("seen_chunks"), find_shown_chunks(messages, index))
    read = find_read_chunks(messages, index)
    removed = find_tool_messages(messages) if resources.settings.output == "answer" else []
    return {
        "messages": [*(RemoveMessage(cast("str", message.id)) for message in removed), reply],
        "answer": answer,
        "citations": parse_citations(answer, index, union(seen, state.get("read_chunks")), read),
        "stop_reason": reason,
    }
