"""Model calls, with retries for unreadable responses and errors that show where they came from.

Providers' clients retry requests that fail with an error status or a broken connection. A response of status 200 that
is cut off, is not JSON or contains no reply is a success to them; here it counts as a failed call.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from json import JSONDecodeError
from traceback import walk_tb
from typing import Any, TypeVar, cast

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import ValidationError
from tenacity import AsyncRetrying, Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from arag.errors import ModelError

DEFAULT_RETRIES = 2  # for models without a setting; the default of OpenAI's and Anthropic's clients
FIRST_PAUSE, MAX_PAUSE = 0.5, 8.0  # seconds before a retry, as in those clients

Reply = TypeVar("Reply")  # of a model, or of one with structured output: a dictionary with the `raw` reply

_HTTP_CLIENTS = {"httpx", "httpx2"}  # providers' clients are built on one or the other
_CLIENTS = frozenset({"openai", "anthropic", "google", "ollama", "groq", "mistralai", "cohere", "httpx", "httpx2"})

# Built-in errors that LangChain and the clients raise where they have no class of their own.
CALL_ERRORS = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
_ENDING = frozenset({"openai", "anthropic"})  # providers whose streams end with a reason, or with the tokens used
_ENDS = frozenset({"finish_reason", "stop_reason", "status"})  # the reason's names


def ask(model: Runnable[LanguageModelInput, Reply], prompt: Sequence[AnyMessage], config: RunnableConfig) -> Reply:
    """Call a model, with as many retries as its client makes.

    A stream shows the output of every attempt, each under its own message id.

    Args:
        model: The model, or one with its tools bound.
        prompt: The messages.
        config: The run's configuration.

    Raises:
        ModelError: No attempt returned a readable response.
    """

    def attempt() -> Reply:
        with _call_errors():
            try:
                return check_whole(model.invoke(prompt, config))
            except ValidationError as error:
                return cast(Reply, replace_unreadable(error))

    return Retrying(**retry_rules(ModelError, _retries(model)))(attempt)


async def aask(
    model: Runnable[LanguageModelInput, Reply], prompt: Sequence[AnyMessage], config: RunnableConfig
) -> Reply:
    """Call a model as `ask` does, asynchronously."""

    async def attempt() -> Reply:
        with _call_errors():
            try:
                return check_whole(await model.ainvoke(prompt, config))
            except ValidationError as error:
                return cast(Reply, replace_unreadable(error))

    return await AsyncRetrying(**retry_rules(ModelError, _retries(model)))(attempt)


def retry_rules(errors: type[Exception] | tuple[type[Exception], ...], retries: int) -> dict[str, Any]:
    """Return tenacity's options for retrying after the given errors."""
    return {
        "retry": retry_if_exception_type(errors),
        "stop": stop_after_attempt(1 + retries),
        "wait": wait_exponential(FIRST_PAUSE, max=MAX_PAUSE),
        "reraise": True,
    }


def _retries(model: Runnable[LanguageModelInput, Any]) -> int:
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
    """Return an empty reply in place of one that LangChain cannot read: its call has JSON arguments, but not an object.

    Args:
        error: The error from calling the model; it is raised again if it is about something else.
    """
    if error.title == AIMessage.__name__:
        return AIMessage("")
    raise error


def check_whole(reply: Reply) -> Reply:
    """Return a reply, or what structured output made of it, if it is complete.

    Raises:
        ModelError: Its stream broke off.
    """
    raw = cast(AIMessage, reply["raw"] if isinstance(reply, dict) else reply)
    metadata = raw.response_metadata
    if metadata.get("model_provider") in _ENDING and not raw.usage_metadata and not _ENDS & set(metadata):
        raise ModelError("the model call failed: the stream of its reply broke off")
    return reply


def is_transient(error: Exception) -> bool:
    """Return whether a model call may succeed when retried.

    The clients of OpenAI, Anthropic and others retry by themselves, as the server advises: their errors have been
    retried already. This is for clients that do not, and for connections that break mid-stream.
    """
    status: int = getattr(getattr(error, "response", None), "status_code", 0)
    kinds = {kind.__name__ for kind in type(error).__mro__ if kind.__module__.partition(".")[0] in _HTTP_CLIENTS}
    if "HTTPStatusError" in kinds:
        return status in {408, 409, 429} or status >= 500
    return "TransportError" in kinds or isinstance(error, ConnectionError | TimeoutError)


def is_provider_error(error: BaseException) -> bool:
    """Return whether an error comes from a model's provider or its client, rather than from a bug in this package.

    Each client has its own exceptions, and a client that is not installed cannot be imported to name them. So this
    checks the packages that define the error's class and its bases or, for built-in classes, the one that raised it.
    """
    if any(_is_client(kind.__module__) for kind in type(error).__mro__):
        return True
    return isinstance(error, OSError) and _is_client(_raised_in(error))


def call_error(error: Exception) -> ModelError | None:
    """Return a ModelError for a built-in error that a model's class raised, or None for any other error.

    LangChain and the clients raise IndexError, ValueError and others, which do not mention a model, when a key is
    missing or a response contains no reply. Then `choices` is empty, an error or a web page takes the reply's place,
    JSON is cut off, or a stream ends before it begins.

    Args:
        error: The error from calling a model.
    """
    module = _raised_in(error)
    if not isinstance(error, CALL_ERRORS):
        return None
    if not module.startswith("langchain_core.language_models.") and not _is_client(module):
        return None
    if isinstance(error, JSONDecodeError | UnicodeDecodeError | RecursionError):
        return ModelError(f"the model call failed: the response cannot be read as JSON: {error}")
    if isinstance(error, IndexError | AttributeError) or "No generations" in str(error):  # of a stream that has none
        return ModelError("the model call failed: the response contains no reply; check the server's address")
    return ModelError(f"the model call failed: {error}")


def _is_client(module: str) -> bool:
    package = module.partition(".")[0]
    return package in _CLIENTS or (package.startswith("langchain_") and package != "langchain_core")


def _raised_in(error: BaseException) -> str:
    """Return the name of the module that raised an error, or that called the standard library code that did."""
    module = ""
    for frame, _ in walk_tb(error.__traceback__):
        name = str(frame.f_globals.get("__name__", ""))
        if name.partition(".")[0] not in sys.stdlib_module_names:
            module = name
    return module
