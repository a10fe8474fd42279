"""Asking a model: again, where its response cannot be read.

Clients try a request again that fails by its status or its connection. A response of status 200 that is cut off, no
JSON or no reply is a failed call to us, and none to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import Runnable, RunnableConfig
from tenacity import AsyncRetrying, Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from arag.errors import ModelError
from arag.graph.messages import whole
from arag.models.chat import CALL_ERRORS, call_error

DEFAULT_RETRIES = 2  # of models that do not say; OpenAI's and Anthropic's clients have the same
FIRST_PAUSE, MAX_PAUSE = 0.5, 8.0  # seconds, as those clients have them


def ask(
    model: Runnable[LanguageModelInput, AIMessage], prompt: Sequence[AnyMessage], config: RunnableConfig
) -> AIMessage:
    """Ask a model, as often as its client would try a request.

    A stream shows what came of each attempt; their messages have ids of their own.

    Args:
        model: The model, or one with its tools bound.
        prompt: The messages.
        config: The run's configuration.

    Raises:
        ModelError: No response could be read.
    """

    def attempt() -> AIMessage:
        try:
            return whole(model.invoke(prompt, config))
        except CALL_ERRORS as error:
            if (failed := call_error(error)) is None:
                raise
            raise failed from error

    return Retrying(**_rules(model))(attempt)


async def aask(
    model: Runnable[LanguageModelInput, AIMessage], prompt: Sequence[AnyMessage], config: RunnableConfig
) -> AIMessage:
    """Do the same in an event loop."""

    async def attempt() -> AIMessage:
        try:
            return whole(await model.ainvoke(prompt, config))
        except CALL_ERRORS as error:
            if (failed := call_error(error)) is None:
                raise
            raise failed from error

    return await AsyncRetrying(**_rules(model))(attempt)


def _rules(model: Runnable[LanguageModelInput, AIMessage]) -> dict[str, Any]:
    retries = getattr(getattr(model, "bound", model), "max_retries", None)
    return {
        "retry": retry_if_exception_type(ModelError),
        "stop": stop_after_attempt(1 + (DEFAULT_RETRIES if retries is None else retries)),
        "wait": wait_exponential(FIRST_PAUSE, max=MAX_PAUSE),
        "reraise": True,
    }
