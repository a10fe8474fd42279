"""Asynchronous runs, and what every kind of stream tells."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk

from arag.graph.graph import create_arag_agent
from arag.graph.prompts import NO_ANSWER
from arag.retrieval.tools import make_tools
from arag.testing import ScriptedModel, call, calls
from scripted_model import ANSWER, EndlessModel, asked, plain

pytest_plugins = ["graph_fixtures"]


def _script() -> ScriptedModel:
    return ScriptedModel(
        calls(("keyword_search", {"keywords": ["Lothair"]}), ("chunk_read", {"chunk_ids": ["lothair:0"]}), ids="ab"),
        AIMessage(""),
        call("semantic_search", "c", query="daughter of Boso"),
        ANSWER,
    )


def _comparable(state) -> dict:
    keys = ("answer", "citations", "stop_reason", "steps", "read_chunks", "trace", "usage")
    timeless = [{key: value for key, value in record.items() if key != "seconds"} for record in state["trace"]]
    return {"messages": plain(state["messages"]), **{key: state[key] for key in keys}, "trace": timeless}


def test_async_runs_give_the_same_as_sync_ones(small_index):
    sync = create_arag_agent(_script(), small_index).invoke(asked())

    async def run():
        agent = create_arag_agent(_script(), small_index)
        invoked = await agent.ainvoke(asked())
        agent = create_arag_agent(_script(), small_index)
        streamed = [state async for state in agent.astream(asked(), stream_mode="values")]
        inside = create_arag_agent(_script(), small_index).invoke(asked())  # a sync call in a running loop
        return invoked, streamed[-1], inside

    for other in asyncio.run(run()):
        assert _comparable(other) == _comparable(sync)


def test_async_forced_answers_give_the_same_as_sync_ones(small_index):
    states = []
    for run in (lambda agent: agent.invoke(asked()), lambda agent: asyncio.run(agent.ainvoke(asked()))):
        model = ScriptedModel(call("keyword_search", "a", keywords=["Boso"]), AIMessage("Boso [boso:0]."))
        states.append(_comparable(run(create_arag_agent(model, small_index, max_steps=1))))
    assert states[0] == states[1]


def test_many_runs_at_once_do_not_disturb_each_other(small_index):
    async def run_all():
        agents = [create_arag_agent(_script(), small_index) for _ in range(8)]
        return await asyncio.gather(*(agent.ainvoke(asked()) for agent in agents))

    states = [_comparable(state) for state in asyncio.run(run_all())]
    assert all(state == states[0] for state in states)


def test_streamed_updates_name_the_nodes(small_index):
    updates = list(create_arag_agent(_script(), small_index).stream(asked(), stream_mode="updates"))
    assert [next(iter(update)) for update in updates] == ["agent", "tools", "agent", "agent", "tools", "agent"]
    assert [len(update["tools"]["messages"]) for update in updates if "tools" in update] == [2, 1]
    forced = create_arag_agent(EndlessModel(mode="one_call"), small_index, max_steps=1)
    assert [next(iter(update)) for update in forced.stream(asked())] == ["agent", "tools", "force_answer"]


def test_streamed_values_end_with_the_result(small_index):
    values = list(create_arag_agent(_script(), small_index).stream(asked(), stream_mode="values"))
    assert values[-1]["answer"] == ANSWER.text
    assert [len(value["messages"]) for value in values] == [1, 2, 4, 4, 5, 6, 7]


def test_streamed_messages_hold_the_answer(small_index):
    stream = list(create_arag_agent(_script(), small_index).stream(asked(), stream_mode="messages"))
    spoken = [message for message, _ in stream if isinstance(message, AIMessage | AIMessageChunk)]
    assert spoken[-1].text == ANSWER.text
    assert {metadata["langgraph_node"] for _, metadata in stream} == {"agent", "tools"}


@pytest.mark.parametrize("reply", [AIMessage(""), AIMessage(" ")])
def test_what_stands_for_a_missing_answer_is_streamed_too(small_index, reply):
    agent = create_arag_agent(ScriptedModel(call("keyword_search", keywords=["Boso"]), reply), small_index, max_steps=1)
    stream = list(agent.stream(asked(), stream_mode="messages"))
    assert stream[-1][0].text == NO_ANSWER
    assert stream[-1][1]["langgraph_node"] == "force_answer"


def test_only_answers_are_streamed_as_a_models_words(small_index):
    model = ScriptedModel(AIMessage(""), call("keyword_search", keywords=["Boso"]), ANSWER)
    stream = create_arag_agent(model, small_index).stream(asked(), stream_mode="messages")
    assert "".join(m.text for m, _ in stream if m.type in ("ai", "AIMessageChunk")) == ANSWER.text


def test_every_node_runs_once_a_step_in_events(small_index):
    async def begun():
        events = create_arag_agent(_script(), small_index).astream_events(asked(), version="v2")
        return [event["name"] async for event in events if event["event"] == "on_chain_start"]

    names = [name for name in asyncio.run(begun()) if name in {"agent", "tools"}]
    assert names == ["agent", "tools", "agent", "agent", "tools", "agent"]


# --- what the tools tell ---

FOUND = [
    {"tool": "keyword_search", "query": ["Lothair"], "chunk_ids": ["lothair:0"], "new_chunks": ["lothair:0"]},
    {"tool": "chunk_read", "query": ["lothair:0"], "chunk_ids": ["lothair:0"], "new_chunks": []},
]


def _checked(events):
    """Return events without their tokens; the second has none of documents."""
    tokens = [(event.pop("retrieved_tokens"), event.pop("evidence_tokens")) for event in events]
    assert tokens[0][0] > tokens[0][1] > 0
    assert tokens[1][1] == 0
    return events[:2]


def test_tools_announce_what_they_found(small_index):
    events = list(create_arag_agent(_script(), small_index).stream(asked(), stream_mode="custom"))
    assert [event["tool"] for event in events] == ["keyword_search", "chunk_read", "semantic_search"]
    assert _checked(events) == FOUND


def test_tools_announce_what_they_found_asynchronously(small_index):
    async def run():
        agent = create_arag_agent(_script(), small_index)
        streamed = [event async for event in agent.astream(asked(), stream_mode="custom")]
        agent = create_arag_agent(_script(), small_index)
        events = [event async for event in agent.astream_events(asked(), version="v2")]
        return streamed, events

    streamed, events = asyncio.run(run())
    assert _checked(streamed) == FOUND
    announced = [event for event in events if event["event"] == "on_custom_event"]
    assert {event["name"] for event in announced} == {"retrieval"}
    assert _checked([event["data"] for event in announced]) == FOUND
    called = [event["name"] for event in events if event["event"] == "on_tool_end"]
    assert called == ["keyword_search", "chunk_read", "semantic_search"]
    assert {"agent", "tools"} <= {event["name"] for event in events if event["event"] == "on_chain_start"}


def test_tools_announce_what_they_found_outside_a_graph(small_index):
    search = make_tools(small_index)[0]

    async def run():
        return [event async for event in search.astream_events({"keywords": ["Boso"]}, version="v2")]

    assert [e["data"]["tool"] for e in asyncio.run(run()) if e["event"] == "on_custom_event"] == ["keyword_search"]


# --- tokens ---

STREAMS = ["values", "updates", "messages", "custom", "checkpoints", "tasks", "debug"]


def _answer_of(stream):
    """Return the answer's tokens: what a model says that is no tool call."""
    chunks = [message for message, _ in stream if isinstance(message, AIMessageChunk)]
    return [chunk.text for chunk in chunks if chunk.text]


@pytest.mark.parametrize("max_steps", [15, 1])
def test_the_answer_comes_word_by_word(small_index, max_steps):
    agent = create_arag_agent("extractive", small_index, max_steps=max_steps)

    async def run():
        streamed = [part async for part in agent.astream(asked(), stream_mode="messages")]
        events = [event async for event in agent.astream_events(asked(), version="v2")]
        return streamed, [event["data"]["chunk"] for event in events if event["event"] == "on_chat_model_stream"]

    answer = agent.invoke(asked())["answer"]
    streamed, chunks = asyncio.run(run())
    for words in (
        _answer_of(agent.stream(asked(), stream_mode="messages")),
        _answer_of(streamed),
        [chunk.text for chunk in chunks if chunk.text],
    ):
        assert len(words) > 10
        assert "".join(words).strip() == answer


def test_every_kind_of_stream_at_once(small_index):
    async def run():
        agent = create_arag_agent("extractive", small_index)
        return [mode async for mode, _ in agent.astream(asked(), stream_mode=STREAMS[:4] + STREAMS[5:])]

    agent = create_arag_agent("extractive", small_index)
    modes = [mode for mode, _ in agent.stream(asked(), stream_mode=STREAMS[:4] + STREAMS[5:])]
    assert set(modes) == set(asyncio.run(run())) == set(STREAMS) - {"checkpoints"}


def test_nothing_starts_an_event_loop_of_its_own(small_index, monkeypatch):
    """As in a notebook, where one is running already."""

    async def run():
        monkeypatch.setattr(asyncio, "run", None)
        agent = create_arag_agent("extractive", small_index)
        state = await agent.ainvoke(asked())
        assert agent.invoke(asked())["answer"] == state["answer"]
        assert list(agent.stream(asked(), stream_mode="custom"))
        return state

    with asyncio.Runner() as runner:
        assert runner.run(run())["stop_reason"] == "answered"
