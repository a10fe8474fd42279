"""Replies that match a schema, from any model: as structured output, or as a JSON object in the text."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable
from pydantic import BaseModel, ValidationError

from arag.errors import InputError, without_credentials
from arag.evaluation.patience import Patience
from arag.models.asking import call_error, is_provider_error
from arag.models.extractive import ExtractiveModel
from arag.models.prices import cost
from arag.models.usage import model_call

_MAX_ATTEMPTS = 3
_PAUSE = 0.5  # seconds before the second attempt, doubled for each further one
_MAX_SHOWN = 200  # characters of a reply or an error in messages
_REFUSED = frozenset({400, 404, 405, 415, 422, 501})  # statuses of servers without structured output

Form = TypeVar("Form", bound=BaseModel)


def is_failed_call(error: Exception) -> bool:
    """Return whether an error comes from a model, its provider or its client, rather than from a bug of ours."""
    # A tool call whose arguments are JSON but not an object: LangChain cannot turn it into a message.
    no_message = isinstance(error, ValidationError) and error.title == AIMessage.__name__
    return is_provider_error(error) or call_error(error) is not None or no_message


@dataclass(frozen=True, slots=True)
class Reply(Generic[Form]):
    """The result of asking.

    Attributes:
        value: The reply; None if there was no usable one.
        why: Why there was none.
        cost: US dollars of all attempts; None if the price is unknown.
    """

    value: Form | None
    why: str
    cost: float | None


class StructuredModel(Generic[Form]):
    """Asks a model for replies that match a schema.

    The model is asked for structured output. If its class or server does not support it, the messages must ask for a
    JSON object. An unusable reply is asked for again.

    Args:
        model: The model.
        form: The schema.
        task: The model's role, for messages: "judge".

    Raises:
        InputError: The model is the built-in one, which is not a language model.
    """

    def __init__(self, model: BaseChatModel, form: type[Form], task: str) -> None:
        if isinstance(model, ExtractiveModel):
            raise InputError(f"the built-in extractive model cannot {task}: give a language model, as provider:model")
        self._model = model
        self._form = form
        self._task = task
        self._structured = _structured(model, form)

    async def ask(self, messages: list[BaseMessage], patience: Patience) -> Reply[Form]:
        """Ask for a reply.

        Args:
            messages: The messages.
            patience: Waits at rate limits.
        """
        why = ""
        spent: float | None = 0.0
        for attempt in range(_MAX_ATTEMPTS):
            if attempt:
                await asyncio.sleep(_PAUSE * 2**attempt)
            began = time.perf_counter()
            try:
                raw, given = await self._call(messages, patience)
            except Exception as error:
                if not is_failed_call(error):
                    raise
                why = f"the {self._task} failed: {without_credentials(str(error))[:_MAX_SHOWN]}"
                continue
            price = cost([model_call(raw, time.perf_counter() - began, step=attempt + 1)])
            spent = None if spent is None or price is None else spent + price
            value = self._read(given, raw.text)
            if value is not None:
                return Reply(value, "", spent)
            told = raw.additional_kwargs.get("refusal") or raw.text or "an empty reply"
            why = f"the {self._task} gave no usable {self._form.__name__.lower()}: {str(told)[:_MAX_SHOWN]}"
        return Reply(None, why, spent)

    async def _call(self, messages: list[BaseMessage], patience: Patience) -> tuple[AIMessage, Any]:
        """Return the model's reply, and what its class parsed from it."""
        if self._structured is not None:
            try:
                reply = await patience.ask(partial(self._structured.ainvoke, messages))
                return reply["raw"], reply["parsed"]
            except Exception as error:
                if getattr(error, "status_code", None) not in _REFUSED:
                    raise
        raw: AIMessage = await patience.ask(partial(self._model.ainvoke, messages))
        self._structured = None  # it answers without structured output
        return raw, None

    def _read(self, given: Any, text: str) -> Form | None:
        """Return the parsed reply: as its class parsed it, or as a JSON object in a code block or after other text."""
        with suppress(ValidationError):
            return self._form.model_validate(given)
        with suppress(ValidationError):
            return self._form.model_validate_json(text[text.find("{") : text.rfind("}") + 1])
        return None


def _structured(model: BaseChatModel, form: type[BaseModel]) -> Runnable[Any, Any] | None:
    # A schema, not the class: OpenAI's client raises pydantic errors for replies that do not match a class.
    schema = {"title": form.__name__, "description": form.__doc__, **form.model_json_schema()}
    try:
        return model.with_structured_output(schema, include_raw=True)
    except NotImplementedError:
        return None
