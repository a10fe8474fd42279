"""The border to providers: each call of a model passes here, streamed or whole.

Parameters that its server refuses are left out, and the model remembers them. What LangChain would not read in a reply
is kept. For models that `load_model` made, a call also has one time limit, what passes by itself is tried again, and
any other failure is a ModelError that says why, and what helps. The caller's own models keep their clients' limits,
retries and errors; the text of an error gets a reason, too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any, cast

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from pydantic import PrivateAttr

from arag.models.attempts import CUT_OFF, Attempts, Terms
from arag.models.raw_replies import REASONING, set_aside_calls, write_arguments
from arag.models.refusals import SEND_REASONING, regular_request
from arag.models.servers import Server
from arag.models.time_limit import astream_within, await_within, run_within, stream_within

_ADDRESSES = ("openai_api_base", "anthropic_api_url", "base_url")  # fields of LangChain's classes
_CLIENTS = ("root_client", "root_async_client", "_client", "_async_client")  # of OpenAI's and Anthropic's models


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
        attempts = Attempts(self._terms, messages, options)
        attempts.check_length()
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
        attempts = Attempts(self._terms, messages, options)
        await asyncio.to_thread(attempts.check_length)
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
        attempts = Attempts(self._terms, messages, options)
        attempts.check_length()
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
        attempts = Attempts(self._terms, messages, options)
        await asyncio.to_thread(attempts.check_length)
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
            generation.message.response_metadata |= CUT_OFF
    return result


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
    _put_behind(copied, Terms(_find_server(model), is_own=True))
    return copied


def _find_server(model: BaseChatModel) -> Server:
    """Return the server of a model that the caller made, as far as its class says."""
    known = model._get_ls_params()  # noqa: SLF001
    address = next((getattr(model, name) for name in _ADDRESSES if getattr(model, name, None)), None)
    return Server(
        provider=known.get("ls_provider", ""),
        model=known.get("ls_model_name", model.get_name()),
        base_url=address if isinstance(address, str) else None,
    )


def _can_have_border(model: BaseChatModel) -> bool:
    return type(model)._stream is not BaseChatModel._stream  # noqa: SLF001 - the border's own would ask for it


def _put_behind(model: BaseChatModel, terms: Terms) -> None:
    model.__class__ = _make_class(type(model))
    cast("Border", model)._terms = terms  # noqa: SLF001


@cache
def _make_class(kind: type[BaseChatModel]) -> type[BaseChatModel]:
    return type(kind.__name__, (Border, kind), {"__module__": kind.__module__, "__doc__": kind.__doc__})
