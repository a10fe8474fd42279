"""A server on loopback that speaks enough of OpenAI's protocols: chat completions, responses and embeddings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from http_server import Comments, Cut, Events, Failure, pieces, serve_http

__all__ = [
    "Comments",
    "Cut",
    "Failure",
    "chat",
    "embeddings",
    "function_call",
    "reasoning",
    "response",
    "serve",
    "text",
]

DETAILS = {"cached_tokens": 40}, {"reasoning_tokens": 3}


def serve(respond: Callable[[int, dict[str, Any]], Any] | list[Any], port: int = 0):
    """Serve scripted responses, or what a function makes of the request's number and JSON."""
    return serve_http(respond, _stream, "/v1", port)


def chat(content: str | None = None, *tool_calls: tuple[str, str, str]) -> dict[str, Any]:
    """Return a chat completion; a tool call is (id, name, arguments as text)."""
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if tool_calls:
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for call_id, name, arguments in tool_calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if tool_calls else "stop"}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    usage |= zip(("prompt_tokens_details", "completion_tokens_details"), DETAILS, strict=True)
    head = {"id": "chatcmpl-always-the-same", "object": "chat.completion", "created": 0, "model": "some-model"}
    return head | {"choices": [choice], "usage": usage}


def _stream(response: dict[str, Any], request: dict[str, Any]) -> Events:
    """Send a chat completion in small pieces, the way that OpenAI does."""
    head = {key: response[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}

    def delta(value: dict[str, Any], finish_reason: str | None = None):
        return None, {**head, "choices": [{"index": 0, "delta": value, "finish_reason": finish_reason}]}

    for choice in response["choices"]:
        message = choice["message"]
        yield delta({"role": "assistant", "content": ""})
        if "reasoning_content" in message:
            yield delta({"reasoning_content": message["reasoning_content"]})
        for piece in pieces(message["content"] or ""):
            yield delta({"content": piece})
        for place, call in enumerate(message.get("tool_calls", ())):
            function = {"name": call["function"]["name"], "arguments": ""}
            yield delta({"tool_calls": [{"index": place, "id": call["id"], "type": "function", "function": function}]})
            for piece in pieces(call["function"]["arguments"]):
                yield delta({"tool_calls": [{"index": place, "function": {"arguments": piece}}]})
        yield delta({}, choice["finish_reason"])
    if (request.get("stream_options") or {}).get("include_usage"):
        yield None, {**head, "choices": [], "usage": response["usage"]}
    yield None, "[DONE]"


# --- responses ---


def response(number: int, *items: dict[str, Any]) -> dict[str, Any]:
    """Return a response of the Responses API; its items get ids of their own."""
    prefixes = {"message": "msg", "function_call": "fc", "reasoning": "rs"}
    usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
    usage |= zip(("input_tokens_details", "output_tokens_details"), DETAILS, strict=True)
    head = {"id": f"resp_{number}", "object": "response", "created_at": 0, "model": "some-model", "status": "completed"}
    return head | {
        "output": [{"id": f"{prefixes[item['type']]}_{number}_{place}", **item} for place, item in enumerate(items)],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage,
    }


def reasoning(summary: str, encrypted: str) -> dict[str, Any]:
    """Return a reasoning item."""
    parts = [{"type": "summary_text", "text": summary}]
    return {"type": "reasoning", "summary": parts, "encrypted_content": encrypted}


def text(value: str) -> dict[str, Any]:
    """Return a message item."""
    content = [{"type": "output_text", "text": value, "annotations": []}]
    return {"type": "message", "role": "assistant", "status": "completed", "content": content}


def function_call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    """Return a function call item."""
    call = {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}
    return call | {"status": "completed"}


# --- embeddings ---


def embeddings(vectors: list[list[float]]) -> dict[str, Any]:
    data = [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)]
    return {"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}}
