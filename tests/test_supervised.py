"""The agent below a supervisor: as a tool, and as a node that returns messages only."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command
from pydantic import BaseModel

from arag import ARAGMiddleware
from arag.errors import InputError
from arag.graph.agent_tool import make_agent_tool
from arag.graph.context import Context
from arag.graph.graph import create_arag_agent
from arag.retrieval.scope import Scope
from scripted import ANSWER, QUESTION, ScriptedModel, asked, call, in_thread, results

READ = call("chunk_read", chunk_ids=["teutberga:0", "boso:0"])
ASK = call("ask_documents", question=QUESTION)


class Team(BaseModel):
    """The context of somebody's own supervisor."""

    scope: Any = None


def make_tool(index, *script, **options):
    options.setdefault("tools", "paper")
    return make_agent_tool(create_arag_agent(ScriptedModel(*script), index, **options))


@pytest.mark.parametrize("is_async", [False, True])
def test_an_agent_is_a_tool_that_returns_the_answer_and_its_citations(small_index, is_async):
    boss = ScriptedModel(ASK, AIMessage("It was Boso."))
    supervisor = create_agent(boss, [make_tool(small_index, READ, ANSWER)])
    state = asyncio.run(supervisor.ainvoke(asked())) if is_async else supervisor.invoke(asked())
    [result] = results(state)
    assert result.text == ANSWER.text
    assert [citation["chunk_id"] for citation in result.artifact["citations"]] == ["teutberga:0"]
    assert (result.artifact["stop_reason"], result.artifact["usage"]["model_calls"]) == ("answered", 2)
    assert len(boss.calls[1].messages) == 3  # the search stays below


@pytest.mark.parametrize(
    ("own", "of_the_run", "expected"),
    [
        (None, None, ["teutberga:0", "boso:0"]),
        (Scope(documents=["boso"]), None, ["boso:0"]),
        (None, Scope(documents=["teutberga"]), ["teutberga:0"]),
        (Scope(documents=["boso"]), Scope(documents=["teutberga"]), []),
    ],
)
def test_the_agents_scope_and_that_of_the_supervisors_run_both_limit_it(small_index, own, of_the_run, expected):
    reads = []
    model = ScriptedModel(READ, lambda messages: reads.append(messages[-1]) or ANSWER)
    options = {} if own is None else {"scope": own}
    tool = make_agent_tool(create_arag_agent(model, small_index, tools="paper", **options))
    supervisor = create_agent(ScriptedModel(ASK, AIMessage("So.")), [tool], context_schema=Team)
    supervisor.invoke(asked(), context=Team(scope=of_the_run))
    [read] = reads
    assert (read.artifact or {}).get("chunk_ids", []) == expected


def test_another_agent_of_ours_may_cite_what_the_tool_has_seen(small_index):
    tool = make_tool(small_index, READ, ANSWER)
    answer = AIMessage("Boso [teutberga:0], a count [boso:0].")
    agent = create_arag_agent(ScriptedModel(ASK, answer), small_index, tools=["paper", tool])
    state = agent.invoke(asked())
    assert [(citation["chunk_id"], citation["seen"]) for citation in state["citations"]] == [
        ("teutberga:0", True),
        ("boso:0", False),
    ]


class Counting(MessagesState):
    """A parent with a key that the agent has, too."""

    usage: Annotated[list[str], lambda left, right: [*left, *right]]


def test_as_a_node_it_returns_messages_only_if_asked_to(small_index):
    agent = create_arag_agent(
        ScriptedModel(READ, ANSWER), small_index, tools="paper", name="research", output_schema=MessagesState
    )
    assert agent.invoke(asked(), context=Context(model="extractive")).keys() == {"messages"}
    parent = StateGraph(Counting).add_node("research", agent).add_edge(START, "research").compile()
    state = parent.invoke({**asked(), "usage": ["mine"]})
    assert state["usage"] == ["mine"]
    last = state["messages"][-1]
    assert (last.name, last.content_blocks[0]["annotations"][0]["title"]) == ("research", "Teutberga")


def test_a_person_approves_a_call_of_the_agent_in_the_supervisors_thread(small_index):
    agent = create_arag_agent(
        ScriptedModel(READ, ANSWER), small_index, tools="paper", interrupt_on={"chunk_read": True}
    )
    supervisor = create_agent(
        ScriptedModel(ASK, AIMessage("It was Boso.")), [make_agent_tool(agent)], checkpointer=InMemorySaver()
    )
    waiting = supervisor.invoke(asked(), in_thread())
    [paused] = waiting["__interrupt__"]
    assert paused.value["action_requests"][0]["name"] == "chunk_read"
    state = supervisor.invoke(Command(resume={"decisions": [{"type": "approve"}]}), in_thread())
    assert (results(state)[0].text, state["messages"][-1].text) == (ANSWER.text, "It was Boso.")


class Ours(Context):
    """A context of a graph around the agent."""

    documents: tuple[str, ...] | None = None


class Login(BaseModel):
    """The context of a parent in which `scope` is something else."""

    scope: str = "read:all"
    documents: tuple[str, ...] | None = None


def find_scope(context):
    return context.documents and Scope(documents=context.documents)


@pytest.mark.parametrize(("documents", "expected"), [(("boso",), ["boso:0"]), (("*",), ["teutberga:0", "boso:0"])])
def test_a_parent_whose_scope_means_something_else_says_where_ours_is(small_index, documents, expected):

    def make_parent(**options):
        agent = create_arag_agent(ScriptedModel(READ, ANSWER), small_index, tools="paper", **options)
        parent = StateGraph(MessagesState, context_schema=Login)
        return parent.add_node("research", agent).add_edge(START, "research").compile()

    state = make_parent(scope_from=find_scope).invoke(asked(), context=Login(documents=documents))
    assert results(state)[0].artifact["chunk_ids"] == expected
    with pytest.raises(InputError, match="'read:all' is not a scope"):
        make_parent().invoke(asked(), context=Login(documents=documents))


@pytest.mark.parametrize("context", [None, Login(), Ours()], ids=["none", "without documents", "ours without a scope"])
@pytest.mark.parametrize("make", ["graph", "middleware"])
def test_a_run_for_which_no_scope_is_found_sees_nothing(small_index, make, context):
    model = ScriptedModel(*[READ, ANSWER] * 2)
    if make == "graph":
        agent = create_arag_agent(model, small_index, tools="paper", scope_from=find_scope)
    else:
        middleware = ARAGMiddleware(small_index, tools="paper", scope_from=find_scope)
        agent = create_agent(model, middleware=[middleware])
    with pytest.raises(InputError, match="scope_from finds no scope for this run"):
        agent.invoke(asked(), context=context)
    state = agent.invoke(asked(), context=Login(documents=("boso",)))
    assert results(state)[0].artifact["chunk_ids"] == ["boso:0"]
    assert len(results(agent.invoke(asked(), context=Context(scope=Scope())))) == 1
