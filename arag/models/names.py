"""Names of models: `provider:model`, followed by `@` and a base URL for a server."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

from arag.errors import CREDENTIALS, InputError

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

_PORTS = {"http": 80, "https": 443}
_BASE_URL = re.compile(r"@(?=[A-Za-z][A-Za-z0-9+.-]*://)")
_MISTYPED = re.compile(r"@https?[:/]", re.IGNORECASE)
# An address without its scheme, behind a user and a password where it has them: a host, anything with a port, or a
# path. It does not match versions and aliases (`claude@20240620`, `m@v1.5`, `m@latest`), or a name that begins with @
# (`@cf/meta/llama`).
_ADDRESS = re.compile(
    r"""
    @ (?! https?[:/] ) (?: [^@/]+ @ )?
    (?:
        \s* (?: localhost | \d+ (?:\.\d+){3} | \[.+ | [\da-f]* (?: :[\da-f]* ){2,} | [^@/]* :\d{1,5}
            | (?P<domain> (?: [\w-]+\. )+ [a-z][a-z\d-]+ ) ) (?! \.?[\w-] )
        | (?<= [^/]@ ) [^@]* /
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_HUB_ID = re.compile(r"(?!\.)[\w.-]+(/(?!\.)[\w.-]+)?", re.ASCII)
_HOST = re.compile(r"[\w.-]+|\[[0-9A-Fa-f:.]+\]")


@dataclass(frozen=True, slots=True)
class BaseURL:
    """The address of a server.

    Attributes:
        url: The URL.
    """

    url: str

    @property
    def host(self) -> str:
        """The host, with the port where one is given."""
        return urlsplit(self.url).netloc

    @property
    def key(self) -> tuple[str, str, int | None, str]:
        """A key that is equal for URLs of the same address."""
        parts = urlsplit(self.url)
        host = (parts.hostname or "").rstrip(".")
        return parts.scheme, host, parts.port or _PORTS[parts.scheme], parts.path.rstrip("/")


@dataclass(frozen=True, slots=True)
class ModelName:
    """A model's name, in its parts.

    Attributes:
        provider: The provider; empty if the text has none.
        model: The model; empty if the text has none.
        base_url: The server's address, if one is given.
    """

    provider: str
    model: str
    base_url: BaseURL | None = None

    def __str__(self) -> str:
        """Return the name as it is stored and shown."""
        return f"{self.provider}:{self.model}" + (f"@{self.base_url.url}" if self.base_url else "")


def parse_name(text: str) -> ModelName:
    """Parse a model's name.

    Args:
        text: `provider:model` or `provider:model@base_url`. Provider and model may be empty.

    Raises:
        InputError: The text contains unprintable characters, or an address after the @ that is not a valid base URL.
    """
    if not text.isprintable():
        raise InputError(
            f"{_hide_secrets(text)!r} contains unprintable characters: a model's name must be printable text"
        )
    name, *rest = _BASE_URL.split(text, maxsplit=1)
    provider, _, model = name.partition(":")
    if rest:
        return ModelName(provider, model, parse_base_url(rest[0]))
    # Such a name would send texts and keys to the provider's own address. Folders may have any name.
    address = None if provider.lower() == HUGGINGFACE else _ADDRESS.search(model)
    if address or _MISTYPED.search(name):
        shown = re.sub(r"(?<=@).*(?=@)", "***", _hide_secrets(text))
        hint = _suggest_name(provider, address) if address else None
        raise InputError(
            f"{shown!r} has no valid base URL after the @: {hint or 'give one like http://localhost:8000/v1'}"
        )
    return ModelName(provider, model)


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
    if name.provider == HUGGINGFACE:
        if name.base_url is not None:
            raise InputError(
                f"the embedder {name} has a base URL, but {HUGGINGFACE} models run locally: base URLs are for servers, "
                f"as in openai:{name.model}@{name.base_url.url}"
            )
        if not is_hub_id(name.model):  # the name must be valid in any working directory
            return ModelName(HUGGINGFACE, os.path.abspath(os.path.expanduser(name.model)))  # noqa: PTH100, PTH111
    return name


def is_hub_id(model: str) -> bool:
    """Return whether a sentence-transformers model's name is one from the model hub, and not a folder."""
    return _HUB_ID.fullmatch(model) is not None


def parse_base_url(text: str) -> BaseURL:
    """Parse the address of a server.

    URLs that clients parse differently are refused, so that texts and keys go where the URL appears to point.

    Raises:
        InputError: It is not a URL, or has parts that a base URL cannot have.
    """
    url = text.strip()
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise InputError(f"{_hide_secrets(text)!r} is not a valid URL") from error
    fault = _find_fault(url, parts)
    if fault is not None:
        raise InputError(
            f"{_hide_secrets(text)!r} is not a valid base URL ({fault}): give one like http://localhost:8000/v1"
        )
    return BaseURL(url)


def connection_options(provider: str, base_url: BaseURL) -> dict[str, Any]:
    """Return the options that connect a provider's LangChain class to a server.

    OpenAI's and Anthropic's clients refuse to start without a key; your own server needs none.
    """
    options: dict[str, Any] = {"base_url": base_url.url}
    if provider in {"openai", "anthropic"} and not os.environ.get(KEY_VARIABLES[provider]):
        options["api_key"] = "none"
    return options


def drop_credentials(text: str) -> str:
    """Remove user names and passwords from the URLs in a text."""
    return CREDENTIALS.sub("", text)


def _suggest_name(provider: str, address: re.Match[str]) -> str | None:
    """Suggest the name that was meant, if that is a valid one."""
    scheme = "https" if address["domain"] else "http"
    url = f"{scheme}://{address.string[address.start() + 1 :]}"
    try:
        parse_base_url(url)
    except InputError:
        return None
    return f"did you mean {provider}:{address.string[: address.start()]}@{_hide_secrets(url)}?"


def _find_fault(url: str, parts: SplitResult) -> str | None:
    host = parts.netloc
    if parts.scheme not in _PORTS:
        return "it does not begin with http:// or https://"
    if not url.isprintable() or " " in url or "\\" in url:
        return "it contains white space, backslashes or unprintable characters"
    if "@" in host:
        return "it has a user or a password, which others could see: set the header Authorization instead"
    if not _HOST.fullmatch(host if parts.port is None else host.rpartition(":")[0]):
        return "its host is missing or not valid"
    if "?" in url or "#" in url:
        return "it has a query or a fragment"
    return None


def _hide_secrets(text: str) -> str:
    """Hide possible secrets in a URL that cannot be parsed."""
    return re.sub(r"(?<=\?).+", "***", re.sub(r"(?<=:/)(/?).*@", r"\1***@", text))
