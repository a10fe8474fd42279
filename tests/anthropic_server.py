"""A server on loopback that speaks enough of Anthropic's Messages API, and refuses what Anthropic refuses."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import Any

from http_server import Cut, Events, Failure, pieces, serve_http

__all__ = ["Cut", "Failure", "message", "redacted", "serve", "text", "thinking", "tool_use"]

USAGE = {
    "input_tokens": 40,
    "cache_read_input_tokens": 50,
    "cache_creation_input_tokens": 10,
    "output_tokens": 10,
    "output_tokens_details": {"thinking_tokens": 3},
}


@contextmanager
def serve(respond: list[Any]):
    """Serve scripted responses, which must all be asked for, and an error for a request that Anthropic would refuse."""

    def respond_if_valid(number, request):
        try:
            _check(request)
        except AssertionError as error:
            return Failure(400, message=f"refused: {error}")
        return respond[number] if number < len(respond) else Failure(418)

    with serve_http(respond_if_valid, _events) as server:
        yield server
        assert len(server.requests) == len(respond), "not as many requests as responses"


def _check(request: dict[str, Any]) -> None:
    messages = request["messages"]
    assert request["max_tokens"] > 0
    assert [message["role"] for message in messages] == (["user", "assistant"] * len(messages))[: len(messages)]
    blocks = [_blocks(message) for message in messages]
    for place, content in enumerate(blocks):
        assert content, f"message {place} is empty"
        assert all(b["text"].strip() for b in content if b["type"] == "text"), f"message {place} has an empty text"
        called = [b["id"] for b in content if b["type"] == "tool_use"]
        assert all(isinstance(b["input"], dict) for b in content if b["type"] == "tool_use")
        assert not called or request.get("tools"), "a conversation with calls needs tools"
        following = blocks[place + 1] if place + 1 < len(blocks) else []
        answered = [b["tool_use_id"] for b in following[: len(called)] if b["type"] == "tool_result"]
        assert answered == called, f"the calls of message {place} are {called}, and the results {answered}"
    thinks = request.get("thinking", {}).get("type") in {"enabled", "adaptive"}
    if len(blocks) > 2 and blocks[-1][0]["type"] == "tool_result" and thinks:
        first = blocks[-2][0]
        assert first["type"] in {"thinking", "redacted_thinking"}, "the turn has lost its thinking"
        assert first.get("signature") or first.get("data"), "the thinking has lost its signature"


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    return [text(message["content"])] if isinstance(message["content"], str) else message["content"]


def message(*blocks: dict[str, Any], stop_reason: str | None = None) -> dict[str, Any]:
    """Return a message."""
    called = any(block["type"] == "tool_use" for block in blocks)
    return {
        "id": "msg_always_the_same",
        "type": "message",
        "role": "assistant",
        "model": "some-claude",
        "content": list(blocks),
        "stop_reason": stop_reason or ("tool_use" if called else "end_turn"),
        "stop_sequence": None,
        "usage": USAGE,
    }


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def thinking(value: str, signature: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": value, "signature": signature}


def redacted(data: str) -> dict[str, Any]:
    return {"type": "redacted_thinking", "data": data}


def tool_use(call_id: str, name: str, arguments: dict[str, Any] | str) -> dict[str, Any]:
    """Return a call; arguments given as a text are streamed as they are."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def _events(response: dict[str, Any], request: dict[str, Any]) -> Events:
    """Send a message block by block in small pieces, the way that Anthropic does."""

    def event(kind: str, **data: Any):
        return kind, {"type": kind, **data}

    yield event("message_start", message=response | {"content": [], "stop_reason": None})
    yield event("ping")
    for place, block in enumerate(response["content"]):
        match block["type"]:
            case "text":
                start, deltas = {"text": ""}, [("text_delta", "text", piece) for piece in pieces(block["text"])]
            case "thinking":
                start = {"thinking": "", "signature": ""}
                deltas = [("thinking_delta", "thinking", piece) for piece in pieces(block["thinking"])]
                deltas.append(("signature_delta", "signature", block["signature"]))
            case "tool_use":
                sent = block["input"] if isinstance(block["input"], str) else json.dumps(block["input"])
                start = {"input": {}}
                deltas = [("input_json_delta", "partial_json", piece) for piece in pieces(sent)]
            case _:
                start, deltas = {}, []
        yield event("content_block_start", index=place, content_block=block | start)
        for kind, key, piece in deltas:
            yield event("content_block_delta", index=place, delta={"type": kind, key: piece})
        yield event("content_block_stop", index=place)
    delta = {"stop_reason": response["stop_reason"], "stop_sequence": None}
    yield event("message_delta", delta=delta, usage=response["usage"])
    yield event("message_stop")
