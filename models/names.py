"""Names of models: `provider:model`, with `@` and a base URL behind it for a server.

A base URL may hold a user and a password. They are for the connection only: a name that is stored, compared or shown
has none.
"""

from __future__ import annotations

import os
import re
from base64 import b64encode
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from arag.errors import CREDENTIALS, InputError

HUGGINGFACE = "huggingface"
DEFAULT_EMBEDDER = f"{HUGGINGFACE}:sentence-transformers/all-MiniLM-L6-v2"
KEY_VARIABLES = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "azure_openai": "AZURE_OPENAI_API_KEY",
    "cohere": "COHERE_API_KEY",
    "google_genai": "GOOGLE_API_KEY",
    "mistralai": "MISTRAL_API_KEY",
}

_PORTS = {"http": 80, "https": 443}
_BASE_URL = re.compile(r"@(?=[A-Za-z][A-Za-z0-9+.-]*://)")
_MISTYPED = re.compile(r"@https?:", re.IGNORECASE)
_HUB_ID = re.compile(r"(?!\.)[\w.-]+(/(?!\.)[\w.-]+)?", re.ASCII)
_HOST = re.compile(r"[\w.-]+|\[[0-9A-Fa-f:.]+\]")


@dataclass(frozen=True, slots=True)
class BaseURL:
    """The address of a server.

    Attributes:
        url: The URL without user and password.
        user: The user and the password, `user:password`, as they stand in the URL; None for none.
    """

    url: str
    user: str | None = None

    @property
    def host(self) -> str:
        """The host, with the port where one is given."""
        return urlsplit(self.url).netloc

    @property
    def key(self) -> tuple[str, str, int | None, str]:
        """What two URLs of the same address have in common."""
        parts = urlsplit(self.url)
        host = (parts.hostname or "").rstrip(".")
        return parts.scheme, host, parts.port or _PORTS[parts.scheme], parts.path.rstrip("/")

    @property
    def full(self) -> str:
        """The URL with user and password, for clients that read them there."""
        scheme, rest = self.url.split("://", 1)
        return self.url if self.user is None else f"{scheme}://{self.user}@{rest}"


@dataclass(frozen=True, slots=True)
class ModelName:
    """A model's name, in its parts.

    Attributes:
        provider: The provider; empty where the text has none.
        model: The model; empty where the text has none.
        base_url: The server's address, where one is given.
    """

    provider: str
    model: str
    base_url: BaseURL | None = None

    def __str__(self) -> str:
        """Return the name as it is stored and shown, without user and password."""
        return f"{self.provider}:{self.model}" + (f"@{self.base_url.url}" if self.base_url else "")


def parse_name(text: str) -> ModelName:
    """Take a model's name apart.

    Args:
        text: `provider:model` or `provider:model@base_url`. That provider and model are there is not checked.

    Raises:
        InputError: The text holds characters that cannot be shown, or its base URL is none.
    """
    if not text.isprintable():
        raise InputError(
            f"{_hide_secrets(text)!r} holds characters that cannot be shown: a model's name is printable text"
        )
    name, *rest = _BASE_URL.split(text, maxsplit=1)
    if not rest and _MISTYPED.search(name):
        raise InputError(
            f"{_hide_secrets(text)!r} has no base URL behind the @: give one like http://localhost:8000/v1"
        )
    provider, _, model = name.partition(":")
    return ModelName(provider, model, parse_base_url(rest[0]) if rest else None)


def parse_embedder(text: str) -> ModelName:
    """Take an embedder's name apart.

    Raises:
        InputError: It is not of the form `provider:model`, or its base URL is none.
    """
    name = parse_name(text)
    if not name.provider or not name.model:
        raise InputError(
            f"unknown embedder {str(name)!r}: give provider:model, for example {DEFAULT_EMBEDDER} or "
            "openai:text-embedding-3-small"
        )
    if name.provider == HUGGINGFACE:
        if name.base_url is not None:
            raise InputError(
                f"the embedder {name} has an address, and {HUGGINGFACE} models run here: addresses are for servers, "
                f"as in openai:{name.model}@{name.base_url.url}"
            )
        if not is_hub_id(name.model):  # the name is for any working directory
            return ModelName(HUGGINGFACE, os.path.abspath(os.path.expanduser(name.model)))  # noqa: PTH100, PTH111
    return name


def is_hub_id(model: str) -> bool:
    """Tell by its name whether a model of sentence-transformers is one of the model hub; else it is a folder."""
    return _HUB_ID.fullmatch(model) is not None


def parse_base_url(text: str) -> BaseURL:
    """Read the address of a server.

    What clients read in different ways is refused, so that texts and keys go where the URL seems to say.

    Raises:
        InputError: It is no URL, or has parts that a base URL does not have.
    """
    url = text.strip()
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise InputError(f"{_hide_secrets(text)!r} is no URL") from error
    fault = _find_fault(url, parts)
    if fault is not None:
        raise InputError(
            f"{_hide_secrets(text)!r} is no base URL of a server ({fault}): give one like "
            "http://localhost:8000/v1 or https://user:password@host/v1"
        )
    user, at, _ = parts.netloc.rpartition("@")
    if not at:
        return BaseURL(url)
    return BaseURL(url.replace(f"{user}@", "", 1), user or None)


def connection_options(provider: str, base_url: BaseURL) -> dict[str, Any]:
    """Return the options that connect a provider's LangChain class to a server.

    OpenAI's and Anthropic's clients write URLs into their logs and take headers: there, user and password go into one.
    These clients also refuse to start without a key; a server of one's own needs none, unless one is set.
    """
    if provider not in {"openai", "anthropic"}:
        return {"base_url": base_url.full}
    options: dict[str, Any] = {"base_url": base_url.url}
    if base_url.user is not None:
        user = b64encode(unquote(base_url.user).encode()).decode()
        options["default_headers"] = {"Authorization": f"Basic {user}"}
    if not os.environ.get(KEY_VARIABLES[provider]):
        options["api_key"] = "none"
    return options


def drop_credentials(text: str) -> str:
    """Take users and passwords out of the URLs in a text."""
    return CREDENTIALS.sub("", text)


def _find_fault(url: str, parts: SplitResult) -> str | None:
    user, _, host = parts.netloc.rpartition("@")
    if parts.scheme not in _PORTS:
        return f"{parts.scheme or 'nothing'} is neither http nor https"
    if not url.isprintable() or " " in url or "\\" in url:
        return "it holds white space, backslashes or characters that cannot be shown"
    if "@" in user:
        return "a user or a password holds @: write %40"
    if not _HOST.fullmatch(host if parts.port is None else host.rpartition(":")[0]):
        return "its host is missing or odd"
    if "?" in url or "#" in url:
        return "it has a query or a fragment"
    return None


def _hide_secrets(text: str) -> str:
    """Hide what may be a secret in a URL that cannot be taken apart."""
    return re.sub(r"(?<=\?).+", "***", re.sub(r"(?<=:/)(/?).*@", r"\1***@", text))
