"""What a run did, read from its messages: its tool calls, its model calls, and their tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from arag.graph.citations import find_shown_chunks
from arag.graph.state import ToolRecord
from arag.models.usage import model_call, total
from arag.retrieval.index import Index
from arag.retrieval.tokens import count_tokens
from arag.retrieval.tools import find_artifacts


def records(run: Sequence[AnyMessage], answer: AIMessage, index: Index, *, is_forced: bool) -> dict[str, Any]:
    """Return the steps, trace, model calls and usage of a run.

    Args:
        run: The messages of the run before its answer.
        answer: The answer.
        index: The index.
        is_forced: Whether the answer was forced.
    """
    replies = [message for message in run if isinstance(message, AIMessage)]
    searches = replies if is_forced else [*replies, answer]
    model_calls = [model_call(reply, step=step) for step, reply in enumerate(searches, 1)]
    if is_forced:
        model_calls.append(model_call(answer, step=len(searches) + 1, forced=True))
    calls: dict[str | None, tuple[int, dict[str, Any]]] = {}
    for step, reply in enumerate(replies, 1):
        calls |= {call["id"]: (step, call["args"]) for call in reply.tool_calls}
        calls |= {call["id"]: (step, {}) for call in reply.invalid_tool_calls}
    results = [message for message in run if isinstance(message, ToolMessage)]
    trace = [_tool_record(result, *calls.get(result.tool_call_id, (0, {})), index) for result in results]
    return {"steps": len(searches), "trace": trace, "model_calls": model_calls, "usage": total(model_calls)}


def _tool_record(result: ToolMessage, step: int, arguments: dict[str, Any], index: Index) -> ToolRecord:
    artifact = next(find_artifacts([result]), None)
    shown = find_shown_chunks([result], index)
    tokens = count_tokens(result.text) if shown else 0
    return ToolRecord(
        step=step,
        tool=result.name or "",
        arguments=arguments,
        chunk_ids=shown,
        new_chunks=list(artifact["new_chunks"]) if artifact else [],
        retrieved_tokens=artifact["retrieved_tokens"] if artifact else tokens,
        evidence_tokens=artifact["evidence_tokens"] if artifact else tokens,
        seconds=result.response_metadata.get("seconds", 0.0),
        error=result.text if result.status == "error" else None,
    )
