"""An answer's citations as annotations of LangChain's content blocks."""

from __future__ import annotations

import asyncio
import json

import pytest
from langchain_core.messages import AIMessage, HumanMessage, messages_from_dict, messages_to_dict
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

import anthropic_server
import openai_server
from arag import trace_page
from arag.graph.annotations import annotate, as_written
from arag.graph.citations import parse_citations
from arag.graph.graph import create_arag_agent
from arag.models.chat import load_model
from scripted import ANSWER, QUESTION, ScriptedModel, asked, call, in_thread

SEARCH = call("chunk_read", chunk_ids=["teutberga:0", "boso:0"])
TWO = "Teutberga was a daughter of Boso [teutberga:0]. He was a count [boso:0]; she died in 875 [teutberga:0]."


def answer_of(index, reply, **options):
    return create_arag_agent(ScriptedModel(SEARCH, reply), index, tools="paper", **options).invoke(asked())


def places(message):
    """Return the texts at which the annotations of a message stand, with their titles."""
    found = []
    for block in message.content_blocks:
        for annotation in block.get("annotations", ()):
            assert annotation["type"] == "citation"
            place = block["text"][annotation["start_index"] : annotation["end_index"]]
            found.append((place, annotation["title"]))
    return found


CITED = [("[teutberga:0]", "Teutberga"), ("[boso:0]", "Boso the Elder"), ("[teutberga:0]", "Teutberga")]


def test_each_place_of_a_citation_is_an_annotation_of_the_answers_text_block(small_index):
    state = answer_of(small_index, AIMessage(f"\n {TWO}\n"))
    answer = state["messages"][-1]
    assert places(answer) == CITED
    [block] = answer.content
    first = block["annotations"][0]
    assert first["cited_text"] == "Teutberga was a daughter of Boso the Elder. … She died in 875."
    assert (answer.text, state["answer"]) == (f"\n {TWO}\n", TWO)
    assert len(state["citations"]) == 2


@pytest.mark.parametrize("text", ["Nobody knows.", "As the atlas says [atlas.md:3].", "Storms [annals:0]."])
def test_an_answer_without_a_shown_source_stays_a_text(small_index, text):
    assert answer_of(small_index, AIMessage(text))["messages"][-1].content == text


def test_annotations_count_from_the_start_of_their_own_block_and_others_stay(make_index):
    index = make_index([{"id": "a", "title": "Harbour", "text": "The harbour is old.", "url": "https://a.example/h"}])
    theirs = {"type": "citation", "url": "https://b.example", "title": "Theirs", "start_index": 0, "end_index": 3}
    blocks = [
        {"type": "reasoning", "reasoning": "Hm."},
        {"type": "text", "text": "The harbour is old [a:0]. ", "annotations": [theirs]},
        {"type": "text", "text": "So it is: old [a:0]."},
    ]
    reply = AIMessage(content_blocks=blocks)
    answer = annotate(reply, parse_citations(reply.text, index, ["a:0"], []))
    reasoning, first, second = answer.content_blocks
    assert (reasoning, first["annotations"][0]) == (blocks[0], theirs)
    assert places(answer) == [("The", "Theirs"), ("[a:0]", "Harbour"), ("[a:0]", "Harbour")]
    assert second["annotations"][0]["url"] == "https://a.example/h"
    assert answer.text == reply.text


def test_streams_threads_and_pages_carry_them_and_no_model_is_sent_them(small_index):
    model = ScriptedModel(SEARCH, AIMessage(TWO, response_metadata={"model_provider": "anthropic"}), ANSWER)
    agent = create_arag_agent(model, small_index, tools="paper", checkpointer=InMemorySaver())
    streamed = [part for part, _ in agent.stream(asked(), in_thread(), stream_mode="messages")]
    assert streamed[-1].text == TWO
    state = agent.get_state(in_thread()).values
    assert places(state["messages"][-1]) == CITED
    stored = json.loads(json.dumps(messages_to_dict(state["messages"])))
    assert places(messages_from_dict(stored)[-1]) == CITED
    assert "Teutberga was a daughter of Boso" in trace_page(state)
    assert state["model_calls"][-1]["provider"] == "anthropic"
    asyncio.run(agent.ainvoke({"messages": [HumanMessage("And then?")]}, in_thread()))
    [_, question, answer, _] = model.calls[-1].messages
    assert (question.text, answer.content) == (QUESTION, TWO)
    assert "output_version" not in answer.response_metadata


def test_a_forced_answer_is_annotated_too(small_index):
    state = answer_of(small_index, AIMessage(TWO), max_steps=1)
    assert (state["stop_reason"], places(state["messages"][-1])) == ("max_steps", CITED)


def test_what_others_annotate_is_sent_as_it_is():
    blocks = [{"type": "text", "text": "So.", "annotations": [{"type": "url_citation", "url": "https://b.example"}]}]
    theirs = AIMessage(blocks, response_metadata={"model_provider": "openai"})
    assert as_written(theirs) is theirs


def in_parent(model, agent):
    """Return a graph in which another model goes on behind an agent's answer."""
    parent = StateGraph(MessagesState)
    parent.add_node("research", agent)

    def write(state):
        question, *_, answer = state["messages"]
        return {"messages": model.invoke([question, answer, HumanMessage("Shorter.")])}

    parent.add_node("write", write)
    return parent.add_edge(START, "research").add_edge("research", "write").compile()


def test_providers_of_a_parent_graph_take_the_annotated_answer(small_index, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    agent = create_arag_agent(ScriptedModel(*[SEARCH, AIMessage(TWO)] * 2), small_index, tools="paper")
    with openai_server.serve([openai_server.chat("So.")]) as server:
        in_parent(load_model(f"openai:m@{server.url}"), agent).invoke(asked())
        sent = server.requests[0]["messages"][-2]
    assert (sent["role"], sent["content"]) == ("assistant", [{"type": "text", "text": TWO}])
    with anthropic_server.serve([anthropic_server.message(anthropic_server.text("So."))]) as server:
        model = load_model("anthropic:claude-x", base_url=server.url)
        in_parent(model, agent).invoke(asked())
        sent = server.requests[0]["messages"][-2]
    assert (sent["role"], sent["content"]) == ("assistant", [{"type": "text", "text": TWO}])
