"""Real HTTP on loopback: Anthropic's Messages API, with thinking. The server refuses what Anthropic refuses."""

from __future__ import annotations

import anthropic
import httpx2
import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from anthropic_server import Cut, Failure, message, redacted, serve, text, thinking, tool_use
from arag.errors import ModelError
from arag.graph.graph import create_arag_agent
from arag.graph.messages import count_context_tokens
from arag.graph.prompts import EMPTY_REPLY, forced_prompt, system_prompt
from arag.models.asking import is_provider_error
from arag.models.chat import load_model
from arag.retrieval.tools import TOOL_NAMES, make_tools
from protocol_runs import WAYS, assert_schemas, run_agent, through_json
from scripted_model import QUESTION, asked, in_thread

pytest_plugins = ["graph_fixtures", "model_fixtures"]
pytestmark = pytest.mark.usefixtures("no_settings")

ANSWER = "Boso the Elder: Teutberga was his daughter [teutberga:0]."
MODEL = "claude-sonnet-5-5"
THINKING = {"type": "adaptive", "display": "summarized"}
SEARCH = {"keywords": ["Lothair II"]}
READ = {"chunk_ids": ["teutberga:0"]}


def agent_at(server, index, agent_options=None, **options):
    model = load_model(f"anthropic:{MODEL}@{server.url}", **{"thinking": THINKING, **options})
    return create_arag_agent(model, index, **(agent_options or {}))


def script():
    return [
        message(thinking("First him.", "sig0"), tool_use("toolu_1", "keyword_search", SEARCH)),
        message(redacted("SECRET"), text("Now her."), tool_use("toolu_2", "chunk_read", READ)),
        message(thinking("That is all.", "sig2"), text(ANSWER)),
    ]


def in_short(request):
    """Return the kinds of blocks in a request's messages."""
    contents = [m["content"] for m in request["messages"]]
    return ["text" if isinstance(c, str) else "+".join(block["type"] for block in c) for c in contents]


@pytest.mark.parametrize("way", WAYS)
def test_a_multi_hop_question_block_by_block(small_index, way):
    with serve(script()) as server:
        state, pieces = run_agent(agent_at(server, small_index), way)
    requests = server.requests
    assert server.paths == ["/v1/messages"] * 3
    for request in requests:
        assert request["model"] == MODEL
        assert request["max_tokens"] > 20_000  # what the model can give, thinking included
        assert request["thinking"] == THINKING
        assert request["system"] == system_prompt(make_tools(small_index))
        assert request["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
        assert [tool["name"] for tool in request["tools"]] == list(TOOL_NAMES)
        assert all(tool["description"] for tool in request["tools"])
        assert_schemas([tool["input_schema"] for tool in request["tools"]])
        assert "read_chunks" not in str(request["tools"])
    found, read = (m.text for m in state["messages"] if m.type == "tool")
    # A result is refused where the message with the call has lost its thinking, or the thinking its signature.
    conversation = [
        {"role": "user", "content": QUESTION},
        {
            "role": "assistant",
            "content": [thinking("First him.", "sig0"), tool_use("toolu_1", "keyword_search", SEARCH)],
        },
        {"role": "user", "content": [_result("toolu_1", found)]},
        {
            "role": "assistant",
            "content": [redacted("SECRET"), text("Now her."), tool_use("toolu_2", "chunk_read", READ)],
        },
        {"role": "user", "content": [_result("toolu_2", read)]},
    ]
    assert requests[0]["messages"] == conversation[:1]
    assert requests[1]["messages"] == conversation[:3]
    assert requests[2]["messages"] == conversation

    assert (state["answer"], state["stop_reason"], state["steps"]) == (ANSWER, "answered", 3)
    assert [c["chunk_id"] for c in state["citations"]] == ["teutberga:0"]
    assert state["usage"] == {
        "model_calls": 3,
        "input_tokens": 300,  # those in the cache among them, which Anthropic itself counts apart
        "cached_tokens": 150,
        "output_tokens": 30,
        "reasoning_tokens": 9,
    }
    if "stream" in way:
        assert len(pieces) > 8
        assert "".join(pieces) == "Now her." + ANSWER
        assert all(request["stream"] is True for request in requests)


def _result(call_id, value):
    return {"type": "tool_result", "tool_use_id": call_id, "content": value, "is_error": False}


def test_options_and_a_key_are_sent(small_index):
    with serve([message(text(ANSWER))] * 2) as server:
        agent_at(server, small_index, thinking=None, reasoning_effort="low", max_tokens=5, api_key="secret").invoke(
            asked()
        )
        model = load_model(
            f"anthropic:claude-haiku-4-5@{server.url}", thinking={"type": "enabled", "budget_tokens": 1024}
        )
        create_arag_agent(model, small_index).invoke(asked())
    first, second = server.requests
    assert (first["output_config"], first["thinking"]["type"], first["max_tokens"]) == (
        {"effort": "low"},
        "adaptive",
        5,
    )
    assert second["thinking"] == {"type": "enabled", "budget_tokens": 1024}
    keys = [headers.get("x-api-key") or headers["authorization"] for headers in server.headers]
    assert keys in (["secret", "none"], ["Bearer secret", "Bearer none"])
    assert all(headers["anthropic-version"] for headers in server.headers)


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("keeping", ["checkpointer", "json"])
def test_a_second_question_finds_the_first_ones_blocks(small_index, keeping, streaming):
    second = [
        message(thinking("His father.", "sig3"), tool_use("toolu_3", "keyword_search", {"keywords": ["x"]})),
        message(text("Nobody knows.")),
    ]
    with serve([*script(), *second]) as server:
        agent = agent_at(server, small_index, streaming=streaming)
        if keeping == "checkpointer":
            agent.checkpointer = InMemorySaver()
            agent.invoke(asked(), in_thread())
            state = agent.invoke(asked("And his father?"), in_thread())
        else:
            before = through_json(agent.invoke(asked())["messages"])
            state = agent.invoke({"messages": [*before, HumanMessage("And his father?")]})
    assert len(server.requests) == 5
    turns = ["thinking+tool_use", "tool_result", "redacted_thinking+text+tool_use", "tool_result", "thinking+text"]
    assert in_short(server.requests[3]) == ["text", *turns, "text"]
    assert in_short(server.requests[4]) == ["text", *turns, "text", "thinking+tool_use", "tool_result"]
    assert server.requests[4]["messages"][:6] == server.requests[3]["messages"][:6]
    assert (state["answer"], state["steps"], state["usage"]["model_calls"]) == ("Nobody knows.", 2, 2)


@pytest.mark.parametrize("streaming", [False, True])
def test_several_calls_in_one_message_are_answered_in_one(small_index, streaming):
    calls = [tool_use(f"toolu_{n}", "chunk_read", {"chunk_ids": ["boso:0"]}) for n in range(3)]
    with serve([message(thinking("All at once.", "sig"), *calls), message(text(ANSWER))]) as server:
        agent_at(server, small_index, streaming=streaming).invoke(asked())
    results = server.requests[1]["messages"][-1]["content"]
    assert [block["tool_use_id"] for block in results] == ["toolu_0", "toolu_1", "toolu_2"]
    assert "count of Arles" in results[0]["content"]
    assert results[1]["content"] == "[boso:0] Shown in full above."


def test_an_error_of_a_tool_is_marked_as_one(small_index):
    with serve([message(tool_use("toolu_1", "web_search", {"q": "Boso"})), message(text(ANSWER))]) as server:
        agent_at(server, small_index, thinking=None).invoke(asked())
    (result,) = server.requests[1]["messages"][-1]["content"]
    assert result["is_error"] is True
    assert result["content"].startswith("There is no tool 'web_search'.")


@pytest.mark.parametrize("arguments", ['{"keywords": ["Bo', "", "{}{}", "nonsense", "[1]", "null"])
def test_streamed_arguments_that_are_no_object_never_end_a_run(small_index, arguments):
    responses = [
        message(thinking("Hm.", "sig"), tool_use("toolu_1", "keyword_search", arguments)),
        message(text(ANSWER)),
    ]
    with serve(responses) as server:
        state = agent_at(server, small_index, streaming=True).invoke(asked())
    assert len(server.requests) == 2
    assert (state["answer"], state["stop_reason"], state["steps"]) == (ANSWER, "answered", 2)


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("arguments", ["text", ["a"], None])
def test_arguments_that_are_no_object_never_end_a_run(small_index, arguments):
    responses = [message(tool_use("toolu_1", "keyword_search", arguments)), message(text(ANSWER))]
    with serve(responses) as server:
        state = agent_at(server, small_index, thinking=None).invoke(asked())
    assert (state["answer"], state["stop_reason"], state["steps"]) == (ANSWER, "answered", 2)


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    "blocks",
    [[], [text("")], [thinking("Much, and then nothing.", "sig")], [thinking("Hm.", "sig"), text(" \n")]],
    ids=["nothing", "empty", "thinking", "blank"],
)
def test_a_reply_without_text_is_asked_for_again(small_index, blocks, streaming):
    responses = [message(*blocks, stop_reason="max_tokens"), message(text(ANSWER))]
    with serve(responses) as server:
        state = agent_at(server, small_index, streaming=streaming).invoke(asked())
    (sent,) = server.requests[1]["messages"]
    assert sent["role"] == "user"
    assert [block["text"] for block in sent["content"]] == [QUESTION, EMPTY_REPLY]
    assert (state["answer"], state["steps"]) == (ANSWER, 2)


def test_an_empty_reply_after_a_result_is_asked_for_again(small_index):
    responses = [message(tool_use("toolu_1", "keyword_search", SEARCH)), message(), message(text(ANSWER))]
    with serve(responses) as server:
        state = agent_at(server, small_index, thinking=None).invoke(asked())
    assert in_short(server.requests[2]) == ["text", "tool_use", "tool_result+text"]
    assert state["answer"] == ANSWER


def test_an_answer_that_was_cut_off_is_still_one(small_index):
    for streaming in (False, True):
        with serve([message(thinking("Hm.", "sig"), text("Boso the"), stop_reason="max_tokens")]) as server:
            state = agent_at(server, small_index, streaming=streaming).invoke(asked())
        assert (state["answer"], state["stop_reason"]) == ("Boso the", "answered")


@pytest.mark.parametrize("way", WAYS)
def test_a_forced_answers_request_is_plain_text(small_index, way):
    responses = [
        message(thinking("First him.", "sig0"), tool_use("toolu_1", "keyword_search", SEARCH)),
        message(thinking("Enough.", "sig1"), text(ANSWER)),
    ]
    with serve(responses) as server:
        state, _ = run_agent(agent_at(server, small_index, {"max_steps": 1}), way)
        with serve([message(text("Later."))]) as another:
            later = {"messages": [*state["messages"], HumanMessage("And then?")]}
            assert agent_at(another, small_index).invoke(later)["answer"] == "Later."
    forced = server.requests[1]
    assert (state["answer"], state["stop_reason"]) == (ANSWER, "max_steps")
    assert not {"tools", "tool_choice"} & set(forced)
    assert forced["system"] == forced_prompt()
    assert in_short(forced) == ["text"]
    assert "He married Teutberga in 855." in forced["messages"][0]["content"]


def test_thinking_counts_for_the_context_and_is_no_answer(small_index):
    with serve([message(thinking("A long line of thinking.", "SECRET" * 500), text(ANSWER))]) as server:
        state = agent_at(server, small_index).invoke(asked())
    assert state["answer"] == ANSWER
    reply = state["messages"][-1]
    extra = count_context_tokens([reply]) - count_context_tokens([reply.model_copy(update={"content": ANSWER})])
    assert 4 <= extra < 12


# --- servers that fail ---


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("status", [429, 500, 529])
def test_a_passing_failure_is_retried(small_index, status, way, monkeypatch):
    monkeypatch.setattr("anthropic._base_client.INITIAL_RETRY_DELAY", 0)
    with serve([Failure(status, {"Retry-After": "0"}), message(text(ANSWER))]) as server:
        state, _ = run_agent(agent_at(server, small_index), way)
    assert server.requests[0] == server.requests[1]
    assert (state["answer"], state["usage"]["model_calls"]) == (ANSWER, 1)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, anthropic.BadRequestError),
        (401, anthropic.AuthenticationError),
        (404, anthropic.NotFoundError),
        (529, anthropic.InternalServerError),
    ],
)
def test_what_is_not_retried_is_the_providers_error(small_index, status, error):
    with serve([Failure(status)]) as server, pytest.raises(error) as caught:
        agent_at(server, small_index, max_retries=0).invoke(asked())
    assert len(server.requests) == 1  # nor by the graph
    assert is_provider_error(caught.value)
    assert f"scripted failure {status}" in str(caught.value)


def test_a_run_that_failed_can_be_resumed(small_index):
    with serve([script()[0], Failure(500), *script()[1:]]) as server:
        agent = agent_at(server, small_index, {"checkpointer": InMemorySaver()}, max_retries=0)
        with pytest.raises(anthropic.InternalServerError):
            agent.invoke(asked(), in_thread())
        state = agent.invoke(None, in_thread())
    assert server.requests[1] == server.requests[2]
    assert (state["answer"], state["steps"]) == (ANSWER, 3)


def test_a_server_that_hangs_meets_the_timeout(small_index):
    with serve([Failure(hang=True)]) as server, pytest.raises(anthropic.APITimeoutError) as caught:
        agent_at(server, small_index, timeout=0.5, max_retries=0).invoke(asked())
    assert len(server.requests) == 1
    assert is_provider_error(caught.value)


def test_a_server_that_is_not_there_is_an_error(small_index):
    with serve([]) as server:
        pass
    with pytest.raises(anthropic.APIConnectionError) as caught:
        agent_at(server, small_index, max_retries=0).invoke(asked())
    assert is_provider_error(caught.value)


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_a_stream_that_breaks_off_is_tried_again_and_never_an_answer(small_index, way):
    cut = Cut(message(text(ANSWER)), 6)
    with serve([cut, message(text(ANSWER))]) as server:
        state, *_ = run_agent(agent_at(server, small_index), way)
        assert state["answer"] == ANSWER
    with serve([cut] * 3) as server, pytest.raises(httpx2.RemoteProtocolError) as caught:
        run_agent(agent_at(server, small_index), way)
    assert is_provider_error(caught.value)


@pytest.mark.parametrize("events", [0, 1, 3, 4, 6, 15, 16])
@pytest.mark.parametrize("forced", [False, True])
def test_a_stream_that_ends_too_early_is_the_models_error(small_index, events, forced):
    before = [message(tool_use("toolu_1", "keyword_search", SEARCH))] if forced else []
    with serve([*before, Cut(message(text(ANSWER)), events, clean=True)]) as server:
        agent = agent_at(server, small_index, {"max_steps": 1}, thinking=None, streaming=True, max_retries=0)
        with pytest.raises(ModelError, match="the model call failed"):
            agent.invoke(asked())
    assert len(server.requests) == 1 + forced


def test_a_page_instead_of_a_response_is_the_models_error(small_index):
    with serve([Failure(200, page=True)]) as server, pytest.raises(ModelError, match="contains no reply"):
        agent_at(server, small_index, max_retries=0).invoke(asked())
