"""Citations that agents share: of several indexes with the same ids, of scopes, and of agents that repeat an id."""

from __future__ import annotations

import asyncio
from itertools import permutations

import pytest
from bs4 import BeautifulSoup
from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from arag import ARAGMiddleware, SourcesMiddleware, create_arag_agent, make_agent_tool, trace_page
from arag.graph.citations import name_index
from arag.retrieval.scope import Scope
from scripted import ScriptedModel, asked, call, calls, in_thread

ADA = AIMessage("Ada Alder keeps lamp A [notes:0].")
BOB = AIMessage("Bob Birch keeps lamp B [notes:0].")
BOTH = AIMessage(f"{ADA.text} {BOB.text}")
READ = call("chunk_read", chunk_ids=["notes:0"])
KEPT = ("answer", "citations", "trace", "model_calls", "seen_chunks", "read_chunks")
ORDERS = list(permutations("ab"))


@pytest.fixture
def indexes(make_index):
    """Two indexes, whose folders have the same name, each with notes about a lamp."""
    made = {}
    for lamp, keeper in (("A", "Ada Alder"), ("B", "Bob Birch")):
        notes = {
            "id": "notes",
            "title": f"Notes of {lamp}",
            "text": f"The keeper of lamp {lamp} is {keeper}.",
            "url": f"https://{lamp.lower()}.example/notes",
        }
        only = {"id": f"only-{lamp.lower()}", "text": f"Lamp {lamp} burns oil."}
        made[lamp.lower()] = make_index([notes, only])
    return made


def researcher(index, answer, *script):
    """Return an agent that reads the notes, or follows a script, and answers."""
    model = ScriptedModel(*(script or [READ]), answer)
    return create_agent(model, middleware=[ARAGMiddleware(index, tools="paper")])


def as_command(agents):
    """Return a tool that asks agents and writes what they found into the state, as deep agents do."""

    @tool
    def ask(whom: str, runtime: ToolRuntime) -> Command:
        """Ask a specialist."""
        state = agents[whom].invoke(asked())
        result = ToolMessage(state["answer"], tool_call_id=runtime.tool_call_id)
        return Command(update={"messages": [result]} | {key: state[key] for key in KEPT})

    return [ask]


def as_tools(agents):
    return [make_agent_tool(agent, name=f"ask_{name}") for name, agent in agents.items()]


def ask_all(make, names):
    """Return the calls that ask agents one after another."""
    if make is as_command:
        return [call("ask", f"call-{name}", whom=name) for name in names]
    return [call(f"ask_{name}", f"call-{name}", question="Who?") for name in names]


def places(citation):
    return [(span["start"], span["end"]) for span in citation["spans"]]


def titles(citations):
    return {citation["document"]["title"] for citation in citations if citation["document"]}


ways = pytest.mark.parametrize("make", [as_command, as_tools])


@ways
@pytest.mark.parametrize("order", ORDERS)
def test_an_id_of_two_indexes_links_to_both_documents(indexes, make, order):
    agents = {"a": researcher(indexes["a"], ADA), "b": researcher(indexes["b"], BOB)}
    model = ScriptedModel(*ask_all(make, order), BOTH)
    state = create_agent(model, make(agents), middleware=[SourcesMiddleware()]).invoke(asked())
    found = {citation["index"]: citation for citation in state["citations"]}
    assert found.keys() == {name_index(index) for index in indexes.values()}
    quotes = {"a": "The keeper of lamp A is Ada Alder.", "b": "The keeper of lamp B is Bob Birch."}
    for lamp, index in indexes.items():
        citation = found[name_index(index)]
        assert citation["document"]["url"] == f"https://{lamp}.example/notes"
        assert [quote["text"] for quote in citation["quotes"]] == [quotes[lamp]]
        assert [BOTH.text[start:end] for start, end in places(citation)] == ["[notes:0]"] * 2
    [block] = state["messages"][-1].content
    assert {note["url"] for note in block["annotations"]} == {"https://a.example/notes", "https://b.example/notes"}
    assert (state["answer"], state["grounding"]) == (BOTH.text, "supported")
    page = BeautifulSoup(trace_page(state), "html.parser").select_one(".answer")
    assert page.text.strip() == "Ada Alder keeps lamp A 1 2. Bob Birch keeps lamp B 1 2."
    assert [link["href"] for link in page.select(".cite")] == ["#source-1", "#source-2"] * 2


@ways
@pytest.mark.parametrize("order", ORDERS)
def test_a_citation_that_was_seen_stays_if_another_agent_repeats_it(indexes, make, order):
    """The second agent has another index, in which nothing, or something else, has the id."""
    seen = AIMessage("Lamp A burns oil [only-a:0].")
    repeats = AIMessage("I was told that lamp A burns oil [only-a:0].")
    agents = {
        "a": researcher(indexes["a"], seen, call("chunk_read", chunk_ids=["only-a:0"])),
        "b": researcher(indexes["b"], repeats),
    }
    model = ScriptedModel(*ask_all(make, order), seen)
    state = create_agent(model, make(agents), middleware=[SourcesMiddleware()]).invoke(asked())
    [citation] = state["citations"]
    assert (citation["seen"], citation["index"]) == (True, name_index(indexes["a"]))
    assert [quote["text"] for quote in citation["quotes"]] == ["Lamp A burns oil."]
    assert (places(citation), state["grounding"]) == ([(17, 27)], "supported")


@ways
@pytest.mark.parametrize("order", ORDERS)
def test_a_citation_that_was_seen_stays_if_another_scope_hides_it(indexes, make, order):
    hidden = indexes["a"].limited_to(Scope(documents=["only-a"]))
    agents = {"a": researcher(indexes["a"], ADA), "b": researcher(hidden, ADA)}
    model = ScriptedModel(*ask_all(make, order), ADA)
    state = create_agent(model, make(agents), middleware=[SourcesMiddleware()]).invoke(asked())
    [citation] = state["citations"]
    assert (citation["seen"], citation["document"]["title"], len(citation["quotes"])) == (True, "Notes of A", 1)


def test_an_id_that_nobody_was_shown_stays_in_the_list(indexes):
    guess = AIMessage("So the atlas says [atlas.md:3].")
    agents = {"a": researcher(indexes["a"], guess)}
    model = ScriptedModel(*ask_all(as_tools, "a"), AIMessage("A map [atlas.md:3], and a book [book.md:1]."))
    state = create_agent(model, as_tools(agents), middleware=[SourcesMiddleware()]).invoke(asked())
    assert [(each["chunk_id"], each["seen"], each["index"]) for each in state["citations"]] == [
        ("atlas.md:3", False, ""),
        ("book.md:1", False, ""),
    ]
    assert (state["grounding"], state["messages"][-1].content) == ("none", state["answer"])


@ways
@pytest.mark.parametrize("with_own", [False, True], ids=["asks", "searches too"])
def test_an_agent_with_an_index_keeps_the_citations_of_another_index(indexes, make, with_own):
    """If it has read a chunk with the same id itself, the id stands for both."""
    agents = {"a": researcher(indexes["a"], ADA)}
    script = [*ask_all(make, "a"), *([READ] if with_own else []), BOTH]
    tools = make(agents)
    own = ARAGMiddleware(indexes["b"], tools="paper")
    state = create_agent(ScriptedModel(*script), tools, middleware=[own]).invoke(asked())
    assert titles(state["citations"]) == ({"Notes of A", "Notes of B"} if with_own else {"Notes of A"})
    assert all(citation["seen"] and citation["quotes"] and places(citation) for citation in state["citations"])
    assert state["grounding"] == "supported"
    noted = {note["title"] for note in state["messages"][-1].content[0]["annotations"]}
    assert noted == titles(state["citations"])
    if not with_own and make is as_tools:
        again = as_tools({"a": researcher(indexes["a"], ADA)})
        graph = create_arag_agent(ScriptedModel(*script), indexes["b"], tools=["paper", *again])
        assert graph.invoke(asked())["citations"] == state["citations"]


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_a_deep_agent_links_its_answer_to_what_its_subagents_cited(indexes, asynchronous):
    deepagents = pytest.importorskip("deepagents")
    subagents = []
    for name, answer in (("a", ADA), ("b", BOB)):
        subagents.append(
            {
                "name": name,
                "description": f"Knows lamp {name}.",
                "system_prompt": "Cite.",
                "model": ScriptedModel(READ, answer),
                "middleware": [ARAGMiddleware(indexes[name], tools="paper")],
            }
        )
    tasks = calls(*[("task", {"description": "Who?", "subagent_type": name}) for name in "ab"], ids="ab")
    model = ScriptedModel(tasks, BOTH)
    deep = deepagents.create_deep_agent(model, middleware=[SourcesMiddleware()], subagents=subagents)
    state = asyncio.run(deep.ainvoke(asked())) if asynchronous else deep.invoke(asked())
    assert (state["answer"], state["grounding"]) == (BOTH.text, "supported")
    assert titles(state["citations"]) == {"Notes of A", "Notes of B"}
    assert [len(citation["spans"]) for citation in state["citations"]] == [2, 2]
    assert len(state["messages"][-1].content[0]["annotations"]) == 4


def test_what_the_answer_does_not_name_stands_behind_what_it_names(indexes):
    agents = {
        "a": researcher(indexes["a"], ADA),
        "b": researcher(
            indexes["b"], AIMessage("Lamp B burns oil [only-b:0]."), call("chunk_read", chunk_ids=["only-b:0"])
        ),
    }
    model = ScriptedModel(*ask_all(as_tools, "ab"), AIMessage("It burns oil [only-b:0]."))
    state = create_agent(model, as_tools(agents), middleware=[SourcesMiddleware()]).invoke(asked())
    assert [(each["chunk_id"], len(each["spans"])) for each in state["citations"]] == [("only-b:0", 1), ("notes:0", 0)]
    assert state["grounding"] == "supported"


@ways
@pytest.mark.parametrize("own", [None, "b"], ids=["no index", "another index"])
def test_a_later_question_may_be_answered_with_what_was_cited_before(indexes, make, own):
    tools = make({"a": researcher(indexes["a"], ADA)})
    middleware = ARAGMiddleware(indexes[own], tools="paper") if own else SourcesMiddleware()
    again = AIMessage("As I said: Ada Alder [notes:0].")
    model = ScriptedModel(*ask_all(make, "a"), ADA, again, AIMessage("Nobody else."))
    agent = create_agent(model, tools, middleware=[middleware], checkpointer=InMemorySaver())
    agent.invoke(asked(), in_thread())
    state = agent.invoke(asked("Really?"), in_thread())
    assert (titles(state["citations"]), state["grounding"]) == ({"Notes of A"}, "supported")
    assert agent.invoke(asked("Who else?"), in_thread())["citations"] == []
