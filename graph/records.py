"""Records of a run, read from its messages: steps, tool calls, chunks shown, and their sums."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from arag.graph.cited import Citation, is_citation, merge_citations
from arag.graph.review import find_call
from arag.graph.state import ToolRecord, list_calls, union
from arag.models.replies.reading import list_repairs
from arag.models.usage import model_call, total
from arag.retrieval.index import Index
from arag.retrieval.tools.seen import find_artifacts, find_digests
from arag.text.tokens import count_tokens


def find_shown_chunks(messages: Iterable[AnyMessage]) -> list[str]:
    """Return the ids of the chunks that tool results show, as their artifacts say."""
    shown: list[str] = []
    for message in messages:
        artifact = message.artifact if isinstance(message, ToolMessage) else None
        chunk_ids = artifact.get("chunk_ids") if isinstance(artifact, dict) else None
        if isinstance(chunk_ids, list):
            shown += [chunk_id for chunk_id in chunk_ids if isinstance(chunk_id, str)]
    return union(None, shown)


def find_seen(messages: Iterable[AnyMessage], index: Index) -> list[str]:
    """Return the ids of the shown chunks that the index has with the text that was shown.

    Another index may have chunks with the same ids. A caller's own tools give no digests: their ids count as they are.
    Those of other agents' citations do not: another agent was shown the chunks.
    """
    shown: list[_Shown] = []
    digested: set[str] = set()
    for message in messages:
        if isinstance(message, ToolMessage) and not read_citations(message):
            artifact = next(find_artifacts([message]), {})
            shown.append(_Shown(find_shown_chunks([message]), artifact.get("digests", {})))
            digested |= shown[-1].digests.keys()
    known = find_digests(index, digested)
    seen: list[str] = []
    for result in shown:
        for chunk_id in result.chunk_ids:
            is_changed = chunk_id in result.digests and result.digests[chunk_id] != known[chunk_id]
            if not is_changed:
                seen.append(chunk_id)
    return union(None, seen)


def collect_citations(messages: Iterable[AnyMessage]) -> list[Citation]:
    """Return the citations in the results of `make_agent_tool`."""
    citations: list[Citation] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            citations = merge_citations(citations, read_citations(message))
    return citations


def read_citations(result: ToolMessage) -> list[Citation]:
    """Return the citations of a result of another agent. Artifacts of other tools may have such a key, too.

    If other middleware has changed the answer, they have no quotes: what it took out may be in them.
    """
    artifact = result.artifact
    found = artifact.get("citations") if isinstance(artifact, dict) else None
    if not isinstance(found, list) or not all(map(is_citation, found)):
        return []
    if not has_other_answer(result):
        return found
    citations: list[Citation] = [citation.copy() for citation in found]
    for citation in citations:
        citation["quotes"] = []
    return citations


def has_other_answer(result: ToolMessage) -> bool:
    """Return whether the text of another agent's result is not the answer in its artifact."""
    is_changed: bool = result.artifact.get("answer", result.text) != result.text
    return is_changed


@dataclass(frozen=True)
class _Shown:
    """What a result shows: chunks, and the digests of their texts if the tool gives them."""

    chunk_ids: list[str]
    digests: dict[str, str]


@dataclass(frozen=True)
class _Call:
    """A tool call, as the model asked for it."""

    step: int = 0
    asked: Mapping[str, Any] = field(default_factory=lambda: {"args": {}})
    repaired: list[str] = field(default_factory=list)


def records(run: Sequence[AnyMessage], answer: AIMessage, *, is_forced: bool) -> dict[str, Any]:
    """Return the steps, trace, model calls and usage of a run, from its messages before the answer and the answer."""
    replies = [message for message in run if isinstance(message, AIMessage)]
    model_calls = [model_call(reply, step=step) for step, reply in enumerate(replies, 1)]
    model_calls.append(model_call(answer, step=len(replies) + 1, forced=is_forced))
    return {
        "steps": len(replies) if is_forced else len(replies) + 1,
        "trace": record_results(run),
        "model_calls": model_calls,
        "usage": total(model_calls),
    }


def record_results(run: Sequence[AnyMessage], *, first_step: int = 1) -> list[ToolRecord]:
    """Return the records of the calls of a run, in order; the first reply in it is of the step `first_step`."""
    calls: dict[str | None, _Call] = {}
    step = first_step - 1
    trace = []
    for message in run:
        if isinstance(message, AIMessage):
            step += 1
            for asked in list_calls(message):
                calls[asked["id"]] = _Call(step, asked, list_repairs(message))
        elif isinstance(message, ToolMessage):
            call = calls.get(message.tool_call_id, _Call())
            trace.append(tool_record(message, call.step, call.asked, call.repaired))
    return trace


def tool_record(
    result: ToolMessage,
    step: int,
    asked: Mapping[str, Any],
    repaired: Sequence[str] = (),
) -> ToolRecord:
    """Return the record of a call, from its result and what the model asked for."""
    arguments = find_call(result, asked)["args"]
    if not isinstance(arguments, dict):  # they are not JSON
        arguments = {}
    shown = find_shown_chunks([result])
    artifact = next(find_artifacts([result]), {})
    tokens = 0
    if shown and not artifact:  # of a caller's own tool, which counts no tokens
        tokens = count_tokens(result.text)
    return ToolRecord(
        step=step,
        tool=result.name or "",
        arguments=arguments,
        chunk_ids=shown,
        new_chunks=artifact.get("new_chunks", []),
        retrieved_tokens=artifact.get("retrieved_tokens", tokens),
        evidence_tokens=artifact.get("evidence_tokens", tokens),
        seconds=result.response_metadata.get("seconds", 0.0),
        error=result.text if result.status == "error" else None,
        repaired=list(repaired),
    )


def total_retrieval(calls: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return sums over a run's tool calls. A chunk is read if it is shown in full, or in passages by `chunk_read`."""
    sums = {"tool_calls": 0, "chunks_read": 0, "retrieved_tokens": 0, "evidence_tokens": 0}
    read: set[str] = set()
    for call in calls:
        sums["tool_calls"] += 1
        sums["retrieved_tokens"] += call["retrieved_tokens"]
        sums["evidence_tokens"] += call["evidence_tokens"]
        read.update(call["chunk_ids"] if call["tool"] == "chunk_read" else call["new_chunks"])
    sums["chunks_read"] = len(read)
    return sums
