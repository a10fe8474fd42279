"""Chat models by name."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.utils import get_pydantic_field_names

from arag.errors import ModelError
from arag.models.asking import is_provider_error
from arag.models.names import connection_options, explain_missing_key, parse_name

EXTRACTIVE = "extractive"
MODEL_VARIABLE = "ARAG_MODEL"

# OpenAI's client has no timeout by default.
_DEFAULTS: dict[str, Any] = {"timeout": 120.0, "max_retries": 3}


def load_model(model: str | BaseChatModel | None = None, **options: Any) -> BaseChatModel:
    """Return a chat model.

    Args:
        model: `provider:model` as in LangChain's `init_chat_model` (`openai:gpt-5-mini`,
            `anthropic:claude-sonnet-5-5`, `ollama:qwen3`). For an OpenAI-compatible server, add `@` and a base URL
            (`openai:qwen3@http://localhost:8000/v1`). `extractive` is the built-in model, which is not a language
            model. A chat model is returned unchanged. None means the model in the environment variable ARAG_MODEL, else
            `extractive`, with a note on stderr.
        options: Options for the model's class: `temperature=0`, `timeout=30`, `reasoning_effort="low"`. Put options
            that only the provider knows into `model_kwargs={...}`, if the class has it.

    Returns:
        The model, with a timeout and retries if its class supports them.

    Raises:
        ModelError: The string is not valid, the model's package or key is missing, its class does not have an option,
            or options are given together with a chat model.
        InputError: The string contains unprintable characters, or its base URL is not valid.

    Example:
        >>> model = load_model("openai:gpt-5-mini", reasoning_effort="low", timeout=30)
        >>> model.model_name, model.reasoning_effort
        ('gpt-5-mini', 'low')
    """
    if model is None and not (model := os.environ.get(MODEL_VARIABLE)):
        print(  # noqa: T201
            "arag: no model given, using the built-in extractive model, which quotes sentences and is not a language "
            f"model. To use another, give a provider:model string or set {MODEL_VARIABLE} (for example "
            "openai:gpt-5-mini).",
            file=sys.stderr,
        )
        model = EXTRACTIVE
    if isinstance(model, str) and model != EXTRACTIVE:
        return _create(model, options)
    if options:
        kind = model if isinstance(model, str) else f"{type(model).__name__} object"
        raise ModelError(f"{', '.join(options)}: the model {kind} takes no options; a provider:model string does")
    if isinstance(model, BaseChatModel):
        return model
    if model != EXTRACTIVE:
        raise ModelError(f"the model must be a chat model or a provider:model string, not a {type(model).__name__}")
    from arag.models.extractive import ExtractiveModel

    return ExtractiveModel()


def _create(text: str, options: dict[str, Any]) -> BaseChatModel:
    from langchain.chat_models import init_chat_model
    from pydantic import ValidationError

    name = parse_name(text)
    provider = name.provider.replace("-", "_").lower()  # as LangChain normalises it
    name = replace(name, provider=provider)
    if not provider or not name.model:
        raise ModelError(
            f"unknown model {text!r}: give provider:model (openai:gpt-5-mini, ollama:qwen3, ...), "
            f"provider:model@base_url for an OpenAI-compatible server, or {EXTRACTIVE}"
        )
    if not any("api_key" in option or "headers" in option for option in options) and (why := explain_missing_key(name)):
        raise ModelError(why)
    settings = connection_options(name) | options
    # OpenAI's class counts no tokens of streams where a base URL is set.
    defaults = _DEFAULTS | ({"stream_usage": True} if provider == "openai" else {})
    defaults = {key: value for key, value in defaults.items() if not any(key in option for option in settings)}
    try:
        try:
            model = init_chat_model(name.model, model_provider=provider, **defaults, **settings)
        except ValidationError:  # some classes refuse options that they do not have, such as a timeout
            model = init_chat_model(name.model, model_provider=provider, **settings)
    except ImportError as error:
        raise ModelError(f"the model {name} needs a package: {error}") from error
    except ValidationError as error:  # its message quotes the input, which may contain a key
        problems = error.errors(include_input=False, include_url=False)
        said = "; ".join(": ".join([*map(str, problem["loc"]), problem["msg"]]) for problem in problems)
        raise ModelError(f"the model {name} cannot be created: {said}") from error
    except Exception as error:
        if not isinstance(error, ValueError | TypeError | OSError) and not is_provider_error(error):
            raise
        raise ModelError(f"the model {name} cannot be created: {error}") from error
    # Some classes drop options that they do not know; others send them on and fail at the first request.
    if unknown := options.keys() - get_pydantic_field_names(type(model)):
        raise ModelError(
            f"{type(model).__name__} has no option {', '.join(sorted(unknown))}. Options that only the provider knows "
            "go into model_kwargs={...}, if the class has it."
        )
    return cast("BaseChatModel", model)
