"""What the end of a run says about its answer."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from arag.graph.citations import find_grounding, parse_citations
from arag.retrieval.index import Index


def describe_answer(text: str, index: Index, seen: Collection[str], read: Collection[str]) -> dict[str, Any]:
    """Return an answer with its citations, and how far these support it.

    Args:
        text: The text of the model's last message.
        index: The index.
        seen: Ids of chunks that were shown to the model.
        read: Ids of chunks that were shown in full.
    """
    answer = text.strip()
    citations = parse_citations(answer, index, seen, read)
    return {
        "answer": answer,
        "citations": citations,
        "grounding": find_grounding(citations),
    }
