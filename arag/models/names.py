"""Names of models: `provider:model`, followed by `@` and a base URL for a server."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

from arag.errors import InputError

HUGGINGFACE = "huggingface"
EMBEDDER_VARIABLE = "ARAG_EMBEDDER"
DEFAULT_EMBEDDER = f"{HUGGINGFACE}:sentence-transformers/all-MiniLM-L6-v2"
MULTILINGUAL_EMBEDDER = f"{HUGGINGFACE}:intfloat/multilingual-e5-small"
KEY_VARIABLES = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "azure_openai": "AZURE_OPENAI_API_KEY",
    "cohere": "COHERE_API_KEY",
    "google_genai": "GOOGLE_API_KEY",
    "mistralai": "MISTRAL_API_KEY",
}

_NEEDS_KEY = {"openai", "anthropic"}  # their clients report a missing key late, or in words of their own
_EXAMPLE_URL = "http://localhost:8000/v1"
_URL = re.compile(r"https?://([\w.-]+|\[[\da-f:.]+\])(:\d{1,5})?(/[^\s\\?#@]*)?", re.IGNORECASE)
# A host, or anything with a port or a path. Versions (`claude@20240620`, `m@v1.5`, `m@latest`) and names that begin
# with an @ (`@cf/meta/llama`) are none.
_ADDRESS = re.compile(r"(?<=[^/])@(.*[:/].*|localhost|\d+(\.\d+){3}|.*\.[a-z]{2,})", re.IGNORECASE)
_HUB_ID = re.compile(r"(?!\.)[\w.-]+(/(?!\.)[\w.-]+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class ModelName:
    """A model's name, in its parts."""

    provider: str  # empty if the text has none
    model: str  # empty if the text has none
    base_url: str | None = None

    def __str__(self) -> str:
        """Return the name as it is stored and shown."""
        return f"{self.provider}:{self.model}" + (f"@{self.base_url}" if self.base_url else "")


def parse_name(text: str) -> ModelName:
    """Parse a model's name: `provider:model` or `provider:model@base_url`.

    Raises:
        InputError: The text contains unprintable characters, or an address after the @ that is not a valid base URL.
    """
    if not text.isprintable():
        raise InputError("the model's name contains unprintable characters")
    name, url = [*re.split(r"@(?=(?i:https?)://)", text, maxsplit=1), ""][:2]
    provider, _, model = name.partition(":")
    # No message repeats an address that is not valid: it may hold a password.
    if url and not _URL.fullmatch(url):
        raise InputError(
            f"the address of {name} is not a valid base URL: give one like {_EXAMPLE_URL}, without a query, a user or "
            "a password"
        )
    # Texts and keys would go to the provider's own address. Folders may have any name.
    if provider.lower() != HUGGINGFACE and (address := _ADDRESS.search(model)):
        name = f"{provider}:{model[: address.start()]}"
        raise InputError(f"{name}@... has an address without http:// or https://: give one like {name}@{_EXAMPLE_URL}")
    return ModelName(provider, model, url or None)


def parse_embedder(text: str) -> ModelName:
    """Parse an embedder's name.

    Raises:
        InputError: It does not have the form `provider:model`, or its base URL is not valid.
    """
    name = parse_name(text)
    if not name.provider or not name.model:
        raise InputError(
            f"unknown embedder {text!r}: give provider:model, for example {DEFAULT_EMBEDDER} or "
            "openai:text-embedding-3-small"
        )
    if name.provider != HUGGINGFACE:
        return name
    if name.base_url is not None:
        raise InputError(f"{name}: {HUGGINGFACE} models run on this machine, without a base URL")
    if is_hub_id(name.model):
        return name
    # Without .., and `~no-such-user` stays as it is.
    return ModelName(HUGGINGFACE, os.path.abspath(os.path.expanduser(name.model)))  # noqa: PTH100, PTH111


def is_hub_id(model: str) -> bool:
    """Return whether a sentence-transformers model's name is one from the model hub, and not a folder."""
    return _HUB_ID.fullmatch(model) is not None


def connection_options(name: ModelName) -> dict[str, Any]:
    """Return the options that connect a provider's LangChain class to the server of a name, if it has one.

    OpenAI's and Anthropic's clients refuse to start without a key; your own server needs none.
    """
    options: dict[str, Any] = {"base_url": name.base_url} if name.base_url else {}
    if name.base_url and name.provider in _NEEDS_KEY and not os.environ.get(KEY_VARIABLES[name.provider]):
        options["api_key"] = "none"
    return options


def explain_missing_key(name: ModelName) -> str | None:
    """Say which key a model needs, if it needs one and the environment lacks it."""
    if name.base_url or name.provider not in _NEEDS_KEY or os.environ.get(KEY_VARIABLES[name.provider]):
        return None
    variable = KEY_VARIABLES[name.provider]
    return f"{name} needs a key: set {variable}, or name your own server: {name}@{_EXAMPLE_URL}"
