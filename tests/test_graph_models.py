"""The models that an agent takes: with fallbacks, bound options, and fields that a run sets."""

from __future__ import annotations

import asyncio

import pytest
from langchain.chat_models import init_chat_model
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from arag.errors import ModelError
from arag.graph.context import Context
from arag.graph.graph import create_arag_agent
from arag.models.chat import load_model
from openai_server import chat, serve
from scripted import ANSWER, ScriptedModel, asked, call

SEARCH = call("keyword_search", keywords=["Lothair"])
PAPER = ["keyword_search", "semantic_search", "chunk_read"]


class Heard(BaseCallbackHandler):
    """Keeps the tags of each model call."""

    def __init__(self):
        self.tags = []

    def on_chat_model_start(self, *_, tags=None, **__):
        self.tags.append([tag for tag in tags if ":" not in tag])


def failing(*replies):
    return ScriptedModel(ConnectionError("it is down"), *replies)


@pytest.mark.parametrize("as_list", [False, True])
def test_a_fallback_takes_over_with_the_tools(small_index, as_list):
    first, second = failing(SEARCH, ConnectionError("it is down")), ScriptedModel(SEARCH, ANSWER)
    model = [first, second] if as_list else first.with_fallbacks([second])
    agent = create_arag_agent(model, small_index, tools="paper")
    state = agent.invoke(asked())
    assert (state["answer"], state["steps"]) == (ANSWER.text, 3)
    assert second.calls[0].tool_names == first.calls[0].tool_names == PAPER
    first.assert_used_up()
    second.assert_used_up()


def test_a_fallback_answers_when_a_budget_is_used_up_too(small_index):
    agent = create_arag_agent([failing(ConnectionError()), ScriptedModel(SEARCH, ANSWER)], small_index, max_steps=1)
    state = asyncio.run(agent.ainvoke(asked()))
    assert (state["answer"], state["stop_reason"]) == (ANSWER.text, "max_steps")


def test_the_error_of_the_first_model_comes_if_all_fail(small_index):
    agent = create_arag_agent([failing(), ScriptedModel(OSError("gone"))], small_index)
    with pytest.raises(ConnectionError, match="it is down"):
        agent.invoke(asked())


def test_bound_options_and_configs_stay(small_index):
    model = ScriptedModel(SEARCH, ANSWER)
    heard = Heard()
    bound = model.bind(seed=7).with_config(tags=["mine"])
    agent = create_arag_agent(bound, small_index, tools="paper", max_steps=1)
    agent.invoke(asked(), {"callbacks": [heard]})
    assert [request.options.get("seed") for request in model.calls] == [7, 7]
    assert [request.tool_names for request in model.calls] == [PAPER, []]
    assert heard.tags == [["mine"], ["mine"]]


def test_a_run_chooses_the_model_as_langchains_configurable_models_let_it(small_index, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    responses = [chat(None, ("c", "keyword_search", '{"keywords": ["Lothair"]}')), chat("A king [lothair:0].")]
    with serve(responses * 2) as server:
        model = init_chat_model(
            "openai:first",
            configurable_fields=["model", "temperature"],
            config_prefix="search",
            base_url=server.url,
        )
        agent = create_arag_agent(model, small_index, tools="paper")
        for chosen in ({}, {"search_model": "openai:second", "search_temperature": 0.5}):
            agent.invoke(asked(), {"configurable": {"thread_id": "t", **chosen}})
        sent = [(request["model"], request.get("temperature")) for request in server.requests]
        names = [tool["function"]["name"] for tool in server.requests[2]["tools"]]
    assert sent == [("first", None)] * 2 + [("second", 0.5)] * 2
    assert names == PAPER


def test_a_key_may_come_with_the_run(small_index):
    with serve([chat("A king [lothair:0]."), chat("So it is [lothair:0].")]) as server:
        model = init_chat_model("openai:first", configurable_fields=["api_key"], base_url=server.url)
        agent = create_arag_agent(model, small_index, tools="paper")
        state = agent.invoke(asked(), {"configurable": {"api_key": "of-the-run"}})
        assert state["answer"] in {"A king [lothair:0].", "So it is [lothair:0]."}
        assert {headers["authorization"] for headers in server.headers} == {"Bearer of-the-run"}


def test_a_runs_context_replaces_the_whole_chain(small_index):
    agent = create_arag_agent([failing(), failing()], small_index, tools="paper")
    assert "Lothair II was a king" in agent.invoke(asked(), context=Context(model="extractive"))["answer"]


def test_the_built_in_model_gets_its_tools_behind_options_too(small_index):
    agent = create_arag_agent(load_model("extractive").with_config(tags=["mine"]), small_index)
    assert "Lothair II was a king" in agent.invoke(asked())["answer"]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (list, "the list of models is empty"),
        (lambda: ScriptedModel().with_retry(), "not the RunnableRetry object"),
        (lambda: [ScriptedModel(), ScriptedModel() | str], "not the RunnableSequence object"),
        (lambda: ScriptedModel().bind_tools([]), "the model has tools bound already"),
        (lambda: ScriptedModel().with_fallbacks([ScriptedModel() | str]), "not the RunnableSequence object"),
        (lambda: GenericFakeChatModel(messages=iter([AIMessage("x")])).bind(seed=1), "cannot call tools"),
    ],
)
def test_what_is_no_model_with_tools_is_named(small_index, make, told):
    with pytest.raises(ModelError, match=told):
        create_arag_agent(make(), small_index)
