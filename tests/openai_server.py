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
    """Send a completion in small pieces, the way that OpenAI does, or in the `deltas` that it has."""
    if response["object"] == "response":
        yield from _stream_response(response)
        return
    head = {key: response[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}

    def delta(value: dict[str, Any], finish_reason: str | None = None):
        return None, {**head, "choices": [{"index": 0, "delta": value, "finish_reason": finish_reason}]}

    for each in response.get("deltas", ()):
        yield delta(each) if each is not None else (None, "null")
    for choice in response["choices"]:
        message = choice["message"]
        if "deltas" in response:
            yield delta({}, choice["finish_reason"])
            continue
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


def _stream_response(response: dict[str, Any]) -> Events:
    """Send a response of the Responses API in pieces."""

    def event(kind: str, **fields: Any):
        return kind, {"type": kind, "sequence_number": 0, **fields}

    yield event("response.created", response=response | {"status": "in_progress", "output": []})
    for place, item in enumerate(response["output"]):
        where = {"item_id": item["id"], "output_index": place}
        begun = item | {"content": []} if item["type"] == "message" else item | {"arguments": ""}
        yield event("response.output_item.added", output_index=place, item=begun)
        for number, part in enumerate(item.get("content") or ()):
            if part["type"] == "refusal":
                yield event("response.refusal.done", **where, content_index=number, refusal=part["refusal"])
            for piece in pieces(part.get("text", "")):
                yield event("response.output_text.delta", **where, content_index=number, delta=piece, logprobs=[])
        for piece in pieces(item.get("arguments", "")):
            yield event("response.function_call_arguments.delta", **where, delta=piece)
        yield event("response.output_item.done", output_index=place, item=item)
    is_whole = response["status"] == "completed"
    yield event("response.completed" if is_whole else "response.incomplete", response=response)


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
