"""The graph's state: plain values that survive a JSON round trip, merged by reducers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, Required, TypeAlias

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages
from langgraph.managed import RemainingSteps
from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from arag.models.usage import ModelCall, Usage

# Where a recursion limit ends the search before `max_steps` does, that is `max_steps`, too: `steps` tells them apart.
StopReason: TypeAlias = Literal["answered", "max_steps", "token_budget", "invalid_replies"]

# Puts the fields' docstrings into the JSON schemas, where Studio and other clients of the API server find them.
_described = with_config(ConfigDict(use_attribute_docstrings=True))


@_described
class Citation(TypedDict):
    """A chunk that the answer names."""

    chunk_id: str
    """The id, as the index has it."""
    document_ids: list[str]
    """The documents in the chunk; empty where the index holds no such chunk."""
    titles: list[str]
    """Their titles, where they have one."""
    seen: bool
    """Whether the chunk was really shown to the model, in a snippet or in full."""
    read: bool
    """Whether it was shown in full."""


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
    """Tokens of retrieved text that entered the context."""
    seconds: float
    """How long it took."""
    error: str | None
    """What was wrong with the call, if anything was."""


def union(left: Iterable[str] | None, right: Iterable[str] | None) -> list[str]:
    """Merge two lists of ids: in order, each once."""
    return list(dict.fromkeys([*(left or ()), *(right or ())]))


@_described
class InputState(TypedDict):
    """What a caller gives."""

    messages: Annotated[list[AnyMessage | dict[str, Any]], add_messages]
    """The conversation; its last human message is the question."""


@_described
class OutputState(TypedDict, total=False):
    """What a caller gets."""

    messages: Required[Annotated[list[AnyMessage], add_messages]]
    """The conversation, with the answer at its end."""
    answer: str
    """The answer to the last question."""
    citations: list[Citation]
    """The chunks that the answer names, in order."""
    stop_reason: StopReason | None
    """Why the search ended; all but `answered` mean that the answer was forced."""
    steps: int
    """Model calls that the search took, a forced answer not included."""
    read_chunks: Annotated[list[str], union]
    """Chunks whose full text was shown in this conversation: read, or so short that a search showed them whole."""
    trace: list[ToolRecord]
    """The tool calls for the last question, in order."""
    model_calls: list[ModelCall]
    """The model calls for the last question, in order."""
    usage: Usage
    """What the providers report for the last question."""


@_described
class State(OutputState, total=False):
    """What the nodes share."""

    seen_chunks: Annotated[list[str], union]
    """Chunks shown in this conversation, in snippets or in full."""
    question_id: str
    """Id of the message that the counts below belong to; another question starts them anew."""
    invalid_replies: int
    """Replies in a row that were neither an answer nor a tool call that could be made."""
    spent_budget: StopReason | None
    """The budget that is used up since the last node ran, if one is."""
    out_of_steps: bool
    """Whether the recursion limit left room for a forced answer only, when the last node ran."""
    remaining_steps: RemainingSteps
    """Steps left under the recursion limit that is in force, whoever set it."""
