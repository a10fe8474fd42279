"""The tools in LangChain's own agents: what a run may see, and what the model still has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware
from langchain_core.messages import AIMessage, ToolMessage

from arag.errors import InputError
from arag.graph.context import Context
from arag.graph.graph import create_arag_agent
from arag.retrieval.scope import Scope
from arag.retrieval.tools.sets import make_tools
from scripted import ANSWER, NOTICE, ScriptedModel, asked, call, results

BOSO = "Boso the Elder was a count"
STORMS = "broke the bridges"
READ_TWO = call("chunk_read", chunk_ids=["boso:0", "annals:0"])


@dataclass
class Ours:
    """The context of somebody's own agent."""

    team: str = "ops"
    scope: Any = None
    notes: list[str] = field(default_factory=list)


def run(agent, context):
    state = agent.invoke(asked(), context=context)
    return "\n".join(message.text for message in results(state))


@pytest.mark.parametrize("context", [Ours(scope=Scope(documents=["boso"])), Context(scope={"documents": ["boso"]})])
def test_the_scope_of_a_run_limits_the_tools_of_another_agent(small_index, context):
    model = ScriptedModel(READ_TWO, ANSWER, call("shell", command="rg -c ."), ANSWER)
    tools = make_tools(small_index, names=["chunk_read", "shell"])
    agent = create_agent(model, tools, context_schema=type(context))
    shown = run(agent, context)
    assert BOSO in shown
    assert STORMS not in shown
    assert run(agent, context).splitlines() == ["boso:3"]


def test_runs_with_other_scopes_see_other_documents(small_index):
    model = ScriptedModel(*[READ_TWO, ANSWER] * 4)
    agent = create_agent(model, make_tools(small_index, names="paper"), context_schema=Ours)
    seen = []
    for scope in (Scope(documents=["boso"]), Scope(documents=["annals"]), None, Scope(documents=["boso"])):
        shown = run(agent, Ours(scope=scope))
        seen.append((BOSO in shown, STORMS in shown))
    assert seen == [(True, False), (False, True), (True, True), (True, False)]


def test_a_scope_narrows_an_index_that_is_limited_already(small_index):
    model = ScriptedModel(READ_TWO, ANSWER)
    tools = make_tools(small_index.limited_to(["annals", "teutberga"]), names="paper")
    shown = run(create_agent(model, tools, context_schema=Ours), Ours(scope=Scope(documents=["boso", "annals"])))
    assert (BOSO in shown, STORMS in shown) == (False, True)


@pytest.mark.parametrize("scope", ["", {}, "kitchen", {"where": {}}, ["boso"]], ids=repr)
def test_a_wrong_scope_ends_the_run_of_another_agent_and_shows_nothing(small_index, scope):
    agent = create_agent(ScriptedModel(READ_TWO), make_tools(small_index, names="paper"), context_schema=Ours)
    with pytest.raises(InputError, match=r"is not a (scope|condition)"):
        run(agent, Ours(scope=scope))


def test_a_tool_of_the_callers_own_index_follows_the_scope_in_our_agent_too(small_index):
    tools = make_tools(small_index.limited_to(["boso", "annals"]), names=["chunk_read"])
    agent = create_arag_agent(ScriptedModel(READ_TWO, ANSWER), small_index, tools=tools)
    shown = run(agent, Context(scope=Scope(documents=["boso"])))
    assert (BOSO in shown, STORMS in shown) == (True, False)


def read_lothair(number):
    return call("chunk_read", f"call-{number}", chunk_ids=["lothair:0"])


def test_a_text_that_middleware_has_cleared_can_be_read_again(small_index):
    editing = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=1, keep=0)], token_count_method="approximate")
    for remember, shown in ((False, [True, True]), (True, [True, False, True])):
        replies = [read_lothair(number) for number in range(len(shown))]
        model = ScriptedModel(*replies, AIMessage("A king."))
        tools = make_tools(small_index, names="paper", remember=remember)
        state = create_agent(model, tools, middleware=[editing]).invoke(asked())
        assert ["He married Teutberga" in result.text for result in results(state)] == shown
        for request in model.calls[1:]:  # what the model got
            cleared = [message.text for message in request.messages if isinstance(message, ToolMessage)]
            assert cleared[0] == "[cleared]"


def test_a_model_that_asks_again_after_the_notice_gets_the_text_again_and_must_answer(small_index):
    model = ScriptedModel(*map(read_lothair, range(3)), ANSWER)
    state = create_arag_agent(model, small_index, tools="paper").invoke(asked())
    assert [message.text == NOTICE for message in results(state)] == [False, True, False]
    assert state["stop_reason"] == "repeated_call"
    assert state["read_chunks"] == ["lothair:0"]
