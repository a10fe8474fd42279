"""Questions to a model's server, to say why a call failed: its right address, its models, their context, TLS.

Only the address that the user gave is asked, and other paths of it; keys go only to that address itself.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

_SECONDS = 3.0  # for one question
_OK = 200
_WRONG = {404, 405}


@dataclass(frozen=True)
class Protocol:
    """Where a provider's protocol has what, below the base URL."""

    chat: str
    models: str
    listed: str
    name: str
    bases: tuple[str, ...]
    """Paths at which servers usually have the protocol."""


_OPENAI = Protocol("/chat/completions", "/models", "data", "id", ("/v1", "/api/v1", "/openai/v1", "/api"))
PROTOCOLS = {
    "openai": _OPENAI,
    "anthropic": Protocol("/v1/messages", "/v1/models", "data", "id", ("", "/anthropic")),
    "ollama": Protocol("/api/chat", "/api/tags", "models", "name", ("",)),
}
_ENDINGS = ("/chat/completions", "/completions", "/responses", "/messages", "/v1", "/api/chat", "/api")
_LOCAL_DOMAINS = (".local", ".internal", ".lan")
_LENGTHS = ("max_model_len", "loaded_context_length", "max_context_length", "context_length", "context_window", "n_ctx")


@dataclass(frozen=True)
class Server:
    """A model at a server, as its user named them."""

    provider: str
    model: str
    base_url: str | None
    key: str | None = None

    @property
    def is_local(self) -> bool:
        """Whether it runs on this machine or in its network."""
        host = urlsplit(self.base_url or "").hostname or ""
        if not host:
            return self.provider == "ollama"
        if "." not in host and ":" not in host:
            return True
        if host.endswith(_LOCAL_DOMAINS):
            return True
        with suppress(ValueError):
            return ipaddress.ip_address(host).is_private
        return False

    @property
    def _protocol(self) -> Protocol | None:
        return PROTOCOLS.get(self.provider) if self.base_url else None

    @property
    def _base(self) -> str:
        return (self.base_url or "").rstrip("/")

    def find_address(self) -> str | None:
        """Return the base URL at which the server has the protocol, if it is another one than the user gave."""
        protocol = self._protocol
        if protocol is None or _has_protocol(self._base + protocol.chat):
            return None
        for base in self._list_bases(protocol):
            if _has_protocol(base + protocol.chat):
                return base
        return None

    def _list_bases(self, protocol: Protocol) -> list[str]:
        """Return the base URLs that the user may have meant: below the given path, and below none."""
        split = urlsplit(self._base)
        origin = f"{split.scheme}://{split.netloc}"
        path = split.path
        for ending in _ENDINGS:
            path = path.removesuffix(ending).rstrip("/")
        bases: dict[str, None] = {}
        for root in (f"{origin}{path}", origin):
            for base in protocol.bases:
                bases[root + base] = None
        bases.pop(self._base, None)
        return list(bases)

    def list_models(self) -> list[str]:
        """Return the names of the models that the server has; none if it does not say."""
        return [entry.name for entry in self._list_entries()]

    def find_context_length(self) -> int | None:
        """Return how many tokens the model's context has; None if the server does not say."""
        entries = self._list_entries()
        own = [entry for entry in entries if entry.name == self.model] or entries
        if len(own) != 1:
            return None
        for name in _LENGTHS:
            length = own[0].fields.get(name)
            if isinstance(length, int) and length > 0:
                return length
        return None

    def _list_entries(self) -> list[_Entry]:
        """Return the server's list of models."""
        protocol = self._protocol
        if protocol is None:
            return []
        headers = {}
        if self.key:
            headers = {"Authorization": f"Bearer {self.key}", "x-api-key": self.key}
        answer = _request("GET", self._base + protocol.models, headers=headers)
        listed = answer.body.get(protocol.listed) if answer else None
        entries = []
        for entry in listed if isinstance(listed, list) else []:
            if isinstance(entry, Mapping):
                meta = entry.get("meta")  # llama.cpp has the length there
                inner = meta if isinstance(meta, Mapping) else {}
                entries.append(_Entry(str(entry.get(protocol.name)), {**inner, **entry}))
        return entries

    def speaks_tls(self) -> bool:
        """Return whether the server speaks TLS at its port."""
        split = urlsplit(self.base_url or "")
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        try:
            with socket.create_connection((split.hostname or "", split.port or 443), _SECONDS) as connection:
                context.wrap_socket(connection, server_hostname=split.hostname).close()
        except (OSError, ValueError):
            return False
        return True


@dataclass(frozen=True)
class _Entry:
    """A model in a server's list."""

    name: str
    fields: Mapping[str, Any]


def _has_protocol(url: str) -> bool:
    """Return whether there is something at a path: it refuses an empty request, which costs nothing, in JSON."""
    answer = _request("POST", url, json={})
    if answer is None or answer.status in _WRONG:
        return False
    return answer.status != _OK or "error" not in answer.body


@dataclass(frozen=True)
class _Answer:
    """A JSON object with which a server replied."""

    status: int
    body: Mapping[str, Any]


def _request(method: str, url: str, **options: Any) -> _Answer | None:
    """Return a server's reply; None for anything else than a JSON object, such as a web page."""
    import httpx

    try:
        response = httpx.request(method, url, timeout=_SECONDS, **options)
        body = response.json()
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError):
        return None
    return _Answer(response.status_code, body) if isinstance(body, Mapping) else None
