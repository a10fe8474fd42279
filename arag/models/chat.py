"""Chat models by name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import walk_tb
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.utils import get_pydantic_field_names

from arag.errors import ModelError, list_faults
from arag.models.names import EXTRACTIVE, MODEL_VARIABLE, connection_options, parse_name

# OpenAI's client has no timeout by default, and counts no tokens of streams where a base URL is set.
_LIMITS: dict[str, Any] = {"timeout": 120.0, "max_retries": 3}  # `timeout` is in seconds
_DEFAULTS = {
    "openai": {**_LIMITS, "stream_usage": True},
    "anthropic": _LIMITS,
    "google_genai": _LIMITS,
}


def load_model(model: str | BaseChatModel | None = None, **options: Any) -> BaseChatModel:
    """Return a chat model.

    Args:
        model: `provider:model` as in LangChain's `init_chat_model` (`openai:gpt-5-mini`,
            `anthropic:claude-sonnet-5-5`, `ollama:qwen3`). For an OpenAI-compatible server, add `@` and a base URL
            (`openai:qwen3@http://localhost:8000/v1`). `extractive` is the built-in model, which is not a language
            model; its answers say so. A chat model is returned unchanged. None means the model in the environment
            variable ARAG_MODEL, else `extractive`.
        options: Options for the model's class: `temperature=0`, `timeout=30`, `reasoning_effort="low"`. Put options
            that only the provider knows into `model_kwargs={...}`, if the class has it.

    Returns:
        The model; those of OpenAI, Anthropic and Google have a timeout of 120 seconds and 3 retries.

    Raises:
        ModelError: The model's package or key is missing, its class does not have an option, or the model is something
            else or takes no options.
        InputError: The string is not a model's name, or its base URL is not valid.

    Example:
        >>> model = load_model("openai:gpt-5-mini", reasoning_effort="low", timeout=30)
        >>> model.model_name, model.reasoning_effort
        ('gpt-5-mini', 'low')
    """
    if model is None:
        model = os.environ.get(MODEL_VARIABLE) or EXTRACTIVE
    if isinstance(model, str) and model != EXTRACTIVE:
        return _create(model, options)
    if isinstance(model, BaseChatModel) and not options:
        return model
    if model == EXTRACTIVE and not options:
        from arag.models.extractive import ExtractiveModel

        return ExtractiveModel()
    kind = model if isinstance(model, str) else f"{type(model).__name__} object"
    raise ModelError(f"give a provider:model string, or a chat model without options, not the {kind}")


def _create(text: str, options: dict[str, Any]) -> BaseChatModel:
    from langchain.chat_models import init_chat_model
    from pydantic import ValidationError

    name = parse_name(text)
    settings = connection_options(name, options)
    for default, value in _DEFAULTS.get(name.provider, {}).items():
        is_given = any(default in option for option in options)  # `request_timeout` is a timeout, too
        if not is_given:
            settings[default] = value
    try:
        model = init_chat_model(name.model, model_provider=name.provider, **settings)
    except ValidationError as error:  # its message quotes the input, which may contain a key
        raise ModelError(f"the model {name} cannot be created: {list_faults(error)}") from error
    except (ImportError, OSError, TypeError, ValueError) as error:
        raise ModelError(f"the model {name} cannot be created: {error}") from error
    # Some classes drop options that they do not know; others send them on and fail at the first request.
    unknown = options.keys() - get_pydantic_field_names(type(model))
    if unknown:
        raise ModelError(
            f"{type(model).__name__} has no option {', '.join(sorted(unknown))}. Options that only the provider knows "
            "go into model_kwargs={...}, if the class has it."
        )
    return cast("BaseChatModel", model)


@contextmanager
def naming_failures(model: str) -> Iterator[None]:
    """Raise a ModelError for any error from a chat model: its provider, the client or the network failed.

    Args:
        model: Its name in the message, such as `the model openai:gpt-5-mini`.
    """
    try:
        yield
    except Exception as error:
        modules = {frame.f_globals.get("__name__") for frame, _ in walk_tb(error.__traceback__)}
        if BaseChatModel.__module__ not in modules:  # a bug of ours, or an error of a tool
            raise
        raise ModelError(f"{model} failed: {error}") from error
