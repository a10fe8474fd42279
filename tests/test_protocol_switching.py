"""Real HTTP on loopback: a conversation that one provider began goes on with another."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import permutations

import pytest
from langchain_core.messages import HumanMessage

import anthropic_server
import openai_server
from arag.graph.graph import create_arag_agent
from arag.models.chat import load_model
from protocol_runs import through_json
from scripted_model import asked

pytest_plugins = ["graph_fixtures", "model_fixtures"]
pytestmark = pytest.mark.usefixtures("no_settings")

FIRST = "Boso the Elder [teutberga:0]."
SECOND = "Nobody knows."
KINDS = ["chat", "responses", "anthropic"]


def _call(kind):
    """Return a response with reasoning, a text and a call, as far as a provider has them."""
    if kind == "chat":
        return openai_server.chat("Let me see.", ("call_1", "keyword_search", '{"keywords": ["Boso"]}'))
    if kind == "responses":
        return openai_server.response(
            0,
            openai_server.reasoning("Hm.", "SECRET"),
            openai_server.text("Let me see."),
            openai_server.function_call("call_1", "keyword_search", '{"keywords": ["Boso"]}'),
        )
    return anthropic_server.message(
        anthropic_server.thinking("Hm.", "SECRET"),
        anthropic_server.text("Let me see."),
        anthropic_server.tool_use("call_1", "keyword_search", {"keywords": ["Boso"]}),
    )


def _answer(kind, words):
    if kind == "chat":
        return openai_server.chat(words)
    if kind == "responses":
        return openai_server.response(1, openai_server.reasoning("Aha.", "SECRET"), openai_server.text(words))
    return anthropic_server.message(anthropic_server.thinking("Aha.", "SECRET"), anthropic_server.text(words))


@contextmanager
def _agent(kind, index, responses, *, streaming):
    protocol = anthropic_server if kind == "anthropic" else openai_server
    name = "anthropic:claude-sonnet-5-5" if kind == "anthropic" else "openai:m"
    options = {"use_responses_api": True} if kind == "responses" else {}
    with protocol.serve(responses) as server:
        yield create_arag_agent(load_model(f"{name}@{server.url}", streaming=streaming, **options), index), server
    assert len(server.requests) == len(responses)


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(("first", "second"), list(permutations(KINDS, 2)))
def test_another_provider_takes_over(small_index, first, second, streaming):
    with _agent(first, small_index, [_call(first), _answer(first, FIRST)], streaming=streaming) as (agent, _):
        before = through_json(agent.invoke(asked())["messages"])
    with _agent(second, small_index, [_call(second), _answer(second, SECOND)], streaming=streaming) as (agent, server):
        state = agent.invoke({"messages": [*before, HumanMessage("And his father?")]})
    assert state["answer"] == SECOND
    sent = server.requests[0]
    assert "SECRET" not in str(sent)  # what only the first provider can read
    assert _in_short(second, sent) == ["question", "text", "call", "result", "text", "question"]


def _in_short(kind, request):
    """Return what stands in a request behind the system prompt."""
    if kind == "responses":
        names = {"function_call": "call", "function_call_output": "result", "assistant": "text", "user": "question"}
        return [names[item.get("role", item["type"])] for item in request["input"][1:]]
    found = []
    for message in request["messages"]:
        content = message["content"]
        if message["role"] == "system":
            continue
        if message["role"] == "tool":
            found.append("result")
            continue
        blocks = [{"type": "text"}] if isinstance(content, str) else content or []
        names = {
            "text": "question" if message["role"] == "user" else "text",
            "tool_use": "call",
            "tool_result": "result",
        }
        found += [names[block["type"]] for block in blocks]
        found += ["call" for _ in message.get("tool_calls", ())]
    return found
