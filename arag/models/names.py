"""Names of models: `provider:model`, followed by `@` and a base URL for a server."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from arag.errors import InputError, ModelError

MODEL_VARIABLE = "ARAG_MODEL"
EXTRACTIVE = "extractive"  # the built-in model
HUGGINGFACE = "huggingface"
EMBEDDER_VARIABLE = "ARAG_EMBEDDER"
DEFAULT_EMBEDDER = f"{HUGGINGFACE}:sentence-transformers/all-MiniLM-L6-v2"
MULTILINGUAL_EMBEDDER = f"{HUGGINGFACE}:intfloat/multilingual-e5-small"

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

    provider: str
    model: str
    base_url: str | None = None

    def __str__(self) -> str:
        """Return the name as it is stored and shown."""
        return f"{self.provider}:{self.model}" + (f"@{self.base_url}" if self.base_url else "")

    @property
    def key_variable(self) -> str:
        """The environment variable that usually holds the provider's key."""
        return f"{self.provider.upper()}_API_KEY"


def parse_name(text: str) -> ModelName:
    """Parse a model's name: `provider:model` or `provider:model@base_url`.

    Raises:
        InputError: The text is not of this form, contains unprintable characters, or has an address that is not a valid
            base URL, or belongs to a model that runs on this machine.
    """
    if not text.isprintable():
        raise InputError("the model's name contains unprintable characters")
    name, url = [*re.split(r"@(?=(?i:https?)://)", text, maxsplit=1), ""][:2]
    # No message repeats an address that is not valid: it may hold a password.
    if url and not _URL.fullmatch(url):
        raise InputError(
            f"the address of {name} is not a valid base URL: give one like {_EXAMPLE_URL}, without a query, a user or "
            "a password"
        )
    provider, _, model = name.partition(":")
    provider = provider.replace("-", "_").lower()  # as LangChain normalises it
    # Texts and keys would go to the provider's own address. Folders may have any name.
    if provider != HUGGINGFACE and (address := _ADDRESS.search(model)):
        name = f"{provider}:{model[: address.start()]}"
        raise InputError(f"{name}@... has an address without http:// or https://: give one like {name}@{_EXAMPLE_URL}")
    if not provider or not model:
        raise InputError(
            f"unknown model {name!r}: give provider:model, such as openai:gpt-5-mini, and for an OpenAI-compatible "
            f"server its address, too: openai:qwen3@{_EXAMPLE_URL}"
        )
    if provider == HUGGINGFACE:
        if url:
            raise InputError(f"{text}: {HUGGINGFACE} models run on this machine, without a base URL")
        if not is_hub_id(model):  # a folder; `~no-such-user` stays as it is
            model = os.path.abspath(os.path.expanduser(model))  # noqa: PTH100, PTH111
    return ModelName(provider, model, url or None)


def is_hub_id(model: str) -> bool:
    """Return whether a sentence-transformers model's name is one from the model hub, and not a folder."""
    return _HUB_ID.fullmatch(model) is not None


def connection_options(name: ModelName, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a provider's LangChain class, with those that connect it to the server of a name.

    Raises:
        ModelError: The provider needs a key, and neither the options nor the environment have one.
    """
    server: dict[str, Any] = {"base_url": name.base_url} if name.base_url else {}
    if name.provider in _NEEDS_KEY and not os.environ.get(name.key_variable):
        has_key = any("api_key" in option for option in options)
        if name.base_url and not has_key:
            server["api_key"] = "none"  # the clients refuse to start without one; your own server needs none
        elif not has_key and not any("headers" in option for option in options):
            raise ModelError(
                f"{name} needs a key: set {name.key_variable}, or name your own server: {name}@{_EXAMPLE_URL}"
            )
    return {**server, **options}
