"""The graph's state: plain values that survive a JSON round trip."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, Required, TypeAlias

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages
from langgraph.managed import RemainingSteps
from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from arag.models.usage import ModelCall, Usage

# A recursion limit that ends the search before `max_steps` does is also reported as `max_steps`; `steps` shows which.
StopReason: TypeAlias = Literal["answered", "max_steps", "token_budget", "empty_reply"]

# Puts the fields' docstrings into the JSON schemas, where Studio and other clients of the API server find them.
_described = with_config(ConfigDict(use_attribute_docstrings=True))


@_described
class Quote(TypedDict):
    """A sentence of a cited chunk that bears what the answer says."""

    start: int
    """Character offset in the chunk's text."""
    end: int
    """Offset after its last character."""
    text: str
    """The sentence."""


@_described
class CitedDocument(TypedDict):
    """The document of a cited chunk. What its metadata does not tell is empty."""

    id: str
    """The document's id."""
    title: str
    """Its title."""
    url: str
    """Its web address: `url`, `source_url` or `link` in the metadata."""
    author: str
    """Its authors: `author`, `authors` or `creator`."""
    date: str
    """Its date as it is written there: `date`, `published`, `created` or `year`."""


@_described
class Citation(TypedDict):
    """A chunk that the answer names."""

    chunk_id: str
    """The chunk's id."""
    seen: bool
    """Whether the chunk was shown to the model, in an excerpt or in full."""
    read: bool
    """Whether it was shown in full."""
    pages: list[int] | None
    """First and last page, for documents that have pages."""
    document: CitedDocument | None
    """The chunk's document; None if the index has no such chunk."""
    quotes: list[Quote]
    """The sentences that bear what the answer says, in the order of the text; empty if there are none."""


@_described
class ToolRecord(TypedDict):
    """One tool call of a run."""

    step: int
    """The model call that asked for it, from 1."""
    tool: str
    """The tool's name, as the model gave it."""
    arguments: dict[str, Any]
    """The arguments, as the model gave them."""
    chunk_ids: list[str]
    """Chunks shown."""
    new_chunks: list[str]
    """Chunks read for the first time."""
    retrieved_tokens: int
    """Tokens of the result's whole text, with ids, titles and remarks; 0 for others' tools that show no chunks."""
    evidence_tokens: int
    """Tokens of the sentences in it that come from documents."""
    seconds: float
    """How long it took."""
    error: str | None
    """What was wrong with the call, if anything."""


def union(left: Iterable[str] | None, right: Iterable[str] | None) -> list[str]:
    """Merge two lists of ids: in order, each once."""
    return list(dict.fromkeys([*(left or ()), *(right or ())]))


@_described
class InputState(TypedDict):
    """The agent's input."""

    messages: Annotated[list[AnyMessage | dict[str, Any]], add_messages]
    """The conversation; its last human message is the question."""


@_described
class OutputState(TypedDict, total=False):
    """The agent's output."""

    messages: Required[Annotated[list[AnyMessage], add_messages]]
    """The conversation, with the answer at its end."""
    answer: str
    """The answer to the last question."""
    citations: list[Citation]
    """The chunks that the answer names, in order."""
    stop_reason: StopReason
    """Why the search ended; everything except `answered` means that the answer was forced."""
    steps: int
    """Model calls of the search, not counting a forced answer."""
    read_chunks: Annotated[list[str], union]
    """Chunks shown in full in this conversation: by reading them, or in a search result if they are short."""
    trace: list[ToolRecord]
    """The tool calls for the last question, in order."""
    model_calls: list[ModelCall]
    """The model calls for the last question, in order."""
    usage: Usage
    """Token usage for the last question, as the providers report it."""


class State(OutputState, total=False):
    """The state that the nodes share."""

    remaining_steps: RemainingSteps
    """Steps left under the current recursion limit, whoever set it."""
