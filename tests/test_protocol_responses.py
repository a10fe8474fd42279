"""Real HTTP on loopback: OpenAI's Responses API, with reasoning."""

from __future__ import annotations

import json

import openai
import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from arag.errors import ModelError
from arag.graph.graph import create_arag_agent
from arag.graph.messages import count_context_tokens
from arag.graph.prompts import EMPTY_REPLY, forced_prompt, system_prompt
from arag.models.chat import load_model
from arag.retrieval.tools import TOOL_NAMES, make_tools
from openai_server import Cut, Failure, function_call, reasoning, response, serve, text
from protocol_runs import WAYS, assert_schemas, run_agent, through_json
from scripted_model import QUESTION, asked, in_thread

pytest_plugins = ["graph_fixtures", "model_fixtures"]
pytestmark = pytest.mark.usefixtures("no_settings")

ANSWER = "Boso the Elder: Teutberga was his daughter [teutberga:0]."
SEARCH = '{"keywords": ["Lothair II"]}'
READ = '{"chunk_ids": ["teutberga:0"]}'


def model_at(server, **options):
    options = {"use_responses_api": True, "reasoning": {"effort": "low", "summary": "auto"}} | options
    return load_model(f"openai:some-model@{server.url}", **options)


def agent_at(server, index, agent_options=None, **options):
    return create_arag_agent(model_at(server, **options), index, **(agent_options or {}))


def script():
    return [
        response(0, reasoning("First him.", "SECRET0"), function_call("call_1", "keyword_search", SEARCH)),
        response(1, reasoning("Now her.", "SECRET1"), text("Now her."), function_call("call_2", "chunk_read", READ)),
        response(2, reasoning("That is all."), text(ANSWER)),
    ]


def kinds(request):
    """Return what stands in a request's input, in short."""
    return [item["role"] if item["type"] == "message" else item["type"] for item in request["input"]]


@pytest.mark.parametrize("way", WAYS)
def test_a_multi_hop_question_item_by_item(small_index, way):
    with serve(script()) as server:
        state, pieces = run_agent(agent_at(server, small_index), way)
    requests = server.requests
    assert server.paths == ["/v1/responses"] * 3
    for request in requests:
        assert request["model"] == "some-model"
        assert request["reasoning"] == {"effort": "low", "summary": "auto"}
        assert request["parallel_tool_calls"] is False
        assert [(tool["type"], tool["name"]) for tool in request["tools"]] == [("function", n) for n in TOOL_NAMES]
        assert_schemas([tool["parameters"] for tool in request["tools"]])
        assert request["input"][0] == {
            "type": "message",
            "role": "system",
            "content": system_prompt(make_tools(small_index)),
        }
        assert request["input"][1] == {"type": "message", "role": "user", "content": QUESTION}
    found, read = (m.text for m in state["messages"] if m.type == "tool")
    # A call is refused without the reasoning that led to it, and a reasoning item without what follows it.
    items = [_without_status(item) for item in requests[2]["input"][2:]]
    assert items == [
        {"id": "rs_0_0", **reasoning("First him.", "SECRET0")},
        {"id": "fc_0_1", "type": "function_call", "call_id": "call_1", "name": "keyword_search", "arguments": SEARCH},
        {"type": "function_call_output", "call_id": "call_1", "output": found},
        {"id": "rs_1_0", **reasoning("Now her.", "SECRET1")},
        {
            "id": "msg_1_1",
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Now her.", "annotations": []}],
        },
        {"id": "fc_1_2", "type": "function_call", "call_id": "call_2", "name": "chunk_read", "arguments": READ},
        {"type": "function_call_output", "call_id": "call_2", "output": read},
    ]
    assert [_without_status(item) for item in requests[1]["input"][2:]] == items[:3]
    assert kinds(requests[0]) == ["system", "user"]

    assert (state["answer"], state["stop_reason"], state["steps"]) == (ANSWER, "answered", 3)
    assert [c["chunk_id"] for c in state["citations"]] == ["teutberga:0"]
    assert state["usage"] == {
        "model_calls": 3,
        "input_tokens": 300,
        "cached_tokens": 120,
        "output_tokens": 30,
        "reasoning_tokens": 9,
    }
    if "stream" in way:
        assert len(pieces) > 8
        assert "".join(pieces) == "Now her." + ANSWER
        assert all(request["stream"] is True for request in requests)


def _without_status(item):
    return {key: value for key, value in item.items() if key != "status"}


def test_an_effort_is_sent_as_each_api_has_it(small_index):
    with serve([response(0, text(ANSWER))]) as server:
        model = load_model(f"openai:some-model@{server.url}", use_responses_api=True, reasoning_effort="minimal")
        assert create_arag_agent(model, small_index).invoke(asked())["answer"] == ANSWER
    assert server.requests[0]["reasoning"] == {"effort": "minimal"}
    assert "reasoning_effort" not in server.requests[0]


@pytest.mark.parametrize("streaming", [False, True])
def test_without_storage_only_encrypted_reasoning_goes_back(small_index, streaming):
    options = {"store": False, "include": ["reasoning.encrypted_content"], "streaming": streaming}
    with serve(script()) as server:
        agent_at(server, small_index, **options).invoke(asked())
    request = server.requests[2]
    assert request["store"] is False
    assert request["include"] == ["reasoning.encrypted_content"]
    assert [i["encrypted_content"] for i in request["input"] if i["type"] == "reasoning"] == ["SECRET0", "SECRET1"]
    assert not any("id" in item for item in request["input"] if item["type"] == "message")


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("keeping", ["checkpointer", "json"])
def test_a_second_question_finds_the_first_ones_items(small_index, keeping, streaming):
    second = [
        response(
            3, reasoning("His father.", "SECRET3"), function_call("call_3", "keyword_search", '{"keywords": "x"}')
        ),
        response(4, text("Nobody knows.")),
    ]
    with serve([*script(), *second]) as server:
        model = model_at(server, streaming=streaming)
        if keeping == "checkpointer":
            agent = create_arag_agent(model, small_index, checkpointer=InMemorySaver())
            agent.invoke(asked(), in_thread())
            state = agent.invoke(asked("And his father?"), in_thread())
        else:
            agent = create_arag_agent(model, small_index)
            before = through_json(agent.invoke(asked())["messages"])
            state = agent.invoke({"messages": [*before, HumanMessage("And his father?")]})
    assert len(server.requests) == 5
    turn = ["reasoning", "function_call", "function_call_output"]
    later = ["reasoning", "assistant", *turn[1:]]
    assert kinds(server.requests[3]) == ["system", "user", *turn, *later, "reasoning", "assistant", "user"]
    assert kinds(server.requests[4])[-4:] == ["user", *turn]
    assert (state["answer"], state["steps"]) == ("Nobody knows.", 2)
    assert state["usage"]["model_calls"] == 2


def test_several_calls_in_one_response_are_answered_in_order(small_index):
    calls = [function_call(f"c{n}", "chunk_read", '{"chunk_ids": ["boso:0"]}') for n in range(3)]
    with serve([response(0, reasoning("All at once."), *calls), response(1, text(ANSWER))]) as server:
        agent_at(server, small_index).invoke(asked())
    sent = server.requests[1]["input"][2:]
    assert [item["type"] for item in sent] == ["reasoning", *["function_call"] * 3, *["function_call_output"] * 3]
    assert [item["call_id"] for item in sent[1:]] == ["c0", "c1", "c2"] * 2


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("arguments", ['{"keywords": ["Bo', "", "null", "[1]", "3"])
def test_arguments_that_are_no_object_go_back_as_one(small_index, arguments, streaming):
    responses = [
        response(0, reasoning("Hm."), function_call("bad", "keyword_search", arguments)),
        response(1, text(ANSWER)),
    ]
    with serve(responses) as server:
        state = agent_at(server, small_index, streaming=streaming).invoke(asked())
    assert (state["stop_reason"], state["steps"]) == ("answered", 2)
    sent = server.requests[1]["input"][2:]
    for item in sent:
        if item["type"] == "function_call":
            assert item["call_id"] == "bad"
            assert isinstance(json.loads(item["arguments"]), dict)
    outputs = [item for item in sent if item["type"] == "function_call_output"]
    assert [item["call_id"] for item in outputs] == [i["call_id"] for i in sent if i["type"] == "function_call"]
    if arguments.startswith("{") and not streaming:  # LangChain completes what was streamed
        assert 'not valid JSON: \'{"keywords": ["Bo\'' in outputs[0]["output"]


@pytest.mark.parametrize("items", [[], [reasoning("Much, and then nothing.")], [text("")], [reasoning("x"), text(" ")]])
def test_a_response_without_text_is_asked_for_again(small_index, items):
    with serve([response(0, *items), response(1, text(ANSWER))]) as server:
        state = agent_at(server, small_index).invoke(asked())
    assert server.requests[1]["input"][2:] == [{"type": "message", "role": "user", "content": EMPTY_REPLY}]
    assert (state["answer"], state["steps"]) == (ANSWER, 2)


def test_an_answer_that_was_cut_off_is_still_one(small_index):
    cut_off = response(0, text("Boso the"), status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    for streaming in (False, True):
        with serve([cut_off]) as server:
            state = agent_at(server, small_index, streaming=streaming).invoke(asked())
        assert (state["answer"], state["stop_reason"]) == ("Boso the", "answered")
        assert state["usage"]["output_tokens"] == 10


@pytest.mark.parametrize("way", WAYS)
def test_a_forced_answers_request_is_plain_text(small_index, way):
    responses = [
        response(0, reasoning("First him.", "SECRET0"), function_call("call_1", "keyword_search", SEARCH)),
        response(1, reasoning("Enough.", "SECRET1"), text(ANSWER), function_call("x", "keyword_search", "{")),
    ]
    with serve(responses) as server:
        agent = agent_at(server, small_index, {"max_steps": 1})
        state, _ = run_agent(agent, way)
        with serve([response(0, text("Later."))]) as another:
            agent_at(another, small_index).invoke({"messages": [*state["messages"], HumanMessage("And then?")]})
    forced = server.requests[1]
    assert (state["answer"], state["stop_reason"]) == (ANSWER, "max_steps")
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(forced)
    assert kinds(forced) == ["system", "user"]
    assert forced["input"][0]["content"] == forced_prompt()
    assert "He married Teutberga in 855." in forced["input"][1]["content"]
    # The call that came with the forced answer is not run, and so must not be sent.
    sent = another.requests[0]["input"]
    calls = [item["call_id"] for item in sent if item["type"] == "function_call"]
    assert calls == [item["call_id"] for item in sent if item["type"] == "function_call_output"] == ["call_1"]


def test_reasoning_counts_for_the_context_and_is_no_answer(small_index):
    with serve([response(0, reasoning("A long summary of reasoning.", "SECRET" * 500), text(ANSWER))]) as server:
        state = agent_at(server, small_index).invoke(asked())
    assert state["answer"] == ANSWER
    message = state["messages"][-1]
    bare = message.model_copy(update={"content": ANSWER})
    extra = count_context_tokens([message]) - count_context_tokens([bare])
    assert 4 <= extra < 12


# --- servers that fail ---


@pytest.mark.parametrize("failure", [Failure(429, {"Retry-After": "0"}), Failure(500)], ids=["429", "500"])
def test_a_passing_failure_is_retried(small_index, failure):
    with serve([failure, response(0, text(ANSWER))]) as server:
        state = agent_at(server, small_index).invoke(asked())
    assert server.requests[0] == server.requests[1]
    assert (state["answer"], state["usage"]["model_calls"]) == (ANSWER, 1)


def test_a_refused_request_is_not_repeated(small_index):
    with serve([Failure(400)]) as server, pytest.raises(openai.BadRequestError):
        agent_at(server, small_index).invoke(asked())
    assert len(server.requests) == 1


@pytest.mark.parametrize("way", WAYS)
def test_an_error_in_the_response_is_the_models(small_index, way):
    failed = response(0, status="failed", error={"code": "server_error", "message": "overloaded"})
    with serve([failed]) as server, pytest.raises(ModelError, match=r"the model call failed: .*overloaded"):
        run_agent(agent_at(server, small_index, max_retries=0), way)


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_a_stream_that_breaks_off_is_an_error_and_no_answer(small_index, way):
    with (
        serve([Cut(response(0, text(ANSWER)), 5)]) as server,
        pytest.raises(openai.APIConnectionError),
    ):
        run_agent(agent_at(server, small_index, max_retries=0), way)


@pytest.mark.parametrize("events", [0, 1, 2, 4, 9, 16])
def test_a_stream_that_ends_too_early_is_the_models_error(small_index, events):
    with serve([Cut(response(0, text(ANSWER)), events, clean=True)]) as server:
        agent = agent_at(server, small_index, streaming=True, max_retries=0)
        with pytest.raises(ModelError, match="the model call failed"):
            agent.invoke(asked())
