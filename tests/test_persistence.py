"""Conversations, resumed runs, people in between, and going back in time."""

from __future__ import annotations

import asyncio
import json
from functools import partial

import httpx
import openai
import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

from arag.errors import EmbedderError
from arag.graph.graph import create_arag_agent
from arag.graph.messages import count_context_tokens
from arag.graph.prompts import DROPPED, NOT_RUN, system_prompt
from arag.ingest.pipeline import ingest
from arag.retrieval.tokens import count_tokens
from arag.retrieval.tools import make_tools
from arag.testing import ScriptedModel, assert_paired, call, calls
from fakes import HashEmbeddings, write_corpus
from scripted_model import ANSWER, NOTICE, QUESTION, asked, in_thread, results

pytest_plugins = ["graph_fixtures"]

# --- several questions ---


def test_a_second_question_has_its_own_budget_and_keeps_what_was_read(small_index, checkpointer):
    read = call("chunk_read", chunk_ids=["lothair:0"])
    model = ScriptedModel(read, ANSWER, read.model_copy(deep=True), AIMessage("In 855 [lothair:0]."))
    agent = create_arag_agent(model, small_index, max_steps=2, checkpointer=checkpointer)
    first = agent.invoke(asked(), in_thread())
    second = agent.invoke(asked("When did they marry?"), in_thread())
    assert (first["stop_reason"], second["stop_reason"]) == ("answered", "answered")
    assert (second["steps"], len(second["trace"]), second["usage"]["model_calls"]) == (2, 1, 2)
    assert results(second)[1].text == NOTICE
    assert second["trace"][0]["evidence_tokens"] == 0
    assert second["read_chunks"] == ["lothair:0"]
    [citation] = second["citations"]
    assert (citation["chunk_id"], citation["seen"], citation["read"]) == ("lothair:0", True, True)
    assert_paired(model.calls[-1].messages)
    elsewhere = ScriptedModel(read.model_copy(deep=True), ANSWER)
    other = create_arag_agent(elsewhere, small_index, checkpointer=checkpointer).invoke(asked(), in_thread("other"))
    assert "He married" in results(other)[0].text


def test_the_same_question_asked_again_in_a_thread_is_a_new_one(small_index, checkpointer):
    model = ScriptedModel(ANSWER, ANSWER)
    agent = create_arag_agent(model, small_index, checkpointer=checkpointer)
    question = {"messages": [HumanMessage(QUESTION, id="q")]}
    agent.invoke(question, in_thread())
    second = agent.invoke(question, in_thread())
    assert second["steps"] == 1
    model.assert_used_up()


def test_invalid_replies_of_an_earlier_question_do_not_count(small_index, checkpointer):
    empty = AIMessage("")
    model = ScriptedModel(empty, empty, AIMessage("x"), empty, ANSWER)
    agent = create_arag_agent(model, small_index, max_invalid_replies=2, checkpointer=checkpointer)
    assert agent.invoke(asked(), in_thread())["stop_reason"] == "invalid_replies"
    assert agent.invoke(asked("And?"), in_thread())["stop_reason"] == "answered"


# --- resuming ---


def _openai_error() -> Exception:
    request = httpx.Request("POST", "http://127.0.0.1/v1")
    return openai.OpenAIError(f"no answer from {request.url}")


@pytest.mark.parametrize("error", [RuntimeError("the model is down"), _openai_error()])
def test_a_failing_model_propagates_and_the_run_goes_on_where_it_stopped(small_index, checkpointer, error):
    model = ScriptedModel(call("chunk_read", chunk_ids=["lothair:0"]), error, ANSWER)
    agent = create_arag_agent(model, small_index, checkpointer=checkpointer)
    with pytest.raises(type(error), match=str(error)):
        agent.invoke(asked(), in_thread())
    kept = agent.get_state(in_thread())
    assert kept.next == ("agent",)
    assert kept.values["read_chunks"] == ["lothair:0"]
    assert len(results(kept.values)) == 1
    state = agent.invoke(None, in_thread())
    model.assert_used_up()
    assert (state["stop_reason"], state["steps"], len(state["trace"])) == ("answered", 2, 1)
    assert len(results(state)) == 1


def test_a_resumed_run_has_the_same_budget(small_index, checkpointer):
    search = call("keyword_search", keywords=["Boso"])
    model = ScriptedModel(search, RuntimeError("down"), search.model_copy(deep=True), AIMessage("Forced."))
    agent = create_arag_agent(model, small_index, max_steps=2, checkpointer=checkpointer)
    with pytest.raises(RuntimeError):
        agent.invoke(asked(), in_thread())
    state = agent.invoke(None, in_thread())
    assert (state["stop_reason"], state["steps"], state["usage"]["model_calls"]) == ("max_steps", 2, 3)


def test_a_failing_forced_answer_is_resumed_too(small_index, checkpointer):
    model = ScriptedModel(call("keyword_search", keywords=["Boso"]), RuntimeError("down"), AIMessage("Forced."))
    agent = create_arag_agent(model, small_index, max_steps=1, checkpointer=checkpointer)
    with pytest.raises(RuntimeError):
        agent.invoke(asked(), in_thread())
    assert agent.invoke(None, in_thread())["answer"] == "Forced."


def test_a_failing_tool_propagates_and_a_new_question_finds_every_call_paired(small_index, checkpointer, no_embedder):
    both = calls(("keyword_search", {"keywords": ["Boso"]}), ("semantic_search", {"query": "x"}), ids=["a", "b"])
    model = ScriptedModel(both, call("keyword_search", keywords=["Arles"]), ANSWER)
    agent = create_arag_agent(model, small_index, checkpointer=checkpointer)
    with no_embedder(), pytest.raises(EmbedderError):
        agent.invoke(asked(), in_thread())
    state = agent.invoke(asked("Another?"), in_thread())
    model.assert_used_up()
    for sent in model.calls:
        assert_paired(sent.messages)
    assert [m.text for m in model.calls[-1].messages if m.type == "tool"][:2] == [NOT_RUN, NOT_RUN]
    assert (state["stop_reason"], state["steps"], len(state["trace"])) == ("answered", 2, 1)


def test_a_run_whose_tool_failed_is_resumed_with_that_tool(small_index, checkpointer, no_embedder):
    model = ScriptedModel(call("semantic_search", query="the count of Arles"), ANSWER)
    agent = create_arag_agent(model, small_index, checkpointer=checkpointer)
    with no_embedder(), pytest.raises(EmbedderError):
        agent.invoke(asked(), in_thread())
    state = agent.invoke(None, in_thread())
    assert len(results(state)) == 1
    assert results(state)[0].status == "success"


def test_ids_of_calls_that_a_server_uses_twice_do_not_hide_a_call_without_result(
    small_index, checkpointer, no_embedder
):
    failing = ScriptedModel(call("semantic_search", "call_0", query="x"))
    agent = create_arag_agent(failing, small_index, checkpointer=checkpointer)
    with no_embedder(), pytest.raises(EmbedderError):
        agent.invoke(asked(), in_thread())
    model = ScriptedModel(call("keyword_search", "call_0", keywords=["Boso"]), ANSWER)
    create_arag_agent(model, small_index, checkpointer=checkpointer).invoke(asked("Another?"), in_thread())
    assert_paired(model.calls[-1].messages)


# --- making room ---


def test_old_results_are_dropped_to_fit_and_their_chunks_can_be_read_again(small_index, checkpointer):
    read = partial(call, "chunk_read")
    model = ScriptedModel(
        calls(("chunk_read", {"chunk_ids": ["annals:0"]}), ("chunk_read", {"chunk_ids": ["annals:1"]})),
        AIMessage("Storms [annals:0]."),
        calls(("chunk_read", {"chunk_ids": ["annals:2"]}), ("chunk_read", {"chunk_ids": ["lothair:0"]})),
        read(chunk_ids=["annals:1"]),
        read(chunk_ids=["annals:0"]),
        ANSWER,
    )
    # Room for two of the three chunks, however tokens are counted.
    schemas = json.dumps([convert_to_openai_tool(tool) for tool in make_tools(small_index)])
    sizes = [small_index.get(f"annals:{part}").tokens for part in range(3)]
    budget = count_tokens(system_prompt(make_tools(small_index))) + count_tokens(schemas) + sum(sizes) - sizes[0] // 5
    agent = create_arag_agent(model, small_index, max_context_tokens=budget, checkpointer=checkpointer)
    agent.invoke(asked("Which storms?"), in_thread())
    state = agent.invoke(asked(), in_thread())
    model.assert_used_up()
    assert state["stop_reason"] == "answered"
    for sent in model.calls:
        assert_paired(sent.messages)
        assert count_context_tokens(sent.messages) + count_tokens(json.dumps(sent.options["tools"])) <= budget
    shown = [m.text for m in model.calls[3].messages if m.type == "tool"]
    assert shown[0] == DROPPED
    assert shown[1].startswith("[annals:1]")
    still_known, again = results(state)[-2:]
    assert still_known.text == "[annals:1] Shown in full above."
    assert small_index.get("annals:0").text.partition("\n\n")[2].strip() in again.text
    assert state["trace"][-1]["new_chunks"] == ["annals:0"]
    assert results(state)[0].text != DROPPED  # the state keeps what the prompt leaves out
    assert state["read_chunks"] == ["annals:0", "annals:1", "annals:2", "lothair:0"]


def test_a_follow_up_question_is_understood_by_the_first(small_index, checkpointer):
    def resolve(messages):
        # The model is sent the whole conversation, in which "she" is somebody.
        assert [m.type for m in messages] == ["system", "human", "ai", "tool", "ai", "human"]
        assert messages[-1].text == "And when did she die?"
        assert "Teutberga" in messages[-2].text
        return call("keyword_search", keywords=["Teutberga", "died"])

    model = ScriptedModel(
        call("keyword_search", keywords=["Lothair II"]),
        AIMessage("Teutberga [lothair:0]."),
        resolve,
        AIMessage("In 875 [teutberga:0]."),
        AIMessage("In 855, as said before [lothair:0]."),
    )
    agent = create_arag_agent(model, small_index, checkpointer=checkpointer)
    agent.invoke(asked("Who was the wife of Lothair II?"), in_thread())
    second = agent.invoke(asked("And when did she die?"), in_thread())
    third = agent.invoke(asked("When did they marry?"), in_thread())
    model.assert_used_up()
    assert second["answer"] == "In 875 [teutberga:0]."
    assert (third["steps"], third["trace"]) == (1, [])
    assert third["citations"][0]["seen"]  # by the first question's search


# --- a person in between ---


def test_a_person_edits_a_tool_call_before_it_is_made(small_index, checkpointer):
    model = ScriptedModel(call("keyword_search", "c1", keywords=["Lothar"]), ANSWER)
    agent = create_arag_agent(model, small_index, checkpointer=checkpointer, interrupt_before=["tools"])
    waiting = agent.invoke(asked(), in_thread())
    assert agent.get_state(in_thread()).next == ("tools",)
    proposed = waiting["messages"][-1]
    assert proposed.tool_calls[0]["args"] == {"keywords": ["Lothar"]}

    edited = proposed.model_copy(
        update={"tool_calls": [proposed.tool_calls[0] | {"args": {"keywords": ["Lothair II"]}}]}
    )
    agent.update_state(in_thread(), {"messages": [edited]})
    state = agent.invoke(None, in_thread())
    model.assert_used_up()
    assert results(state)[0].text.startswith("Lothair II: 1 chunk.")
    assert state["trace"][0]["arguments"] == {"keywords": ["Lothair II"]}
    assert model.calls[1].messages[2].tool_calls[0]["args"] == {"keywords": ["Lothair II"]}
    assert state["stop_reason"] == "answered"
    assert_paired(state["messages"])


def test_a_person_answers_in_a_tools_place(small_index, checkpointer):
    model = ScriptedModel(call("keyword_search", "c1", keywords=["Lothair"]), ANSWER)
    agent = create_arag_agent(model, small_index, checkpointer=checkpointer)
    agent.invoke(asked(), in_thread(), interrupt_before=["tools"])
    by_hand = ToolMessage("Ask about Teutberga.", tool_call_id="c1", name="keyword_search")
    agent.update_state(in_thread(), {"messages": [by_hand]}, as_node="tools")
    state = agent.invoke(None, in_thread())
    model.assert_used_up()
    assert [m.text for m in results(state)] == ["Ask about Teutberga."]
    assert (state["answer"], state["stop_reason"], state["trace"]) == (ANSWER.text, "answered", [])


def test_an_interrupt_inside_a_parent_is_resumed_there(small_index, checkpointer):
    model = ScriptedModel(call("chunk_read", chunk_ids=["lothair:0"]), ANSWER)
    parent = StateGraph(MessagesState)
    parent.add_node("research", create_arag_agent(model, small_index, interrupt_before=["tools"]))
    parent.add_edge(START, "research")
    graph = parent.compile(checkpointer=checkpointer)
    graph.invoke(asked(), in_thread())
    assert graph.get_state(in_thread()).next == ("research",)
    state = graph.invoke(None, in_thread())
    model.assert_used_up()
    assert state["messages"][-1].text == ANSWER.text


def test_a_person_writes_the_question_into_a_thread(small_index, checkpointer):
    agent = create_arag_agent("extractive", small_index, checkpointer=checkpointer)
    for question in ("Who was the father of Teutberga?", "Who was a count of Arles?"):
        agent.update_state(in_thread(), asked(question), as_node="__start__")
        assert agent.get_state(in_thread()).next == ("agent",)
        state = agent.invoke(None, in_thread())
        assert (state["stop_reason"], state["steps"] > 1) == ("answered", True)


# --- going back ---


def test_an_earlier_step_is_taken_again_another_way(small_index, checkpointer):
    model = ScriptedModel(
        call("keyword_search", keywords=["Lothair II"]),
        call("chunk_read", chunk_ids=["teutberga:0"]),
        ANSWER,
        AIMessage("Teutberga was his wife [lothair:0]."),
    )
    agent = create_arag_agent(model, small_index, checkpointer=checkpointer)
    first = agent.invoke(asked(), in_thread())
    history = list(agent.get_state_history(in_thread()))
    after_search = next(s for s in history if s.next == ("agent",) and s.values.get("steps") == 1)
    second = agent.invoke(None, after_search.config)
    model.assert_used_up()
    assert [m.type for m in model.calls[3].messages] == ["system", "human", "ai", "tool"]
    assert (second["steps"], second["read_chunks"]) == (2, ["lothair:0"])
    assert second["answer"] == "Teutberga was his wife [lothair:0]."
    assert (first["steps"], first["read_chunks"]) == (3, ["lothair:0", "teutberga:0"])


def test_an_earlier_question_is_asked_differently(small_index, checkpointer):
    model = ScriptedModel(AIMessage("First."), AIMessage("Second."), AIMessage("Other."))
    agent = create_arag_agent(model, small_index, checkpointer=checkpointer)
    agent.invoke(asked("One?"), in_thread())
    before = agent.get_state(in_thread()).config
    agent.invoke(asked("Two?"), in_thread())
    state = agent.invoke(asked("Other?"), before)
    assert [m.text for m in state["messages"]] == ["One?", "First.", "Other?", "Other."]


def test_an_asynchronous_conversation_in_a_file(small_index, tmp_path):
    async def run():
        read = call("chunk_read", chunk_ids=["lothair:0"])
        model = ScriptedModel(read, RuntimeError("down"), ANSWER, read.model_copy(deep=True), AIMessage("In 855."))
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "threads.sqlite")) as saver:
            agent = create_arag_agent(model, small_index, checkpointer=saver)
            with pytest.raises(RuntimeError):
                await agent.ainvoke(asked(), in_thread())
            await agent.ainvoke(None, in_thread())
            state = await agent.ainvoke(asked("When?"), in_thread())
        model.assert_used_up()
        return state

    state = asyncio.run(run())
    assert [m.text for m in results(state)][1] == NOTICE
    assert state["answer"] == "In 855."


# --- a corpus that changes ---


def test_a_chunk_that_changed_or_is_anothers_can_be_read_again(small_index, tmp_path):
    def indexed(text):
        return ingest(write_corpus(tmp_path / "corpus", {"leave": text}), tmp_path / "index", embedder=HashEmbeddings())

    def read():
        return [call("chunk_read", chunk_ids=["leave:0"]), AIMessage("So it says [leave:0].")]

    model = ScriptedModel(*read(), *read(), *read())
    with indexed("Everybody has 25 days.") as index:
        agent = create_arag_agent(model, index, checkpointer=InMemorySaver())
        states = [agent.invoke(asked("How many days?"), in_thread())]
        indexed("Everybody has 30 days.").close()
        states += [agent.invoke(asked(question), in_thread()) for question in ("And now?", "Really?")]
    model.assert_used_up()
    last = [results(state)[-1].text for state in states]
    assert last[0] == "[leave:0]\nEverybody has 25 days."
    assert last[1] == "[leave:0]\nEverybody has 30 days."
    assert last[2] == "[leave:0] Shown in full above."


def test_a_person_writes_a_conversation_that_ends_with_calls_into_a_thread(small_index, checkpointer):
    model = ScriptedModel(call("chunk_read", chunk_ids=["lothair:0"]), AIMessage("First."), AIMessage("[lothair:0]."))
    agent = create_arag_agent(model, small_index, checkpointer=checkpointer)
    first = agent.invoke(asked(), in_thread("one"))
    wanted = [HumanMessage("And Boso?"), call("chunk_read", chunk_ids=["lothair:0", "boso:0"])]
    agent.update_state(in_thread("another"), {"messages": [*first["messages"], *wanted]}, as_node="agent")
    state = agent.invoke(None, in_thread("another"))
    model.assert_used_up()
    assert results(state)[-1].text.startswith(NOTICE + "\n\n[boso:0]")
    assert (state["stop_reason"], state["steps"], len(state["trace"])) == ("answered", 1, 1)
    assert state["read_chunks"] == ["lothair:0", "boso:0"]
    assert [(c["seen"], c["read"]) for c in state["citations"]] == [(True, True)]
