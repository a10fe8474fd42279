"""The graph in larger workflows, the tools in others' agents, and others' tools in the graph."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

from arag import trace_page
from arag.graph.graph import create_arag_agent
from arag.retrieval.tools.sets import PAPER
from scripted import ANSWER, EndlessModel, ScriptedModel, asked, assert_paired, call, calls, results

# --- the graph inside another ---


def test_agents_share_a_parents_messages_and_each_has_its_own_budget(small_index):
    models = [EndlessModel(mode="one_call"), EndlessModel(mode="several_calls")]
    parent = StateGraph(MessagesState)
    for name, model, steps in zip("ab", models, [2, 5], strict=True):
        parent.add_node(name, create_arag_agent(model, small_index, tools="paper", max_steps=steps))
    parent.add_edge(START, "a").add_edge("a", "b")
    graph = parent.compile()
    state = graph.invoke(asked())
    # The second finds the question answered by the first, and searches on for it all the same.
    assert [len(model.calls) for model in models] == [3, 6]
    assert models[1].calls[0].messages[-1].text == "That is all [lothair:0]."
    assert_paired(state["messages"])
    runs = [update["b"] for _, update in graph.stream(asked(), subgraphs=True) if "b" in update]
    assert runs[-1]["messages"][-1].text == "That is all [lothair:0]."


def test_what_other_agents_did_in_a_parent_is_no_part_of_the_run(small_index):
    search = call("keyword_search", keywords=["Boso"])
    agent = create_arag_agent(ScriptedModel(search, ANSWER), small_index, tools="paper", max_steps=2)
    handoff = [call("transfer_to_research", "t"), ToolMessage("Transferred.", tool_call_id="t")]
    state = agent.invoke({"messages": [*asked()["messages"], *handoff]})
    assert (state["stop_reason"], state["steps"]) == ("answered", 2)
    assert [record["tool"] for record in state["trace"]] == ["keyword_search"]
    assert "transfer_to_research" not in trace_page(state)
    # Another agent has answered the same question before.
    agent = create_arag_agent(ScriptedModel(search, AIMessage("So it is.")), small_index, tools="paper")
    assert agent.invoke({"messages": state["messages"]})["steps"] == 2


def test_a_call_that_a_parent_leaves_without_a_result_gets_one(small_index):
    model = ScriptedModel(ANSWER)
    handoff = calls(("transfer", {}), ("other", {}), ids=["t", "o"]), ToolMessage("Transferred.", tool_call_id="t")
    create_arag_agent(model, small_index, tools="paper").invoke({"messages": [*asked()["messages"], *handoff]})
    assert_paired(model.calls[0].messages)


def test_a_result_without_its_call_and_half_a_character_are_not_sent(small_index):
    model = ScriptedModel(ANSWER)
    question = [("user", "Who? \ud83d"), ToolMessage("Transferred.", tool_call_id="t")]
    create_arag_agent(model, small_index, tools="paper").invoke({"messages": question})
    assert [message.text for message in model.calls[0].messages[1:]] == ["Who? \ufffd"]


def test_what_another_index_has_under_an_id_is_not_seen(small_index, make_index):
    other = create_arag_agent(
        ScriptedModel(call("keyword_search", keywords=["gale"]), ANSWER), make_index({"boso": "A gale."}), tools="paper"
    )
    agent = create_arag_agent(ScriptedModel(AIMessage("Boso was a count [boso:0].")), small_index, tools="paper")
    state = agent.invoke({"messages": [*other.invoke(asked())["messages"], ("user", "Who was it?")]})
    assert [citation["seen"] for citation in state["citations"]] == [False]


# --- budgets inside a parent ---


@pytest.mark.parametrize("is_node", [True, False], ids=["as a node", "called in a node"])
def test_a_parents_recursion_limit_forces_the_answer(small_index, is_node):
    agent = create_arag_agent(EndlessModel(mode="one_call"), small_index, tools="paper", max_steps=4)
    node = agent if is_node else lambda state: {"messages": agent.invoke(state)["messages"][-1:]}
    parent = StateGraph(MessagesState).add_node("research", node).add_edge(START, "research").compile()
    for limit in range(3, 14):
        state = parent.invoke(asked(), config={"recursion_limit": limit})
        assert state["messages"][-1].text == "That is all [lothair:0].", limit


# --- others' tools in the graph ---


def test_another_tool_beside_ours_and_what_its_artifact_says_was_shown(small_index):
    @tool(response_format="content_and_artifact")
    def family(name: str) -> tuple[str, Any]:
        """Look a family up."""
        return "A count.", {"chunk_ids": ["boso:0"]}

    both = calls(("keyword_search", {"keywords": ["Lothair"]}), ("family", {"name": "Boso"}))
    model = ScriptedModel(
        both, call("family"), AIMessage("A count [boso:0], whose daughter was a queen [teutberga:0].")
    )
    state = asyncio.run(create_arag_agent(model, small_index, tools=[*PAPER, family]).ainvoke(asked()))
    assert [(m.name, m.status) for m in results(state)] == [
        ("keyword_search", "success"),
        ("family", "success"),
        ("family", "error"),
    ]
    assert [(r["step"], r["retrieved_tokens"] > 0) for r in state["trace"]] == [(1, True), (1, True), (2, False)]
    assert model.calls[0].tool_names == [*PAPER, "family"]
    assert (state["trace"][1]["chunk_ids"], state["trace"][1]["new_chunks"]) == (["boso:0"], [])
    assert [(c["seen"], c["read"]) for c in state["citations"]] == [(True, False), (False, False)]


def test_another_tools_command_changes_the_state_and_its_result_stays_paired(small_index):
    kinds: list[list[str]] = []

    @tool
    def note(text: str, runtime: ToolRuntime) -> Command:
        """Note something."""
        kinds.append([message.type for message in runtime.state["messages"]])
        return Command(update={"messages": [ToolMessage(f"Noted: {text}", tool_call_id=runtime.tool_call_id)]})

    wanted = calls(("note", {"text": "a"}), ("keyword_search", {"keywords": ["Boso"]}), ("note", {"text": "b"}))
    agent = create_arag_agent(ScriptedModel(wanted, ANSWER), small_index, tools=["keyword_search", note])
    state = agent.invoke(asked())
    assert {m.text.partition("\n")[0] for m in results(state)} == {"Noted: a", "Boso: 2 chunks. All:", "Noted: b"}
    assert len(state["trace"]) == 3
    assert kinds == [["human", "ai"], ["human", "tool", "ai"]]  # the message with the call is the last one
    assert_paired(state["messages"])
