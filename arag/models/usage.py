"""The tokens and seconds of model calls, and their sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage
from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from arag.models.replies.reading import find_doubt, find_end, list_repairs


@with_config(ConfigDict(use_attribute_docstrings=True))
class ModelCall(TypedDict):
    """One model call; the provider reports the tokens, which are zero if it reports none."""

    step: int
    """The step's number, from 1; a forced answer gets the number after the last step."""
    forced: bool
    """Whether an answer was forced."""
    empty: bool
    """Whether the reply had no text and no tool call; it is then left out of the messages."""
    cut_off: bool
    """Whether the reply was cut off: at the model's token limit, by a filter or by a failure."""
    repaired: list[str]
    """What was repaired in the reply: `call as text`, `thinking`, `arguments`, `name of a tool`."""
    asked_again: str
    """Why the reply was not used and the model was asked again; empty if it was used."""
    model: str
    """The model's name, as its provider reports it; empty if it reports none."""
    provider: str
    """The provider's name in LangChain; empty if the model's class does not report it."""
    seconds: float
    """How long it took."""
    input_tokens: int
    """Tokens of the prompt, cached ones included."""
    cached_tokens: int
    """Tokens of the prompt that the provider had in its cache."""
    output_tokens: int
    """Tokens of the reply, reasoning included."""
    reasoning_tokens: int
    """Tokens of the reply that are reasoning."""


@with_config(ConfigDict(use_attribute_docstrings=True))
class Usage(TypedDict):
    """The sums over a question's model calls."""

    model_calls: int
    """Number of model calls, forced answers included."""
    input_tokens: int
    """Tokens of the prompts, cached ones included."""
    cached_tokens: int
    """Tokens of the prompts that the provider had in its cache."""
    output_tokens: int
    """Tokens of the replies, reasoning included."""
    reasoning_tokens: int
    """Tokens of the replies that are reasoning."""


def model_call(reply: AIMessage, *, step: int, forced: bool = False) -> ModelCall:
    """Return the record of a call; `seconds` in the reply's metadata says how long it took."""
    reported: Mapping[str, Any] = reply.usage_metadata or {}  # LangChain's cache returns replies without counts
    input_details = reported.get("input_token_details", {})
    output_details = reported.get("output_token_details", {})
    metadata = reply.response_metadata
    has_content = reply.text.strip() or reply.tool_calls or reply.invalid_tool_calls
    return ModelCall(
        step=step,
        forced=forced,
        empty=not has_content,
        cut_off=find_end(reply) == "cut_off" or find_doubt(reply) == "cut_off",
        repaired=list_repairs(reply),
        asked_again=find_doubt(reply) or "",
        model=str(metadata.get("model_name") or metadata.get("model") or ""),
        provider=str(metadata.get("model_provider") or ""),
        seconds=metadata.get("seconds", 0.0),
        input_tokens=reported.get("input_tokens", 0),
        cached_tokens=input_details.get("cache_read") or 0,
        output_tokens=reported.get("output_tokens", 0),
        reasoning_tokens=output_details.get("reasoning") or 0,
    )


def total(calls: Sequence[ModelCall]) -> Usage:
    """Return the sums over calls."""
    return Usage(
        model_calls=len(calls),
        input_tokens=sum(call["input_tokens"] for call in calls),
        cached_tokens=sum(call["cached_tokens"] for call in calls),
        output_tokens=sum(call["output_tokens"] for call in calls),
        reasoning_tokens=sum(call["reasoning_tokens"] for call in calls),
    )
