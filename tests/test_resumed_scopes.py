"""Runs that wait for a person, and go on in the scope with which they began."""

from __future__ import annotations

from functools import partial

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from arag import ARAGMiddleware, Context, Scope, create_arag_agent
from scripted import ANSWER, ScriptedModel, asked, call, in_thread, results


def pause_graph(model, index, **options):
    return create_arag_agent(model, index, tools="paper", checkpointer=InMemorySaver(), **options)


def pause_middleware(model, index, *, ours_first):
    ours, people = ARAGMiddleware(index, tools="paper"), HumanInTheLoopMiddleware(interrupt_on={"chunk_read": True})
    middleware = [ours, people] if ours_first else [people, ours]
    return create_agent(model, middleware=middleware, checkpointer=InMemorySaver())


PAUSES = {
    "a person approves": partial(pause_graph, interrupt_on={"chunk_read": True}),
    "a node is waited for": partial(pause_graph, interrupt_before=["tools"]),
    "middleware first": partial(pause_middleware, ours_first=True),
    "middleware last": partial(pause_middleware, ours_first=False),
}


@pytest.mark.parametrize("pause", PAUSES)
def test_a_run_that_is_resumed_without_its_context_keeps_its_scope(small_index, pause):
    first, second = (call("chunk_read", chunk_ids=["boso:0", "annals:0"]) for _ in range(2))
    model = ScriptedModel(first, second, ANSWER, call("chunk_read", chunk_ids=["lothair:0"]), ANSWER)
    agent = PAUSES[pause](model, small_index)
    go_on = Command(resume={"decisions": [{"type": "approve"}]}) if "node" not in pause else None
    boso, storms = (Context(scope=Scope(documents=[name])) for name in ("boso", "annals"))

    def shown(context):
        text = results(agent.invoke(go_on, in_thread(), context=context))[-1].text
        return [part in text for part in ("count of Arles", "broke the bridges", "He married")]

    agent.invoke(asked(), in_thread(), context=boso)
    assert shown(None) == [True, False, False]
    assert shown(storms) == [False, True, False]
    agent.invoke(asked("And without a scope?"), in_thread())
    assert shown(None) == [False, False, True]
