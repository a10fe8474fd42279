"""A model that plays several roles, for methods whose calls are made side by side, and what every method must do."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import PrivateAttr

from arag.evaluation.methods import Options, method
from arag.evaluation.methods.baselines.outcome import MethodOutput
from arag.graph.state import OutputState
from arag.testing import ScriptedModel
from scripted_model import QUESTION, asked, in_thread


class RateLimitError(Exception):
    """A provider's error at a rate limit."""

    status_code = 429


class RoleModel(ScriptedModel):
    """Replies by role: the form that it is asked for, or words of the system message.

    Args:
        roles: The reply of each role: a text, an object that is sent as JSON, a message, or a function from the
            messages to one of these; a list has one for each call, in order.
        fail_at: The number of a call, from 1, that meets a rate limit.
    """

    roles: dict[str, Any]
    fail_at: int = 0
    _lock: Any = PrivateAttr(default_factory=threading.Lock)
    _made: list[str] = PrivateAttr(default_factory=list)
    _left: dict[str, Any] = PrivateAttr(default_factory=dict)

    def __init__(self, roles: dict[str, Any], **fields: Any) -> None:
        super().__init__(roles=roles, **fields)
        self.begin()

    def begin(self, fail_at: int = 0) -> None:
        """Begin again: no call has been made, and all lists are full."""
        self.fail_at = fail_at
        self.calls.clear()
        self._made.clear()
        self._left = {role: [*each] if isinstance(each, list) else each for role, each in self.roles.items()}

    @property
    def made(self) -> list[str]:
        """The roles of the calls, in order."""
        return self._made

    def of(self, role: str) -> list[str]:
        """Return what a role was shown in each of its calls."""
        return [call.messages[-1].text for call, made in zip(self.calls, self._made, strict=True) if made == role]

    def assert_used_up(self) -> None:
        assert not {role: each for role, each in self._left.items() if isinstance(each, list) and each}

    def _reply(self, messages: list[BaseMessage], options: dict[str, Any]) -> AIMessage:
        with self._lock:
            form = options["tools"][0]["function"]["name"] if options.get("tools") else ""
            role = form or next(role for role in self.roles if role in messages[0].text)
            self._made.append(role)
            if len(self._made) == self.fail_at:
                raise RateLimitError("slow down")
            reply = self._left[role]
            if isinstance(reply, list):
                reply = reply.pop(0)
        return as_reply(reply(messages) if callable(reply) else reply)


def as_reply(reply: Any) -> AIMessage:
    if isinstance(reply, AIMessage):
        return reply.model_copy(deep=True)
    return AIMessage(reply if isinstance(reply, str) else json.dumps(reply))


def answer_with(name, index, roles, *, kind=RoleModel, options=None, question=QUESTION):
    """Run a method; return the final state and the model."""
    model = kind(roles)
    state = method(name).make(index, model, options or Options()).invoke(asked(question))
    model.assert_used_up()
    return state, model


def without_times(state):
    return {
        **state,
        "messages": [(message.type, message.text) for message in state["messages"]],
        "trace": [{**entry, "seconds": 0} for entry in state["trace"]],
        "model_calls": [{**made, "seconds": 0} for made in state["model_calls"]],
    }


def check_method(name, index, roles, *, kind=RoleModel, options=None):
    """Check what holds for every method: keys, both kinds of runs, several questions, plain state, rate limits."""
    model = kind(roles)
    graph = method(name).make(index, model, options or Options())
    state = graph.invoke(asked())
    expected, calls = without_times(state), len(model.calls)

    assert set(state) == set(MethodOutput.__annotations__) | set(OutputState.__annotations__)
    assert [made["step"] for made in state["model_calls"]] == list(range(1, calls + 1))
    assert (state["steps"], state["usage"]["model_calls"]) == (calls, calls)
    assert state["trace"][0]["tool"] == "retrieve"
    shown = [chunk_id for record in state["trace"] for chunk_id in record["chunk_ids"]]
    assert state["read_chunks"] == list(dict.fromkeys(shown))
    assert all(stage["title"] and all(isinstance(line, str) for line in stage["lines"]) for stage in state["stages"])

    model.begin()
    for values in graph.stream(asked(), stream_mode="values"):
        plain = {key: value for key, value in values.items() if key != "messages"}
        assert json.loads(json.dumps(plain)) == plain

    model.begin()
    assert without_times(asyncio.run(graph.ainvoke(asked()))) == expected
    assert len(model.calls) == calls

    graph.checkpointer = InMemorySaver()
    for number in range(1, calls + 1):
        model.begin(fail_at=number)
        assert without_times(_go_on(graph, in_thread(str(number)))) == expected
        assert len(model.calls) == calls + 1  # only the call that failed was made again

    model.begin()  # another question in the last thread
    again = graph.invoke(asked(), in_thread(str(calls)))
    assert without_times({**again, "messages": again["messages"][2:]}) == expected
    model.assert_used_up()


def _go_on(graph, config):
    try:
        return graph.invoke(asked(), config, durability="exit")  # as runs do
    except RateLimitError:
        return graph.invoke(None, config, durability="exit")


UNUSABLE = pytest.mark.parametrize(
    "unusable",
    [
        pytest.param(" ", id="empty"),
        pytest.param(AIMessage("", additional_kwargs={"refusal": "I cannot help with that."}), id="refusal"),
    ],
)
