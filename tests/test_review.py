"""Calls that a person must approve, in LangChain's format."""

from __future__ import annotations

import asyncio

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from arag import trace_page
from arag.errors import InputError
from arag.graph.graph import create_arag_agent
from scripted import ANSWER, ScriptedModel, asked, assert_paired, calls, in_thread, results

TWO = calls(("keyword_search", {"keywords": ["Boso"]}), ("chunk_read", {"chunk_ids": ["lothair:0"]}), ids="ab")


def make(index, *script, interrupt_on=None, **options):
    model = ScriptedModel(*script)
    agent = create_arag_agent(
        model,
        index,
        tools="paper",
        checkpointer=InMemorySaver(),
        interrupt_on=interrupt_on or {"chunk_read": True},
        **options,
    )
    return agent, model


def decide(agent, *decisions, is_async=False):
    command = Command(resume={"decisions": list(decisions)})
    if is_async:
        return asyncio.run(agent.ainvoke(command, in_thread()))
    return agent.invoke(command, in_thread())


def edited(name="chunk_read", /, **args):
    return {"type": "edit", "edited_action": {"name": name, "args": args}}


@pytest.mark.parametrize("is_async", [False, True])
def test_the_run_pauses_with_a_request_and_goes_on_when_the_call_is_approved(small_index, is_async):
    agent, model = make(small_index, TWO, ANSWER)
    if is_async:
        waiting = asyncio.run(agent.ainvoke(asked(), in_thread()))
    else:
        waiting = agent.invoke(asked(), in_thread())
    [paused] = waiting["__interrupt__"]
    [action] = paused.value["action_requests"]
    assert (action["name"], action["args"]) == ("chunk_read", {"chunk_ids": ["lothair:0"]})
    [config] = paused.value["review_configs"]
    assert {"approve", "edit", "reject"} <= set(config["allowed_decisions"])
    assert len(model.calls) == 1
    state = decide(agent, {"type": "approve"}, is_async=is_async)
    assert [result.name for result in results(state)] == ["keyword_search", "chunk_read"]
    assert "He married Teutberga" in results(state)[1].text
    assert (state["answer"], state["read_chunks"]) == (ANSWER.text, ["boso:0", "teutberga:0", "lothair:0"])


def test_a_person_may_change_the_call_and_the_model_is_told(small_index):
    agent, model = make(small_index, TWO, ANSWER)
    agent.invoke(asked(), in_thread())
    state = decide(agent, edited(chunk_ids=["annals:0"]))
    read = results(state)[1]
    assert read.artifact["chunk_ids"] == ["annals:0"]
    assert "annals:0" in state["read_chunks"]
    assert "storm number" in read.text
    assert [record["arguments"] for record in state["trace"]] == [{"keywords": ["Boso"]}, {"chunk_ids": ["annals:0"]}]
    assert_paired(model.calls[1].messages)


def test_the_call_that_a_person_writes_is_the_one_that_is_made_also_where_the_models_own_was_made_before(small_index):
    model_asks = [calls(("keyword_search", {"keywords": ["Boso"]}), ids=name) for name in "abc"]
    agent, _ = make(small_index, *model_asks, ANSWER, interrupt_on={"keyword_search": True})
    agent.invoke(asked(), in_thread())
    decide(agent, {"type": "approve"})
    decide(agent, edited("keyword_search", keywords=["Teutberga"]))
    state = decide(agent, edited("chunk_read", chunk_ids=["annals:0"]))
    made = [(record["tool"], *record["arguments"].values()) for record in state["trace"]]
    assert made == [
        ("keyword_search", ["Boso"]),
        ("keyword_search", ["Teutberga"]),
        ("chunk_read", ["annals:0"]),
    ]
    assert ["made before" in result.text for result in results(state)] == [False] * 3


def test_a_call_is_made_before_if_a_person_wrote_it(small_index):
    first, again = (calls(("keyword_search", {"keywords": [name]})) for name in ("Boso", "Lothair II"))
    agent, _ = make(small_index, first, again, ANSWER, interrupt_on={"keyword_search": True})
    agent.invoke(asked(), in_thread())
    decide(agent, edited("keyword_search", keywords=["Lothair II"]))
    state = decide(agent, {"type": "approve"})
    assert ["made before" in result.text for result in results(state)] == [False, True]


def test_the_page_of_a_run_shows_the_call_that_a_person_wrote(small_index):
    agent, _ = make(small_index, TWO, ANSWER)
    agent.invoke(asked(), in_thread())
    page = trace_page(decide(agent, edited(chunk_ids=["annals:0"])))
    assert page.count("lothair:0") < page.count("annals:0")


@pytest.mark.parametrize(
    ("decision", "told", "status"),
    [
        ({"type": "reject", "message": "Not that one."}, "Not that one.", "error"),
        ({"type": "respond", "message": "Lothair died in 869."}, "Lothair died in 869.", "success"),
    ],
)
def test_a_call_that_a_person_refuses_or_answers_is_not_run(small_index, decision, told, status):
    agent, model = make(small_index, TWO, ANSWER)
    agent.invoke(asked(), in_thread())
    state = decide(agent, decision)
    assert told in results(state)[1].text
    assert [(record["tool"], record["error"] is None) for record in state["trace"]] == [
        ("keyword_search", True),
        ("chunk_read", status == "success"),
    ]
    assert "lothair:0" not in state["read_chunks"]
    assert_paired(model.calls[1].messages)


def test_each_message_asks_once_and_tools_that_nobody_named_run_at_once(small_index):
    both = {"keyword_search": {"allowed_decisions": ["approve", "reject"]}, "chunk_read": True}
    agent, _ = make(small_index, TWO, calls(("semantic_search", {"query": "Boso"})), ANSWER, interrupt_on=both)
    waiting = agent.invoke(asked(), in_thread())
    assert len(waiting["__interrupt__"][0].value["action_requests"]) == 2
    state = decide(agent, {"type": "approve"}, {"type": "reject"})
    assert [result.status for result in results(state)] == ["success", "error", "success"]


def test_a_name_that_no_tool_has_is_refused_and_a_tool_that_a_run_may_choose_is_not(small_index):
    with pytest.raises(InputError, match="interrupt_on names no tool: reed"):
        make(small_index, interrupt_on={"reed": True})
    make(small_index, interrupt_on={"shell": True})
