"""The graph's state, plain values that survive a JSON round trip, and how its conversation is read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, Required, TypeAlias

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.tool import tool_call
from langgraph.graph.message import add_messages
from langgraph.managed import RemainingSteps
from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from arag.errors import InputError
from arag.models.usage import ModelCall, Usage
from arag.text.surrogates import replace_surrogates
from arag.text.tokens import count_tokens

MAX_CALLS = 32  # of one message; those beyond are dropped
MESSAGE_TOKENS = 4  # that a chat format adds to a message's text

# A recursion limit that ends the search before `max_steps` does is also reported as `max_steps`; `steps` shows which.
StopReason: TypeAlias = Literal["answered", "max_steps", "token_budget", "empty_reply"]


class Span(TypedDict):
    """A part of the answer: `answer[start:end]`."""

    start: int
    end: int


class Quote(TypedDict):
    """A sentence of a cited chunk that bears what the answer says: `text[start:end]` of the chunk."""

    start: int
    end: int
    text: str


class CitedDocument(TypedDict):
    """The document of a cited chunk. What its metadata does not tell is empty."""

    id: str
    title: str
    url: str
    """Its web address: `url`, `source_url` or `link` in the metadata."""
    author: str
    """Its authors: `author`, `authors` or `creator`."""
    date: str
    """Its date as it is written there: `date`, `published`, `created` or `year`."""


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
    spans: list[Span]
    """Where the answer names the chunk, with its brackets if nothing else is in them."""


class ToolRecord(TypedDict):
    """One tool call of a run."""

    step: int
    """The model call that asked for it, from 1."""
    tool: str
    arguments: dict[str, Any]
    chunk_ids: list[str]
    """Chunks shown."""
    new_chunks: list[str]
    """Chunks read for the first time."""
    retrieved_tokens: int
    """Tokens of the result's whole text, with ids, titles and remarks; 0 for others' tools that show no chunks."""
    evidence_tokens: int
    """Tokens of the sentences in it that come from documents."""
    seconds: float
    error: str | None
    """What was wrong with the call, if anything."""


def union(left: Iterable[str] | None, right: Iterable[str] | None) -> list[str]:
    """Merge two lists of ids: in order, each once."""
    return list(dict.fromkeys([*(left or ()), *(right or ())]))


@with_config(ConfigDict(use_attribute_docstrings=True))  # for Studio and other clients, which read the JSON schemas
class InputState(TypedDict):
    """The agent's input."""

    messages: Annotated[list[AnyMessage | dict[str, Any]], add_messages]
    """The conversation; its last human message is the question."""


@with_config(ConfigDict(use_attribute_docstrings=True))
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


# --- the conversation ---


def split_turn(messages: Sequence[AnyMessage]) -> tuple[list[AnyMessage], list[AnyMessage]]:
    """Return the system messages, earlier questions and answers; and the last question with all that follows it."""
    place = max((n for n, message in enumerate(messages) if isinstance(message, HumanMessage)), default=None)
    if place is None:
        raise InputError('there is no question: `messages` must contain a human message, such as [("user", "Who?")]')
    instructions = [message for message in messages if isinstance(message, SystemMessage)]
    earlier = [
        message
        for message in messages[:place]
        if isinstance(message, HumanMessage) or kind_of_reply(message) == "answer"
    ]
    return [*instructions, *earlier], [m for m in messages[place:] if not isinstance(m, SystemMessage)]


def find_run(turn: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return the messages of this run in a turn; in a parent graph, those of other agents come before them.

    A run begins after the last answer, with the first message that has the seconds which its node took; if that is the
    result of a call that a person wrote, with the call.
    """
    start = max((n for n, message in enumerate(turn, 1) if kind_of_reply(message) == "answer"), default=1)
    first = next((n for n, m in enumerate(turn) if n >= start and "seconds" in m.response_metadata), len(turn))
    if first < len(turn) and isinstance(turn[first], ToolMessage):
        first -= 1
    return list(turn[first:])


def drop_orphans(turn: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return a turn without results whose calls do not stand before them, which providers refuse."""
    asked: set[str | None] = set()
    kept: list[AnyMessage] = []
    for message in turn:
        if isinstance(message, AIMessage):
            asked |= {call["id"] for call in (*message.tool_calls, *message.invalid_tool_calls)}
        if not isinstance(message, ToolMessage) or message.tool_call_id in asked:
            kept.append(message)
    return kept


def as_sent(turn: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return a turn as providers accept it: arguments that are not JSON are empty, and each call has a result.

    Other agents of a larger graph may leave calls without one, such as those beside a handoff. What people type may
    have half a surrogate pair.
    """
    turn = drop_orphans(turn)
    answered = {message.tool_call_id for message in turn if isinstance(message, ToolMessage)}
    sent: list[AnyMessage] = []
    for message in turn:
        if isinstance(message, HumanMessage) and isinstance(message.content, str):
            message = message.model_copy(update={"content": replace_surrogates(message.content)})  # noqa: PLW2901
        sent.append(message)
        if isinstance(message, AIMessage) and kind_of_reply(message) == "calls":
            emptied = [tool_call(name=c["name"] or "unknown", args={}, id=c["id"]) for c in message.invalid_tool_calls]
            calls = [*message.tool_calls, *emptied]
            sent[-1] = message.model_copy(update={"tool_calls": calls, "invalid_tool_calls": []})
            missing = [call["id"] or "" for call in calls if call["id"] not in answered]
            sent += [ToolMessage("No result.", tool_call_id=call_id, status="error") for call_id in missing]
    return sent


def kind_of_reply(message: AnyMessage) -> Literal["calls", "answer", "empty"] | None:
    """Return whether a model's message calls tools, with arguments that are JSON or not, is an answer, or is empty."""
    if not isinstance(message, AIMessage):
        return None
    if message.tool_calls or message.invalid_tool_calls:
        return "calls"
    return "answer" if message.text.strip() else "empty"


def count_context_tokens(messages: Sequence[BaseMessage]) -> int:
    """Count the tokens of messages: their texts and tool calls. Reasoning and pictures do not count."""
    calls = [call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls]
    texts = [call["name"] + json.dumps(call["args"], ensure_ascii=False, default=str) for call in calls]
    texts += [message.text for message in messages]
    return MESSAGE_TOKENS * len(messages) + sum(map(count_tokens, texts))


def repair_reply(reply: AIMessage, messages: Sequence[AnyMessage]) -> AIMessage:
    """Return a reply to a conversation so that it can be stored and sent again: as JSON, with ids of its own."""
    fields = {name: getattr(reply, name) for name in ("content", "tool_calls", "invalid_tool_calls")}
    text = replace_surrogates(json.dumps(fields, ensure_ascii=False, default=str))
    repaired = json.loads(text, parse_constant=lambda _: None)  # of NaN and Infinity
    valid = [call["id"] for call in repaired["tool_calls"]]
    del repaired["tool_calls"][MAX_CALLS:]
    calls = [*repaired["tool_calls"], *repaired["invalid_tool_calls"]]
    taken = {c["id"] for m in messages if isinstance(m, AIMessage) for c in (*m.tool_calls, *m.invalid_tool_calls)}
    for number, call in enumerate(calls):
        if not call["id"] or call["id"] in taken:  # some servers send none, or the same one with each reply
            call["id"] = f"call_{len(messages)}_{number}"  # the same in a run that is repeated
        taken.add(call["id"])
    if isinstance(repaired["content"], list) and valid != [call["id"] for call in calls]:
        # Anthropic and OpenAI's Responses API have the calls there, too; a request gets them from `tool_calls` then.
        kinds = {"tool_use", "function_call"}
        content = repaired["content"]
        repaired["content"] = [part for part in content if isinstance(part, str) or part.get("type") not in kinds]
    if reply.id in {message.id for message in messages}:  # as of a message that a model for tests returns twice
        repaired["id"] = f"{reply.id}-{len(messages)}"
    return reply.model_copy(update=repaired)
