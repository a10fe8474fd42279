"""A server on loopback that speaks enough of Anthropic's Messages API, and refuses what Anthropic refuses."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import Any

from http_server import Events, Failure, pieces, serve_http

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

    with serve_http(respond_if_valid, _stream) as server:
        yield server
        assert len(server.requests) == len(respond), "not as many requests as responses"


def _check(request: dict[str, Any]) -> None:
    messages = request["messages"]
    assert request["max_tokens"] > 0
    assert [message["role"] for message in messages] == (["user", "assistant"] * len(messages))[: len(messages)]
    blocks = [[text(m["content"])] if isinstance(m["content"], str) else m["content"] for m in messages]
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


def message(*blocks: dict[str, Any]) -> dict[str, Any]:
    """Return a message."""
    called = any(block["type"] == "tool_use" for block in blocks)
    head = {"id": "msg_always_the_same", "type": "message", "role": "assistant", "model": "some-claude"}
    stop = {"stop_reason": "tool_use" if called else "end_turn", "stop_sequence": None}
    return head | stop | {"content": list(blocks), "usage": USAGE}


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def thinking(value: str, signature: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": value, "signature": signature}


def redacted(data: str) -> dict[str, Any]:
    return {"type": "redacted_thinking", "data": data}


def tool_use(call_id: str, name: str, arguments: dict[str, Any] | str) -> dict[str, Any]:
    """Return a call; arguments given as a text are streamed as they are."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def _stream(response: dict[str, Any], request: dict[str, Any]) -> Events:
    """Send a message block by block in small pieces, the way that Anthropic does."""

    def event(kind: str, **data: Any):
        return kind, {"type": kind, **data}

    yield event("message_start", message=response | {"content": [], "stop_reason": None})
    for place, block in enumerate(response["content"]):
        start = dict.fromkeys(block.keys() & {"text", "thinking", "signature"}, "")
        deltas = [(f"{key}_delta", key, piece) for key in ("text", "thinking") for piece in pieces(block.get(key, ""))]
        if "signature" in block:
            deltas.append(("signature_delta", "signature", block["signature"]))
        if "input" in block:
            start["input"] = {}
            sent = block["input"] if isinstance(block["input"], str) else json.dumps(block["input"])
            deltas = [("input_json_delta", "partial_json", piece) for piece in pieces(sent)]
        yield event("content_block_start", index=place, content_block=block | start)
        for kind, key, piece in deltas:
            yield event("content_block_delta", index=place, delta={"type": kind, key: piece})
        yield event("content_block_stop", index=place)
    delta = {"stop_reason": response["stop_reason"], "stop_sequence": None}
    yield event("message_delta", delta=delta, usage=response["usage"])
    yield event("message_stop")
