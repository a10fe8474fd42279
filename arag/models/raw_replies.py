"""What LangChain does not read in the replies of rough servers: it refuses the reply, or loses parts of a call."""

from __future__ import annotations

import json
from typing import Any, cast

from langchain_core.messages import AIMessageChunk, InvalidToolCall
from langchain_core.messages.tool import ToolCallChunk, invalid_tool_call
from langchain_core.outputs import ChatGenerationChunk


def set_aside_calls(completion: Any) -> list[list[InvalidToolCall]]:
    """Take the calls whose arguments are not an object out of a chat completion; return them for each of its choices.

    LangChain puts such calls of a stream into `invalid_tool_calls`. It would refuse a whole reply that has one.
    """
    aside = []
    for choice in _get(completion, "choices") or ():
        message = _get(choice, "message")
        calls = _get(message, "tool_calls") or []
        kept = [call for call in calls if _is_readable(_get_arguments(call))]
        unread = [_as_invalid(call) for call in calls if call not in kept]
        if unread:
            _set(message, "tool_calls", kept)
        aside.append(unread)
    return aside


def _get_arguments(call: Any) -> Any:
    return _get(_get(call, "function"), "arguments")


def _as_invalid(call: Any) -> InvalidToolCall:
    arguments = _get_arguments(call)
    return invalid_tool_call(
        name=_get(_get(call, "function"), "name"),
        args=arguments if isinstance(arguments, str) else json.dumps(arguments),
        id=_get(call, "id"),
    )


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


def _set(part: Any, name: str, value: Any) -> None:
    if isinstance(part, dict):
        part[name] = value
    else:
        setattr(part, name, value)


class CallPieces:
    """Gives the pieces of calls in a stream the number of their call, by which LangChain joins them.

    Some servers send no number, or another one with the arguments than with the name.
    """

    def __init__(self) -> None:
        self._ids: dict[int, str | None] = {}  # of the calls so far, by their numbers
        self._last: int | None = None

    def number(self, chunk: ChatGenerationChunk) -> ChatGenerationChunk:
        """Return the next chunk of a stream, with its pieces numbered."""
        message = cast("AIMessageChunk", chunk.message)
        pieces = [self._number_piece(piece) for piece in message.tool_call_chunks]
        if pieces == message.tool_call_chunks:
            return chunk
        numbered = message.model_copy(update={"tool_call_chunks": pieces})
        return ChatGenerationChunk(message=numbered, generation_info=chunk.generation_info)

    def _number_piece(self, piece: ToolCallChunk) -> ToolCallChunk:
        number = piece["index"]
        if number is None:
            number = self._find_number(piece)
        elif not piece["name"] and number not in self._ids and self._last is not None:
            number = self._last
        if number is None:
            return piece
        self._ids.setdefault(number, piece["id"])
        self._last = number
        return cast("ToolCallChunk", {**piece, "index": number})

    def _find_number(self, piece: ToolCallChunk) -> int | None:
        """Return the number of a piece without one: a name begins a call, if its id is not that of the last one."""
        is_same = self._last is not None and piece["id"] and piece["id"] == self._ids[self._last]
        if piece["name"] and not is_same:
            return len(self._ids)
        return self._last
