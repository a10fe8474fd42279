"""Asking a model: again where its response cannot be read, and with errors that tell whose they are.

Clients try a request again that fails by its status or its connection. A response of status 200 that is cut off, no
JSON or no reply is a failed call to us, and none to them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from json import JSONDecodeError
from traceback import walk_tb
from typing import Any

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import ValidationError
from tenacity import AsyncRetrying, Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from arag.errors import ModelError

DEFAULT_RETRIES = 2  # of models that do not say; OpenAI's and Anthropic's clients have the same
FIRST_PAUSE, MAX_PAUSE = 0.5, 8.0  # seconds before a model is asked again, as those clients have them

_HTTP_CLIENTS = {"httpx", "httpx2"}  # which of them a provider's client is built on differs
_CLIENTS = frozenset({"openai", "anthropic", "google", "ollama", "groq", "mistralai", "cohere", "httpx", "httpx2"})

# Of Python's own: what LangChain and the clients raise where they have no class of their own.
CALL_ERRORS = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
_ENDING = frozenset({"openai", "anthropic"})  # providers whose streams end with a reason, or with the tokens used
_ENDS = frozenset({"finish_reason", "stop_reason", "status"})  # the reason's names


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
        with _call_errors():
            try:
                return check_whole(model.invoke(prompt, config))
            except ValidationError as error:
                return replace_unreadable(error)

    return Retrying(**retry_rules(ModelError, _retries(model)))(attempt)


async def aask(
    model: Runnable[LanguageModelInput, AIMessage], prompt: Sequence[AnyMessage], config: RunnableConfig
) -> AIMessage:
    """Do the same in an event loop."""

    async def attempt() -> AIMessage:
        with _call_errors():
            try:
                return check_whole(await model.ainvoke(prompt, config))
            except ValidationError as error:
                return replace_unreadable(error)

    return await AsyncRetrying(**retry_rules(ModelError, _retries(model)))(attempt)


def retry_rules(errors: type[Exception] | tuple[type[Exception], ...], retries: int) -> dict[str, Any]:
    """Return how tenacity asks again after the given errors."""
    return {
        "retry": retry_if_exception_type(errors),
        "stop": stop_after_attempt(1 + retries),
        "wait": wait_exponential(FIRST_PAUSE, max=MAX_PAUSE),
        "reraise": True,
    }


def _retries(model: Runnable[LanguageModelInput, AIMessage]) -> int:
    retries = getattr(getattr(model, "bound", model), "max_retries", None)
    return DEFAULT_RETRIES if retries is None else int(retries)


@contextmanager
def _call_errors() -> Iterator[None]:
    try:
        yield
    except CALL_ERRORS as error:
        if (failed := call_error(error)) is None:
            raise
        raise failed from error


def replace_unreadable(error: ValidationError) -> AIMessage:
    """Return what stands for a reply that LangChain cannot read: a call whose arguments are JSON, but no object.

    Args:
        error: What came out of calling the model, which is raised if it is about something else.
    """
    if error.title == AIMessage.__name__:
        return AIMessage("")
    raise error


def check_whole(reply: AIMessage) -> AIMessage:
    """Return a reply that has come to its end.

    Raises:
        ModelError: It is the beginning of one: its stream ended without saying so.
    """
    metadata = reply.response_metadata
    if metadata.get("model_provider") in _ENDING and not reply.usage_metadata and not _ENDS & set(metadata):
        raise ModelError("the model call failed: the stream of its reply broke off")
    return reply


def is_transient(error: Exception) -> bool:
    """Tell whether a model call may succeed when tried again.

    The clients of OpenAI, Anthropic and others try again by themselves, by the server's own advice: their errors
    have been retried already. This is for those that do not, and for connections that break off in mid-stream.
    """
    status: int = getattr(getattr(error, "response", None), "status_code", 0)
    kinds = {kind.__name__ for kind in type(error).__mro__ if kind.__module__.partition(".")[0] in _HTTP_CLIENTS}
    if "HTTPStatusError" in kinds:
        return status in {408, 409, 429} or status >= 500
    return "TransportError" in kinds or isinstance(error, ConnectionError | TimeoutError)


def is_provider_error(error: BaseException) -> bool:
    """Tell whether an error comes from a model's provider or its client, rather than from a bug of ours.

    Each client has exceptions of its own, and clients that are not installed cannot be imported to name theirs: the
    packages that define the class and its bases decide, or, for Python's own classes, the one that raised it.
    """
    if any(_is_client(kind.__module__) for kind in type(error).__mro__):
        return True
    return isinstance(error, OSError) and _is_client(_raised_in(error))


def call_error(error: Exception) -> ModelError | None:
    """Return what to raise for an error of Python's own that a model's class raised, or None for any other error.

    For responses that hold no reply (`choices` is empty, an error comes in its place, a stream ends before it begins,
    a web page comes from a wrong address, JSON is cut off) and for missing keys, LangChain and the clients raise
    IndexError, ValueError and the like, which say nothing of a model.

    Args:
        error: What came out of calling a model.
    """
    module = _raised_in(error)
    if not isinstance(error, CALL_ERRORS):
        return None
    if not module.startswith("langchain_core.language_models.") and not _is_client(module):
        return None
    if isinstance(error, JSONDecodeError | UnicodeDecodeError | RecursionError):
        return ModelError(f"the model call failed: the response cannot be read as JSON: {error}")
    if isinstance(error, IndexError | AttributeError):
        return ModelError("the model call failed: the response holds no reply; is the server's address right?")
    return ModelError(f"the model call failed: {error}")


def _is_client(module: str) -> bool:
    package = module.partition(".")[0]
    return package in _CLIENTS or (package.startswith("langchain_") and package != "langchain_core")


def _raised_in(error: BaseException) -> str:
    """Return the name of the module that raised an error, or called what did so in the standard library."""
    module = ""
    for frame, _ in walk_tb(error.__traceback__):
        name = str(frame.f_globals.get("__name__", ""))
        if name.partition(".")[0] not in sys.stdlib_module_names:
            module = name
    return module
