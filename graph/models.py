"""Chat models by string."""

from __future__ import annotations

import os
import sys
from typing import Any, cast

from langchain_core.language_models import BaseChatModel

from arag.retrieval.embedders import key_option, split_base_url
from arag.retrieval.errors import ModelError

EXTRACTIVE = "extractive"
MODEL_VARIABLE = "ARAG_MODEL"

_CLIENTS = frozenset({"openai", "anthropic", "google", "ollama", "groq", "mistralai", "cohere", "httpx", "httpx2"})
_TIMEOUT = 120.0  # seconds; OpenAI's client has none by default
_RETRIES = 3


def load_model(model: str | BaseChatModel | None = None, **options: Any) -> BaseChatModel:
    """Return a chat model.

    Args:
        model: `provider:model` as LangChain's `init_chat_model` takes it (`openai:gpt-5-mini`,
            `anthropic:claude-sonnet-4-5`, `ollama:qwen3`), with `@` and a base URL behind it for an
            OpenAI-compatible server (`openai:qwen3@http://localhost:8000/v1`); `extractive` for the built-in model,
            which is no language model; a chat model, which is returned as it is; or None for what the environment
            variable ARAG_MODEL names, else `extractive`, with a line on stderr that says so.
        options: Passed on to the model's class (`temperature=0`, `reasoning_effort="low"`, `timeout=30`).

    Returns:
        The model, with a timeout and retries set.

    Raises:
        ModelError: The string is not valid, or the model's package or key is missing.
    """
    if isinstance(model, BaseChatModel):
        return model
    if model is None:
        model = os.environ.get(MODEL_VARIABLE) or None
    if model is None:
        print(  # noqa: T201
            "arag: no model chosen, using the built-in extractive one, which quotes sentences and is no language "
            f"model. Choose another with a provider:model string, or set {MODEL_VARIABLE} (for example "
            "openai:gpt-5-mini).",
            file=sys.stderr,
        )
        model = EXTRACTIVE
    if model == EXTRACTIVE:
        from arag.graph.extractive import ExtractiveModel

        return ExtractiveModel()
    if not isinstance(model, str):
        raise ModelError(f"a chat model or a provider:model string is needed, not a {type(model).__name__}")
    return _init(model, options)


def _init(specification: str, options: dict[str, Any]) -> BaseChatModel:
    from langchain.chat_models import init_chat_model
    from openai import OpenAIError
    from pydantic import ValidationError

    name, base_url = split_base_url(specification)
    provider, colon, model = name.partition(":")
    if not colon or not provider or not model:
        raise ModelError(
            f"unknown model {specification!r}: give provider:model (openai:gpt-5-mini, ollama:qwen3, ...), "
            f"provider:model@base_url for an OpenAI-compatible server, or {EXTRACTIVE}"
        )
    settings: dict[str, Any] = {"timeout": _TIMEOUT, "max_retries": _RETRIES}
    if provider == "openai":
        settings["stream_usage"] = True  # off by default where a base URL is set
    if base_url is not None:
        settings |= {"base_url": base_url} | (key_option() if provider == "openai" else {})
    try:
        return cast("BaseChatModel", init_chat_model(model, model_provider=provider, **(settings | options)))
    except ImportError as error:
        raise ModelError(f"the model {specification} needs a package that is not installed: {error}") from error
    except (ValueError, TypeError, ValidationError, OpenAIError) as error:
        raise ModelError(f"the model {specification} cannot be made: {error}") from error


def is_provider_error(error: BaseException) -> bool:
    """Tell whether an error comes from a model's provider or its client, rather than from a bug of ours.

    Each client has exceptions of its own, and clients that are not installed cannot be imported to name theirs: the
    packages that define the class and its bases decide.
    """
    return any(kind.__module__.partition(".")[0] in _CLIENTS for kind in type(error).__mro__)
