"""The cap on what a run costs."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage

from arag.errors import InputError
from arag.graph.context import Context
from arag.graph.graph import create_arag_agent
from arag.models.prices import cost
from scripted import ANSWER, ScriptedModel, asked, call, priced


def search(number):
    return priced(call("keyword_search", keywords=[f"word{number}"]))


@pytest.mark.parametrize(("max_cost", "steps"), [(0.1, 1), (0.5, 1), (0.8, 2), (1.0, 3), (1.3, 4)])
def test_an_answer_is_forced_while_it_still_fits_under_the_cap(small_index, max_cost, steps):
    script = [*map(search, range(steps)), priced(ANSWER)]
    agent = create_arag_agent(ScriptedModel(*script), small_index, tools="paper", max_cost=max_cost)
    state = agent.invoke(asked())
    assert (state["stop_reason"], state["steps"]) == ("max_cost", steps)
    if max_cost >= 0.5:  # one call and an answer cost as much
        assert cost(state["model_calls"]) <= max_cost


def test_a_run_below_the_cap_is_not_changed_and_a_context_sets_it(small_index):
    model = ScriptedModel(search(0), priced(ANSWER), search(1), priced(ANSWER))
    agent = create_arag_agent(model, small_index, tools="paper", max_cost=9)
    assert agent.invoke(asked())["stop_reason"] == "answered"
    assert agent.invoke(asked(), context=Context(max_cost=0.2))["stop_reason"] == "max_cost"
    assert "max_cost" not in agent.invoke(asked(), context=Context(model="extractive", max_cost=0.01))["stop_reason"]


def test_a_structured_answer_counts_too(small_index):
    schema = {"title": "Father", "type": "object", "properties": {"name": {"type": "string"}}}
    script = [search(0), search(1), priced(ANSWER), priced(call("Father", name="Boso"))]
    agent = create_arag_agent(ScriptedModel(*script), small_index, tools="paper", max_cost=1, response_format=schema)
    state = agent.invoke(asked())
    assert (state["stop_reason"], state["steps"], cost(state["model_calls"])) == ("max_cost", 2, pytest.approx(1))


@pytest.mark.parametrize("reply", [call("keyword_search", keywords=["x"]), search(0)])
def test_without_a_known_price_the_cap_is_refused(small_index, reply):
    if reply.response_metadata:
        reply = priced(reply, model="my-own-model")
    agent = create_arag_agent(ScriptedModel(reply, AIMessage("x")), small_index, tools="paper", max_cost=1)
    with pytest.raises(
        InputError, match=r"max_cost cannot be kept: the price of (a model without a name|my-own-model)"
    ):
        agent.invoke(asked())


@pytest.mark.parametrize("wrong", [0, -1, "much"])
def test_a_cap_that_is_no_amount_is_refused(small_index, wrong):
    with pytest.raises(InputError, match="max_cost"):
        create_arag_agent("extractive", small_index, max_cost=wrong)
