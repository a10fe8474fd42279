"""What a run did, as its messages say: steps, tool calls, chunks shown, and their sums."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from arag.graph.state import ToolRecord, union
from arag.models.usage import model_call, total
from arag.retrieval.index import Index
from arag.retrieval.tools.seen import find_artifacts, find_digests
from arag.text.tokens import count_tokens


def find_shown_chunks(messages: Iterable[AnyMessage]) -> list[str]:
    """Return the ids of the chunks that tool results show, as their artifacts say."""
    artifacts = [message.artifact for message in messages if isinstance(message, ToolMessage)]
    shown = [artifact.get("chunk_ids") for artifact in artifacts if isinstance(artifact, dict)]
    return union(None, [i for ids in shown if isinstance(ids, list) for i in ids if isinstance(i, str)])


def find_seen(messages: Iterable[AnyMessage], index: Index) -> list[str]:
    """Return those of them that the index has with the text that was shown: another index may have their ids, too."""
    results: list[tuple[list[str], dict[str, str]]] = [
        (find_shown_chunks([m]), next(find_artifacts([m]), {"digests": {}})["digests"]) for m in messages
    ]
    known = find_digests(index, {chunk_id for _, digests in results for chunk_id in digests})
    seen = (i for shown, digests in results for i in shown if i not in digests or digests[i] == known[i])
    return union(None, seen)


def records(run: Sequence[AnyMessage], answer: AIMessage, *, is_forced: bool) -> dict[str, Any]:
    """Return the steps, trace, model calls and usage of a run: of its messages before the answer, and of the answer."""
    replies = [message for message in run if isinstance(message, AIMessage)]
    calls = {
        call["id"]: (step, call["args"] if isinstance(call["args"], dict) else {})
        for step, reply in enumerate(replies, 1)
        for call in (*reply.tool_calls, *reply.invalid_tool_calls)
    }
    trace = [tool_record(m, *calls.get(m.tool_call_id, (0, {}))) for m in run if isinstance(m, ToolMessage)]
    model_calls = [model_call(reply, step=step) for step, reply in enumerate(replies, 1)]
    model_calls.append(model_call(answer, step=len(replies) + 1, forced=is_forced))
    steps = len(replies) + (not is_forced)
    return {"steps": steps, "trace": trace, "model_calls": model_calls, "usage": total(model_calls)}


def tool_record(result: ToolMessage, step: int, arguments: dict[str, Any]) -> ToolRecord:
    """Return the record of a call, from its result."""
    shown = find_shown_chunks([result])
    artifact = next(find_artifacts([result]), {})
    own = count_tokens(result.text) if shown and not artifact else 0  # of a caller's own tool
    return ToolRecord(
        step=step,
        tool=result.name or "",
        arguments=arguments,
        chunk_ids=shown,
        new_chunks=artifact.get("new_chunks", []),
        retrieved_tokens=artifact.get("retrieved_tokens", own),
        evidence_tokens=artifact.get("evidence_tokens", own),
        seconds=result.response_metadata.get("seconds", 0.0),
        error=result.text if result.status == "error" else None,
    )


def total_retrieval(calls: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return sums over a run's tool calls. A chunk is read if it is shown in full, or in passages by `chunk_read`."""
    calls = list(calls)
    read = {chunk_id for c in calls for chunk_id in c["chunk_ids" if c["tool"] == "chunk_read" else "new_chunks"]}
    tokens = {name: sum(call[name] for call in calls) for name in ("retrieved_tokens", "evidence_tokens")}
    return {"tool_calls": len(calls), "chunks_read": len(read)} | tokens
