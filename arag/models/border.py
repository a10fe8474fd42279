"""The border to providers: each call of a model passes here, streamed or whole.

Parameters that its server refuses are left out, and the model remembers them. What LangChain would not read in a reply
is kept. For models that `load_model` made, a call also has one time limit, what passes by itself is tried again, and
any other failure is a ModelError that says why, and what helps. The caller's own models keep their clients' ways.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, cast

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.exceptions import ContextOverflowError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from pydantic import PrivateAttr, ValidationError

from arag.errors import ModelError
from arag.models.failures import describe_failure, is_overflow
from arag.models.pauses import find_pause
from arag.models.raw_replies import REASONING, CallPieces, set_aside_calls, write_arguments
from arag.models.refusals import SEND_REASONING, Change, find_change, regular_request
from arag.models.servers import Server
from arag.models.time_limit import TimeLimitError, astream_within, await_within, run_within, stream_within
from arag.text.tokens import count_tokens

_MAX_PAUSE_SECONDS = 60.0  # a server that asks for a longer one fails
_SMALL_PROMPT = 3000  # tokens that fit into the context of every model that can search
_TIMEOUTS = {"APITimeoutError", "TimeoutException", "Timeout"}  # of clients, by their names
_CUT_OFF = {"done_reason": "error"}  # metadata of a reply whose end was not reported
_CLIENTS = ("root_client", "root_async_client", "_client", "_async_client")  # of OpenAI's and Anthropic's models


class ContextError(ModelError, ContextOverflowError):
    """The prompt is longer than the model's context."""


@dataclass
class Terms:
    """How a model is called."""

    server: Server | None = None
    """None for a model that the caller made."""
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
        return self.server is not None and self.server.provider == "ollama"


class _Attempts:
    """The attempts of one call."""

    def __init__(self, terms: Terms, messages: list[BaseMessage], options: Mapping[str, Any]) -> None:
        self._terms = terms
        self._messages = messages
        self._options = options
        self._tries = 0
        self._changes = dict(terms.changes)
        self.pieces = CallPieces()
        self.is_stream = False
        self.has_end = False
        self.has_begun = False  # then a stream is shown already, and cannot be tried again

    def take(self, chunk: ChatGenerationChunk) -> ChatGenerationChunk:
        """Return a chunk of the reply's stream, with its pieces of calls numbered."""
        self.is_stream = True
        message = cast("AIMessageChunk", chunk.message)
        if message.content or message.tool_call_chunks:
            self.has_begun = True
        if chunk.generation_info or message.response_metadata:
            self.has_end = True
        return self.pieces.number(chunk)

    def finish(self) -> Iterator[ChatGenerationChunk]:
        """Yield what is added to the end of a stream."""
        last = self.pieces.finish()
        if last is not None:
            yield last
        if self.is_stream and not self.has_end and self._terms.tells_end:
            yield ChatGenerationChunk(message=AIMessageChunk(content="", response_metadata=dict(_CUT_OFF)))

    def is_no_stream(self, error: Exception) -> bool:
        """Return whether a client could not read a stream: some servers send `null` in it."""
        if self.has_begun or not isinstance(error, AttributeError | TypeError):
            return False
        self.is_stream = False
        return True

    def after(self, error: Exception) -> float:
        """Return the seconds before the next attempt.

        Raises:
            ModelError: There is none.
        """
        terms = self._terms
        is_unread = isinstance(error, ValidationError) and error.title == AIMessage.__name__
        if is_unread or isinstance(error, ModelError):  # a reply that LangChain cannot read is no failure
            raise error
        if terms.server is not None and _is_timeout(error):
            error = _as_time_limit(error, terms)
        if not self.has_begun:
            pause = self._find_pause(error)
            if pause is not None:
                return pause
        is_too_long = is_overflow(error)
        if is_too_long:
            terms.refused_tokens = _count_prompt(self._messages, self._options)
        if terms.server is None:
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


def _is_timeout(error: Exception) -> bool:
    names = {kind.__name__ for kind in type(error).__mro__}
    return not names.isdisjoint(_TIMEOUTS)


def _as_time_limit(error: Exception, terms: Terms) -> TimeLimitError:
    limit = TimeLimitError(terms.seconds)
    limit.__cause__ = error
    return limit


class Border(BaseChatModel):
    """What is added to a provider's class."""

    _terms: Terms = PrivateAttr()

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> ChatResult:
        generate: Callable[..., ChatResult] = super()._generate  # type: ignore[safe-super]
        attempts = _Attempts(self._terms, messages, options)
        self._check_length(messages, options)
        while True:
            call = partial(generate, messages, stop=stop, run_manager=run_manager, **self._change_options(options))
            try:
                return _check(run_within(self._terms.seconds, call), self._terms)
            except Exception as error:  # noqa: BLE001 - clients' errors have no base class in common
                pause = attempts.after(error)
            time.sleep(pause)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> ChatResult:
        generate = super()._agenerate
        attempts = _Attempts(self._terms, messages, options)
        await asyncio.to_thread(self._check_length, messages, options)
        while True:
            call = partial(generate, messages, stop=stop, run_manager=run_manager, **self._change_options(options))
            try:
                return _check(await await_within(self._terms.seconds, call()), self._terms)
            except Exception as error:  # noqa: BLE001
                pause = await asyncio.to_thread(attempts.after, error)
            await asyncio.sleep(pause)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> Iterator[ChatGenerationChunk]:
        stream = super()._stream
        attempts = _Attempts(self._terms, messages, options)
        self._check_length(messages, options)
        while True:
            call = partial(stream, messages, stop=stop, run_manager=run_manager, **self._change_options(options))
            try:
                for chunk in stream_within(self._terms.seconds, call):
                    yield attempts.take(chunk)
                break
            except Exception as error:  # noqa: BLE001
                if attempts.is_no_stream(error):
                    break
                pause = attempts.after(error)
            time.sleep(pause)
        yield from attempts.finish()
        if not attempts.is_stream:
            yield _as_chunk(self._generate(messages, stop, **_whole(options)))

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        stream = super()._astream
        if cast("Any", stream).__func__ is BaseChatModel._astream:  # noqa: SLF001
            # It calls `_stream`, which is the border already.
            async for chunk in stream(messages, stop=stop, run_manager=run_manager, **options):
                yield chunk
            return
        attempts = _Attempts(self._terms, messages, options)
        await asyncio.to_thread(self._check_length, messages, options)
        while True:
            call = partial(stream, messages, stop=stop, run_manager=run_manager, **self._change_options(options))
            try:
                async for chunk in astream_within(self._terms.seconds, call()):
                    yield attempts.take(chunk)
                break
            except Exception as error:  # noqa: BLE001
                if attempts.is_no_stream(error):
                    break
                pause = await asyncio.to_thread(attempts.after, error)
            await asyncio.sleep(pause)
        for last in attempts.finish():
            yield last
        if not attempts.is_stream:
            yield _as_chunk(await self._agenerate(messages, stop, **_whole(options)))

    def _check_length(self, messages: list[BaseMessage], options: Mapping[str, Any]) -> None:
        """Refuse a prompt that is known to be too long: servers may cut it in silence, or would refuse it, too."""
        terms = self._terms
        is_local = terms.server is not None and terms.server.is_local
        if not is_local and terms.refused_tokens is None:
            return
        tokens = _count_prompt(messages, options)
        if terms.refused_tokens is not None and tokens >= terms.refused_tokens:
            raise ContextError(f"the prompt has {tokens:,} tokens; {terms.refused_tokens:,} were too many before")
        if terms.server is None or tokens <= _SMALL_PROMPT or not is_local:
            return
        if terms.context_length is None and not terms.is_context_asked:
            terms.is_context_asked = True
            terms.context_length = terms.server.find_context_length()
        if terms.context_length is not None and tokens > terms.context_length:
            room = f"{terms.context_length:,}"
            raise ContextError(f"the prompt has {tokens:,} tokens, and the context of {terms.server.model} only {room}")

    def _change_options(self, options: dict[str, Any]) -> dict[str, Any]:
        """Change a call's options, if its class adds them to the request by itself."""
        if hasattr(super(), "_get_request_payload"):
            return options
        terms = self._terms
        terms.options = terms.request = options
        for change in list(terms.changes.values()):
            options = change.apply(options)
        return options

    def _get_request_payload(self, input_: Any, **options: Any) -> dict[str, Any]:
        """Change a request as its server needs it. The clients of OpenAI and Anthropic call this."""
        request: dict[str, Any] = super()._get_request_payload(input_, **options)  # type: ignore[misc]
        return self._change(request, self._convert_input(input_).to_messages())

    def _create_message_dicts(self, messages: list[BaseMessage], stop: list[str] | None) -> Any:
        """Do the same for the classes of Groq and Mistral, which add the call's options later."""
        sent, parameters = super()._create_message_dicts(messages, stop)  # type: ignore[misc]
        request = self._change({**parameters, "messages": sent}, messages)
        return request.pop("messages"), request

    def _change(self, request: dict[str, Any], messages: list[BaseMessage]) -> dict[str, Any]:
        terms = self._terms
        changed = regular_request(request)
        if SEND_REASONING in terms.changes:
            _add_reasoning(changed, messages)
        terms.request = {**terms.options, **changed}
        for change in list(terms.changes.values()):
            changed = change.apply(changed)
        return changed

    def _create_chat_result(self, response: Any, *more: Any) -> ChatResult:
        """Read a whole reply with what LangChain would refuse or drop: calls, and reasoning that servers want back."""
        unread = set_aside_calls(response)
        result: ChatResult = super()._create_chat_result(response, *more)  # type: ignore[misc]
        choices = getattr(response, "choices", None) or []
        for generation, calls in zip(result.generations, unread, strict=False):
            cast("AIMessage", generation.message).invalid_tool_calls += calls
        for generation, choice in zip(result.generations, choices, strict=False):
            reasoning = getattr(choice.message, REASONING, None)
            if isinstance(reasoning, str):
                generation.message.additional_kwargs[REASONING] = reasoning
        return result

    def _convert_chunk_to_generation_chunk(self, chunk: Any, *args: Any, **options: Any) -> ChatGenerationChunk | None:
        write_arguments(chunk)
        made: ChatGenerationChunk | None = super()._convert_chunk_to_generation_chunk(chunk, *args, **options)  # type: ignore[misc]
        choices = chunk.get("choices")
        if made is None or not choices:
            return made
        delta = choices[0].get("delta") or {}
        for name in (REASONING, "refusal"):
            if isinstance(delta.get(name), str):
                made.message.additional_kwargs[name] = delta[name]
        return made


def _check(result: ChatResult, terms: Terms) -> ChatResult:
    if not result.generations:
        raise ValueError("the reply has no 'choices'")
    for generation in result.generations:
        if terms.tells_end and not generation.generation_info:
            generation.message.response_metadata |= _CUT_OFF
    return result


def _count_prompt(messages: list[BaseMessage], options: Mapping[str, Any]) -> int:
    tokens = count_tokens(json.dumps(options.get("tools", []), default=str))
    for message in messages:
        tokens += count_tokens(message.text)
    return tokens


def _whole(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a call without those of streams."""
    return {name: value for name, value in options.items() if name not in ("stream", "stream_usage")}


def _as_chunk(result: ChatResult) -> ChatGenerationChunk:
    (generation, *_) = result.generations
    message = generation.message
    fields = message.model_dump(exclude={"type"})
    return ChatGenerationChunk(message=AIMessageChunk(**fields), generation_info=generation.generation_info)


def _add_reasoning(request: dict[str, Any], messages: list[BaseMessage]) -> None:
    for sent, message in zip(request.get("messages", []), messages, strict=False):
        if isinstance(message, AIMessage):
            sent[REASONING] = str(message.additional_kwargs.get(REASONING, ""))


def add_border(model: BaseChatModel, terms: Terms) -> None:
    """Have each call of a model pass the border, with its class's own name: tracing and caches know it by that."""
    if not _can_have_border(model):
        return
    for name in _CLIENTS:
        client: Any = getattr(model, name, None)
        if hasattr(client, "max_retries"):
            client.max_retries = 0  # it would wait for less than the server asks, and after a time-out
    _put_behind(model, terms)


def behind_border(model: BaseChatModel) -> BaseChatModel:
    """Return a copy of a model behind the border, for one that the caller made; one that is there already as it is."""
    if isinstance(model, Border) or not _can_have_border(model):
        return model
    copied = model.model_copy()
    _put_behind(copied, Terms())
    return copied


def _can_have_border(model: BaseChatModel) -> bool:
    return type(model)._stream is not BaseChatModel._stream  # noqa: SLF001 - the border's own would ask for it


def _put_behind(model: BaseChatModel, terms: Terms) -> None:
    model.__class__ = _make_class(type(model))
    cast("Border", model)._terms = terms  # noqa: SLF001


@cache
def _make_class(kind: type[BaseChatModel]) -> type[BaseChatModel]:
    return type(kind.__name__, (Border, kind), {"__module__": kind.__module__, "__doc__": kind.__doc__})
