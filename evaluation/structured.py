"""Replies that match a schema, from any model: as structured output, or as a JSON object in the text.

What asks is a generator, the body of a `arag.graph.nodes.Node`: it is written once for synchronous runs, asynchronous
ones and the work before a run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import BaseModel, ValidationError

from arag.errors import InputError, without_credentials
from arag.evaluation.patience import Patience
from arag.graph.nodes import Wanted, arun_body
from arag.models.asking import call_error, is_provider_error
from arag.models.extractive import ExtractiveModel
from arag.models.usage import ModelCall, model_call

MAX_ATTEMPTS = 3
_PAUSE = 1.0  # seconds after a failed call
_MAX_SHOWN = 200  # characters of a reply or an error in messages
_REFUSED = frozenset({400, 404, 405, 415, 422, 501})  # statuses of servers without structured output

Form = TypeVar("Form", bound=BaseModel)
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Asked(Generic[Value]):
    """The result of asking.

    Attributes:
        value: The reply; None if there was no usable one.
        calls: The model calls of all attempts.
        why: Why there was none.
        text: The text of the last reply, if there was none.
    """

    value: Value | None
    calls: list[ModelCall]
    why: str = ""
    text: str = ""


Asking: TypeAlias = Generator[Wanted, tuple[Any, float], Asked[Value]]


def is_failed_call(error: Exception) -> bool:
    """Return whether an error comes from a model, its provider or its client, rather than from a bug of ours."""
    # A tool call whose arguments are JSON but not an object: LangChain cannot turn it into a message.
    no_message = isinstance(error, ValidationError) and error.title == AIMessage.__name__
    return is_provider_error(error) or call_error(error) is not None or no_message


def require_language_model(model: BaseChatModel, task: str) -> None:
    """Check that a model can do more than the built-in one.

    Args:
        model: The model.
        task: What it is to do, for the message: "judge".

    Raises:
        InputError: The model is the built-in one, which is not a language model.
    """
    if isinstance(model, ExtractiveModel):
        raise InputError(f"the built-in extractive model cannot {task}: give a language model, as provider:model")


class StructuredModel(Generic[Form]):
    """Asks a model for replies that match a schema.

    The model is asked for structured output. If its class or server does not support it, the messages must ask for a
    JSON object. An unusable reply is asked for again, up to three times in all.

    Args:
        model: The model.
        form: The schema.
        task: The model's role, for messages: "judge".

    Raises:
        InputError: The model is the built-in one, which is not a language model.
    """

    def __init__(self, model: BaseChatModel, form: type[Form], task: str) -> None:
        require_language_model(model, task)
        self._model = model
        self._form = form
        self._task = task
        self._structured = _structured(model, form)

    def ask(self, messages: Sequence[BaseMessage]) -> Asking[Form]:
        """Ask for a reply, in a node's body: `asked = yield from structured.ask(messages)`.

        A failed call is an error there; see `ask_patiently`.
        """
        return self._ask(messages, tolerant=False)

    async def ask_patiently(self, messages: Sequence[BaseMessage], patience: Patience) -> Asked[Form]:
        """Ask outside a graph; a failed call counts as an unusable reply.

        Args:
            messages: The messages.
            patience: Waits at rate limits.
        """

        async def call(model: Runnable[Any, Any], prompt: Any, config: RunnableConfig) -> Any:
            try:
                return await patience.ask(partial(model.ainvoke, prompt, config))
            except Exception as error:
                if not _is_refused(error):
                    await asyncio.sleep(_PAUSE)
                raise

        asked: Asked[Form] = await arun_body(self._ask(messages, tolerant=True), call, RunnableConfig())
        return asked

    def _ask(self, messages: Sequence[BaseMessage], *, tolerant: bool) -> Asking[Form]:
        calls: list[ModelCall] = []
        why = text = ""
        for _ in range(MAX_ATTEMPTS):
            try:
                raw, given, seconds = yield from self._call(messages)
            except Exception as error:
                if not (tolerant and is_failed_call(error)):
                    raise
                why = f"the {self._task} failed: {without_credentials(str(error))[:_MAX_SHOWN]}"
                continue
            calls.append(model_call(raw, seconds, step=len(calls) + 1))
            value = self._read(given, raw.text)
            if value is not None:
                return Asked(value, calls)
            text = raw.text
            told = raw.additional_kwargs.get("refusal") or text or "an empty reply"
            why = f"the {self._task} gave no usable {self._form.__name__.lower()}: {str(told)[:_MAX_SHOWN]}"
        return Asked(None, calls, why, text)

    def _call(
        self, messages: Sequence[BaseMessage]
    ) -> Generator[Wanted, tuple[Any, float], tuple[AIMessage, Any, float]]:
        """Return the model's reply, what its class parsed from it, and the seconds that it took."""
        structured = self._structured  # read once: another thread may set it to None
        if structured is not None:
            began = time.perf_counter()
            try:
                reply, seconds = yield structured, messages
            except Exception as error:
                if (cut_off := _read_cut_off(error)) is not None:
                    return cut_off, None, time.perf_counter() - began
                if not _is_refused(error):
                    raise
            else:
                return (reply["raw"], reply["parsed"], seconds) if isinstance(reply, dict) else (reply, None, seconds)
        raw, seconds = yield self._model, messages
        self._structured = None  # it answers without structured output
        return raw, None, seconds

    def _read(self, given: Any, text: str) -> Form | None:
        """Return the parsed reply: as its class parsed it, or as a JSON object in a code block or after other text."""
        with suppress(ValidationError):
            return self._form.model_validate(given)
        with suppress(ValidationError):
            return self._form.model_validate_json(text[text.find("{") : text.rfind("}") + 1])
        return None


def ask_text(model: BaseChatModel, messages: Sequence[BaseMessage]) -> Asking[str]:
    """Ask for a text, in a node's body. An empty reply is asked for again, up to three times in all."""
    calls: list[ModelCall] = []
    for _ in range(MAX_ATTEMPTS):
        raw, seconds = yield model, messages
        calls.append(model_call(raw, seconds, step=len(calls) + 1))
        if text := raw.text.strip():
            return Asked(text, calls)
    return Asked(None, calls, "the model gave empty replies")


def _read_cut_off(error: Exception) -> AIMessage | None:
    """Return the reply that OpenAI's client has put into an error, because it was cut off at the token limit."""
    completion = getattr(error, "completion", None)
    if type(error).__name__ != "LengthFinishReasonError" or completion is None:
        return None
    used, choice = completion.usage, completion.choices[0]
    metadata = {"model_name": completion.model, "model_provider": "openai", "finish_reason": choice.finish_reason}
    if used is None:
        return AIMessage(choice.message.content or "", response_metadata=metadata)
    usage = UsageMetadata(
        input_tokens=used.prompt_tokens, output_tokens=used.completion_tokens, total_tokens=used.total_tokens
    )
    return AIMessage(choice.message.content or "", usage_metadata=usage, response_metadata=metadata)


def _is_refused(error: Exception) -> bool:
    return getattr(error, "status_code", None) in _REFUSED


def _structured(model: BaseChatModel, form: type[BaseModel]) -> Runnable[Any, Any] | None:
    # A schema, not the class: OpenAI's client raises pydantic errors for replies that do not match a class.
    schema = {"title": form.__name__, "description": form.__doc__, **form.model_json_schema()}
    try:
        return model.with_structured_output(schema, include_raw=True)
    except NotImplementedError:
        return None
