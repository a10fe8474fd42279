"""What `arag.testing` gives to people who test graphs of their own."""

from __future__ import annotations

import doctest

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

import arag.testing
from arag.testing import ScriptedModel, assert_paired, call, invalid_call

pytest_plugins = ["graph_fixtures"]


def test_the_examples_in_the_docstrings_run(small_index):
    assert doctest.testmod(arag.testing, extraglobs={"index": small_index}).failed == 0


def test_replies_are_given_in_order_and_one_too_many_fails():
    first = AIMessage("One.")
    model = ScriptedModel(first, ValueError("no"), lambda messages: AIMessage(f"{len(messages)}"))
    reply = model.invoke([HumanMessage("a"), HumanMessage("b")], stop=["."])
    assert reply.text == "One."
    assert reply is not first
    with pytest.raises(AssertionError, match="1 of 3 replies were used"):
        model.assert_used_up()
    with pytest.raises(ValueError, match="no"):
        model.invoke("x")
    assert model.invoke("x").text == "1"
    model.assert_used_up()
    with pytest.raises(AssertionError, match="has only 3 replies, but the model was called again"):
        model.invoke("x")
    assert [message.text for message in model.calls[0].messages] == ["a", "b"]
    assert model.calls[0].options == {"stop": ["."]}


def test_a_request_shows_what_was_bound():
    def find(word: str) -> str:
        """Find a word."""
        return word

    model = ScriptedModel(AIMessage("x"), AIMessage("y"))
    model.bind_tools([find], tool_choice="any", parallel_tool_calls=False).invoke("a")
    model.invoke("b")
    assert [request.tool_names for request in model.calls] == [["find"], []]
    assert {name: model.calls[0].options[name] for name in ("tool_choice", "parallel_tool_calls")} == {
        "tool_choice": "any",
        "parallel_tool_calls": False,
    }


def test_calls_and_results_are_paired():
    asked, answer = HumanMessage("a"), AIMessage("b")
    result = ToolMessage("r", tool_call_id="1")
    for made in (call("find", "1", word="x"), invalid_call("find", "{", "1")):
        assert_paired([asked, made, result, answer])
        for unpaired in ([asked, made], [made, answer], [made, answer, result], [made, result, result]):
            with pytest.raises(AssertionError, match="without a"):
                assert_paired(unpaired)
    with pytest.raises(AssertionError, match="a result without a call"):
        assert_paired([result])
