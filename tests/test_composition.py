"""The graph in larger workflows, the tools in others' agents, and others' tools in the graph."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_core.tools.base import ArgsSchema
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, interrupt
from pydantic import Field

from arag.errors import IndexNotFoundError, InputError
from arag.graph.graph import create_arag_agent
from arag.retrieval.render import READ_BEFORE
from arag.retrieval.tools import TOOL_NAMES, Held, RetrievalArguments, RetrievalTool, Retrieved, make_tools
from scripted import ScriptedModel, assert_paired, call, calls
from scripted_model import ANSWER, NOTICE, EndlessModel, asked, in_thread, results

pytest_plugins = ["graph_fixtures"]


def both_ways(graph, given, **options) -> list[dict[str, Any]]:
    return [graph.invoke(given, **options), asyncio.run(graph.ainvoke(given, **options))]


# --- the graph inside another ---


def test_agents_share_a_parents_messages_and_each_has_its_own_budget(small_index):
    models = [EndlessModel(mode="one_call"), EndlessModel(mode="several_calls")]
    parent = StateGraph(MessagesState)
    for name, model, steps in zip("ab", models, [2, 5], strict=True):
        parent.add_node(name, create_arag_agent(model, small_index, max_steps=steps))
    parent.add_edge(START, "a").add_edge("a", "b")
    graph = parent.compile()
    state = graph.invoke(asked())
    # The second finds the question answered by the first, and searches on for it all the same.
    assert [len(model.calls) for model in models] == [3, 6]
    assert models[1].calls[0].messages[-1].text == "That is all [lothair:0]."
    assert_paired(state["messages"])
    runs = [update["b"] for _, update in graph.stream(asked(), subgraphs=True) if "b" in update]
    assert runs[-1]["messages"][-1].text == "That is all [lothair:0]."


class Shared(MessagesState):
    answer: str
    citations: list[Any]


def test_a_node_may_keep_the_answer_only(small_index):
    model = ScriptedModel(call("chunk_read", chunk_ids=["lothair:0"]), AIMessage("Teutberga [lothair:0]."), ANSWER)
    agent = create_arag_agent(model, small_index)

    def research(state: Shared) -> dict[str, Any]:
        result = agent.invoke({"messages": state["messages"]})
        return {"messages": result["messages"][-1:], "answer": result["answer"], "citations": result["citations"]}

    graph = StateGraph(Shared).add_node("research", research).add_edge(START, "research")
    compiled = graph.compile(checkpointer=InMemorySaver())
    compiled.invoke(asked("Who was his wife?"), in_thread())
    state = compiled.invoke(asked(), in_thread())
    assert [m.type for m in state["messages"]] == ["human", "ai", "human", "ai"]
    assert state["answer"] == ANSWER.text


@pytest.mark.parametrize("kind", [str, Path])
def test_an_index_by_its_folder(example_index, kind, tmp_path):
    agent = create_arag_agent("extractive", kind(example_index.path))
    assert "Mattick Grevane" in agent.invoke(asked("Who founded the Emberlane Glassworks?"))["answer"]
    with pytest.raises(IndexNotFoundError):
        create_arag_agent("extractive", kind(tmp_path))


# --- budgets inside a parent ---


@pytest.mark.parametrize("mode", ["one_call", "empty"])
@pytest.mark.parametrize("is_node", [True, False], ids=["as a node", "called in a node"])
def test_a_parents_recursion_limit_forces_the_answer(small_index, mode, is_node):
    for limit in range(3, 14):
        agent = create_arag_agent(EndlessModel(mode=mode), small_index, max_steps=4)
        node = agent if is_node else lambda state, agent=agent: {"messages": agent.invoke(state)["messages"][-1:]}
        parent = StateGraph(MessagesState).add_node("research", node).add_edge(START, "research").compile()
        states = both_ways(parent, asked(), config={"recursion_limit": limit})
        assert [state["messages"][-1].text for state in states] == ["That is all [lothair:0]."] * 2, limit


# --- the tools in others' agents ---


def test_the_tools_in_somebody_elses_agent_know_what_was_read(small_index):
    model = ScriptedModel(
        call("chunk_read", chunk_ids=["lothair:0", "boso:0"]),
        call("keyword_search", keywords=["Lothair"]),
        call("chunk_read", chunk_ids=["lothair:0"]),
        AIMessage("Done."),
    )
    state = create_agent(model, make_tools(small_index)).invoke(asked())
    model.assert_used_up()
    read, search, again = results(state)
    assert read.artifact["new_chunks"] == ["lothair:0", "boso:0"]
    assert "Shown above: [lothair:0]" in search.text
    assert again.text == NOTICE
    assert again.artifact["evidence_tokens"] == 0
    assert all("messages" not in str(request.options) for request in model.calls)


# --- others' tools in the graph ---


@tool
def add_years(year: int, years: int) -> int:
    """Add years to a year.

    A second paragraph.
    """
    return year + years


def test_another_tool_beside_ours(small_index):
    script = [
        calls(("keyword_search", {"keywords": ["Lothair"]}), ("add_years", {"year": 855, "years": 20})),
        call("add_years", year="many", years=1),
        call("web_search", query="Lothair"),
        AIMessage("In 875 [lothair:0]."),
    ]
    model = ScriptedModel(*script, *script)
    agent = create_arag_agent(model, small_index, tools=[*TOOL_NAMES, add_years])
    for state in both_ways(agent, asked()):
        found, added, invalid, unknown = results(state)
        assert (found.name, added.name, added.text) == ("keyword_search", "add_years", "875")
        assert "year" in invalid.text
        assert [m.status for m in (found, added, invalid, unknown)] == ["success", "success", "error", "error"]
        assert "try one of [keyword_search, semantic_search, chunk_read, add_years]" in unknown.text
        assert [(r["step"], r["tool"], r["retrieved_tokens"] > 0) for r in state["trace"]] == [
            (1, "keyword_search", True), (1, "add_years", False), (2, "add_years", False), (3, "web_search", False)
        ]  # fmt: skip
        assert state["citations"][0]["read"]
        assert_paired(state["messages"])
    model.assert_used_up()
    assert model.calls[0].tool_names == [*TOOL_NAMES, "add_years"]
    assert model.calls[0].options["tools"][-1]["function"]["description"].startswith("Add years to a year.")


def test_a_function_and_a_coroutine_are_tools_too(small_index):
    def century(year: int) -> str:
        """Say in which century a year is."""
        return f"century {year // 100 + 1}"

    @tool
    async def look_up(name: str) -> str:
        """Look somebody up elsewhere."""
        await asyncio.sleep(0)
        return f"{name} is unknown"

    model = ScriptedModel(call("century", year=855), call("look_up", name="Boso"), AIMessage("Done."))
    agent = create_arag_agent(model, small_index, tools=["chunk_read", century, look_up])
    state = asyncio.run(agent.ainvoke(asked()))
    assert [m.text for m in results(state)] == ["century 9", "Boso is unknown"]


def test_another_tool_sees_the_state_the_store_and_the_context(small_index):
    seen = {}

    @tool
    def remember(fact: str, runtime: ToolRuntime) -> str:
        """Remember a fact."""
        seen.update(messages=len(runtime.state["messages"]), read=runtime.state.get("read_chunks"))
        seen.update(steps=runtime.context.max_steps)
        runtime.store.put(("facts",), "1", {"fact": fact})
        return "Remembered."

    store = InMemoryStore()
    model = ScriptedModel(
        call("chunk_read", chunk_ids=["boso:0"]), call("remember", fact="Boso had children."), AIMessage("Yes.")
    )
    agent = create_arag_agent(model, small_index, tools=["chunk_read", remember], store=store)
    agent.invoke(asked(), context={"max_steps": 7})
    assert seen == {"messages": 4, "read": ["boso:0"], "steps": 7}
    assert store.get(("facts",), "1").value == {"fact": "Boso had children."}


def test_another_tools_command_changes_the_state_and_its_result_stays_paired(small_index):
    @tool
    def note(text: str, runtime: ToolRuntime) -> Command:
        """Note something."""
        return Command(update={"messages": [ToolMessage(f"Noted: {text}", tool_call_id=runtime.tool_call_id)]})

    wanted = calls(("note", {"text": "a"}), ("keyword_search", {"keywords": ["Boso"]}), ("note", {"text": "b"}))
    model = ScriptedModel(wanted, AIMessage("Done."), wanted, AIMessage("Done."))
    agent = create_arag_agent(model, small_index, tools=["keyword_search", note])
    for state in both_ways(agent, asked()):
        assert {m.text.partition("\n")[0] for m in results(state)} == {"Noted: a", "Boso: 2 chunks. All:", "Noted: b"}
        assert len(state["trace"]) == 3
        assert_paired(state["messages"])
    model.assert_used_up()


@pytest.mark.parametrize("artifact", [{"documents": ["d"]}, {"chunk_ids": ["boso:0"], "new_chunks": None}, "text"])
def test_tools_with_the_names_of_ours_may_have_artifacts_of_any_form(small_index, artifact):
    @tool(response_format="content_and_artifact")
    def chunk_read(chunk_ids: list[str]) -> tuple[str, Any]:
        """Read something of another kind."""
        return "other texts", artifact

    read = call("chunk_read", chunk_ids=["boso:0"])
    agent = create_arag_agent(ScriptedModel(read, ANSWER), small_index, tools=["keyword_search", chunk_read])
    state = agent.invoke(asked())
    assert (state["trace"][0]["new_chunks"], state["read_chunks"]) == ([], [])
    # The messages of another agent, whose tool has the same name.
    model = ScriptedModel(call("keyword_search", keywords=["Boso"]), ANSWER)
    again = {"messages": [*state["messages"], HumanMessage("And then?")]}
    assert create_arag_agent(model, small_index).invoke(again)["answer"] == ANSWER.text


def test_a_tool_that_would_end_the_run_is_refused(small_index):
    @tool(return_direct=True)
    def finish(text: str) -> str:
        """Finish."""
        return text

    with pytest.raises(InputError, match="finish has return_direct"):
        create_arag_agent(ScriptedModel(), small_index, tools=["chunk_read", finish])


def test_another_tool_may_ask_a_person(small_index):
    @tool
    def ask_person(question: str) -> str:
        """Ask a person."""
        return interrupt(question)

    model = ScriptedModel(call("ask_person", question="Which Boso?"), AIMessage("The Elder."))
    agent = create_arag_agent(model, small_index, tools=["chunk_read", ask_person], checkpointer=InMemorySaver())
    waiting = agent.invoke(asked(), in_thread())
    assert waiting["__interrupt__"][0].value == "Which Boso?"
    state = agent.invoke(Command(resume="the Elder"), in_thread())
    model.assert_used_up()
    assert results(state)[0].text == "the Elder"
    assert state["answer"] == "The Elder."


def test_another_tools_bug_is_not_hidden(small_index):
    @tool
    def broken() -> str:
        """Fail."""
        raise ZeroDivisionError

    agent = create_arag_agent(ScriptedModel(call("broken")), small_index, tools=["chunk_read", broken])
    with pytest.raises(ZeroDivisionError):
        agent.invoke(asked())


@pytest.mark.parametrize("name", ["keyword_search", "twice"])
def test_two_tools_of_one_name_are_refused(small_index, name):
    def same() -> str:
        """Do nothing."""
        return ""

    same.__name__ = name
    others = [same] if name in TOOL_NAMES else [same, tool(same)]
    with pytest.raises(InputError, match=f"duplicate tool name: {name}$"):
        create_arag_agent(ScriptedModel(), small_index, tools=[*TOOL_NAMES, *others])


# --- a fourth retrieval tool ---


class _FindArguments(RetrievalArguments):
    document_id: str = Field(description="The document.")
    word: str = Field(description="A word in it.")


class FindInDocument(RetrievalTool):
    name: str = "find_in_document"
    description: str = "Find the chunks of one document that hold a word."
    args_schema: ArgsSchema | None = _FindArguments

    def retrieve(self, document_id: str, word: str, held: Held) -> Retrieved:
        if self.index.document(document_id) is None:
            raise InputError(f"there is no document {document_id!r}")
        ids = [chunk_id for chunk_id in self.index.chunk_ids() if chunk_id.startswith(f"{document_id}:")]
        chunks = [chunk for chunk in self.index.read(ids).chunks if word in chunk.text][: self.top_k]
        lines = [f"[{c.id}] {READ_BEFORE if c.id in held.chunks else c.text}" for c in chunks]
        new = [chunk for chunk in chunks if chunk.id not in held.chunks]
        tokens = sum(chunk.tokens for chunk in new)
        ids = [c.id for c in chunks]
        return Retrieved("\n".join(lines), word, {"found": len(chunks)}, ids, new, evidence_tokens=tokens)


def test_a_fourth_retrieval_tool_is_one_class(small_index):
    script = [
        call("find_in_document", document_id="boso", word="Arles"),
        calls(
            ("find_in_document", {"document_id": "boso", "word": "count"}),
            ("chunk_read", {"chunk_ids": ["boso:0"]}),
            ("find_in_document", {"document_id": "nobody", "word": "count"}),
            ("find_in_document", {"document_id": "boso"}),
        ),
        AIMessage("A count of Arles [boso:0]."),
    ]
    model = ScriptedModel(*script, *script)
    agent = create_arag_agent(model, small_index, tools=[*TOOL_NAMES, FindInDocument], top_k=2)
    for state in both_ways(agent, asked()):
        first, again, read, unknown, invalid = results(state)
        assert first.text.startswith("[boso:0] Boso the Elder")
        assert again.text == read.text == "[boso:0] Shown in full above."
        assert (unknown.text, unknown.status) == ("there is no document 'nobody'", "error")
        assert "word: Field required" in invalid.text
        assert state["read_chunks"] == ["boso:0"]
        assert [record["evidence_tokens"] for record in state["trace"]][:2] == [small_index.get("boso:0").tokens, 0]
        assert [(c["seen"], c["read"]) for c in state["citations"]] == [(True, True)]
    model.assert_used_up()
    offered = model.calls[0].options["tools"][-1]["function"]
    assert offered["name"] == "find_in_document"
    assert "messages" not in offered["parameters"]["properties"]


@pytest.mark.parametrize("names_ids", ["in its artifact", "in its text"])
def test_what_another_tool_showed_was_seen_where_it_names_chunk_ids(small_index, names_ids):
    @tool(response_format="content_and_artifact")
    def family(name: str) -> tuple[str, Any]:
        """Look a family up."""
        if names_ids == "in its text":
            return f"[boso:0] {name} was a count. See [1] and [nobody:0].", None
        return f"{name} was a count.", {"chunk_ids": ["boso:0"]}

    answer = "A count [boso:0], whose daughter was a queen [teutberga:0]."
    model = ScriptedModel(call("family", name="Boso"), AIMessage(answer), AIMessage(answer))
    agent = create_arag_agent(model, small_index, tools=["chunk_read", family])
    first = agent.invoke(asked())
    (record,) = first["trace"]
    assert (record["chunk_ids"], record["new_chunks"], record["retrieved_tokens"] > 0) == (["boso:0"], [], True)
    second = agent.invoke({"messages": [*first["messages"], HumanMessage("Are you sure?")]})
    for state in (first, second):
        assert [(c["chunk_id"], c["seen"], c["read"]) for c in state["citations"]] == [
            ("boso:0", True, False),
            ("teutberga:0", False, False),
        ]
        assert state["read_chunks"] == []
