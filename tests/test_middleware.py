"""The middleware for LangChain's agents: what the graph does, in somebody else's agent."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, hook_config
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from arag import ARAGMiddleware, Context, Scope, create_arag_agent
from arag.errors import IndexNotFoundError, InputError
from arag.graph.prompts import system_prompt
from arag.graph.state import OutputState
from arag.models.chat import load_model
from arag.retrieval.tools.sets import TOOL_SETS, make_tools
from scripted import (
    ANSWER,
    MODES,
    EndlessModel,
    ScriptedModel,
    asked,
    assert_paired,
    call,
    in_thread,
    invalid_call,
    plain,
    priced,
    results,
)

SEARCH = call("keyword_search", "s1", keywords=["Lothair II"])
READ = call("chunk_read", "r1", chunk_ids=["teutberga:0"])


def read(*chunk_ids, number=0):
    return call("chunk_read", f"{chunk_ids[0]}-{number}", chunk_ids=list(chunk_ids))


@tool
def calendar(year: int) -> str:
    """Say what happened in a year."""
    return f"In {year} nothing happened."


@dataclass
class Conversation:
    script: list[Any]
    tools: Any = "paper"
    settings: dict[str, Any] = field(default_factory=dict)
    context: Any = None


CONVERSATIONS = {
    "a search, a read and an answer": Conversation([SEARCH, READ, ANSWER]),
    "the same chunk three times": Conversation([*(read("lothair:0", number=number) for number in range(3)), ANSWER]),
    "too many steps": Conversation([SEARCH, READ, ANSWER], settings={"max_steps": 2}),
    "too long": Conversation(
        [read("annals:0"), read("annals:1"), read("boso:0"), ANSWER], settings={"max_context_tokens": 3000}
    ),
    "an empty reply": Conversation([SEARCH, AIMessage(" "), ANSWER]),
    "two empty replies": Conversation([SEARCH, AIMessage(" "), READ, AIMessage(""), ANSWER]),
    "an answer without a search": Conversation([AIMessage("From memory."), SEARCH, ANSWER]),
    "the same call again and again": Conversation(
        [*(call("keyword_search", f"s{number}", keywords=["Lothair II"]) for number in range(3)), ANSWER]
    ),
    "a prompt that is too long for the model": Conversation(
        [SEARCH, READ, *[ContextOverflowError("too long")] * 2, ANSWER]
    ),
    "a call as text": Conversation(
        [AIMessage('<tool_call>{"name": "chunk_read", "arguments": {"chunk_ids": ["boso:0"]}}</tool_call>'), ANSWER]
    ),
    "an answer with thinking": Conversation([READ, AIMessage("<think>Boso?</think>Boso the Elder [teutberga:0].")]),
    "an answer that is cut off": Conversation(
        [
            READ,
            AIMessage("Boso the Elder. Teutberga was", response_metadata={"finish_reason": "length"}),
            AIMessage("Teutberga was his daughter [teutberga:0]."),
        ]
    ),
    "too expensive": Conversation([priced(SEARCH), priced(READ), priced(ANSWER)], settings={"max_cost": 0.8}),
    "an empty forced answer": Conversation([SEARCH, AIMessage("")], settings={"max_steps": 1}),
    "arguments that are not JSON": Conversation([invalid_call("chunk_read", '{"chunk_ids": [', "i1"), READ, ANSWER]),
    "an unknown tool, and wrong arguments": Conversation(
        [call("web_search", "w1", query="x"), call("chunk_read", "w2"), READ, ANSWER]
    ),
    "a scope": Conversation(
        [read("boso:0"), read("annals:0"), AIMessage("A count [boso:0]; storms [annals:0].")],
        context=Context(scope=Scope(documents=["boso"])),
    ),
    "invented and unread sources": Conversation([SEARCH, AIMessage("So [lothair:0], [teutberga:0], [pippin.md:4].")]),
    "the shell": Conversation([call("shell", "c1", command="rg -i boso"), AIMessage("Boso [boso:0].")], tools=None),
    "a tool of one's own": Conversation([call("calendar", "k1", year=855), READ, ANSWER], tools=["paper", calendar]),
    "settings of a run": Conversation(
        [call("grep", "g1", pattern="Boso"), call("chunk_read", "g2", chunk_ids=["boso:0"]), ANSWER],
        context=Context(tools=["grep"], max_steps=2, system_prompt="Be brief."),
    ),
}


def without_times(state):
    records = {}
    for key in ("trace", "model_calls"):
        records[key] = [{name: value for name, value in record.items() if name != "seconds"} for record in state[key]]
    return {key: value for key, value in state.items() if key not in {"messages", "seen_chunks"}} | records


def sent(model):
    return [(plain(request.messages), request.tool_names) for request in model.calls]


def run(agent, conversation, asynchronous):
    if asynchronous:
        return asyncio.run(agent.ainvoke(asked(), context=conversation.context))
    return agent.invoke(asked(), context=conversation.context)


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("conversation", CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_a_conversation_goes_as_in_the_graph(small_index, conversation, asynchronous):
    ours, theirs = ScriptedModel(*conversation.script), ScriptedModel(*conversation.script)
    graph = create_arag_agent(ours, small_index, tools=conversation.tools, **conversation.settings)
    middleware = ARAGMiddleware(small_index, tools=conversation.tools, **conversation.settings)
    agent = create_agent(theirs, middleware=[middleware])
    expected, state = run(graph, conversation, asynchronous), run(agent, conversation, asynchronous)
    ours.assert_used_up()
    assert sent(theirs) == sent(ours)
    assert without_times(state) == without_times(expected)
    assert [result.text for result in results(state)] == [result.text for result in results(expected)]
    assert state["messages"][-1].text == expected["messages"][-1].text
    assert all(0 < record["seconds"] < 60 for record in state["model_calls"])
    assert any(0 < record["seconds"] < 60 for record in state["trace"])


def test_a_thread_has_fresh_budgets_and_forgets_the_records_of_the_question_before(small_index, checkpointer):
    model = ScriptedModel(read("lothair:0"), AIMessage("A king [lothair:0]."), read("boso:0"), ANSWER)
    agent = create_agent(
        model, middleware=[ARAGMiddleware(small_index, tools="paper", max_steps=2)], checkpointer=checkpointer
    )
    first = agent.invoke(asked("Who?"), in_thread())
    second = agent.invoke(asked("And Boso?"), in_thread())
    assert [(state["steps"], state["stop_reason"]) for state in (first, second)] == [(2, "answered")] * 2
    assert [record["chunk_ids"] for record in second["trace"]] == [["boso:0"]]
    assert [citation["chunk_id"] for citation in second["citations"]] == ["teutberga:0"]
    assert second["read_chunks"] == ["lothair:0", "boso:0"]
    assert second["usage"]["model_calls"] == 2


def test_earlier_texts_stay_in_a_thread_while_they_fit_and_are_not_shown_again(small_index):
    model = ScriptedModel(read("annals:0", "annals:1"), ANSWER, read("annals:0", number=1), ANSWER)
    for budget, shown_again in ((100_000, False), (2_300, True)):
        model.calls.clear()
        middleware = ARAGMiddleware(small_index, tools="paper", max_context_tokens=budget)
        agent = create_agent(model, middleware=[middleware], checkpointer=InMemorySaver())
        agent.invoke(asked("Who?"), in_thread())
        state = agent.invoke(asked("And then? " * 200), in_thread())
        assert state["stop_reason"] == "answered"
        assert ("broke the bridges" in results(state)[-1].text) == shown_again


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("limit", [4, 5, 6, 7, 9, 12, 20])
def test_no_recursion_limit_ends_a_run_without_an_answer(small_index, mode, limit):
    agent = create_agent(EndlessModel(mode=mode), middleware=[ARAGMiddleware(small_index, tools="paper")])
    state = agent.invoke(asked(), {"recursion_limit": limit})
    assert state["answer"] == "That is all [lothair:0]."
    assert state["stop_reason"] != "answered"


@pytest.mark.parametrize("mode", MODES)
def test_every_call_has_a_result_in_what_the_model_is_sent(small_index, mode):
    model = EndlessModel(mode=mode)
    agent = create_agent(model, middleware=[ARAGMiddleware(small_index, tools="paper", max_steps=4)])
    state = agent.invoke(asked())
    assert state["answer"] == "That is all [lothair:0]."
    for request in model.calls:
        assert_paired(request.messages)


def test_the_prompt_stands_behind_that_of_the_agent(small_index):
    ours = system_prompt(make_tools(small_index, names="paper"), small_index)
    parts = [{"type": "text", "text": "Speak Latin."}]
    for given in ("Speak Latin.", SystemMessage(parts)):
        model = ScriptedModel(SEARCH, ANSWER)
        agent = create_agent(
            model, system_prompt=given, middleware=[ARAGMiddleware(small_index, tools="paper", max_steps=1)]
        )
        agent.invoke(asked())
        searching, forced = (request.messages[0].text for request in model.calls)
        assert searching == f"Speak Latin.\n\n{ours}"
        assert forced.startswith("Speak Latin.\n\nYou answer a question from passages")


def test_the_tools_of_the_agent_are_kept_and_a_tool_of_its_own_replaces_ours(small_index):
    @tool
    def chunk_read(chunk_ids: list[str]) -> str:
        """Read chunks."""
        return f"The text of {chunk_ids[0]}"

    model = ScriptedModel(READ, call("calendar", year=855), ANSWER)
    agent = create_agent(model, [calendar, chunk_read], middleware=[ARAGMiddleware(small_index, tools="paper")])
    state = agent.invoke(asked())
    assert [result.text for result in results(state)] == ["The text of teutberga:0", "In 855 nothing happened."]
    assert [record["tool"] for record in state["trace"]] == ["chunk_read", "calendar"]
    assert set(model.calls[0].tool_names) == {"keyword_search", "semantic_search", "chunk_read", "calendar"}
    assert [citation["seen"] for citation in state["citations"]] == [False]


def test_a_run_chooses_tools_and_a_call_of_another_one_is_an_error(small_index):
    model = ScriptedModel(SEARCH, call("grep", pattern="Boso"), ANSWER)
    agent = create_agent(model, middleware=[ARAGMiddleware(small_index, tools="paper")])
    state = agent.invoke(asked(), context=Context(tools=["grep"]))
    assert model.calls[0].tool_names == ["grep"]
    refused, found = results(state)
    assert refused.status == "error"
    assert "keyword_search is not a valid tool, try one of [grep]" in refused.text
    assert "[boso:0]" in found.text


def test_the_built_in_model_gets_tools_that_it_can_call(small_index):
    agent = create_agent(load_model("extractive"), middleware=[ARAGMiddleware(small_index)])
    state = agent.invoke(asked("Who was a count of Arles?"))
    assert {record["tool"] for record in state["trace"]} <= set(TOOL_SETS["all"])
    assert state["citations"][0]["chunk_id"] == "boso:0"


def test_the_model_of_a_run_is_that_of_its_context(small_index):
    agent = create_agent(ScriptedModel(), middleware=[ARAGMiddleware(small_index)])
    state = agent.invoke(asked("Who was a count of Arles?"), context=Context(model="extractive"))
    assert state["citations"][0]["chunk_id"] == "boso:0"


def test_the_context_of_the_agents_model_is_the_budget(small_index):
    script = [read("annals:0", "annals:1", "annals:2"), ANSWER]
    for settings, reason in (({}, "token_budget"), ({"max_context_tokens": 50_000}, "answered")):
        model = ScriptedModel(*script, profile={"max_input_tokens": 2_000})
        agent = create_agent(model, middleware=[ARAGMiddleware(small_index, tools="paper", **settings)])
        assert agent.invoke(asked())["stop_reason"] == reason


@dataclass
class Ours:
    scope: Any = None


def test_the_scope_of_another_context_counts_and_a_wrong_one_ends_the_run(small_index):
    model = ScriptedModel(read("boso:0", "annals:0"), ANSWER)
    agent = create_agent(model, middleware=[ARAGMiddleware(small_index, tools="paper")], context_schema=Ours)
    (result,) = results(agent.invoke(asked(), context=Ours(Scope(documents=["boso"]))))
    assert "count of Arles" in result.text
    assert "broke the bridges" not in result.text
    with pytest.raises(InputError, match="is not a scope"):
        agent.invoke(asked(), context=Ours("kitchen"))


class Reader(ScriptedModel):
    """Reads the chunk that the question names, twice, and cites it."""

    def _reply(self, messages, options):
        chunk_id = next(message.text for message in messages if isinstance(message, HumanMessage))
        if sum(isinstance(message, ToolMessage) for message in messages) < 2:
            return call("chunk_read", chunk_ids=[chunk_id])
        return AIMessage(f"So [{chunk_id}].")


def test_many_runs_at_once_keep_apart_what_they_were_shown(small_index):
    agent = create_agent(Reader(), middleware=[ARAGMiddleware(small_index, tools="paper")], context_schema=Ours)
    names = ["lothair", "teutberga", "boso", "annals"] * 5

    async def ask_all():
        runs = [agent.ainvoke(asked(f"{name}:0"), context=Ours(Scope(documents=[name]))) for name in names]
        return await asyncio.gather(*runs)

    for states in (asyncio.run(ask_all()), agent.batch([asked(f"{name}:0") for name in names])):
        for name, state in zip(names, states, strict=True):
            assert [record["new_chunks"] for record in state["trace"]] == [[f"{name}:0"], []]
            assert [(each["chunk_id"], each["read"]) for each in state["citations"]] == [(f"{name}:0", True)]


def test_errors_come_when_the_middleware_is_made(small_index, tmp_path):
    with pytest.raises(IndexNotFoundError):
        ARAGMiddleware(tmp_path / "nothing")
    with pytest.raises(InputError, match="max_step"):
        ARAGMiddleware(small_index, max_step=3)
    with pytest.raises(InputError, match="there is no question"):
        create_agent(ScriptedModel(), middleware=[ARAGMiddleware(small_index)]).invoke({"messages": []})


def test_two_of_them_in_one_agent_are_an_error(small_index):
    class Other(ARAGMiddleware):
        pass

    agent = create_agent(ScriptedModel(), middleware=[ARAGMiddleware(small_index), Other(small_index)])
    with pytest.raises(InputError, match="an agent takes one ARAGMiddleware: for several indexes, give each"):
        agent.invoke(asked())


def test_each_key_of_the_state_is_described(small_index):
    agent = create_agent(ScriptedModel(), middleware=[ARAGMiddleware(small_index)])
    properties = agent.get_output_jsonschema()["properties"]
    assert {*OutputState.__annotations__, "seen_chunks"} == set(properties)
    for key in properties.keys() - {"messages", "structured_response"}:
        assert properties[key].get("description"), key
    assert set(agent.get_input_jsonschema()["properties"]) == {"messages"}


class Father(BaseModel):
    """Who the father was."""

    name: str
    source: str


def test_a_structured_answer_has_citations(small_index):
    structured = call("Father", name="Boso the Elder", source="[teutberga:0]")
    for settings, script in (({}, [READ, structured]), ({"max_steps": 1}, [READ, structured])):
        model = ScriptedModel(*script)
        agent = create_agent(
            model, middleware=[ARAGMiddleware(small_index, tools="paper", **settings)], response_format=Father
        )
        state = agent.invoke(asked())
        assert state["structured_response"] == Father(name="Boso the Elder", source="[teutberga:0]")
        assert '"name": "Boso the Elder"' in state["answer"]
        assert [(each["chunk_id"], each["read"]) for each in state["citations"]] == [("teutberga:0", True)]
        assert state["stop_reason"] == ("max_steps" if settings else "answered")
        assert [record["tool"] for record in state["trace"]] == ["chunk_read"]


def test_streams_report_tool_calls_updates_and_the_answer(small_index):
    model = ScriptedModel(SEARCH, READ, ANSWER)
    agent = create_agent(model, middleware=[ARAGMiddleware(small_index, tools="paper")])
    found, steps, text = [], 0, ""
    for mode, part in agent.stream(asked(), stream_mode=["custom", "updates", "messages"]):
        if mode == "custom":
            found.append((part["tool"], part["chunk_ids"]))
        elif mode == "updates":
            steps += sum(len(update["model_calls"]) for name, update in part.items() if name == "model")
        elif part[0].type in {"ai", "AIMessageChunk"} and part[1]["langgraph_node"] == "model":
            text += part[0].text
    assert found == [("keyword_search", ["lothair:0"]), ("chunk_read", ["teutberga:0"])]
    assert steps == 3
    assert text == ANSWER.text


def test_a_run_that_failed_goes_on_where_it_stopped(small_index):
    model = ScriptedModel(READ, ConnectionError("away"), ANSWER)
    agent = create_agent(model, middleware=[ARAGMiddleware(small_index, tools="paper")], checkpointer=InMemorySaver())
    with pytest.raises(ConnectionError):
        agent.invoke(asked(), in_thread())
    state = agent.invoke(None, in_thread())
    assert (state["answer"], state["steps"], len(state["trace"])) == (ANSWER.text, 2, 1)


def test_a_tool_that_answers_directly_ends_the_run(small_index):
    @tool(return_direct=True)
    def hand_over(to: str) -> str:
        """Hand the question over to somebody."""
        return f"{to} will answer."

    agent = create_agent(
        ScriptedModel(call("hand_over", to="Ada")), [hand_over], middleware=[ARAGMiddleware(small_index)]
    )
    state = agent.invoke(asked())
    assert (state["answer"], state["stop_reason"]) == ("Ada will answer.", "ended")
    assert [record["tool"] for record in state["trace"]] == ["hand_over"]


def test_what_other_middleware_asks_for_at_the_end_is_a_part_of_the_run(small_index):
    class Again(AgentMiddleware):
        @hook_config(can_jump_to=["model"])
        def after_model(self, state, runtime):
            if state["messages"][-1].text == "No idea.":
                return {"messages": [HumanMessage("Try again.")], "jump_to": "model"}
            return None

    model = ScriptedModel(AIMessage("No idea."), READ, ANSWER)
    agent = create_agent(model, middleware=[ARAGMiddleware(small_index, tools="paper"), Again()])
    state = agent.invoke(asked())
    assert (state["answer"], state["stop_reason"], state["steps"]) == (ANSWER.text, "answered", 3)
