"""What LangChain does not read in the replies of rough servers: it refuses the reply, or loses parts of a call."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import AIMessage, AIMessageChunk, InvalidToolCall
from langchain_core.messages.tool import ToolCallChunk, invalid_tool_call, tool_call
from langchain_core.outputs import ChatGenerationChunk

SENT_CALLS = "arag_sent_calls"  # a key of a reply's metadata
_NOTHING = "{}"  # JSON of a call without arguments
REASONING = "reasoning_content"  # where servers send the thinking of a reply, and LangChain's classes keep it


def set_aside_calls(completion: Any) -> list[list[InvalidToolCall]]:
    """Take the calls whose arguments are not an object out of a chat completion; return them for each of its choices.

    LangChain puts such calls of a stream into `invalid_tool_calls`. It would refuse a whole reply that has one.
    """
    aside = []
    for choice in _get_list(completion, "choices"):
        message = _get(choice, "message")
        kept = []
        unread = []
        for call in _get_list(message, "tool_calls"):
            if _is_readable(_get_arguments(call)):
                kept.append(call)
            else:
                unread.append(_as_invalid(call))
        if unread:
            _set(message, "tool_calls", kept)
        aside.append(unread)
    return aside


def _get_arguments(call: Any) -> Any:
    return _get(_get(call, "function"), "arguments")


def _as_invalid(call: Any) -> InvalidToolCall:
    return invalid_tool_call(
        name=_get(_get(call, "function"), "name"),
        args=_as_text(_get_arguments(call)),
        id=_get(call, "id"),
    )


def _as_text(arguments: Any) -> str:
    if isinstance(arguments, str):
        return arguments
    return json.dumps(arguments)


def _is_readable(arguments: object) -> bool:
    """Return whether LangChain reads arguments, or sees by itself that they are not JSON."""
    if not isinstance(arguments, str):
        return False
    try:
        value = json.loads(arguments, strict=False)
    except ValueError:
        return True
    return isinstance(value, dict) or not value  # `null` stands for no arguments


def _get(part: Any, name: str) -> Any:
    """Return a field of a part of a reply: of a dictionary, or of a client's object."""
    if isinstance(part, dict):
        return part.get(name)
    return getattr(part, name, None)


def _get_list(part: Any, name: str) -> list[Any]:
    return _get(part, name) or []


def _set(part: Any, name: str, value: Any) -> None:
    if isinstance(part, dict):
        part[name] = value
    else:
        setattr(part, name, value)


def write_arguments(chunk: Any) -> None:
    """Turn the arguments of calls in a chunk of a stream into texts, if a server has sent objects."""
    for choice in _get_list(chunk, "choices"):
        delta = _get(choice, "delta")
        for call in _get_list(delta, "tool_calls"):
            arguments = _get_arguments(call)
            if arguments is not None:
                function = _get(call, "function")
                _set(function, "arguments", _as_text(arguments))


@dataclass
class _Call:
    """A call of a stream, so far."""

    id: str | None
    name: str = ""
    arguments: str = ""


class CallPieces:
    """Gives the pieces of calls in a stream the number of their call, by which LangChain joins them.

    Some servers send no number, or another one with the arguments than with the name.
    """

    def __init__(self) -> None:
        self._calls: dict[int, _Call] = {}
        self._numbers: dict[int, int] = {}  # of the last calls, by the numbers that were sent
        self._last: int | None = None

    def number(self, chunk: ChatGenerationChunk) -> ChatGenerationChunk:
        """Return the next chunk of a stream, with its pieces numbered."""
        message = cast("AIMessageChunk", chunk.message)
        pieces = [self._number_piece(piece) for piece in message.tool_call_chunks]
        if pieces == message.tool_call_chunks:
            return chunk
        numbered = message.model_copy(update={"tool_call_chunks": pieces})
        return ChatGenerationChunk(message=numbered, generation_info=chunk.generation_info)

    def finish(self) -> ChatGenerationChunk | None:
        """Return a last chunk that has the calls as they were sent, if one has other arguments than an object.

        LangChain completes the JSON of calls that are cut off, which whole replies would not have.
        """
        sent = []
        are_objects = True
        for call in self._calls.values():
            sent.append(
                {
                    "name": call.name,
                    "args": call.arguments,
                    "id": call.id,
                }
            )
            are_objects = are_objects and _is_object(call.arguments)
        if are_objects:
            return None
        metadata = {SENT_CALLS: sent}
        return ChatGenerationChunk(message=AIMessageChunk(content="", response_metadata=metadata))

    def _number_piece(self, piece: ToolCallChunk) -> ToolCallChunk:
        number = self._find_number(piece)
        if number is None:
            return piece
        call = self._calls.setdefault(number, _Call(piece["id"]))
        call.name += piece["name"] or ""
        call.arguments += piece["args"] or ""
        self._last = number
        return cast("ToolCallChunk", {**piece, "index": number})

    def _find_number(self, piece: ToolCallChunk) -> int | None:
        """Return the number of a piece's call: a name begins one, if its id is not that of the call before it."""
        sent = piece["index"]
        known = self._last if sent is None else self._numbers.get(sent)
        if not piece["name"]:
            return self._last if known is None else known
        is_new = known is None or (piece["id"] and piece["id"] != self._calls[known].id)
        if not is_new:
            return known
        number = sent
        if number is None or number in self._calls:
            number = max(self._calls, default=-1) + 1
        if sent is not None:
            self._numbers[sent] = number
        return number


def read_sent_calls(reply: AIMessage) -> AIMessage:
    """Return a reply that was streamed with its calls as they were sent, if the stream's last chunk has them."""
    metadata = dict(reply.response_metadata)
    sent = metadata.pop(SENT_CALLS, None)
    if sent is None:
        return reply
    calls = []
    invalid = []
    for call in sent:
        if _is_object(call["args"]):
            arguments = json.loads(call["args"] or _NOTHING, strict=False)
            calls.append(
                tool_call(
                    name=call["name"],
                    args=arguments,
                    id=call["id"],
                )
            )
        else:
            invalid.append(invalid_tool_call(**call))
    return reply.model_copy(
        update={
            "tool_calls": calls,
            "invalid_tool_calls": invalid,
            "response_metadata": metadata,
        }
    )


def _is_object(text: str) -> bool:
    """Return whether arguments are an object; no text stands for no arguments."""
    try:
        value = json.loads(text or _NOTHING, strict=False)
    except ValueError:
        return False
    return isinstance(value, dict)
