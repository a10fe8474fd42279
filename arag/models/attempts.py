"""The attempts of one call of a model: its terms, what a failure changes in the next one, and which one is final."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from pydantic import ValidationError

from arag.errors import ModelError
from arag.models.failures import add_reason, describe_failure, is_overflow
from arag.models.pauses import find_pause, is_timeout
from arag.models.raw_replies import CallPieces
from arag.models.refusals import Change, find_change
from arag.models.servers import Server
from arag.models.time_limit import TimeLimitError
from arag.text.tokens import count_tokens

_MAX_PAUSE_SECONDS = 60.0  # a server that asks for a longer one fails
_SMALL_PROMPT = 3000  # tokens that fit into the context of every model that can search
CUT_OFF = {"done_reason": "error"}  # metadata of a reply whose end was not reported


class ContextError(ModelError, ContextOverflowError):
    """The prompt is longer than the model's context."""


@dataclass
class Terms:
    """How a model is called."""

    server: Server
    is_own: bool = False
    """Whether the caller made the model: it keeps its client's time limits, retries and errors."""
    seconds: float | None = None
    """The time limit of a call."""
    retries: int = 0
    changes: dict[str, Change] = field(default_factory=dict)
    """What the server has refused so far."""
    request: dict[str, Any] = field(default_factory=dict)
    """The last request, before its changes."""
    options: dict[str, Any] = field(default_factory=dict)
    """Options of the last call that its class adds to the request by itself."""
    context_length: int | None = None
    """Tokens of the model's context, once they are known."""
    is_context_asked: bool = False
    refused_tokens: int | None = None
    """Tokens of the shortest prompt that was too long for the server."""

    @property
    def tells_end(self) -> bool:
        """Whether LangChain's class reports the end of each reply that was not cut off."""
        return self.server.provider == "ollama"


class Attempts:
    """The attempts of one call."""

    def __init__(self, terms: Terms, messages: list[BaseMessage], options: Mapping[str, Any]) -> None:
        self._terms = terms
        self._messages = messages
        self._options = options
        self._tries = 0
        self._changes = dict(terms.changes)
        self._pieces = CallPieces()
        self._has_end = False
        self._has_begun = False  # then a stream is shown already, and cannot be tried again
        self.is_stream = False

    def check_length(self) -> None:
        """Refuse a prompt that is known to be too long: servers may cut it in silence, or would refuse it, too.

        Raises:
            ContextError: It is too long.
        """
        terms = self._terms
        is_asked = terms.server.is_local and not terms.is_own
        if not is_asked and terms.refused_tokens is None:
            return
        tokens = self._count_prompt()
        if terms.refused_tokens is not None and tokens >= terms.refused_tokens:
            raise ContextError(f"the prompt has {tokens:,} tokens; {terms.refused_tokens:,} were too many before")
        if not is_asked or tokens <= _SMALL_PROMPT:
            return
        if terms.context_length is None and not terms.is_context_asked:
            terms.is_context_asked = True
            terms.context_length = terms.server.find_context_length()
        if terms.context_length is not None and tokens > terms.context_length:
            room = f"{terms.context_length:,}"
            raise ContextError(f"the prompt has {tokens:,} tokens, and the context of {terms.server.model} only {room}")

    def take(self, chunk: ChatGenerationChunk) -> ChatGenerationChunk:
        """Return a chunk of the reply's stream, with its pieces of calls numbered."""
        self.is_stream = True
        message = cast("AIMessageChunk", chunk.message)
        if message.content or message.tool_call_chunks:
            self._has_begun = True
        if chunk.generation_info or message.response_metadata:
            self._has_end = True
        return self._pieces.number(chunk)

    def finish(self) -> Iterator[ChatGenerationChunk]:
        """Yield what is added to the end of a stream."""
        last = self._pieces.finish()
        if last is not None:
            yield last
        if self.is_stream and not self._has_end and self._terms.tells_end:
            yield ChatGenerationChunk(message=AIMessageChunk(content="", response_metadata=dict(CUT_OFF)))

    def is_no_stream(self, error: Exception) -> bool:
        """Return whether a client could not read a stream: some servers send `null` in it."""
        if self._has_begun or not isinstance(error, AttributeError | TypeError):
            return False
        self.is_stream = False
        return True

    def after(self, error: Exception) -> float:
        """Return the seconds before the next attempt.

        Raises:
            Exception: There is none. It is a ModelError, or the client's own error for a model that the caller made.
        """
        terms = self._terms
        is_unread = isinstance(error, ValidationError) and error.title == AIMessage.__name__
        if is_unread or isinstance(error, ModelError):  # a reply that LangChain cannot read is no failure
            raise error
        if not terms.is_own and is_timeout(error):
            error = _as_time_limit(error, terms)
        if not self._has_begun:
            pause = self._find_pause(error)
            if pause is not None:
                return pause
        is_too_long = is_overflow(error)
        if is_too_long:
            terms.refused_tokens = self._count_prompt()
        if terms.is_own:
            add_reason(error, terms.server)
            raise error
        kind = ContextError if is_too_long else ModelError
        raise kind(describe_failure(error, terms.server)) from error

    def _find_pause(self, error: Exception) -> float | None:
        terms = self._terms
        change = find_change(error, terms.request, self._changes)
        if change is not None:
            terms.changes[change.name] = change
            self._changes = dict(terms.changes)
            return 0.0
        if self._tries >= terms.retries or isinstance(error, TimeLimitError) or is_overflow(error):
            return None
        pause = find_pause(error, self._tries)
        if pause is None or pause > _MAX_PAUSE_SECONDS:
            return None
        self._tries += 1
        return pause

    def _count_prompt(self) -> int:
        tokens = count_tokens(json.dumps(self._options.get("tools", []), default=str))
        for message in self._messages:
            tokens += count_tokens(message.text)
        return tokens


def _as_time_limit(error: Exception, terms: Terms) -> TimeLimitError:
    limit = TimeLimitError(terms.seconds)
    limit.__cause__ = error
    return limit
