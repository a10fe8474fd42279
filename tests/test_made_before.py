"""Calls that count as made before: only those whose result is the same."""

from __future__ import annotations

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from arag import ARAGMiddleware, Context, Scope, create_arag_agent, ingest
from fakes import HashEmbeddings, write_corpus
from scripted import ScriptedModel, asked, call, in_thread, results

SEARCHES = {
    "shell": call("shell", command="rg -i keeper"),
    "paper": call("keyword_search", keywords=["keeper"]),
}
both_kinds = pytest.mark.parametrize("make", ["graph", "middleware"])
both_sets = pytest.mark.parametrize("tools", SEARCHES)


def make_agent(kind, index, tools, *, questions=1, **options):
    """Return an agent that makes the same search for each question."""
    model = ScriptedModel(*[SEARCHES[tools], AIMessage("So it is [notes:0].")] * questions)
    if kind == "graph":
        return create_arag_agent(model, index, tools=tools, **options)
    return create_agent(model, middleware=[ARAGMiddleware(index, tools=tools)], **options)


def note(text, **fields):
    return {"id": "notes", "title": "Notes", "text": text, **fields}


@both_kinds
@both_sets
def test_another_agents_search_of_another_index_was_not_made_before(make_index, make, tools):
    graph = StateGraph(MessagesState)
    names = ("Ada Alder", "Bob Birch")
    for name in names:
        graph.add_node(name, make_agent(make, make_index([note(f"The keeper is {name}.")]), tools))
    graph.add_edge(START, names[0]).add_edge(*names)
    found = [result.text for result in results(graph.compile().invoke(asked("Who are the keepers?")))]
    assert [name in text for name, text in zip(names, found, strict=True)] == [True, True]


@both_kinds
@both_sets
def test_a_search_after_the_index_has_changed_was_not_made_before(make_index, tmp_path, make, tools):
    index = make_index([note("The keeper is Ada Alder.")])
    agent = make_agent(make, index, tools, questions=2, checkpointer=InMemorySaver())
    agent.invoke(asked("Who is the keeper?"), in_thread())
    ingest(
        write_corpus(tmp_path / "changed", [note("The keeper is Bob Birch.")]), index.path, embedder=HashEmbeddings()
    ).close()
    state = agent.invoke(asked("Who is it now?"), in_thread())
    assert "Bob Birch" in results(state)[-1].text


@both_kinds
@both_sets
def test_a_search_in_another_scope_was_not_made_before(make_index, make, tools):
    index = make_index([note("The keeper is Ada Alder."), {"id": "old", "title": "Old", "text": "The keeper was Bob."}])
    agent = make_agent(make, index, tools, questions=2, checkpointer=InMemorySaver())
    agent.invoke(asked("Who?"), in_thread(), context=Context(scope=Scope(documents=["notes"])))
    state = agent.invoke(asked("Who was?"), in_thread(), context=Context(scope=Scope()))
    assert ["was Bob" in result.text for result in results(state)] == [False, True]


@both_sets
def test_a_search_whose_result_the_model_still_has_was_made_before(make_index, tools):
    index = make_index([note("The keeper is Ada Alder.")])
    agent = make_agent("middleware", index, tools, questions=2, checkpointer=InMemorySaver())
    agent.invoke(asked("Who?"), in_thread())
    state = agent.invoke(asked("Who?"), in_thread())
    assert ["made before" in result.text for result in results(state)] == [False, True]


@both_kinds
def test_the_same_search_shows_what_is_left_while_the_result_offers_more(make_index, make):
    filler = " ".join(f"Nothing happened in {year}." for year in range(1600, 1660))
    names = [f"ketch-{number:02}" for number in range(16)]
    index = make_index(
        [{"id": name, "title": name, "text": f"The {name} was lost off the Mole. {filler}"} for name in names]
    )
    search = call("keyword_search", keywords=["ketch"])
    model = ScriptedModel(*[search] * 4, AIMessage("All of them."))
    if make == "graph":
        agent = create_arag_agent(model, index, tools="paper")
    else:
        agent = create_agent(model, middleware=[ARAGMiddleware(index, tools="paper")])
    texts = [result.text for result in results(agent.invoke(asked("Which were lost?")))]
    assert "(again for more)" in texts[0]
    assert {name for name in names if any(f"[{name}:0] " in text for text in texts)} == set(names)
    assert not any("made before" in text for text in texts)
