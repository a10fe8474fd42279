"""Agents that ask subagents with ARAGMiddleware: as tools, in a deep agent, below a supervisor, in a swarm.

The last ones need packages that only `make test-servers` installs.
"""

from __future__ import annotations

import asyncio

import pytest
from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from arag import ARAGMiddleware, SourcesMiddleware, create_arag_agent, make_agent_tool
from arag.graph.sources import ARAGState
from scripted import ANSWER, ScriptedModel, asked, call, calls, in_thread

STORMS = AIMessage("Storms broke the bridges [annals:0].")
BOTH = AIMessage("Boso [teutberga:0], and storms [annals:0].")


def scripts():
    """Return the models of two subagents."""
    people = ScriptedModel(
        call("chunk_read", "p1", chunk_ids=["teutberga:0"]), call("chunk_read", "p2", chunk_ids=["lothair:0"]), ANSWER
    )
    return people, ScriptedModel(call("chunk_read", "s1", chunk_ids=["annals:0"]), STORMS)


def cited(state):
    return [(citation["chunk_id"], citation["seen"]) for citation in state["citations"]]


def check_records(state, model_calls):
    """Check that what both subagents did is recorded once."""
    searches = [record["chunk_ids"] for record in state["trace"] if record["tool"] == "chunk_read"]
    assert sorted(searches) == [["annals:0"], ["lothair:0"], ["teutberga:0"]]
    assert len(state["model_calls"]) == model_calls
    assert sorted(state["seen_chunks"]) == ["annals:0", "lothair:0", "teutberga:0"]


@pytest.mark.parametrize("found", [None, ["a book"], [{"chunk_id": "a book"}]])
def test_citations_of_somebody_elses_tool_are_left_alone(found):
    @tool(response_format="content_and_artifact")
    def library(title: str) -> tuple[str, dict]:
        """Find a book."""
        return title, {"citations": found}

    model = ScriptedModel(call("library", title="Annals"), AIMessage("A book."))
    agent = create_agent(model, [library], middleware=[SourcesMiddleware()])
    assert agent.invoke(asked())["citations"] == []


def run(agent, asynchronous):
    return asyncio.run(agent.ainvoke(asked())) if asynchronous else agent.invoke(asked())


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_subagents_that_are_tools(small_index, asynchronous):
    people, storms = scripts()
    subagents = {
        "people": create_agent(people, middleware=[ARAGMiddleware(small_index, tools="paper")]),
        "storms": create_agent(storms, middleware=[ARAGMiddleware(small_index, tools="paper")]),
    }
    kept = ("answer", "citations", "trace", "model_calls", "seen_chunks", "read_chunks")

    @tool
    def ask(whom: str, question: str, runtime: ToolRuntime) -> Command:
        """Ask a specialist."""
        state = subagents[whom].invoke(asked(question))
        result = ToolMessage(state["answer"], tool_call_id=runtime.tool_call_id)
        return Command(update={"messages": [result]} | {key: state[key] for key in kept})

    both = calls(
        ("ask", {"whom": "people", "question": "Who?"}), ("ask", {"whom": "storms", "question": "What?"}), ids="ab"
    )
    for middleware in (SourcesMiddleware(), ARAGMiddleware(small_index)):
        people.calls.clear()
        storms.calls.clear()
        agent = create_agent(ScriptedModel(both, BOTH), [ask], middleware=[middleware])
        state = run(agent, asynchronous)
        own = isinstance(middleware, ARAGMiddleware)
        check_records(state, 5 + 2 * own)
        assert set(cited(state)) == {("teutberga:0", True), ("annals:0", True)}
        if own:
            assert state["answer"] == BOTH.text
            assert [len(citation["spans"]) for citation in state["citations"]] == [1, 1]


def test_citations_of_an_agent_that_is_a_tool(small_index):
    for middleware in (SourcesMiddleware(), ARAGMiddleware(small_index, tools="paper")):
        people, storms = scripts()
        library = create_agent(storms, middleware=[ARAGMiddleware(small_index, tools="paper")])
        ask = make_agent_tool(create_arag_agent(people, small_index, tools="paper"), name="ask_people")
        tools = [ask, make_agent_tool(library, name="ask_storms")]
        both = calls(("ask_people", {"question": "Who?"}), ("ask_storms", {"question": "What?"}), ids="ab")
        state = create_agent(ScriptedModel(both, BOTH), tools, middleware=[middleware]).invoke(asked())
        assert sorted(cited(state)) == [("annals:0", True), ("teutberga:0", True)]
        assert [len(citation["spans"]) for citation in state["citations"]] == [1, 1]


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_a_deep_agent_with_two_subagents_that_cite(small_index, asynchronous):
    deepagents = pytest.importorskip("deepagents")
    people, storms = scripts()
    subagents = []
    for name, model in (("people", people), ("storms", storms)):
        subagents.append(
            {
                "name": name,
                "description": f"Knows {name}.",
                "system_prompt": f"You know {name}.",
                "model": model,
                "middleware": [ARAGMiddleware(small_index, tools="paper")],
            }
        )
    tasks = [("task", {"description": "Who?", "subagent_type": name}) for name in ("people", "storms")]
    for middleware in (SourcesMiddleware(), ARAGMiddleware(small_index)):
        people.calls.clear()
        storms.calls.clear()
        model = ScriptedModel(calls(*tasks, ids="ab"), BOTH)
        state = run(deepagents.create_deep_agent(model, middleware=[middleware], subagents=subagents), asynchronous)
        own = isinstance(middleware, ARAGMiddleware)
        check_records(state, 5 + 2 * own)
        assert set(cited(state)) == {("teutberga:0", True), ("annals:0", True)}
        assert "You know people." in people.calls[0].messages[0].text
        assert "Answer questions from a corpus" in people.calls[0].messages[0].text
        if own:
            assert state["answer"] == BOTH.text


def test_a_text_that_a_deep_agent_moves_to_a_file_is_shown_again(small_index):
    deepagents = pytest.importorskip("deepagents")
    from deepagents.backends import StateBackend
    from deepagents.middleware.filesystem import FilesystemMiddleware

    reads = [call("chunk_read", f"r{number}", chunk_ids=["annals:0"]) for number in range(2)]
    files = FilesystemMiddleware(backend=StateBackend(), tool_token_limit_before_evict=200)
    agent = deepagents.create_deep_agent(
        ScriptedModel(*reads, STORMS), middleware=[files, ARAGMiddleware(small_index, tools="paper")]
    )
    state = agent.invoke(asked())
    moved = [message.text for message in state["messages"] if isinstance(message, ToolMessage)]
    assert len(moved) == 2
    assert all("Shown in full above" not in text and "large_tool_results" in text for text in moved)
    assert cited(state) == [("annals:0", True)]


@pytest.mark.filterwarnings("ignore:create_react_agent")  # which that package uses
def test_subagents_below_a_supervisor(small_index):
    supervisor = pytest.importorskip("langgraph_supervisor")
    people, storms = scripts()
    agents = []
    for name, model in (("people", people), ("storms", storms)):
        agents.append(create_agent(model, middleware=[ARAGMiddleware(small_index, tools="paper")], name=name))
    boss = ScriptedModel(call("transfer_to_people", "t1"), call("transfer_to_storms", "t2"), BOTH)
    state = supervisor.create_supervisor(agents, model=boss, state_schema=ARAGState).compile().invoke(asked())
    check_records(state, 5)
    assert cited(state) == [("annals:0", True), ("teutberga:0", True)]


def test_agents_in_a_swarm(small_index):
    swarm = pytest.importorskip("langgraph_swarm")
    from langgraph_swarm.swarm import SwarmState

    class State(SwarmState, ARAGState):
        pass

    people = ScriptedModel(call("chunk_read", "p1", chunk_ids=["teutberga:0"]), call("transfer_to_storms", "h1"))
    storms = ScriptedModel(call("chunk_read", "s1", chunk_ids=["annals:0"]), BOTH)
    agents = []
    for name, other, model in (("people", "storms", people), ("storms", "people", storms)):
        middleware = [ARAGMiddleware(small_index, tools="paper")]
        handoff = swarm.create_handoff_tool(agent_name=other)
        agents.append(create_agent(model, [handoff], middleware=middleware, name=name))
    team = swarm.create_swarm(agents, default_active_agent="people", state_schema=State)
    state = team.compile(checkpointer=InMemorySaver()).invoke(asked(), in_thread())
    assert state["answer"] == BOTH.text
    assert cited(state) == [("teutberga:0", True), ("annals:0", True)]
