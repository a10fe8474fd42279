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
from arag.models.names import BaseURL, connection_options, parse_name

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
    given = ", ".join(options)
    if isinstance(model, BaseChatModel):
        if options:
            raise ModelError(
                f"{given}: options are for a model that is made from a string; this {type(model).__name__} is made "
                "already"
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
            raise ModelError(f"{given}: the model {EXTRACTIVE} takes no options")
        from arag.models.extractive import ExtractiveModel

        return ExtractiveModel()
    if not isinstance(model, str):
        raise ModelError(f"a chat model or a provider:model string is needed, not a {type(model).__name__}")
    return _init(model, options)


def _init(text: str, options: dict[str, Any]) -> BaseChatModel:
    name = parse_name(text)
    provider = name.provider.replace("-", "_").lower()  # as LangChain reads it
    if not provider or not name.model:
        raise ModelError(
            f"unknown model {text!r}: give provider:model (openai:gpt-5-mini, ollama:qwen3, ...), "
            f"provider:model@base_url for an OpenAI-compatible server, or {EXTRACTIVE}"
        )
    defaults = _defaults(provider, name.base_url)
    if isinstance(options.get("default_headers"), dict):
        options = options | {"default_headers": defaults.get("default_headers", {}) | options["default_headers"]}
    settings = {key: value for key, value in defaults.items() if not _SYNONYMS.get(key, set()) & set(options)} | options
    if provider == "ollama":  # its class drops options that it does not know without a word, and a timeout is one
        client = {"timeout": settings.pop("timeout", None)}
        settings["client_kwargs"] = client | (settings.pop("client_kwargs", None) or {})
    try:
        made = _make(provider, name.model, settings, options)
    except ImportError as error:
        raise ModelError(_explain_missing(str(name), provider, error)) from error
    except Exception as error:
        if not isinstance(error, ValueError | TypeError) and not is_provider_error(error):
            raise
        raise ModelError(f"the model {name} cannot be made: {_explain(error)}") from error
    _check_options(made, provider, options)
    if provider == "anthropic" and "default_headers" not in options:  # other classes miss a key by themselves
        key = getattr(made, "anthropic_api_key", None)
        if key is not None and not key.get_secret_value():
            raise ModelError(
                f"the model {name} cannot be made: there is no key. Set the environment variable ANTHROPIC_API_KEY."
            )
    return made


def _defaults(provider: str, base_url: BaseURL | None) -> dict[str, Any]:
    """Return what a model is made with unless a caller says otherwise."""
    defaults: dict[str, Any] = {}
    if provider == "ollama":
        defaults["timeout"] = _LOCAL_TIMEOUT
    elif provider != "huggingface":  # that runs in this process
        defaults |= {"timeout": _TIMEOUT, "max_retries": _RETRIES}
    if provider == "openai":
        defaults["stream_usage"] = True  # off by default where a base URL is set
    return defaults | (connection_options(provider, base_url) if base_url else {})


def _make(provider: str, model: str, settings: dict[str, Any], options: Collection[str]) -> BaseChatModel:
    """Make a model; without those of our defaults that its class refuses."""
    from langchain.chat_models import init_chat_model
    from pydantic import ValidationError

    try:
        return cast("BaseChatModel", init_chat_model(model, model_provider=provider, **settings))
    except ValidationError as error:
        refused = {problem["loc"][0] for problem in error.errors() if problem["type"] == "extra_forbidden"}
        if not refused - set(options):
            raise
        kept = {key: value for key, value in settings.items() if key not in refused or key in options}
        return cast("BaseChatModel", init_chat_model(model, model_provider=provider, **kept))


def _explain(error: Exception) -> str:
    """Say in a line what is wrong."""
    from pydantic import ValidationError

    if isinstance(error, ValidationError):  # its own words quote the input, and so, it may be, a key
        problems = error.errors(include_input=False, include_url=False)
        return "; ".join(": ".join([*map(str, problem["loc"]), problem["msg"]]) for problem in problems)
    if type(error).__module__.startswith("google.auth"):
        return f"{error} Set the environment variable GOOGLE_API_KEY."
    return str(error)


def _explain_missing(specification: str, provider: str, error: ImportError) -> str:
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
    hint = f" Did you mean {', '.join(sorted(close))}?" if close else ""
    if "model_kwargs" in known:
        hint += " What the provider knows and the class does not goes into model_kwargs={...}."
    raise ModelError(f"{type(model).__name__} has no option {', '.join(unknown)}.{hint}")
