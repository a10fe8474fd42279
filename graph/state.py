"""The graph's state, which is plain values that survive a JSON round trip, and the reading of its messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, NamedTuple, Required, TypeAlias

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    InvalidToolCall,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from langchain_core.messages.tool import tool_call
from langgraph.graph.message import add_messages
from langgraph.managed import RemainingSteps
from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from arag.errors import InputError
from arag.graph.annotations import as_written
from arag.graph.cited import Citation
from arag.graph.corrections import ask_again
from arag.models.replies.reading import find_doubt
from arag.models.usage import ModelCall, Usage
from arag.text.surrogates import replace_surrogates
from arag.text.tokens import count_tokens

MAX_CALLS = 32  # calls of one message; the rest is dropped, as each result costs tokens
_SHOWN_ARGUMENTS = 200  # characters of invalid arguments that an error repeats; more would cost the model tokens
_NOT_JSON = "The arguments of this call are not valid JSON: {!r}. Call the tool again with a JSON object."
MESSAGE_TOKENS = 4  # tokens that a chat format adds to a message's text, roughly

# `ended`: something else than the model ended the run, such as other middleware, or a tool that answers directly.
# A recursion limit that ends the search before `max_steps` does is also reported as `max_steps`; `steps` shows which.
StopReason: TypeAlias = Literal[
    "answered",
    "refused",
    "cut_off",
    "max_steps",
    "max_cost",
    "token_budget",
    "empty_reply",
    "unusable_reply",
    "repeated_call",
    "repeated_error",
    "ended",
]
Grounding: TypeAlias = Literal["supported", "partly", "none"]


@with_config(ConfigDict(use_attribute_docstrings=True))  # for Studio and other clients, which read the JSON schemas
class ToolRecord(TypedDict):
    """One tool call of a run."""

    step: int
    """The model call that asked for it, from 1."""
    tool: str
    """The tool's name."""
    arguments: dict[str, Any]
    """The arguments of the call."""
    chunk_ids: list[str]
    """Chunks shown."""
    new_chunks: list[str]
    """Chunks read for the first time."""
    retrieved_tokens: int
    """Tokens of the result's whole text, with ids, titles and remarks; 0 for other tools, if they show no chunks."""
    evidence_tokens: int
    """Tokens of the sentences in it that come from documents."""
    seconds: float
    """How long it took."""
    error: str | None
    """The error, if the call failed."""
    repaired: list[str]
    """What was repaired in the reply that made the call: `call as text`, `thinking`, `arguments`, `name of a tool`."""


def union(left: Iterable[str] | None, right: Iterable[str] | None) -> list[str]:
    """Merge two lists of ids: in order, each once."""
    ids = [*(left or ()), *(right or ())]
    return list(dict.fromkeys(ids))


@with_config(ConfigDict(use_attribute_docstrings=True))
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
    structured_response: Any
    """The answer in the form of the agent's `response_format`, if it has one."""
    grounding: Grounding
    """How far the cited chunks support the answer: `supported` if each was shown to the model and has a sentence that
    shares names, numbers or words with the answer, `partly` if some do, `none` if none does. No model is called."""
    stop_reason: StopReason
    """Why the search ended. `refused`: the model refused to answer. `cut_off`: its replies were cut off, also after it
    was asked to go on. Everything else except `answered` means that the answer was forced."""
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
    run_scope: dict[str, Any] | None
    """The scope with which the run began."""


# --- the conversation ---


class SplitConversation(NamedTuple):
    """A conversation, split at its last question."""

    earlier: list[AnyMessage]
    """The system messages, and earlier questions and answers."""
    turn: list[AnyMessage]
    """The last question, and everything behind it."""


def split_turn(messages: Sequence[AnyMessage]) -> SplitConversation:
    """Split a conversation at its last question.

    Raises:
        InputError: There is no question.
    """
    questions = [position for position, message in enumerate(messages) if isinstance(message, HumanMessage)]
    if not questions:
        raise InputError('there is no question: `messages` must contain a human message, such as [("user", "Who?")]')
    abandoned = _find_abandoned(messages)
    instructions: list[AnyMessage] = []
    earlier: list[AnyMessage] = []
    turn: list[AnyMessage] = []
    for position, message in enumerate(messages):
        if isinstance(message, SystemMessage):
            instructions.append(message)
        elif position >= questions[-1]:
            turn.append(message)
        elif position not in abandoned and (isinstance(message, HumanMessage) or kind_of_reply(message) == "answer"):
            earlier.append(message)
    return SplitConversation([*instructions, *earlier], turn)


def _find_abandoned(messages: Sequence[AnyMessage]) -> set[int]:
    """Return the positions of questions whose runs began, and ended without an answer."""
    abandoned: set[int] = set()
    question: int | None = None
    has_begun = False
    for position, message in enumerate(messages):
        if isinstance(message, HumanMessage):
            if question is not None and has_begun:
                abandoned.add(question)
            question = position
            has_begun = False
        elif kind_of_reply(message) == "answer":
            question = None
        elif not isinstance(message, SystemMessage):
            has_begun = True
    return abandoned


def find_run(turn: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return the messages of this run in a turn; in a parent graph, those of other agents come before them.

    A run begins behind the last answer, with the first message that has the seconds which its node took. If that is the
    result of a call that a person wrote, the run begins with the call.
    """
    start = 1  # behind the question
    for position, message in enumerate(turn):
        if kind_of_reply(message) == "answer":
            start = position + 1
    for position in range(start, len(turn)):
        message = turn[position]
        if "seconds" in message.response_metadata:
            first = position - 1 if isinstance(message, ToolMessage) else position
            return list(turn[first:])
    return []


def list_calls(message: AnyMessage) -> list[ToolCall | InvalidToolCall]:
    """Return the calls of a message; those whose arguments are not JSON are the last ones."""
    if not isinstance(message, AIMessage):
        return []
    return [*message.tool_calls, *message.invalid_tool_calls]


def drop_orphans(turn: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return a turn without results that come before their calls or have none, which providers refuse."""
    called: set[str | None] = set()
    kept: list[AnyMessage] = []
    for message in turn:
        if isinstance(message, ToolMessage) and message.tool_call_id not in called:
            continue
        called.update(call["id"] for call in list_calls(message))
        kept.append(message)
    return kept


def as_sent(turn: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return a turn as providers accept it: arguments that are not JSON are empty, and each call has a result.

    Replies are as their models wrote them. Other agents of a larger graph may leave calls without a result, such as
    those beside a handoff.
    """
    turn = drop_orphans([as_written(message) for message in turn])
    answered = {message.tool_call_id for message in turn if isinstance(message, ToolMessage)}
    sent: list[AnyMessage] = []
    for message in turn:
        doubt = find_doubt(message) if isinstance(message, AIMessage) else None
        if isinstance(message, HumanMessage):
            sent.append(_without_surrogates(message))
        elif isinstance(message, AIMessage) and doubt is not None:
            sent += ask_again(message, doubt)
        elif isinstance(message, AIMessage) and list_calls(message):
            calls = with_valid_arguments(message)
            if message.invalid_tool_calls:
                sent.append(message.model_copy(update={"tool_calls": calls, "invalid_tool_calls": []}))
            else:
                sent.append(message)
            unanswered = [call for call in calls if call["id"] not in answered]
            sent += map(_make_missing_result, unanswered)
        else:
            sent.append(message)
    return sent


def _without_surrogates(question: HumanMessage) -> HumanMessage:
    """Return a question without halves of surrogate pairs, which people may type and UTF-8 cannot hold."""
    if not isinstance(question.content, str):
        return question
    content = replace_surrogates(question.content)
    return question.model_copy(update={"content": content})


def _make_missing_result(call: ToolCall) -> ToolMessage:
    return ToolMessage(
        "No result.",
        tool_call_id=call["id"] or "",
        status="error",
    )


def refuse_call(call: InvalidToolCall) -> ToolMessage:
    """Return the result of a call whose arguments are not JSON."""
    arguments = (call["args"] or "")[:_SHOWN_ARGUMENTS]
    return ToolMessage(
        _NOT_JSON.format(arguments),
        tool_call_id=call["id"],
        name=call["name"] or "unknown",
        status="error",
    )


def with_valid_arguments(message: AIMessage) -> list[ToolCall]:
    """Return the calls of a message, with empty arguments in place of those that are not JSON."""
    calls = list(message.tool_calls)
    for invalid in message.invalid_tool_calls:
        name = invalid["name"] or "unknown"
        calls.append(tool_call(name=name, args={}, id=invalid["id"]))
    return calls


def kind_of_reply(message: AnyMessage) -> Literal["calls", "answer", "empty", "doubtful"] | None:
    """Return whether a model's message calls tools, is an answer, is empty or is asked for again; else None."""
    if not isinstance(message, AIMessage):
        return None
    if find_doubt(message):
        return "doubtful"
    if list_calls(message):
        return "calls"
    return "answer" if message.text.strip() else "empty"


def count_context_tokens(messages: Sequence[BaseMessage]) -> int:
    """Count the tokens of messages: their texts and tool calls. Reasoning and pictures do not count."""
    tokens = 0
    for message in messages:
        tokens += MESSAGE_TOKENS + count_tokens(message.text)
        if isinstance(message, AIMessage):
            for call in message.tool_calls:
                arguments = json.dumps(call["args"], ensure_ascii=False, default=str)
                tokens += count_tokens(call["name"] + arguments)
    return tokens


# --- replies ---


def repair_reply(reply: AIMessage, messages: Sequence[AnyMessage]) -> AIMessage:
    """Return a reply to a conversation so that it can be stored and sent again: as JSON, with ids of its own."""
    repaired = _as_json(
        {
            "content": reply.content,
            "tool_calls": reply.tool_calls,
            "invalid_tool_calls": reply.invalid_tool_calls,
        }
    )
    valid_ids = [call["id"] for call in repaired["tool_calls"]]
    del repaired["tool_calls"][MAX_CALLS:]
    calls = [*repaired["tool_calls"], *repaired["invalid_tool_calls"]]
    _replace_used_ids(calls, messages)
    content = repaired["content"]
    if isinstance(content, list) and valid_ids != [call["id"] for call in calls]:
        repaired["content"] = _without_calls(content)
    if reply.id in {message.id for message in messages}:  # a model for tests may return one message twice
        repaired["id"] = f"{reply.id}-{len(messages)}"
    return reply.model_copy(update=repaired)


def _as_json(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields after a JSON round trip: without surrogates, and with None for NaN and Infinity."""
    text = json.dumps(fields, ensure_ascii=False, default=str)
    read: dict[str, Any] = json.loads(replace_surrogates(text), parse_constant=lambda _: None)
    return read


def _replace_used_ids(calls: Iterable[dict[str, Any]], messages: Sequence[AnyMessage]) -> None:
    """Give an id to each call that has none or one of an earlier call, as some servers send them."""
    used: set[str | None] = set()
    for message in messages:
        used.update(call["id"] for call in list_calls(message))
    for number, call in enumerate(calls):
        if not call["id"] or call["id"] in used:
            call["id"] = f"call_{len(messages)}_{number}"  # the same one if the run is repeated
        used.add(call["id"])


def _without_calls(content: Iterable[str | dict[str, Any]]) -> list[str | dict[str, Any]]:
    """Return content without the calls that Anthropic and OpenAI's Responses API put there, too.

    LangChain then sends the calls in `tool_calls`.
    """
    kept = []
    for part in content:
        is_call = not isinstance(part, str) and part.get("type") in {"tool_use", "function_call"}
        if not is_call:
            kept.append(part)
    return kept
