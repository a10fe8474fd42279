"""A server on loopback that speaks enough of OpenAI's protocols: chat completions, responses and embeddings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from http_server import Cut, Events, Failure, pieces, serve_http

__all__ = ["Cut", "Failure", "chat", "embeddings", "function_call", "reasoning", "response", "serve", "text"]

USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 10,
    "total_tokens": 110,
    "prompt_tokens_details": {"cached_tokens": 40},
    "completion_tokens_details": {"reasoning_tokens": 3},
}
RESPONSES_USAGE = {
    "input_tokens": 100,
    "output_tokens": 10,
    "total_tokens": 110,
    "input_tokens_details": {"cached_tokens": 40},
    "output_tokens_details": {"reasoning_tokens": 3},
}


def serve(respond: Callable[[int, dict[str, Any]], Any] | list[Any], port: int = 0):
    """Serve scripted responses, or what a function makes of the request's number and JSON."""
    return serve_http(respond, _events, "/v1", port)


def _events(response: dict[str, Any], request: dict[str, Any]) -> Events:
    return _response_events(response) if response["object"] == "response" else _chat_events(response, request)


# --- chat completions ---


def chat(
    content: str | None = None,
    *tool_calls: tuple[str, str, str],
    usage: dict[str, Any] | None = USAGE,
    finish_reason: str | None = None,
) -> dict[str, Any]:
    """Return a chat completion; a tool call is (id, name, arguments as text)."""
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if tool_calls:
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for call_id, name, arguments in tool_calls
        ]
    reason = finish_reason or ("tool_calls" if tool_calls else "stop")
    return {
        "id": "chatcmpl-always-the-same",
        "object": "chat.completion",
        "created": 0,
        "model": "some-model",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": usage,
    }


def _chat_events(response: dict[str, Any], request: dict[str, Any]) -> Events:
    """Send a completion in small pieces, the way that OpenAI does."""
    head = {key: response[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}

    def delta(value: dict[str, Any], finish_reason: str | None = None):
        return None, {**head, "choices": [{"index": 0, "delta": value, "finish_reason": finish_reason}]}

    for choice in response["choices"]:
        message = choice["message"]
        yield delta({"role": "assistant", "content": ""})
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


def response(number: int, *items: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a response of the Responses API; its items get ids of their own."""
    prefixes = {"message": "msg", "function_call": "fc", "reasoning": "rs"}
    output = [{"id": f"{prefixes[item['type']]}_{number}_{place}", **item} for place, item in enumerate(items)]
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 0,
        "model": "some-model",
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "output": output,
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": RESPONSES_USAGE,
        **changes,
    }


def reasoning(summary: str, encrypted: str | None = None) -> dict[str, Any]:
    """Return a reasoning item."""
    item = {"type": "reasoning", "summary": [{"type": "summary_text", "text": summary}]}
    return item | ({"encrypted_content": encrypted} if encrypted else {})


def text(value: str) -> dict[str, Any]:
    """Return a message item."""
    content = [{"type": "output_text", "text": value, "annotations": []}]
    return {"type": "message", "role": "assistant", "status": "completed", "content": content}


def function_call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    """Return a function call item."""
    return {
        "type": "function_call",
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
        "status": "completed",
    }


def _response_events(response: dict[str, Any]) -> Events:
    """Send a response item by item in small pieces, the way that OpenAI does."""
    number = 0

    def event(kind: str, **data: Any):
        nonlocal number
        number += 1
        return f"response.{kind}", {"type": f"response.{kind}", "sequence_number": number, **data}

    yield event("created", response=response | {"output": [], "status": "in_progress", "usage": None})
    for place, item in enumerate(response["output"]):
        at = {"output_index": place, "item_id": item["id"]}
        match item["type"]:
            case "reasoning":
                yield event("output_item.added", output_index=place, item=item | {"summary": []})
                for index, part in enumerate(item["summary"]):
                    empty = {"type": "summary_text", "text": ""}
                    yield event("reasoning_summary_part.added", **at, summary_index=index, part=empty)
                    for piece in pieces(part["text"]):
                        yield event("reasoning_summary_text.delta", **at, summary_index=index, delta=piece)
            case "message":
                yield event("output_item.added", output_index=place, item=item | {"content": []})
                for index, part in enumerate(item["content"]):
                    for piece in pieces(part["text"]):
                        yield event("output_text.delta", **at, content_index=index, delta=piece, logprobs=[])
                    yield event("output_text.done", **at, content_index=index, text=part["text"], logprobs=[])
            case "function_call":
                yield event("output_item.added", output_index=place, item=item | {"arguments": ""})
                for piece in pieces(item["arguments"]):
                    yield event("function_call_arguments.delta", **at, delta=piece)
                yield event("function_call_arguments.done", **at, arguments=item["arguments"], name=item["name"])
        yield event("output_item.done", output_index=place, item=item)
    yield event("completed", response=response)


# --- embeddings ---


def embeddings(vectors: list[list[float]]) -> dict[str, Any]:
    data = [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)]
    return {"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}}
