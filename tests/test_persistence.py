"""Conversations, resumed runs, people in between, and going back in time."""

from __future__ import annotations

import json

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, messages_from_dict, messages_to_dict
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from arag.errors import ModelError
from arag.graph.graph import create_arag_agent
from scripted import ANSWER, QUESTION, ScriptedModel, asked, assert_paired, call, calls, in_thread, results

READ = call("chunk_read", chunk_ids=["lothair:0"])
SEARCH = call("keyword_search", keywords=["Lothair II"])


# --- several questions ---


def test_a_follow_up_question_finds_the_questions_and_answers_before_it_and_has_its_own_budget(
    small_index, checkpointer
):
    model = ScriptedModel(READ, ANSWER, READ, AIMessage("In 855 [lothair:0]."), AIMessage("As said [lothair:0]."))
    agent = create_arag_agent(model, small_index, tools="paper", max_steps=2, checkpointer=checkpointer)
    agent.invoke(asked(), in_thread())
    second = agent.invoke(asked("When did they marry?"), in_thread())
    third = agent.invoke(asked("And when was that?"), in_thread())
    assert [(m.type, m.text) for m in model.calls[2].messages[1:]] == [
        ("human", QUESTION),
        ("ai", ANSWER.text),
        ("human", "When did they marry?"),
    ]
    assert "He married Teutberga" in results(second)[1].text  # the prompt has it no more: it is shown again
    assert (second["stop_reason"], second["steps"], len(second["trace"])) == ("answered", 2, 1)
    assert (second["usage"]["model_calls"], second["read_chunks"]) == (2, ["lothair:0"])
    assert (third["steps"], third["trace"]) == (1, [])
    [citation] = third["citations"]  # the conversation has shown it
    assert (citation["chunk_id"], citation["seen"], citation["read"]) == ("lothair:0", True, True)


def test_a_long_thread_goes_on_with_its_latest_questions(small_index):
    replies = [reply for number in range(40) for reply in (SEARCH, AIMessage(f"Answer {number} " + "word " * 60))]
    model = ScriptedModel(*replies)
    agent = create_arag_agent(model, small_index, tools="paper", max_context_tokens=3_000, checkpointer=InMemorySaver())
    for number in range(40):
        assert agent.invoke(asked(f"Question {number}?"), in_thread())["stop_reason"] == "answered"
    questions = [message.text for message in model.calls[-1].messages if message.type == "human"]
    assert 2 < len(questions) < 39
    assert questions == [f"Question {number}?" for number in range(40)][-len(questions) :]
    assert model.calls[-1].messages[1].type == "human"


def test_a_conversation_that_the_caller_keeps_as_json_goes_on(small_index):
    model = ScriptedModel(READ, ANSWER, AIMessage("As said [lothair:0]."))
    agent = create_arag_agent(model, small_index, tools="paper")
    messages = messages_from_dict(json.loads(json.dumps(messages_to_dict(agent.invoke(asked())["messages"]))))
    state = agent.invoke({"messages": [*messages, HumanMessage("And then?")]})
    assert (state["steps"], state["read_chunks"]) == (1, ["lothair:0"])
    assert [(c["seen"], c["read"]) for c in state["citations"]] == [(True, True)]


# --- resuming ---


def test_a_failing_model_propagates_and_the_run_goes_on_where_it_stopped(small_index, checkpointer):
    model = ScriptedModel(READ, RuntimeError("down"), SEARCH, RuntimeError("down again"), AIMessage("Forced."))
    agent = create_arag_agent(model, small_index, tools="paper", max_steps=2, checkpointer=checkpointer)
    with pytest.raises(RuntimeError, match="down"):
        agent.invoke(asked(), in_thread())
    kept = agent.get_state(in_thread())
    assert (kept.next, kept.values["read_chunks"], len(results(kept.values))) == (("agent",), ["lothair:0"], 1)
    with pytest.raises(RuntimeError, match="down again"):
        agent.invoke(None, in_thread())
    assert agent.get_state(in_thread()).next == ("force_answer",)
    state = agent.invoke(None, in_thread())
    model.assert_used_up()
    assert (state["answer"], state["stop_reason"], state["steps"]) == ("Forced.", "max_steps", 2)
    assert (len(state["trace"]), state["usage"]["model_calls"]) == (2, 3)


def test_a_failing_tool_propagates_and_runs_again_or_is_left_behind(small_index, checkpointer, monkeypatch):
    def fail(_):
        raise ModelError("the embedding service went away")

    both = calls(("keyword_search", {"keywords": ["Boso"]}), ("semantic_search", {"query": "Arles"}))
    model = ScriptedModel(both, ANSWER, both, SEARCH, ANSWER)
    agent = create_arag_agent(model, small_index, tools="paper", checkpointer=checkpointer)
    for thread in ("resumed", "asked anew"):
        with monkeypatch.context() as patch:
            patch.setattr(small_index.embedder, "embed_query", fail)
            with pytest.raises(ModelError):
                agent.invoke(asked(), in_thread(thread))
        state = agent.invoke(None if thread == "resumed" else asked("Another?"), in_thread(thread))
        assert [message.status for message in results(state)] == ["success"] * (2 if thread == "resumed" else 1)
    assert [m.type for m in model.calls[4].messages] == ["system", "human", "ai", "tool"]
    assert (state["stop_reason"], state["steps"], len(state["trace"])) == ("answered", 2, 1)


# --- a person in between ---


def test_a_person_edits_a_tool_call_before_it_is_made(small_index, checkpointer):
    model = ScriptedModel(call("keyword_search", "c1", keywords=["Lothar"]), ANSWER)
    agent = create_arag_agent(model, small_index, tools="paper", checkpointer=checkpointer, interrupt_before=["tools"])
    proposed = agent.invoke(asked(), in_thread())["messages"][-1]
    assert agent.get_state(in_thread()).next == ("tools",)
    edited = {"tool_calls": [proposed.tool_calls[0] | {"args": {"keywords": ["Lothair II"]}}]}
    agent.update_state(in_thread(), {"messages": [proposed.model_copy(update=edited)]})
    state = agent.invoke(None, in_thread())
    assert results(state)[0].text.startswith("Lothair II: 1 chunk.")
    assert state["trace"][0]["arguments"] == {"keywords": ["Lothair II"]}
    assert_paired(state["messages"])


def test_a_person_asks_something_else_before_a_tool_call_is_made(small_index, checkpointer):
    answer = AIMessage("He had three.")
    model = ScriptedModel(call("keyword_search", "c1", keywords=["Lothar"]), answer, answer)
    agent = create_arag_agent(model, small_index, tools="paper", checkpointer=checkpointer, interrupt_before=["tools"])
    agent.invoke(asked(), in_thread())
    agent.update_state(in_thread(), asked("How many children had Boso?"))
    assert agent.invoke(None, in_thread())["answer"] == "He had three."
    assert [message.type for message in model.calls[1].messages] == ["system", "human"]  # the other is left out


def test_a_person_writes_a_question_into_a_thread(small_index, checkpointer):
    agent = create_arag_agent("extractive", small_index, checkpointer=checkpointer)
    agent.update_state(in_thread(), asked("Who was a count of Arles?"), as_node="__start__")
    assert agent.get_state(in_thread()).next == ("agent",)
    assert agent.invoke(None, in_thread())["stop_reason"] == "answered"
    agent.update_state(in_thread(), {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES)]})
    assert agent.get_state(in_thread()).next == ()
