"""Asynchronous runs, and what streams and events tell."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk

from arag.graph.graph import create_arag_agent
from arag.graph.prompts import NO_ANSWER
from scripted import ANSWER, ScriptedModel, asked, call, calls, plain


def _script() -> ScriptedModel:
    return ScriptedModel(
        calls(("keyword_search", {"keywords": ["Lothair"]}), ("chunk_read", {"chunk_ids": ["lothair:0"]}), ids="ab"),
        call("semantic_search", "c", query="daughter of Boso"),
        ANSWER,
    )


def _comparable(state) -> dict:
    timeless = {key: value for key, value in state.items() if key != "model_calls"}
    trace = [{key: value for key, value in record.items() if key != "seconds"} for record in state["trace"]]
    return timeless | {"messages": plain(state["messages"]), "trace": trace}


def test_async_runs_give_the_same_as_sync_ones_also_side_by_side(small_index):
    def make():
        return create_arag_agent(_script(), small_index, tools="paper", max_steps=2)

    async def run():
        invoked = await asyncio.gather(*(make().ainvoke(asked()) for _ in range(4)))
        streamed = [state async for state in make().astream(asked(), stream_mode="values")]
        return [*invoked, streamed[-1], make().invoke(asked())]  # the last is a sync call in a running loop

    expected = _comparable(make().invoke(asked()))
    for state in asyncio.run(run()):
        assert _comparable(state) == expected


def test_streams_name_the_nodes_and_end_with_the_result(small_index):
    updates = list(
        create_arag_agent(_script(), small_index, tools="paper", max_steps=2).stream(asked(), stream_mode="updates")
    )
    assert [next(iter(update)) for update in updates] == ["agent", "tools", "agent", "tools", "force_answer"]
    assert [len(update["tools"]["messages"]) for update in updates if "tools" in update] == [2, 1]
    values = list(create_arag_agent(_script(), small_index, tools="paper").stream(asked(), stream_mode="values"))
    assert values[-1]["answer"] == ANSWER.text
    assert [len(value["messages"]) for value in values] == [1, 2, 4, 5, 6, 7]


def test_what_stands_for_a_missing_answer_is_streamed_too(small_index):
    agent = create_arag_agent(ScriptedModel(AIMessage(""), AIMessage(""), AIMessage(" ")), small_index, tools="paper")
    stream = list(agent.stream(asked(), stream_mode="messages"))
    assert (stream[-1][0].text, stream[-1][1]["langgraph_node"]) == (NO_ANSWER, "force_answer")


@pytest.mark.parametrize("max_steps", [15, 1])
def test_the_answer_comes_word_by_word(small_index, max_steps):
    agent = create_arag_agent("extractive", small_index, max_steps=max_steps)

    async def run():
        return [part async for part in agent.astream(asked(), stream_mode="messages")]

    answer = agent.invoke(asked())["answer"]
    for stream in (agent.stream(asked(), stream_mode="messages"), asyncio.run(run())):
        words = [message.text for message, _ in stream if isinstance(message, AIMessageChunk) and message.text]
        assert len(words) > 10
        assert "".join(words).strip() == answer


@pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
def test_event_streams_report_tool_calls_and_updates_too(small_index):
    run = create_arag_agent(_script(), small_index, tools="paper").stream_events(asked(), version="v3")
    assert run.output["answer"] == ANSWER.text
    assert {"tool_calls", "custom", "updates"} <= run.extensions.keys()
