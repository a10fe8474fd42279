"""Chat models by name."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from traceback import walk_tb
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.utils import get_pydantic_field_names

from arag.errors import ModelError, list_faults
from arag.models.attempts import ContextError, Terms
from arag.models.border import add_border
from arag.models.failures import describe_failure, is_overflow
from arag.models.names import EXTRACTIVE, MODEL_VARIABLE, ModelName, connection_options, parse_name, read_key
from arag.models.servers import Server
from arag.text.normalise import collapse_whitespace

_HOSTED_SECONDS = 300.0  # for one call
_LOCAL_SECONDS = 1800.0  # a model on a laptop writes a few tokens a second
_RETRIES = 3
_OLLAMA_CONTEXT = 16_384  # tokens: its own default cuts the prompts of a search in silence
_OLLAMA_ADDRESS = "http://localhost:11434"
_LIMITED = {"openai", "anthropic", "google_genai"}  # their classes have these options
_TIMEOUTS = ("timeout", "request_timeout", "default_request_timeout")


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
        The model. A call may take 300 seconds (`timeout`), or 1,800 if its server is on this machine or in its network.
        A failure that may pass by itself is tried again 3 times (`max_retries`).

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
    if options or not isinstance(model, BaseChatModel | str):
        kind = model if isinstance(model, str) else f"{type(model).__name__} object"
        raise ModelError(f"give a provider:model string, or a chat model without options, not the {kind}")
    if isinstance(model, BaseChatModel):
        return model
    from arag.models.extractive import ExtractiveModel

    return ExtractiveModel()


def _create(text: str, options: dict[str, Any]) -> BaseChatModel:
    """Create a model by its name, behind the border."""
    name = parse_name(text)
    terms = _read_terms(find_server(name, options), options)
    given = _options_of_class(name, options)
    settings = {
        **_default_settings(name, terms, given),
        **connection_options(name, given),
    }
    model = _make(name, text, settings)
    # Some classes drop options that they do not know; others send them on and fail at the first request.
    unknown = given.keys() - get_pydantic_field_names(type(model))
    if unknown:
        raise ModelError(
            f"{type(model).__name__} has no option {', '.join(sorted(unknown))}. Options that only the provider knows "
            "go into model_kwargs={...}, if the class has it."
        )
    _tell_context(model, terms, settings)
    if hasattr(model, "stream_chunk_timeout"):
        model.stream_chunk_timeout = None  # the limit of the whole call counts
    add_border(model, terms)
    return model


def _options_of_class(name: ModelName, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that the provider's class has; the border takes the others."""
    of_border = set() if name.provider in _LIMITED else {"timeout", "max_retries"}
    return {option: value for option, value in options.items() if option not in of_border}


def _make(name: ModelName, text: str, settings: dict[str, Any]) -> BaseChatModel:
    from langchain.chat_models import init_chat_model
    from pydantic import ValidationError

    try:
        return cast("BaseChatModel", init_chat_model(name.model, model_provider=name.provider, **settings))
    except ValidationError as error:  # its message quotes the input, which may contain a key
        raise ModelError(f"the model {name} cannot be created: {list_faults(error)}") from error
    except (ImportError, OSError, TypeError, ValueError) as error:
        if name.base_url and "Unsupported provider" in str(error):
            raise ModelError(
                f"there is no provider {name.provider}: for an OpenAI-compatible server, write "
                f"openai:{text.removeprefix('openai:')} with the name that the server gives the model"
            ) from error
        raise ModelError(f"the model {name} cannot be created: {collapse_whitespace(str(error))}") from error


def find_server(name: ModelName, options: Mapping[str, Any]) -> Server:
    """Return the server of a model, as its name, its options and the environment say."""
    has_own_key = any("api_key" in option for option in options)  # then the environment's may be another server's
    key = None if has_own_key else read_key(name)
    return Server(
        provider=name.provider,
        model=name.model,
        base_url=name.base_url or _find_default_address(name),
        key=key,
    )


def _find_default_address(name: ModelName) -> str | None:
    """Return the address of Ollama's server, which is known; None for other providers."""
    if name.provider != "ollama":
        return None
    address = os.environ.get("OLLAMA_HOST", _OLLAMA_ADDRESS)
    if "://" in address:
        return address
    return f"http://{address}"


def _read_terms(server: Server, options: Mapping[str, Any]) -> Terms:
    """Return the terms of a model's calls; a limit of another form is left to its client."""
    retries = options.get("max_retries")
    if not isinstance(retries, int):
        retries = _RETRIES
    return Terms(
        server=server,
        seconds=_read_limit(server, options),
        retries=retries,
    )


def _read_limit(server: Server, options: Mapping[str, Any]) -> float | None:
    """Return the seconds that a call may take; None if its client decides."""
    given = [options[option] for option in _TIMEOUTS if option in options]
    if not given:
        return _LOCAL_SECONDS if server.is_local else _HOSTED_SECONDS
    seconds = given[-1]
    if isinstance(seconds, int | float):
        return float(seconds)
    return None


def _default_settings(name: ModelName, terms: Terms, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of the provider's class that the caller did not give."""
    settings: dict[str, Any] = {}
    if name.provider in _LIMITED:
        settings["max_retries"] = terms.retries
        if options.keys().isdisjoint(_TIMEOUTS):
            settings["timeout"] = terms.seconds
    if name.provider == "openai":
        settings["stream_usage"] = True  # OpenAI's client counts no tokens of streams where a base URL is set
    if name.provider == "ollama":
        settings["num_ctx"] = _OLLAMA_CONTEXT
    return settings


def _tell_context(model: BaseChatModel, terms: Terms, settings: Mapping[str, Any]) -> None:
    """If a model's context is known, have its profile say how much of it a prompt may take."""
    length = settings.get("num_ctx")
    if isinstance(length, int):
        terms.context_length = length
        profile: Any = {**(model.profile or {}), "max_input_tokens": length * 3 // 4}
        model.profile = profile


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
        reason = str(error)
        if not isinstance(error, ModelError):
            reason = describe_failure(error, Server("", model, None))
        kind = ContextError if is_overflow(error) else ModelError
        raise kind(f"{model} failed: {reason}") from error
