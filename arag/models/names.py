"""Names of models: `provider:model`, followed by `@` and a base URL for a server."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import SecretStr

from arag.errors import InputError, ModelError
from arag.text.scripts import is_latin

MODEL_VARIABLE = "ARAG_MODEL"
EXTRACTIVE = "extractive"  # the built-in model
HUGGINGFACE = "huggingface"
EMBEDDER_VARIABLE = "ARAG_EMBEDDER"
ENGLISH_EMBEDDER = f"{HUGGINGFACE}:sentence-transformers/all-MiniLM-L6-v2"
MULTILINGUAL_EMBEDDER = f"{HUGGINGFACE}:intfloat/multilingual-e5-small"
DEFAULT_EMBEDDER = MULTILINGUAL_EMBEDDER

_SHORT_NAMES = {
    "all-MiniLM-L6-v2": ENGLISH_EMBEDDER,
    "multilingual-e5-small": MULTILINGUAL_EMBEDDER,
}
# Well-known embedders for English only, by the last parts of their names. Others may know any language.
_ENGLISH_ONLY = frozenset(
    (
        "all-minilm all-minilm-l6-v2 all-minilm-l12-v2 all-mpnet-base-v2 all-distilroberta-v1 "
        "multi-qa-minilm-l6-cos-v1 multi-qa-mpnet-base-dot-v1 bge-small-en-v1.5 bge-base-en-v1.5 bge-large-en-v1.5 "
        "e5-small-v2 e5-base-v2 e5-large-v2 gte-small gte-base gte-large mxbai-embed-large-v1 "
        "nomic-embed-text-v1 nomic-embed-text-v1.5"
    ).split()
)
_NEEDS_KEY = {"openai", "anthropic"}  # their clients report a missing key late, or unclearly
_KEY_VARIABLES = {"google_genai": "GOOGLE_API_KEY"}  # those that do not have the provider's name
_AROUND_KEYS = " \t\r\n\f\v\ufeff\u200b\u00a0\"'“”‘’"
_EXAMPLE_URL = "http://localhost:8000/v1"
_VALID_MODELS = (
    "provider:model, such as openai:gpt-5-mini, and for an OpenAI-compatible server its address, too: "
    f"openai:qwen3@{_EXAMPLE_URL}"
)
_VALID_EMBEDDERS = (
    f"{', '.join(_SHORT_NAMES)}, which need no server, or provider:model, such as openai:text-embedding-3-small"
)
_URL_START = re.compile(r"@(?=(?i:https?)://)")
_URL = re.compile(r"https?://([\w.-]+|\[[\da-f:.]+\])(:\d{1,5})?(/[^\s\\?#@]*)?", re.IGNORECASE)
# A host, or anything with a port or a path; but neither a version (`claude@20240620`, `m@v1.5`, `m@latest`) nor a name
# that begins with an @ (`@cf/meta/llama`).
_ADDRESS = re.compile(r"(?<=[^/])@(.*[:/].*|localhost|\d+(\.\d+){3}|.*\.[a-z]{2,})", re.IGNORECASE)
_HUB_ID = re.compile(r"(?!\.)[\w.-]+(/(?!\.)[\w.-]+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class ModelName:
    """A model's name, in its parts."""

    provider: str
    model: str
    base_url: str | None = None

    def __str__(self) -> str:
        """Return the name as it is stored and shown."""
        name = f"{self.provider}:{self.model}"
        if self.base_url:
            return f"{name}@{self.base_url}"
        return name

    @property
    def key_variable(self) -> str:
        """The environment variable that usually holds the provider's key."""
        return key_variable(self.provider)


def key_variable(provider: str) -> str:
    """Return the environment variable that usually holds a provider's key."""
    return _KEY_VARIABLES.get(provider, f"{provider.upper()}_API_KEY")


def parse_name(text: str, valid: str = _VALID_MODELS) -> ModelName:
    """Parse a model's name: `provider:model` or `provider:model@base_url`.

    Args:
        text: The name.
        valid: What an error tells to give.

    Raises:
        InputError: The text is not of this form, contains unprintable characters, or has an address that is not a valid
            base URL, or belongs to a model that runs on this machine.
    """
    if not text.isprintable():
        raise InputError("the model's name contains unprintable characters")
    name, url = _split_url(text)
    provider, _, model = name.partition(":")
    provider = provider.replace("-", "_").lower()  # as LangChain normalises it
    if provider != HUGGINGFACE:  # folders may have any name
        _refuse_address(provider, model)
    if not provider or not model:
        raise InputError(f"unknown model {name!r}: give {valid}")
    if provider == HUGGINGFACE:
        if url:
            raise InputError(f"{text}: {HUGGINGFACE} models run on this machine, without a base URL")
        if not is_hub_id(model):  # a folder; `~no-such-user` is left unchanged
            model = os.path.abspath(os.path.expanduser(model))  # noqa: PTH100, PTH111
    return ModelName(provider=provider, model=model, base_url=url)


def parse_embedder(text: str) -> ModelName:
    """Parse an embedder's name, which may be the short name of a model that runs on ONNX Runtime.

    Raises:
        InputError: As in `parse_name`.
    """
    return parse_name(_SHORT_NAMES.get(text, text), valid=_VALID_EMBEDDERS)


def _split_url(text: str) -> tuple[str, str | None]:
    """Split a model's name and its base URL."""
    parts = _URL_START.split(text, maxsplit=1)
    if len(parts) == 1 or not parts[1]:
        return parts[0], None
    name, url = parts
    if not _URL.fullmatch(url):  # it may hold a password, so the message does not repeat it
        raise InputError(
            f"the address of {name} is not a valid base URL: give one like {_EXAMPLE_URL}, without a query, a user or "
            "a password"
        )
    return name, url


def _refuse_address(provider: str, model: str) -> None:
    """Refuse an address without `http://`: texts and keys would go to the provider's own server instead."""
    address = _ADDRESS.search(model)
    if address is None:
        return
    name = f"{provider}:{model[: address.start()]}"
    raise InputError(f"{name}@... has an address without http:// or https://: give one like {name}@{_EXAMPLE_URL}")


def is_hub_id(model: str) -> bool:
    """Return whether a sentence-transformers model's name is one from the model hub, and not a folder."""
    return _HUB_ID.fullmatch(model) is not None


def knows_only_english(embedder: str) -> bool:
    """Return whether an embedder is known to be for English only, by its name in an index's settings."""
    return re.split("[:/]", embedder)[-1].lower() in _ENGLISH_ONLY


def knows_script(embedder: str, text: str) -> bool:
    """Return whether vectors of an embedder mean something for the script that a text is written in."""
    return is_latin(text) or not knows_only_english(embedder)


def read_key(name: ModelName) -> str | None:
    """Return the provider's key in the environment, without what was copied along with it; None if there is none.

    Raises:
        ModelError: It has a character that no key has.
    """
    given = os.environ.get(name.key_variable)
    if not given:
        return None
    key = given.strip(_AROUND_KEYS).removeprefix("Bearer ").strip()
    _check_key(key, name.key_variable)
    return key


def _check_key(key: str, place: str) -> None:
    """Refuse a key that cannot be sent: clients say so late, unclearly, or with the key."""
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ModelError(f"{place} holds no key: keys have letters, digits and signs without blanks")


def connection_options(name: ModelName, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a provider's LangChain class, with those that connect it to the server of a name.

    Raises:
        ModelError: The provider needs a key, and neither the options nor the environment have one, or one has a
            character that no key has.
    """
    for option, value in options.items():
        given = value.get_secret_value() if isinstance(value, SecretStr) else value
        if "api_key" in option and isinstance(given, str):
            _check_key(given, f"the option {option}")
    server: dict[str, Any] = {}
    if name.base_url:
        server["base_url"] = name.base_url
    key = read_key(name) if name.provider in _NEEDS_KEY else None
    has_key = any("api_key" in option for option in options)
    if key is not None and not has_key and key != os.environ[name.key_variable]:
        server["api_key"] = key
        warnings.warn(f"{name.key_variable} has blanks, quotes or more around the key: they are left out", stacklevel=2)
    if name.provider in _NEEDS_KEY and key is None:
        has_headers = any("headers" in option for option in options)  # which may carry the key
        if name.base_url and not has_key:
            server["api_key"] = "none"  # the clients refuse to start without one; your own server needs none
        elif not has_key and not has_headers:
            raise ModelError(
                f"{name} needs a key: set {name.key_variable}, or name your own server: {name}@{_EXAMPLE_URL}"
            )
    return {**server, **options}
