"""Structured answers, beside the text and its citations."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from arag.errors import InputError, ModelError
from arag.graph.context import Context
from arag.graph.graph import create_arag_agent
from openai_server import chat, serve
from scripted import ANSWER, EndlessModel, ScriptedModel, asked, call, calls, in_thread, priced

SEARCH = call("keyword_search", keywords=["Teutberga"])


class Father(BaseModel):
    """The father of a person."""

    name: str = Field(description="His name.")
    died: int | None = None


class FatherDict(TypedDict):
    """The father of a person."""

    name: str


@dataclass
class FatherData:
    """The father of a person."""

    name: str


SCHEMA = {"title": "Father", "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def run(index, *replies, response_format=Father, **options):
    agent = create_arag_agent(ScriptedModel(*replies), index, tools="paper", response_format=response_format, **options)
    return agent.invoke(asked())


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (Father, Father(name="Boso")),
        (FatherDict, {"name": "Boso"}),
        (FatherData, FatherData("Boso")),
        (SCHEMA, {"name": "Boso"}),
        (ToolStrategy(Father), Father(name="Boso")),
        (Father | FatherData, Father(name="Boso")),
    ],
    ids=["pydantic", "TypedDict", "dataclass", "JSON schema", "strategy", "union"],
)
def test_one_more_call_puts_the_answer_into_the_form_of_a_schema(small_index, schema, expected):
    name = "FatherDict" if schema is FatherDict else "FatherData" if schema is FatherData else "Father"
    state = run(small_index, SEARCH, ANSWER, call(name, name="Boso"), response_format=schema)
    assert state["structured_response"] == expected
    assert (state["answer"], state["messages"][-1].text) == (ANSWER.text, ANSWER.text)
    assert [citation["chunk_id"] for citation in state["citations"]] == ["teutberga:0"]
    assert (state["steps"], state["usage"]["model_calls"]) == (2, 3)
    assert [made["step"] for made in state["model_calls"]] == [1, 2, 3]


def test_the_model_is_sent_the_evidence_and_the_answer_and_must_call_the_tool(small_index):
    model = ScriptedModel(SEARCH, ANSWER, call("Father", name="Boso"))
    agent = create_arag_agent(model, small_index, tools="paper", response_format=Father)
    asyncio.run(agent.ainvoke(asked()))
    request = model.calls[-1]
    assert [message.type for message in request.messages] == ["system", "human", "ai", "human"]
    assert "Teutberga was a daughter of Boso" in request.messages[1].text
    assert request.messages[2].content == ANSWER.text
    assert (request.tool_names, request.options["tool_choice"]) == (["Father"], "any")


def test_a_forced_answer_is_structured_too_within_any_recursion_limit(small_index):
    for limit in range(4, 12):
        model = Structuring(mode="one_call")
        agent = create_arag_agent(model, small_index, tools="paper", response_format=FatherDict)
        state = agent.invoke(asked(), {"recursion_limit": limit})
        assert state["structured_response"] == {"name": "Lothair"}, limit


class Structuring(EndlessModel):
    """Never answers while it has tools, and then puts the answer into a form."""

    def _reply(self, messages, options):
        if options.get("tool_choice") == "any":
            return call("FatherDict", name="Lothair")
        return super()._reply(messages, options)


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (AIMessage("Boso."), "gave no structured answer: it called no tool named Father"),
        (call("Father", died="long ago"), r"is not valid: (?s:.)*name"),
    ],
)
def test_an_answer_that_cannot_be_structured_is_an_error_and_a_thread_keeps_the_text(small_index, reply, told):
    model = ScriptedModel(SEARCH, ANSWER, reply, reply, call("Father", name="Boso"))
    agent = create_arag_agent(model, small_index, tools="paper", response_format=Father, checkpointer=InMemorySaver())
    with pytest.raises(ModelError, match=told):
        agent.invoke(asked(), in_thread())
    assert agent.get_state(in_thread()).values["answer"] == ANSWER.text
    assert agent.invoke(None, in_thread())["structured_response"] == Father(name="Boso")
    model.assert_used_up()


@pytest.mark.parametrize(
    ("reply", "told"),
    [(AIMessage("Boso."), "called no tool named Father"), (call("Father", died=True), "Field required")],
)
def test_the_model_is_told_once_why_its_structured_answer_is_not_valid(small_index, reply, told):
    model = ScriptedModel(SEARCH, ANSWER, reply, call("Father", name="Boso"))
    state = create_arag_agent(model, small_index, tools="paper", response_format=Father).invoke(asked())
    assert state["structured_response"] == Father(name="Boso")
    assert (state["answer"], state["usage"]["model_calls"]) == (ANSWER.text, 4)
    assert told in model.calls[-1].messages[-1].text


def test_it_is_not_asked_for_again_above_the_cap_of_costs(small_index):
    wrong = priced(call("Father", died=1))
    model = ScriptedModel(priced(SEARCH), priced(ANSWER), wrong)
    agent = create_arag_agent(model, small_index, tools="paper", response_format=Father, max_cost=0.76)
    with pytest.raises(ModelError, match="is not valid"):
        agent.invoke(asked())
    model.assert_used_up()


def test_each_question_of_a_thread_gets_its_own(small_index):
    replies = []
    for name in ("Boso", "Lothair"):
        replies += [ANSWER, calls(("FatherDict", {"name": name}))]
    agent = create_arag_agent(
        ScriptedModel(*replies),
        small_index,
        tools="paper",
        response_format=FatherDict,
        checkpointer=InMemorySaver(),
        max_steps=1,
    )
    names = [agent.invoke(asked(), in_thread())["structured_response"]["name"] for _ in range(2)]
    assert names == ["Boso", "Lothair"]


def test_it_works_over_openais_protocol(small_index, monkeypatch):
    responses = [
        chat("Boso [boso:0]."),
        chat(None, ("c", "Father", '{"name": "Boso", "died": null}')),
    ]
    with serve(responses) as server:
        agent = create_arag_agent(f"openai:m@{server.url}", small_index, response_format=Father, max_steps=1)
        state = agent.invoke(asked())
        request = server.requests[-1]
    assert state["structured_response"] == Father(name="Boso")
    assert (request["tool_choice"], request["tools"][0]["function"]["description"]) == (
        "required",
        "The father of a person.",
    )
    assert state["usage"]["input_tokens"] == 200


def test_what_is_no_schema_and_who_makes_no_structured_answers_is_named(small_index):
    with pytest.raises(InputError, match="response_format is 'name': give a pydantic model"):
        run(small_index, response_format="name")
    with pytest.raises(ModelError, match="the built-in model gives no structured answers"):
        create_arag_agent("extractive", small_index, response_format=Father)
    agent = create_arag_agent(ScriptedModel(), small_index, response_format=Father)
    with pytest.raises(ModelError, match="the built-in model gives no structured answers"):
        agent.invoke(asked(), context=Context(model="extractive"))
