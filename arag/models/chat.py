"""Chat models by name."""

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

_EXTRAS = {"anthropic": "anthropic", "google_genai": "google", "ollama": "ollama"}  # this package's extras, by provider
_PACKAGE = re.compile(r"requires the ([\w-]+) package")  # LangChain's message for a missing package

_TIMEOUT = 120.0  # seconds; OpenAI's client has none by default
_LOCAL_TIMEOUT = 600.0  # a local model must load first, and may take long to read a prompt
_RETRIES = 3
# Other names that classes have for our defaults: a default must not be passed along with a caller's value.
_SYNONYMS = {
    "timeout": {"request_timeout", "default_request_timeout"},
    "max_retries": {"retries"},
    "api_key": {"openai_api_key", "anthropic_api_key"},
}


def load_model(model: str | BaseChatModel | None = None, **options: Any) -> BaseChatModel:
    """Return a chat model.

    Args:
        model: `provider:model` as in LangChain's `init_chat_model` (`openai:gpt-5-mini`,
            `anthropic:claude-sonnet-5-5`, `ollama:qwen3`). For an OpenAI-compatible server, add `@` and a base URL
            (`openai:qwen3@http://localhost:8000/v1`). `extractive` is the built-in model, which is not a language
            model. A chat model is returned unchanged. None means the model in the environment variable ARAG_MODEL, else
            `extractive`, with a note on stderr.
        options: Options for the model's class: `temperature=0`, `timeout=30`, `reasoning_effort="low"`,
            `use_responses_api=True` for OpenAI, `thinking={...}` for Anthropic. Put options that only the provider
            knows into `model_kwargs={...}`, if the class has it.

    Returns:
        The model, with a timeout and, if its class supports them, retries.

    Raises:
        ModelError: The string is not valid, the model's package or key is missing, its class does not have an option,
            or options are given together with a chat model.
        InputError: The string contains unprintable characters, or its base URL is not valid.

    Example:
        >>> model = load_model("openai:gpt-5-mini", reasoning_effort="low", timeout=30)
        >>> model.model_name, model.reasoning_effort
        ('gpt-5-mini', 'low')
    """
    given = ", ".join(options)
    if isinstance(model, BaseChatModel):
        if options:
            raise ModelError(
                f"{given}: options need a provider:model string; set them on this {type(model).__name__} when you "
                "create it"
            )
        return model
    if model is None:
        model = os.environ.get(MODEL_VARIABLE) or None
    if model is None:
        print(  # noqa: T201
            "arag: no model given, using the built-in extractive model, which quotes sentences and is not a language "
            f"model. To use another, give a provider:model string or set {MODEL_VARIABLE} (for example "
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
        raise ModelError(f"the model must be a chat model or a provider:model string, not a {type(model).__name__}")
    return _init(model, options)


def _init(text: str, options: dict[str, Any]) -> BaseChatModel:
    name = parse_name(text)
    provider = name.provider.replace("-", "_").lower()  # as LangChain normalises it
    if not provider or not name.model:
        raise ModelError(
            f"unknown model {text!r}: give provider:model (openai:gpt-5-mini, ollama:qwen3, ...), "
            f"provider:model@base_url for an OpenAI-compatible server, or {EXTRACTIVE}"
        )
    defaults = _defaults(provider, name.base_url)
    settings = {key: value for key, value in defaults.items() if not _SYNONYMS.get(key, set()) & set(options)} | options
    if provider == "ollama":  # its class silently drops unknown options, and `timeout` is one
        client = {"timeout": settings.pop("timeout", None)}
        settings["client_kwargs"] = client | (settings.pop("client_kwargs", None) or {})
    try:
        made = _make(provider, name.model, settings, options)
    except ImportError as error:
        raise ModelError(_explain_missing(str(name), provider, error)) from error
    except Exception as error:
        if not isinstance(error, ValueError | TypeError) and not is_provider_error(error):
            raise
        raise ModelError(f"the model {name} cannot be created: {_explain(error)}") from error
    _check_options(made, provider, options)
    if provider == "anthropic" and "default_headers" not in options:  # other classes report a missing key themselves
        key = getattr(made, "anthropic_api_key", None)
        if key is not None and not key.get_secret_value():
            raise ModelError(
                f"the model {name} cannot be created: its key is missing. Set the environment variable "
                "ANTHROPIC_API_KEY."
            )
    return made


def _defaults(provider: str, base_url: BaseURL | None) -> dict[str, Any]:
    """Return the default options of a model."""
    defaults: dict[str, Any] = {}
    if provider == "ollama":
        defaults["timeout"] = _LOCAL_TIMEOUT
    elif provider != "huggingface":  # which runs in this process
        defaults |= {"timeout": _TIMEOUT, "max_retries": _RETRIES}
    if provider == "openai":
        defaults["stream_usage"] = True  # off by default where a base URL is set
    return defaults | (connection_options(provider, base_url) if base_url else {})


def _make(provider: str, model: str, settings: dict[str, Any], options: Collection[str]) -> BaseChatModel:
    """Create a model, without the defaults that its class refuses."""
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
    """Explain an error in one line."""
    from pydantic import ValidationError

    if isinstance(error, ValidationError):  # its message quotes the input, which may contain a key
        problems = error.errors(include_input=False, include_url=False)
        return "; ".join(": ".join([*map(str, problem["loc"]), problem["msg"]]) for problem in problems)
    if type(error).__module__.startswith("google.auth"):
        return f"{error} Set the environment variable GOOGLE_API_KEY."
    return str(error)


def _explain_missing(specification: str, provider: str, error: ImportError) -> str:
    """Name the missing package, and say how to install it."""
    named = _PACKAGE.search(str(error))
    if (
        named is None or find_spec(named[1].replace("-", "_")) is not None
    ):  # installed, but one of its own dependencies is not
        return f"the model {specification} cannot be created: {error.__cause__ or error}"
    wanted = f"'langgraph-arag[{_EXTRAS[provider]}]'" if provider in _EXTRAS else named[1]
    return f"the model {specification} needs the package {named[1]}, which is not installed: pip install {wanted}"


def _check_options(model: BaseChatModel, provider: str, options: Collection[str]) -> None:
    """Refuse unknown options; some classes drop them, others send them on and fail at the first request."""
    if provider == "huggingface":  # created by a function with more options than the class
        return
    known = get_pydantic_field_names(type(model)) | ({"timeout"} if provider == "ollama" else set())
    unknown = [option for option in options if option not in known]
    if not unknown:
        return
    close = {name for option in unknown for name in get_close_matches(option, known, n=2)}
    hint = f" Did you mean {', '.join(sorted(close))}?" if close else ""
    if "model_kwargs" in known:
        hint += " Put options that only the provider knows into model_kwargs={...}."
    raise ModelError(f"{type(model).__name__} has no option {', '.join(unknown)}.{hint}")
