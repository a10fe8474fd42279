"""Questions to a model's server, to say why a call failed: its right address, its models, their context, TLS.

Only the address that the user gave is asked, and other paths of it; keys go only to that address itself.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
from collections.abc import Iterator, Mapping
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
        if self.provider == "ollama" and not host:
            return True
        if host == "localhost" or host.endswith((".local", ".internal", ".lan")) or (host and "." not in host):
            return True
        with suppress(ValueError):
            return ipaddress.ip_address(host).is_private
        return False

    def find_address(self) -> str | None:
        """Return the base URL at which the server has the protocol, if it is another one than the user gave."""
        protocol = PROTOCOLS.get(self.provider)
        if protocol is None or self.base_url is None:
            return None
        if _has_protocol(self.base_url.removesuffix("/") + protocol.chat):
            return None
        bases = self._list_bases(protocol)
        return next((base for base in bases if _has_protocol(base + protocol.chat)), None)

    def _list_bases(self, protocol: Protocol) -> Iterator[str]:
        given = (self.base_url or "").rstrip("/")
        split = urlsplit(given)
        origin = f"{split.scheme}://{split.netloc}"
        path = split.path.rstrip("/")
        for ending in _ENDINGS:
            path = path.removesuffix(ending).rstrip("/")
        bases = [f"{origin}{path}{base}" for base in protocol.bases]
        bases += [f"{origin}{base}" for base in protocol.bases]
        for base in dict.fromkeys(bases):
            if base != self.base_url:
                yield base

    def list_models(self) -> list[str]:
        """Return the names of the models that the server has; none if it does not say."""
        protocol = PROTOCOLS.get(self.provider)
        return [] if protocol is None else [str(entry.get(protocol.name)) for entry in self._list_entries()]

    def find_context_length(self) -> int | None:
        """Return how many tokens the model's context has; None if the server does not say."""
        entries = self._list_entries()
        names = [entry.get("id") for entry in entries]
        if self.model in names:
            entries = [entries[names.index(self.model)]]
        if len(entries) != 1:
            return None
        (entry,) = entries
        meta = entry.get("meta")
        fields = {**meta, **entry} if isinstance(meta, Mapping) else entry
        lengths = [fields.get(name) for name in _LENGTHS]
        return next((length for length in lengths if isinstance(length, int) and length > 0), None)

    def _list_entries(self) -> list[Mapping[str, Any]]:
        protocol = PROTOCOLS.get(self.provider)
        if protocol is None or self.base_url is None:
            return []
        headers = {}
        if self.key:
            headers = {"Authorization": f"Bearer {self.key}", "x-api-key": self.key}
        answer = _request("GET", self.base_url.rstrip("/") + protocol.models, headers=headers)
        if answer is None or answer.body is None:
            return []
        entries = answer.body.get(protocol.listed)
        return [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []

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


def _has_protocol(url: str) -> bool:
    """Return whether there is something at a path: it refuses an empty request, which costs nothing, in JSON."""
    answer = _request("POST", url, json={})
    if answer is None or answer.body is None or answer.status in _WRONG:
        return False
    return answer.status != _OK or "error" not in answer.body


@dataclass(frozen=True)
class _Answer:
    status: int
    body: Mapping[str, Any] | None
    """The JSON object; None for anything else, such as a web page."""


def _request(method: str, url: str, **options: Any) -> _Answer | None:
    import httpx

    try:
        response = httpx.request(method, url, timeout=_SECONDS, **options)
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError):
        return None
    body = None
    with suppress(ValueError):
        body = response.json()
    return _Answer(response.status_code, body if isinstance(body, Mapping) else None)
