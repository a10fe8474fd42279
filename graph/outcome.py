"""What the end of a run says about its answer."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage

from arag.graph.citations import find_grounding, link_citations, parse_citations
from arag.graph.cited import Citation
from arag.graph.prompts import EXAMPLE_ID
from arag.graph.shown import ShownTexts
from arag.graph.state import State
from arag.models.extractive import admits_no_answer
from arag.retrieval.index import Index

_ENDS = {
    "answered": "",
    "cut_off": "The answer is cut off.",
    "refused": "The model refused to answer.",
}
NO_ANSWER_FOUND = "no answer found"
NOT_FROM_CORPUS = "Not from the corpus: the model answered without a search."


def describe_answer(
    text: str,
    index: Index,
    seen: Collection[str],
    read: Collection[str],
    *,
    others: Sequence[Citation] = (),
    shown: ShownTexts | None = None,
) -> dict[str, Any]:
    """Return an answer with its citations, and how far these support it.

    Args:
        text: The text of the model's last message.
        index: The index.
        seen: Ids of chunks that were shown to the model.
        read: Ids of chunks that were shown in full.
        others: Citations of other agents.
        shown: What the model was shown, if other middleware may have changed it.
    """
    answer = text.strip()
    citations = []
    for citation in parse_citations(answer, index, seen, read, others=others, shown=shown):
        if citation["seen"] or citation["chunk_id"] != EXAMPLE_ID:  # the prompt names it
            citations.append(citation)
    return _describe(answer, citations)


def describe_linked_answer(text: str, others: Sequence[Citation]) -> dict[str, Any]:
    """Return the answer of an agent without an index, with the citations of the agents that it asked."""
    answer = text.strip()
    return _describe(answer, link_citations(answer, others))


def _describe(answer: str, citations: Sequence[Citation]) -> dict[str, Any]:
    grounding = find_grounding(citations)
    if admits_no_answer(answer):
        grounding = "none"
    return {
        "answer": answer,
        "citations": list(citations),
        "grounding": grounding,
    }


def read_answer(message: AIMessage) -> str:
    """Return the text of an answer; if it is a call with a structured answer, that as JSON."""
    text = message.text.strip()
    if text or not message.tool_calls:
        return text
    return json.dumps(message.tool_calls[0]["args"], ensure_ascii=False)


def name_end(answer: str, reason: str) -> str:
    """Return how a run ended, for a person: why its search ended, or that it found no answer."""
    if reason == "answered" and admits_no_answer(answer):
        return NO_ANSWER_FOUND
    return reason


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
