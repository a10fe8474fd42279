"""What the end of a run says about its answer."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from langchain_core.messages import ToolMessage

from arag.graph.citations import find_grounding, parse_citations
from arag.graph.prompts import EXAMPLE_ID
from arag.graph.state import State
from arag.retrieval.index import Index

_ENDS = {
    "answered": "",
    "cut_off": "The answer is cut off.",
    "refused": "The model refused to answer.",
}
NOT_FROM_CORPUS = "Not from the corpus: the model answered without a search."


def describe_answer(text: str, index: Index, seen: Collection[str], read: Collection[str]) -> dict[str, Any]:
    """Return an answer with its citations, and how far these support it.

    Args:
        text: The text of the model's last message.
        index: The index.
        seen: Ids of chunks that were shown to the model.
        read: Ids of chunks that were shown in full.
    """
    answer = text.strip()
    citations = []
    for citation in parse_citations(answer, index, seen, read):
        if citation["seen"] or citation["chunk_id"] != EXAMPLE_ID:  # the prompt names it
            citations.append(citation)
    return {
        "answer": answer,
        "citations": citations,
        "grounding": find_grounding(citations),
    }


def describe_end(state: State) -> str:
    """Return what a reader must know about an answer's end, in a sentence; nothing if it is complete."""
    reason = state["stop_reason"]
    end = _ENDS.get(reason, f"The answer was forced: {reason}.")
    if reason in {"answered", "cut_off"} and is_from_memory(state):
        return f"{end} {NOT_FROM_CORPUS}".strip()
    return end


def is_from_memory(state: State) -> bool:
    """Return whether nothing was searched in a conversation."""
    return state["grounding"] == "none" and not any(isinstance(each, ToolMessage) for each in state["messages"])
