"""Citations as annotations of LangChain's content blocks, which chat front ends read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.messages import content as blocks

if TYPE_CHECKING:
    from arag.graph.cited import Citation

_STANDARD: dict[str, Any] = {"output_version": "v1"}  # LangChain's name for content that is standard blocks


def annotate(reply: AIMessage, citations: Iterable[Citation]) -> AIMessage:
    """Return an answer whose text block carries its citations as annotations, each place of a citation once.

    Chunks that the model was not shown get none. An answer without annotations is returned as it is. All other text,
    and `text`, stay the same.

    Args:
        reply: The answer.
        citations: The citations in its text without white space around it, as `parse_citations` finds them.

    Example:
        >>> from langchain_core.messages import AIMessage
        >>> answer = AIMessage("The lens came from Emberlane [places/vellin-light.md:0].")
        >>> citations = parse_citations(answer.text, index, ["places/vellin-light.md:0"], [])
        >>> [annotation] = annotate(answer, citations).content_blocks[0]["annotations"]
        >>> annotation["title"], annotation["start_index"], annotation["end_index"]
        ('Vellin Light', 29, 55)
    """
    text = str(reply.text)
    margin = len(text) - len(text.lstrip())
    annotations = []
    for citation in citations:
        if citation["seen"] and citation["document"] is not None:
            annotations += _make_annotations(citation, margin)
    if not annotations:
        return reply
    annotations.sort(key=lambda annotation: annotation["start_index"])
    # With a provider's name, LangChain would read these blocks in that provider's own form, and send Anthropic
    # citations that it refuses.
    metadata = {name: value for name, value in reply.response_metadata.items() if name != "model_provider"}
    return reply.model_copy(
        update={
            "content": _place(annotations, reply.content_blocks),
            "response_metadata": metadata | _STANDARD,
        }
    )


def as_written(message: AnyMessage) -> AnyMessage:
    """Return a reply as its model wrote it, without the agent's name and annotations: some providers refuse these."""
    metadata = message.response_metadata
    if not isinstance(message, AIMessage) or "seconds" not in metadata:  # of another agent
        return message
    changes: dict[str, Any] = {"name": None} if message.name else {}
    if metadata.get("output_version") == _STANDARD["output_version"] and "model_provider" not in metadata:
        changes["content"] = str(message.text)
        changes["response_metadata"] = {name: value for name, value in metadata.items() if name != "output_version"}
    return message.model_copy(update=changes) if changes else message


def _make_annotations(citation: Citation, margin: int) -> list[blocks.Citation]:
    """Return an annotation for each place at which the answer names a chunk."""
    document = citation["document"]
    assert document is not None  # noqa: S101 - for the type checker
    made = []
    for span in citation["spans"]:
        annotation = blocks.Citation(
            type="citation",
            title=document["title"],
            start_index=span["start"] + margin,
            end_index=span["end"] + margin,
        )
        if document["url"]:
            annotation["url"] = document["url"]
        else:
            # OpenAI's Responses API takes a citation without an address as one of a file, which has these fields.
            annotation["extras"] = {"file_id": citation["chunk_id"], "index": span["start"] + margin}
        quotes = [quote["text"] for quote in citation["quotes"]]
        if quotes:
            annotation["cited_text"] = " … ".join(quotes)
        made.append(annotation)
    return made


def _place(annotations: Sequence[blocks.Citation], content: Iterable[blocks.ContentBlock]) -> list[Any]:
    """Return content with each annotation in the text block in which it starts; its places count from there."""
    placed: list[Any] = []
    start = 0
    for block in content:
        if block["type"] != "text":
            placed.append(block)
            continue
        end = start + len(block["text"])
        own: list[Any] = list(block.get("annotations", []))
        for annotation in annotations:
            first, last = annotation["start_index"], annotation["end_index"]
            if start <= first < end:
                own.append({**annotation, "start_index": first - start, "end_index": min(last, end) - start})
        placed.append({**block, "annotations": own} if own else block)
        start = end
    return placed
