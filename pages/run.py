"""Reads a run's final state for a page.

A state may come from an earlier version, from a failed run, or as JSON: what it lacks is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, cast

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage, convert_to_messages, messages_from_dict

from arag.errors import InputError
from arag.graph.messages import find_earlier_turns, find_question
from arag.models.prices import cost
from arag.models.usage import model_call
from arag.pages.chunks import list_chunks, read_artifact

_NEEDED = (
    "a run's final state is needed: what `agent.invoke` returns, a dict with the conversation in `messages`, or the "
    "same as JSON"
)
_FORCED = {
    "max_steps": "the step limit was reached",
    "token_budget": "the context was full",
    "invalid_replies": "too many replies were invalid",
}
_TOKENS = ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens")


def show_run(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run's final state shows, by the names in the page's template.

    Args:
        state: The state, its messages as objects or as dicts.

    Raises:
        InputError: The state has no conversation.
    """
    messages = _read_messages(state)
    place = find_question(messages)
    before, question, later = messages[:place], messages[place], messages[place + 1 :]
    # If the question's first model call failed, the state's counts are those of the previous question.
    if (before and not later) or state.get("question_id") not in {None, "", question.id, question.text}:
        state = {"read_chunks": state.get("read_chunks")}
    if state.get("trace") is not None:
        state = {**state, "trace": [_read_entry(entry) for entry in state["trace"]]}
    reply = later[-1] if later and isinstance(later[-1], AIMessage) and not _asks(later[-1]) else None
    answer = str(state.get("answer") or reply.text) if reply is not None else ""
    stop_reason = str(state.get("stop_reason") or ("answered" if reply is not None else ""))
    read = {chunk_id for message in before for chunk_id in read_artifact(message).new_chunks}
    steps = list(_steps(later, state, stop_reason, read))
    recorded = [_read_figures(call) for call in state.get("model_calls") or ()]
    # Not every method is a conversation: its calls and retrievals stand beside the one message, the answer.
    unspoken = recorded if len(recorded) > len(steps) else []
    if unspoken and steps:
        steps[-1] |= {"number": len(unspoken), "model": unspoken[-1]}
    retrievals = list(state.get("trace") or ()) if not any(isinstance(each, ToolMessage) for each in later) else []
    chunks = list_chunks(messages, state.get("read_chunks") or (), state.get("citations") or ())
    for step in steps:
        for chunk_id in (chunk_id for call in step["calls"] for chunk_id in call["artifact"].new_chunks):
            chunks[chunk_id].steps.append(step["number"])
    for record in retrievals:
        for chunk_id in (chunk_id for chunk_id in record["new_chunks"] if chunk_id in chunks and record["step"]):
            chunks[chunk_id].steps.append(record["step"])
    sources = [chunk for chunk in chunks.values() if chunk.cited]
    return {
        "question": question.text,
        "earlier": find_earlier_turns(messages),
        "answer": answer,
        "status": "failed" if not answer else "answered" if stop_reason == "answered" else "forced",
        "reason": _FORCED.get(stop_reason, stop_reason),
        "errors": [step["number"] for step in steps if any(call["error"] for call in step["calls"])],
        "sources": sources,
        "stages": [_read_stage(stage) for stage in _read_list(state.get("stages"))],
        "retrievals": retrievals,
        "unspoken": unspoken,
        "steps": steps,
        "chunks": chunks,
        "totals": _sum_up(state, steps, unspoken, retrievals),
    }


# --- messages ---


def _read_messages(state: Any) -> list[AnyMessage]:
    messages = state.get("messages") if isinstance(state, Mapping) else None
    if not isinstance(messages, list | tuple) or not messages:
        raise InputError(_NEEDED)
    try:
        return [_read_message(message) for message in messages]
    except (ValueError, TypeError, KeyError, NotImplementedError) as error:
        raise InputError(f"{_NEEDED}; one of its messages is invalid: {str(error).splitlines()[0]}") from error


def _read_message(message: Any) -> AnyMessage:
    """Return a message; it may be a dict from LangGraph's server or LangChain's `dumps`."""
    if isinstance(message, dict) and message.get("type") == "constructor" and "kwargs" in message:
        message = message["kwargs"]
    if isinstance(message, dict) and "type" in message:
        wrapped = message if isinstance(message.get("data"), dict) else {"type": message["type"], "data": message}
        return cast("AnyMessage", messages_from_dict([wrapped])[0])
    return cast("AnyMessage", convert_to_messages([message])[0])


def _read_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry of the trace, with defaults for what it lacks."""
    known: dict[str, Any] = dict.fromkeys(("step", "seconds", "error"))
    known |= {"tool": "unknown", "arguments": {}, "chunk_ids": [], "new_chunks": []}
    known |= {"retrieved_tokens": 0, "evidence_tokens": 0}
    return known | {key: value for key, value in dict(entry).items() if value is not None}


def _read_stage(stage: Any) -> dict[str, Any]:
    """Return a stage's title and lines; what has no title is lines."""
    about = stage if isinstance(stage, Mapping) else {"lines": stage}
    return {"title": about.get("title") or "", "lines": _read_list(about.get("lines"))}


def _read_list(value: Any) -> list[Any]:
    return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]


def _asks(message: AIMessage) -> bool:
    return bool(message.tool_calls or message.invalid_tool_calls)


# --- steps ---


def _steps(
    messages: Sequence[AnyMessage], state: Mapping[str, Any], stop_reason: str, read: set[str]
) -> Iterator[dict[str, Any]]:
    """Walk through the messages after the question: each reply of the model is a step. Empty replies left no message.

    Yields:
        For each step its number, the model call's figures, the reply and its reasoning, whether the answer was forced,
        and its tool calls. The reply is None if it was empty, and the figures are None if unknown.
    """
    model_calls = {call.get("step"): call for call in state.get("model_calls") or ()}
    places = [n for n, message in enumerate(messages) if isinstance(message, AIMessage)]
    number = 1
    for place, end in [*pairwise([*places, len(messages)]), (None, 0)]:
        while (call := model_calls.get(number)) and call.get("empty"):
            yield {"number": number, "model": _read_figures(call), "reply": None, "forced": False, "calls": []}
            number += 1
        if place is None:
            break
        reply = cast("AIMessage", messages[place])
        figures = call or ({**model_call(reply, 0.0, step=0), "seconds": None} if reply.usage_metadata else None)
        records = [record for record in state.get("trace") or () if record.get("step") == number]
        yield {
            "number": number,
            "model": _read_figures(figures) if figures else None,
            "reply": reply,
            "thought": _read_reasoning(reply),
            "forced": bool((call or {}).get("forced", not _asks(reply) and stop_reason != "answered")),
            "calls": list(_calls(reply, messages[place + 1 : end], records, read)),
        }
        number += 1


def _read_reasoning(reply: AIMessage) -> str:
    try:
        texts = [str(b.get("reasoning") or "") for b in reply.content_blocks if b["type"] == "reasoning"]
    except (KeyError, TypeError, ValueError, AttributeError):  # blocks of an unknown form
        return ""
    return "\n\n".join(texts).strip()


def _calls(
    reply: AIMessage, results: Sequence[AnyMessage], records: list[Mapping[str, Any]], read: set[str]
) -> Iterator[dict[str, Any]]:
    """Yield the calls of a message with their results, and add the chunks that they read to `read`."""
    by_id = {result.tool_call_id: result for result in results if isinstance(result, ToolMessage)}
    for call in [*reply.tool_calls, *reply.invalid_tool_calls]:
        result = by_id.get(call["id"] or "") or ToolMessage("The call has no result.", tool_call_id="", status="error")
        artifact = read_artifact(result)
        name, arguments = call["name"] or "unknown", call["args"] or {}
        recorded = name, arguments if isinstance(arguments, dict) else {}
        record = next((record for record in records if (record.get("tool"), record.get("arguments")) == recorded), {})
        if record:  # the next call may be identical
            records.remove(record)
        yield {
            "tool": name,
            "arguments": arguments,
            "text": result.text,
            "artifact": artifact,
            "error": record.get("error") or (result.text if result.status == "error" else ""),
            "seconds": record.get("seconds"),
            "retrieved_tokens": record.get("retrieved_tokens", artifact.retrieved_tokens),
            "evidence_tokens": record.get("evidence_tokens", artifact.evidence_tokens),
            "read_before": frozenset(read),
        }
        read.update(artifact.new_chunks)


def _read_figures(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return a model call's figures, with defaults for those that the state lacks."""
    known = dict.fromkeys(_TOKENS, 0) | {"model": "", "seconds": None, "cut_off": False}
    return known | dict(call) | {"cost": cost([call])}


def _sum_up(
    state: Mapping[str, Any],
    steps: Sequence[Mapping[str, Any]],
    unspoken: Sequence[Mapping[str, Any]],
    retrievals: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return a question's figures; unknown ones are None, tokens that were not reported are 0."""
    calls: list[Mapping[str, Any]] = [call for step in steps for call in step["calls"]]
    models = unspoken or [step["model"] for step in steps]
    known = [model for model in models if model is not None]
    costs = [model["cost"] for model in known]
    usage = state.get("usage") or {key: sum(model[key] for model in known) for key in _TOKENS}
    trace = state.get("trace")
    retrieved = calls if trace is None else trace
    model_seconds = _sum(model["seconds"] for model in known)
    tool_seconds = _sum(call["seconds"] for call in calls or retrievals)
    return {
        **{key: usage.get(key) or 0 for key in _TOKENS},
        "steps": state.get("steps") or sum(not step["forced"] for step in steps),
        "tool_calls": len(retrieved),
        "retrieved_tokens": sum(call["retrieved_tokens"] for call in retrieved),
        "evidence_tokens": sum(call["evidence_tokens"] for call in retrieved),
        "seconds": _sum([model_seconds, tool_seconds]),
        "model_seconds": model_seconds,
        "tool_seconds": tool_seconds,
        "cost": _sum(costs) if len(known) == len(models) and None not in costs else None,
        "models": list(dict.fromkeys(model["model"] for model in known if model["model"])),
    }


def _sum(numbers: Iterable[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None
