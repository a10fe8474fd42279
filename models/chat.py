"""Chat models by string."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.utils import get_pydantic_field_names

from arag.errors import ModelError
from arag.models.asking import is_provider_error
from arag.models.embedders import address_options, key_option
from arag.models.names import BaseURL, parse_name

EXTRACTIVE = "extractive"
MODEL_VARIABLE = "ARAG_MODEL"

_EXTRAS = {"anthropic": "anthropic", "google_genai": "google", "ollama": "ollama"}  # this package's, by provider
_PACKAGE = re.compile(r"requires the ([\w-]+) package")  # as LangChain says what is missing

_TIMEOUT = 120.0  # seconds; OpenAI's client has none by default
_LOCAL_TIMEOUT = 600.0  # a model on one's own machine is loaded first, and may take long to read a prompt
_RETRIES = 3
# Other names that classes have for what is set here: a default must not stand beside what a caller has given.
_SYNONYMS = {
    "timeout": {"request_timeout", "default_request_timeout"},
    "max_retries": {"retries"},
    "api_key": {"openai_api_key", "anthropic_api_key"},
}


def load_model(model: str | BaseChatModel | None = None, **options: Any) -> BaseChatModel:
    """Return a chat model.

    Args:
        model: `provider:model` as LangChain's `init_chat_model` takes it (`openai:gpt-5-mini`,
            `anthropic:claude-sonnet-5-5`, `ollama:qwen3`), with `@` and a base URL behind it for an
            OpenAI-compatible server (`openai:qwen3@http://localhost:8000/v1`), which may hold a user and a password;
            `extractive` for the built-in model,
            which is no language model; a chat model, which is returned as it is; or None for what the environment
            variable ARAG_MODEL names, else `extractive`, with a line on stderr that says so.
        options: Passed on to the model's class: `temperature=0`, `timeout=30`, `reasoning_effort="low"`,
            `use_responses_api=True` for OpenAI, `thinking={...}` for Anthropic. What the class does not know itself
            and the provider does goes into `model_kwargs={...}`, where the class has that.

    Returns:
        The model, with a timeout set, and retries where its class has them.

    Raises:
        ModelError: The string is not valid, the model's package or key is missing, an option is not one of its
            class, or options are given for what is a model already.
        InputError: The string holds characters that cannot be shown, or its base URL is none.
    """
    if isinstance(model, BaseChatModel):
        if options:
            raise ModelError(
                f"{_listed(options)}: options are for a model that is made from a string; this {type(model).__name__} "
                "is made already"
            )
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
        if options:
            raise ModelError(f"{_listed(options)}: the model {EXTRACTIVE} takes no options")
        from arag.models.extractive import ExtractiveModel

        return ExtractiveModel()
    if not isinstance(model, str):
        raise ModelError(f"a chat model or a provider:model string is needed, not a {type(model).__name__}")
    return _init(model, options)


def _init(text: str, options: dict[str, Any]) -> BaseChatModel:
    name = parse_name(text)
    specification = str(name)
    provider, model = name.provider.replace("-", "_").lower(), name.model  # as LangChain reads it
    if not provider or not model:
        raise ModelError(
            f"unknown model {text!r}: give provider:model (openai:gpt-5-mini, ollama:qwen3, ...), "
            f"provider:model@base_url for an OpenAI-compatible server, or {EXTRACTIVE}"
        )
    settings = _defaults(provider, name.base_url)
    settings = {key: value for key, value in settings.items() if not _SYNONYMS.get(key, set()) & set(options)}
    if isinstance(options.get("default_headers"), dict):
        options = options | {"default_headers": settings.get("default_headers", {}) | options["default_headers"]}
    settings |= options
    if provider == "ollama":
        settings = _for_ollama(settings)
    try:
        made = _make(provider, model, settings, options)
    except ImportError as error:
        raise ModelError(_missing(specification, provider, error)) from error
    except Exception as error:
        if not isinstance(error, ValueError | TypeError) and not is_provider_error(error):
            raise
        raise ModelError(f"the model {specification} cannot be made: {_reason(error)}") from error
    _check_options(made, provider, options)
    if provider == "anthropic":
        _check_key(made, specification, options)
    return made


def _make(provider: str, model: str, settings: dict[str, Any], options: Collection[str]) -> BaseChatModel:
    from langchain.chat_models import init_chat_model
    from pydantic import ValidationError

    try:
        return cast("BaseChatModel", init_chat_model(model, model_provider=provider, **settings))
    except ValidationError as error:
        refused = {problem["loc"][0] for problem in error.errors() if problem["type"] == "extra_forbidden"}
        kept = {key: value for key, value in settings.items() if key not in refused or key in options}
        if len(kept) == len(settings):
            raise
        return cast("BaseChatModel", init_chat_model(model, model_provider=provider, **kept))


def _defaults(provider: str, base_url: BaseURL | None) -> dict[str, Any]:
    """Return what a model is made with unless a caller says otherwise."""
    settings: dict[str, Any] = {}
    if provider == "ollama":
        settings["timeout"] = _LOCAL_TIMEOUT
    elif provider != "huggingface":  # that runs in this process
        settings |= {"timeout": _TIMEOUT, "max_retries": _RETRIES}
    if provider == "openai":
        settings["stream_usage"] = True  # off by default where a base URL is set
    if base_url is not None:
        settings |= address_options(provider, base_url)
        if provider == "openai":
            settings |= key_option()
        if provider == "anthropic" and not os.environ.get("ANTHROPIC_API_KEY"):
            settings["api_key"] = "none"  # as for OpenAI: the client sends nothing without one
    return settings


def _for_ollama(settings: dict[str, Any]) -> dict[str, Any]:
    """Put the timeout where ChatOllama looks for it; it drops options that it does not know without a word."""
    settings = dict(settings)
    client = {"timeout": settings.pop("timeout", None)} | (settings.pop("client_kwargs", None) or {})
    return settings | {"client_kwargs": client}


def _reason(error: Exception) -> str:
    """Say in a line what is wrong."""
    from pydantic import ValidationError

    if isinstance(error, ValidationError):  # its own words quote the input, and so, it may be, a key
        problems = error.errors(include_input=False, include_url=False)
        return "; ".join(": ".join([*map(str, problem["loc"]), problem["msg"]]) for problem in problems)
    if type(error).__module__.startswith("google.auth"):
        return f"{error} Set the environment variable GOOGLE_API_KEY."
    return str(error)


def _missing(specification: str, provider: str, error: ImportError) -> str:
    """Say which package is missing, and how it is installed."""
    named = _PACKAGE.search(str(error))
    if named is None or find_spec(named[1].replace("-", "_")) is not None:  # there, but it lacks a package itself
        return f"the model {specification} cannot be made: {error.__cause__ or error}"
    wanted = f"'langgraph-arag[{_EXTRAS[provider]}]'" if provider in _EXTRAS else named[1]
    return f"the model {specification} needs the package {named[1]}, which is not installed: pip install {wanted}"


def _check_options(model: BaseChatModel, provider: str, options: Collection[str]) -> None:
    """Refuse what the class does not know; some drop it, others send it on, to fail with the first request."""
    if provider == "huggingface":  # made by a function that takes more than the class has
        return
    known = get_pydantic_field_names(type(model)) | ({"timeout"} if provider == "ollama" else set())
    unknown = [option for option in options if option not in known]
    if not unknown:
        return
    close = {name for option in unknown for name in get_close_matches(option, known, n=2)}
    hint = f" Did you mean {_listed(sorted(close))}?" if close else ""
    if "model_kwargs" in known:
        hint += " What the provider knows and the class does not goes into model_kwargs={...}."
    raise ModelError(f"{type(model).__name__} has no option {_listed(unknown)}.{hint}")


def _check_key(model: BaseChatModel, specification: str, options: Collection[str]) -> None:
    """Miss Anthropic's key now, and not with the first request; OpenAI's and Google's classes do so themselves."""
    key = getattr(model, "anthropic_api_key", None)
    if key is not None and not key.get_secret_value() and "default_headers" not in options:
        raise ModelError(
            f"the model {specification} cannot be made: there is no key. Set the environment variable "
            "ANTHROPIC_API_KEY."
        )


def _listed(names: Collection[str]) -> str:
    return ", ".join(names)
