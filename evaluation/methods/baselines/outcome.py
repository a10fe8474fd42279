"""What the methods put into their output: the agent's keys, and the stages that a run page shows."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage
from typing_extensions import TypedDict

from arag.graph.citations import parse_citations
from arag.graph.messages import find_question
from arag.graph.state import InputState, OutputState, State, StopReason, ToolRecord, union
from arag.models.usage import ModelCall, total
from arag.retrieval.index import Index
from arag.retrieval.types import Chunk


class Stage(TypedDict):
    """Something that a method found or decided on its way to an answer."""

    title: str
    """What it is."""
    lines: list[str]
    """What was found, a line each."""


class MethodOutput(OutputState, total=False):
    """A method's output: the agent's, and its stages."""

    stages: list[Stage]
    """What it found and decided, in order."""


class MethodState(State, total=False):
    """The state that a method's nodes share; methods extend it with channels of their own."""

    stages: list[Stage]
    """What it found and decided, in order."""


__all__ = ["InputState", "MethodOutput", "MethodState", "Stage", "find_text", "finish", "retrieval_record"]


def find_text(state: Mapping[str, Any]) -> str:
    """Return the question of a state."""
    return str(state["messages"][find_question(state["messages"])].text)


def retrieval_record(
    chunks: Sequence[Chunk],
    arguments: Mapping[str, Any],
    *,
    began: float,
    step: int = 1,
    tool: str = "retrieve",
    known: Sequence[str] = (),
) -> ToolRecord:
    """Return the record of a retrieval.

    Args:
        chunks: The chunks that were retrieved, best first.
        arguments: What was asked for, and figures about it.
        began: When it began, by `time.perf_counter`.
        step: The model call that it is for, from 1.
        tool: Its name; the first of a run is `retrieve`.
        known: Ids of chunks that were retrieved before.
    """
    ids = [chunk.id for chunk in chunks]
    return ToolRecord(
        step=step,
        tool=tool,
        arguments=dict(arguments),
        chunk_ids=ids,
        new_chunks=[chunk_id for chunk_id in ids if chunk_id not in set(known)],
        retrieved_tokens=sum(chunk.tokens for chunk in chunks),
        evidence_tokens=sum(chunk.tokens for chunk in chunks),
        seconds=time.perf_counter() - began,
        error=None,
    )


def finish(
    index: Index,
    answer: str,
    *,
    calls: Sequence[ModelCall],
    trace: Sequence[ToolRecord],
    stages: Sequence[Stage],
    cited: Sequence[str] | None = None,
    stop_reason: StopReason = "answered",
) -> dict[str, Any]:
    """Return the update of a method's last node.

    Args:
        index: The index.
        answer: The answer.
        calls: The model calls, in order; they are numbered here.
        trace: The retrievals, in order.
        stages: What was found and decided.
        cited: Ids of the chunks that the answer rests on, where it does not name them itself.
        stop_reason: Why it ended.
    """
    numbered: list[ModelCall] = [{**call, "step": number} for number, call in enumerate(calls, start=1)]
    read = union([], [chunk_id for record in trace for chunk_id in record["new_chunks"]])
    named = answer if cited is None else f"{answer} {' '.join(f'[{chunk_id}]' for chunk_id in cited)}"
    return {
        "messages": [AIMessage(answer)] if answer.strip() else [],
        "answer": answer,
        "citations": parse_citations(named, index, read, read),
        "stop_reason": stop_reason,
        "steps": len(numbered),
        "read_chunks": read,
        "trace": list(trace),
        "model_calls": numbered,
        "usage": total(numbered),
        "stages": list(stages),
    }
