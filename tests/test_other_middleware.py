"""ARAGMiddleware beside each middleware that LangChain ships, in both orders where the order matters."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    HumanInTheLoopMiddleware,
    LLMToolSelectorMiddleware,
    ModelCallLimitMiddleware,
    ModelFallbackMiddleware,
    ModelRetryMiddleware,
    PIIMiddleware,
    SummarizationMiddleware,
    TodoListMiddleware,
    ToolCallLimitMiddleware,
    ToolRetryMiddleware,
)
from langchain.agents.middleware.types import wrap_model_call
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from arag import ARAGMiddleware, Context, Scope
from scripted import ANSWER, NOTICE, EndlessModel, ScriptedModel, asked, call, calls, in_thread, results

MARRIED = "He married Teutberga"
READ = call("chunk_read", "r1", chunk_ids=["teutberga:0"])
both_orders = pytest.mark.parametrize("ours_first", [True, False], ids=["outside", "inside"])


def read_lothair(number):
    return call("chunk_read", f"call-{number}", chunk_ids=["lothair:0"])


def make_agent(model, index, other, *, ours_first=True, tools=None, checkpointer=None, **settings):
    ours = ARAGMiddleware(index, **({"tools": "paper"} | settings))
    middleware = [ours, other] if ours_first else [other, ours]
    return create_agent(model, tools, middleware=middleware, checkpointer=checkpointer)


def cited(state):
    return [(citation["chunk_id"], citation["seen"], citation["read"]) for citation in state["citations"]]


def sent_texts(model):
    """Return what the model was sent in each call, as one text."""
    return ["\n".join(message.text for message in request.messages) for request in model.calls]


# --- what shortens the model's context ---


@both_orders
def test_a_text_that_is_cleared_is_shown_again(small_index, ours_first):
    model = ScriptedModel(*map(read_lothair, range(2)), AIMessage("A king [lothair:0]."))
    clear = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=1, keep=0)])
    state = make_agent(model, small_index, clear, ours_first=ours_first).invoke(asked())
    assert [MARRIED in result.text for result in results(state)] == [True] * 2
    for request in model.calls[1:]:
        assert {message.text for message in request.messages if isinstance(message, ToolMessage)} == {"[cleared]"}
    assert cited(state) == [("lothair:0", True, True)]


@both_orders
def test_a_text_that_is_not_cleared_yet_is_not_shown_again(small_index, ours_first):
    model = ScriptedModel(read_lothair(0), READ, read_lothair(1), read_lothair(2), ANSWER)
    clear = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=1, keep=2)])
    state = make_agent(model, small_index, clear, ours_first=ours_first).invoke(asked())
    assert [result.text == NOTICE for result in results(state)] == [False, False, True, False]


@both_orders
def test_once_a_text_was_cleared_others_are_shown_again_too(small_index, ours_first):
    reads = [
        call("chunk_read", f"r{n}", chunk_ids=[f"{name}:0"]) for n, name in enumerate("lothair boso teutberga".split())
    ]
    model = ScriptedModel(*reads, call("chunk_read", "r3", chunk_ids=["teutberga:0"]), ANSWER)
    clear = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=1, keep=2)])
    state = make_agent(model, small_index, clear, ours_first=ours_first).invoke(asked())
    assert ["Shown in full above" in result.text for result in results(state)] == [False] * 4


@both_orders
def test_a_forced_answer_has_the_texts_that_were_cleared(small_index, ours_first):
    model = ScriptedModel(read_lothair(0), READ, ANSWER)
    clear = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=1, keep=0)])
    state = make_agent(model, small_index, clear, ours_first=ours_first, max_steps=2).invoke(asked())
    assert MARRIED in model.calls[-1].messages[-1].text
    assert (state["stop_reason"], cited(state)) == ("max_steps", [("teutberga:0", True, True)])


@both_orders
def test_what_a_summary_replaces_is_shown_again_and_recorded(small_index, ours_first):
    model = ScriptedModel(*map(read_lothair, range(4)), ANSWER)
    summary = SummarizationMiddleware(
        model, trigger=("messages", 4), keep=("messages", 1), summarizer=lambda _: "Lothair was a king."
    )
    state = make_agent(model, small_index, summary, ours_first=ours_first, max_steps=4).invoke(asked())
    assert state["stop_reason"] == "max_steps"
    assert [MARRIED in shown for shown in sent_texts(model)] == [False, True, False, True, True]
    assert [record["new_chunks"] for record in state["trace"]] == [["lothair:0"], [], ["lothair:0"], ["lothair:0"]]
    assert [record["step"] for record in state["trace"]] == [1, 2, 3, 4]
    assert state["seen_chunks"] == ["lothair:0"]
    forced = sent_texts(model)[-1]
    assert "Lothair was a king." in forced
    assert "Who was the father of the wife of Lothair II?\n\nWhat was found:" in forced


# --- people, and personal data ---


@both_orders
def test_people_approve_edit_and_reject_calls(small_index, ours_first):
    script = [read_lothair(0), read_lothair(1), read_lothair(2), ANSWER]
    people = HumanInTheLoopMiddleware(interrupt_on={"chunk_read": True})
    agent = make_agent(ScriptedModel(*script), small_index, people, ours_first=ours_first, checkpointer=InMemorySaver())
    waiting = agent.invoke(asked(), in_thread())
    (request,) = waiting["__interrupt__"][0].value["action_requests"]
    assert (request["name"], request["args"]) == ("chunk_read", {"chunk_ids": ["lothair:0"]})
    edited = {"name": "chunk_read", "args": {"chunk_ids": ["teutberga:0"]}}
    for decision in (
        {"type": "approve"},
        {"type": "edit", "edited_action": edited},
        {"type": "reject", "message": "Enough."},
    ):
        state = agent.invoke(Command(resume={"decisions": [decision]}), in_thread())
    assert state["answer"] == ANSWER.text
    assert [record["chunk_ids"] for record in state["trace"]] == [["lothair:0"], ["teutberga:0"], []]
    asked_for = [record["arguments"]["chunk_ids"] for record in state["trace"]]
    assert asked_for == [["lothair:0"], ["teutberga:0"], ["lothair:0"]]
    assert [record["error"] is None for record in state["trace"]] == [True, True, False]
    assert "Enough." in state["trace"][-1]["error"]
    assert cited(state) == [("teutberga:0", True, True)]


@both_orders
def test_a_call_of_another_tool_that_a_person_writes_stays_in_the_scope(small_index, ours_first):
    @tool
    def calendar(year: int) -> str:
        """Say what happened in a year."""
        return f"In {year} nothing happened."

    asked_for = [call("keyword_search", keywords=["Boso"]), call("calendar", year=855)]
    people = HumanInTheLoopMiddleware(interrupt_on={"keyword_search": True, "calendar": True})
    agent = make_agent(
        ScriptedModel(*asked_for, ANSWER),
        small_index,
        people,
        ours_first=ours_first,
        tools=[calendar],
        checkpointer=InMemorySaver(),
    )
    context = Context(scope=Scope(documents=["boso"]))
    agent.invoke(asked(), in_thread(), context=context)
    read = {"name": "chunk_read", "args": {"chunk_ids": ["boso:0", "lothair:0"]}}
    for _ in asked_for:
        decision = {"type": "edit", "edited_action": read}
        state = agent.invoke(Command(resume={"decisions": [decision]}), in_thread(), context=context)
    assert [(record["tool"], record["arguments"]) for record in state["trace"]] == [("chunk_read", read["args"])] * 2
    assert [("count of Arles" in result.text, MARRIED in result.text) for result in results(state)] == [
        (True, False),
        (True, False),
    ]


@both_orders
def test_the_answer_has_no_personal_data_that_other_middleware_takes_out(small_index, ours_first):
    model = ScriptedModel(READ, AIMessage("Ask ada@example.org [teutberga:0]."))
    private = PIIMiddleware("email", strategy="redact", apply_to_output=True)
    state = make_agent(model, small_index, private, ours_first=ours_first).invoke(asked())
    assert state["answer"] == "Ask [REDACTED_EMAIL] [teutberga:0]."
    assert state["stop_reason"] == "answered"
    assert cited(state) == [("teutberga:0", True, True)]
    (span,) = state["citations"][0]["spans"]
    assert state["answer"][span["start"] : span["end"]] == "[teutberga:0]"


@both_orders
def test_personal_data_in_results_is_not_what_the_tools_gave(make_index, ours_first):
    index = make_index([{"id": "ada", "text": "Ada is at ada@example.org every day."}])
    reads = [call("chunk_read", f"a{number}", chunk_ids=["ada:0"]) for number in range(2)]
    model = ScriptedModel(*reads, AIMessage("By mail [ada:0]."))
    private = PIIMiddleware("email", strategy="redact", apply_to_tool_results=True)
    state = make_agent(model, index, private, ours_first=ours_first).invoke(asked("Where?"))
    assert all("[REDACTED_EMAIL] every day" in result.text for result in results(state))
    assert cited(state) == [("ada:0", True, True)]


# --- limits ---


@both_orders
def test_a_limit_of_model_calls_ends_a_run(small_index, ours_first):
    agent = make_agent(
        EndlessModel(mode="one_call"), small_index, ModelCallLimitMiddleware(run_limit=2), ours_first=ours_first
    )
    state = agent.invoke(asked())
    assert (state["stop_reason"], state["steps"], len(state["trace"])) == ("ended", 2, 2)
    assert state["answer"] == state["messages"][-1].text
    assert "limit" in state["answer"].lower()


@both_orders
@pytest.mark.parametrize("behavior", ["continue", "end"])
def test_a_limit_of_tool_calls_refuses_them_or_ends_a_run(small_index, ours_first, behavior):
    agent = make_agent(
        EndlessModel(mode="one_call"),
        small_index,
        ToolCallLimitMiddleware(run_limit=1, exit_behavior=behavior),
        ours_first=ours_first,
        max_steps=3,
    )
    state = agent.invoke(asked())
    refused = [record["error"] for record in state["trace"]]
    assert refused[0] is None
    assert all("limit" in error for error in refused[1:])
    if behavior == "end":
        assert (state["stop_reason"], len(refused)) == ("ended", 2)
    else:
        assert (state["stop_reason"], len(refused), state["answer"]) == ("max_steps", 3, "That is all [lothair:0].")


# --- retries, other models, other tools ---


@both_orders
def test_a_model_that_fails_is_asked_again_and_counts_once(small_index, ours_first):
    model = ScriptedModel(ConnectionError("away"), READ, ConnectionError("away"), ANSWER)
    retry = ModelRetryMiddleware(max_retries=1, initial_delay=0, jitter=False)
    state = make_agent(model, small_index, retry, ours_first=ours_first).invoke(asked())
    assert (state["answer"], state["steps"], len(state["trace"])) == (ANSWER.text, 2, 1)


@both_orders
def test_another_model_answers_for_one_that_fails(small_index, ours_first):
    model = ScriptedModel(READ, ConnectionError("away"), ConnectionError("away"))
    other = ScriptedModel(read_lothair(0), ANSWER)
    agent = make_agent(model, small_index, ModelFallbackMiddleware(other), ours_first=ours_first)
    state = agent.invoke(asked())
    assert (state["answer"], state["steps"]) == (ANSWER.text, 3)
    assert [request.tool_names for request in other.calls] == [["keyword_search", "semantic_search", "chunk_read"]] * 2


@both_orders
def test_a_tool_that_fails_is_called_again(small_index, ours_first):
    attempts = []

    @tool
    def calendar(year: int) -> str:
        """Say what happened in a year."""
        attempts.append(year)
        if len(attempts) < 3:
            raise ConnectionError("away")
        return f"In {year} nothing happened."

    retry = ToolRetryMiddleware(max_retries=2, initial_delay=0, jitter=False)
    model = ScriptedModel(call("calendar", year=855), READ, ANSWER)
    state = make_agent(model, small_index, retry, ours_first=ours_first, tools=[calendar]).invoke(asked())
    assert attempts == [855] * 3
    assert [record["error"] for record in state["trace"]] == [None, None]


@both_orders
def test_a_list_of_tasks_is_one_more_tool(small_index, ours_first):
    plan = call("write_todos", todos=[{"content": "Find the wife.", "status": "in_progress"}])
    model = ScriptedModel(plan, READ, ANSWER)
    state = make_agent(model, small_index, TodoListMiddleware(), ours_first=ours_first).invoke(asked())
    assert state["todos"] == [{"content": "Find the wife.", "status": "in_progress"}]
    assert [record["tool"] for record in state["trace"]] == ["write_todos", "chunk_read"]
    assert "write_todos" in model.calls[0].messages[0].text
    assert "Answer questions from a corpus" in model.calls[0].messages[0].text


class Selector(ScriptedModel):
    """Chooses tools, as `LLMToolSelectorMiddleware` asks."""

    def with_structured_output(self, schema, **_):
        chosen = [option["const"] for option in schema["$defs"].values()] if "$defs" in schema else []
        return self | (lambda message: {"tools": message.text.split() or chosen})


@both_orders
def test_the_model_gets_the_tools_that_another_one_selects(small_index, ours_first):
    selector = Selector(*[AIMessage("chunk_read")] * 3)
    model = ScriptedModel(read_lothair(0), read_lothair(1), ANSWER)
    select = LLMToolSelectorMiddleware(model=selector)
    state = make_agent(model, small_index, select, ours_first=ours_first).invoke(asked())
    assert [request.tool_names for request in model.calls] == [["chunk_read"]] * 3
    assert [result.text == NOTICE for result in results(state)] == [False, True]


def test_a_reply_from_a_cache_needs_no_model(small_index):
    @wrap_model_call
    def cached(request, handler):
        asked_before = any(isinstance(message, ToolMessage) for message in request.messages)
        return ANSWER if asked_before else READ

    state = make_agent(ScriptedModel(), small_index, cached).invoke(asked())
    assert (state["answer"], cited(state)) == (ANSWER.text, [("teutberga:0", True, True)])


def test_the_calls_of_one_message_run_at_once_and_all_are_recorded(small_index):
    both = calls(("chunk_read", {"chunk_ids": ["lothair:0"]}), ("chunk_read", {"chunk_ids": ["boso:0"]}), ids="ab")
    model = ScriptedModel(both, ANSWER)
    state: dict[str, Any] = make_agent(model, small_index, TodoListMiddleware()).invoke(asked())
    assert [record["new_chunks"] for record in state["trace"]] == [["lothair:0"], ["boso:0"]]
    assert [record["step"] for record in state["trace"]] == [1, 1]
