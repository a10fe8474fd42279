"""Real HTTP on loopback: OpenAI's chat completions and responses, and Anthropic's messages with thinking.

The server of Anthropic's API refuses what Anthropic refuses, such as calls without results and lost thinking.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk
from langgraph.checkpoint.memory import InMemorySaver

import anthropic_server
import openai_server
from anthropic_server import message, redacted, thinking, tool_use
from arag.errors import ModelError
from arag.graph.graph import create_arag_agent
from arag.graph.prompts import forced_prompt, system_prompt
from arag.models.chat import load_model, naming_failures
from arag.retrieval.tools.sets import PAPER, make_tools
from http_server import Failure
from openai_server import chat, function_call, reasoning, response
from scripted import QUESTION, asked, in_thread

pytestmark = pytest.mark.usefixtures("no_pauses")

ANSWER = "Boso the Elder: Teutberga was his daughter [teutberga:0]."
SEARCH = {"keywords": ["Lothair II"]}
READ = {"chunk_ids": ["teutberga:0"]}
THINKING = {"type": "adaptive", "display": "summarized"}


@dataclass
class API:
    """A provider's protocol."""

    name: str
    module: Any  # its server
    model: str
    options: dict[str, Any]

    def serve(self, responses):
        return self.module.serve(responses)

    def load(self, server, **options):
        return load_model(f"{self.model}@{server.url}", **self.options | options)

    def calling(self, arguments: Any = SEARCH):
        """Return a response that calls a tool; arguments may be a text that is not JSON."""
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        if self.name == "chat":
            return chat(None, ("call_1", "keyword_search", text))
        if self.name == "responses":
            return response(0, reasoning("First him.", "SECRET"), function_call("call_1", "keyword_search", text))
        return message(thinking("First him.", "SECRET"), tool_use("call_1", "keyword_search", arguments))

    def answering(self, text=ANSWER):
        if self.name == "chat":
            return chat(text)
        if self.name == "responses":
            return response(1, reasoning("That is all.", "SECRET"), *([openai_server.text(text)] if text else []))
        return message(thinking("That is all.", "SECRET"), *([anthropic_server.text(text)] if text else []))


APIS = [
    API("chat", openai_server, "openai:some-model", {}),
    API("responses", openai_server, "openai:some-model", {"use_responses_api": True, "reasoning": {"effort": "low"}}),
    API("messages", anthropic_server, "anthropic:claude-sonnet-5-5", {"thinking": THINKING}),
]
CHAT, RESPONSES, MESSAGES = APIS
each_api = pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)


@pytest.fixture
def no_pauses(monkeypatch):
    monkeypatch.setattr("arag.models.pauses._FIRST_PAUSE_SECONDS", 0.0)


def run(api, index, responses, *, streaming=False, **settings):
    """Answer the question with scripted responses; return the state, the requests, and the text that was streamed."""
    with api.serve(responses) as server:
        agent = create_arag_agent(api.load(server), index, tools="paper", **settings)
        if not streaming:
            return agent.invoke(asked()), server.requests, ""
        events = list(agent.stream(asked(), stream_mode=["messages", "values"]))
    pieces = [event[0].text for mode, event in events if mode == "messages" and isinstance(event[0], AIMessageChunk)]
    return events[-1][1], server.requests, "".join(pieces)


# --- a whole question, message by message ---


@pytest.mark.parametrize("streaming", [False, True])
def test_a_question_in_chat_completions(small_index, streaming):
    script = [CHAT.calling(), chat("Now her.", ("call_2", "chunk_read", json.dumps(READ))), CHAT.answering()]
    state, requests, streamed = run(CHAT, small_index, script, streaming=streaming)
    for request in requests:
        assert request["parallel_tool_calls"] is False
        assert [tool["function"]["name"] for tool in request["tools"]] == list(PAPER)
        assert "tool_choice" not in request

    def sent(call_id, name, arguments):
        return {"type": "function", "id": call_id, "function": {"name": name, "arguments": json.dumps(arguments)}}

    hits, read = (m.text for m in state["messages"] if m.type == "tool")
    assert requests[2]["messages"] == [
        {"role": "system", "content": system_prompt(make_tools(small_index, names="paper"), small_index)},
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": "", "tool_calls": [sent("call_1", "keyword_search", SEARCH)]},
        {"role": "tool", "tool_call_id": "call_1", "content": hits},
        {"role": "assistant", "content": "Now her.", "tool_calls": [sent("call_2", "chunk_read", READ)]},
        {"role": "tool", "tool_call_id": "call_2", "content": read},
    ]
    assert (state["answer"], state["stop_reason"], state["steps"]) == (ANSWER, "answered", 3)
    tokens = {"input_tokens": 300, "cached_tokens": 120, "output_tokens": 30, "reasoning_tokens": 9}
    assert state["usage"] == {"model_calls": 3, **tokens}  # counted in streams, too
    assert streamed == ("Now her." + ANSWER if streaming else "")


def test_a_question_in_responses_keeps_its_reasoning(small_index):
    second = response(2, reasoning("Now her.", "SECRET1"), function_call("call_2", "chunk_read", json.dumps(READ)))
    script = [RESPONSES.calling(), second, RESPONSES.answering()]
    state, requests, _ = run(RESPONSES, small_index, script)
    # A call is refused without the reasoning that led to it.
    items = [(item["type"], item.get("encrypted_content", item.get("call_id"))) for item in requests[2]["input"][2:]]
    assert items == [
        ("reasoning", "SECRET"),
        ("function_call", "call_1"),
        ("function_call_output", "call_1"),
        ("reasoning", "SECRET1"),
        ("function_call", "call_2"),
        ("function_call_output", "call_2"),
    ]
    assert (state["answer"], state["usage"]["reasoning_tokens"]) == (ANSWER, 9)


def test_a_question_in_anthropics_messages_keeps_its_thinking(small_index):
    second = message(redacted("SECRET"), anthropic_server.text("Now her."), tool_use("call_2", "chunk_read", READ))
    state, requests, _ = run(MESSAGES, small_index, [MESSAGES.calling(), second, MESSAGES.answering()], streaming=True)
    for request in requests:
        assert request["max_tokens"] > 20_000  # what the model can give, thinking included
        assert request["system"] == system_prompt(make_tools(small_index, names="paper"), small_index)
        assert request["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
    assert requests[2]["messages"][3] == {"role": "assistant", "content": second["content"]}
    assert (state["answer"], state["usage"]["cached_tokens"]) == (ANSWER, 150)


# --- replies that are not usable ---


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize(("api", "streaming"), [(CHAT, False), (CHAT, True), (RESPONSES, False), (MESSAGES, True)])
@pytest.mark.parametrize("arguments", ['{"keywords": ["Bo', "[1, 2]", "null", ""])
def test_arguments_that_are_not_an_object_do_not_end_a_run(small_index, api, arguments, streaming):
    is_unread = api is RESPONSES and arguments in {"[1, 2]", "null"}  # LangChain refuses the reply
    script = [api.calling(arguments), *[api.answering()] * (2 if is_unread else 1)]
    with api.serve(script) as server:
        state = create_arag_agent(api.load(server, streaming=streaming), small_index, tools="paper").invoke(asked())
    assert state["answer"] == ANSWER
    sent = [item["arguments"] for item in server.requests[1].get("input", ()) if item.get("type") == "function_call"]
    assert all(isinstance(json.loads(text), dict) for text in sent)


@each_api
def test_calls_with_the_same_id_have_each_their_result(small_index, api):
    state, requests, _ = run(api, small_index, [api.calling(), api.calling(), api.answering()])
    assert (state["answer"], len(requests)) == (ANSWER, 3)


@each_api
def test_a_reply_with_reasoning_alone_is_forced(small_index, api):
    state, requests, _ = run(api, small_index, [api.answering(""), api.answering(""), api.answering()])
    assert (state["answer"], state["stop_reason"], len(requests)) == (ANSWER, "empty_reply", 3)
    forced = requests[2]
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(forced)
    sent = [message["content"] for message in forced.get("messages", forced.get("input"))]
    assert forced_prompt() in (forced.get("system"), *sent)


# --- servers that fail ---


@each_api
def test_a_passing_failure_is_retried(small_index, api):
    failures = [Failure(status, {"Retry-After": "0"}) for status in (429, 500)]
    state, requests, _ = run(api, small_index, [*failures, api.calling(), api.answering()])
    assert requests[0] == requests[1] == requests[2]
    assert state["usage"]["model_calls"] == 2


@each_api
def test_a_server_that_fails_hangs_or_is_not_there_is_the_providers_error(small_index, api):
    with api.serve([api.calling(), Failure(500), Failure(hang=True), api.answering()]) as server:
        model = api.load(server, max_retries=0, timeout=0.5)
        agent = create_arag_agent(model, small_index, tools="paper", checkpointer=InMemorySaver())
        for question, said in ((asked(), "scripted failure 500"), (None, "within 0.5 seconds: .* option timeout")):
            with pytest.raises(ModelError, match=f"^it failed: .*{said}"), naming_failures("it"):
                agent.invoke(question, in_thread())
        state = agent.invoke(None, in_thread())
    assert server.requests[1] == server.requests[3]
    assert (state["stop_reason"], state["steps"], len(state["trace"])) == ("answered", 2, 1)
    with pytest.raises(ModelError, match="it failed: no server listens at http://127"), naming_failures("it"):
        create_arag_agent(api.load(server, max_retries=0), small_index, tools="paper").invoke(asked())


def test_a_response_without_a_reply_is_the_providers_error(small_index):
    bad = iter([Failure(200, page=True), chat() | {"choices": []}])
    # An empty request asks whether the protocol is there at all.
    with CHAT.serve(lambda _, request: next(bad) if request else Failure(400)) as server:
        for said in ("replied with a web page", "replied with no chat completion"):
            with pytest.raises(ModelError, match=said), naming_failures("it"):
                create_arag_agent(CHAT.load(server, max_retries=0), small_index, tools="paper").invoke(asked())
