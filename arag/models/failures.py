"""Why a call of a model failed: one sentence with the cause and the remedy. A table, as clients and servers differ."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any
from urllib.parse import urlsplit

from langchain_core.exceptions import ContextOverflowError

from arag.models.names import key_variable
from arag.models.pauses import asked_pause, find_statuses, is_connection_error, is_timeout, list_causes
from arag.models.servers import Server
from arag.models.time_limit import TimeLimitError
from arag.text.normalise import count, shorten
from arag.text.visible import visible_line

_MAX_SAID = 300  # characters of a server's own words
_MAX_NAMES = 8  # models that a message names
_PAGE = re.compile(r"<!doctype html|<html[\s>]", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>([^<]*)", re.IGNORECASE)
_OVERFLOW = re.compile(
    r"context[ _-]?(length|window|size)|maximum context|prompt is too long|input is too long|too many (input )?tokens|"
    r"exceed_context_size|exceeds? the (available )?context|reduce the length|no user query found|"
    r"input (tokens?|length).{0,40}(exceed|longer|too)|ContextWindowExceeded|request (too large|entity too large)",
    re.IGNORECASE,
)
_WRONG_MODEL = re.compile(
    r"model.{0,80}(not found|does not exist|doesn't exist|not exist|no such|not available|not loaded|unknown)|"
    r"(unknown|no such|invalid|not a valid) model|model_not_found",
    re.IGNORECASE | re.DOTALL,
)
_WRONG_PATH = re.compile(r"unexpected endpoint|unknown (request )?(url|endpoint|path)|file not found", re.IGNORECASE)
_NO_REPLY = re.compile(
    r"no generations found|null value for 'choices'|missing 'choices'|list index out of range|expecting value|"
    r"unexpected response type|'choices'|has no attribute|is not subscriptable|not iterable|Error -3 while decompress|"
    r"decompress|content-encoding",
    re.IGNORECASE,
)
_BROKEN = re.compile(
    r"disconnected|connection (error|reset|closed|broken|aborted)|closed connection|peer closed|EOF",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Cause:
    """A kind of failure: its words or HTTP statuses, and what the message says."""

    words: str
    says: str
    statuses: frozenset[int] = frozenset()

    def matches(self, text: str, statuses: set[int]) -> bool:
        if self.statuses and self.statuses.isdisjoint(statuses):
            return False
        return re.search(self.words, text, re.IGNORECASE | re.DOTALL) is not None


def _on(*statuses: int) -> frozenset[int]:
    return frozenset(statuses)


# The first row that matches decides.
_CAUSES = (
    _Cause(
        r"does not support tools|support tool use|enable-auto-tool-choice|tool-call-parser|requires? --jinja|"
        r"roles must alternate|unable to generate parser",
        "{model} cannot call tools there: choose a model that can, or start vLLM with --enable-auto-tool-choice and "
        "--tool-call-parser, llama.cpp with --jinja and a chat template that has tools ({said})",
    ),
    _Cause(
        r"CERTIFICATE_VERIFY_FAILED", "the certificate of {address} is not trusted: name its CA's file in SSL_CERT_FILE"
    ),
    _Cause(
        r"WRONG_VERSION_NUMBER|RECORD_LAYER_FAILURE|UNKNOWN_PROTOCOL", "{address} does not speak TLS: write http://"
    ),
    _Cause(
        r"HTTP request (was sent )?to (an )?HTTPS|plain HTTP request",
        "{address} speaks TLS: write https://",
    ),
    _Cause(
        r"Name or service not known|nodename nor servname|Temporary failure in name|getaddrinfo|No address associated",
        "the host of {address} is not known: correct the address, or check the network",
    ),
    _Cause(
        r"Connection refused|actively refused|All connection attempts failed",
        "no server listens at {address}: start it, or correct the address",
    ),
    _Cause(
        r"(?=.*(no|network is) (route|unreachable))",
        "{address} cannot be reached: check the network and the address",
    ),
    _Cause(
        r"Illegal header value|'ascii' codec can't encode",
        "the key or a header has a character that cannot be sent: correct {variable}",
    ),
    _Cause(r"quota|credit balance|billing", "no credit is left there: {said}"),
    _Cause(r"", "the key is refused: check {variable} ({said})", _on(401)),
    _Cause(r"", "the server denies access: check {variable} and what it may use ({said})", _on(403)),
    _Cause(
        r"requires more system memory|out of memory|cudaMalloc",
        "the server has too little memory for {model}: choose a smaller model, or a smaller num_ctx ({said})",
    ),
    _Cause(r"loading model", "the server is still loading {model}: ask again in a moment"),
    _Cause(r"\boverloaded\b", "the server has no room for the question now: ask again later ({said})"),
    _Cause(r"", "the server has no room for the question now: ask again later ({said})", _on(429, 529)),
    _Cause(
        r"'NoneType' object has no attribute 'model_dump'",
        "{address} sent null in a stream: add --model-option disable_streaming=true",
    ),
    _Cause(
        r"validation error for \w*Response|tool_use_failed|error parsing tool call",
        "{model} wrote a call that its server cannot read: ask again, or choose another model ({said})",
    ),
)


def is_overflow(error: BaseException) -> bool:
    """Return whether a call failed because its prompt is longer than the model's context."""
    for link in list_causes(error):
        if isinstance(link, ContextOverflowError):
            return True
        statuses = set(find_statuses(link))
        if statuses and statuses.isdisjoint({429}) and _OVERFLOW.search(_full_text(link)):
            return True
    return False


def describe_failure(error: BaseException, server: Server) -> str:
    """Return why a call failed and what helps, in one sentence."""
    failure = _Failure.read(error, server)
    reason = _find_reason(failure)
    if reason is not None:
        return reason
    if not failure.statuses:
        return failure.said
    status = min(failure.statuses)
    if status <= 0:  # Ollama's client has -1 for an error in a stream
        return f"the server said: {failure.said}"
    return f"the server replied with status {status}: {failure.said}"


def add_reason(error: Exception, server: Server) -> None:
    """Add to the text of a client's error why the call failed and what helps, if that is known.

    Its class and its fields stay. Errors that a server or the network has no part in stay as they are.
    """
    failure = _Failure.read(error, server)
    is_of_network = bool(failure.statuses) or any(is_connection_error(link) for link in failure.links)
    reason = _find_reason(failure) if is_of_network else None
    if reason is None:
        return
    said = str(error)
    if error.args and said == str(error.args[0]):
        error.args = (f"{said.rstrip('.')}: {reason}", *error.args[1:])
    else:  # it writes its text itself
        error.add_note(reason)


def _find_reason(failure: _Failure) -> str | None:
    for describe in _DESCRIBERS:
        sentence = describe(failure)
        if sentence is not None:
            return sentence
    return None


@dataclass(frozen=True)
class _Failure:
    server: Server
    links: list[BaseException]
    """The error and its causes."""
    text: str
    """All that they say, bodies of replies included."""
    statuses: set[int]
    said: str
    """The server's own words, on one line."""

    @classmethod
    def read(cls, error: BaseException, server: Server) -> _Failure:
        links = list(list_causes(error))
        return cls(
            server=server,
            links=links,
            text=" ".join(_full_text(link) for link in links),
            statuses={status for link in links for status in find_statuses(link)},
            said=_find_words(links),
        )

    @property
    def address(self) -> str:
        return self.server.base_url or f"the server of {self.server.model}"

    @property
    def is_page(self) -> bool:
        return _PAGE.search(self.text) is not None

    @property
    def is_elsewhere(self) -> bool:
        """Whether something else than the model has replied."""
        if self.is_page or not self.statuses.isdisjoint({404, 405}):
            return True
        return _WRONG_PATH.search(self.text) is not None or _NO_REPLY.search(self.text) is not None


def _describe_time(failure: _Failure) -> str | None:
    for link in failure.links:
        if isinstance(link, TimeLimitError):
            longer = max(60, 2 * int(link.seconds or 0))
            return f"there was {link}: allow more with the option timeout, such as --model-option timeout={longer}"
        if is_timeout(link):
            return "there was no complete reply within the client's own limit: allow more with its option timeout"
    return None


def _describe_overflow(failure: _Failure) -> str | None:
    if is_overflow(failure.links[0]):
        return f"the prompt is longer than the context of {failure.server.model}: give it a longer one ({failure.said})"
    return None


def _describe_wrong_model(failure: _Failure) -> str | None:
    if failure.statuses.isdisjoint({400, 404, 422}) or not _WRONG_MODEL.search(failure.text):
        return None
    server = failure.server
    names = server.list_models()
    if not names:
        return f"the server has no model {server.model}: {failure.said}"
    near = get_close_matches(server.model, names, n=_MAX_NAMES, cutoff=0.4)
    shown = list(dict.fromkeys([*near, *names]))[:_MAX_NAMES]
    more = ", ..." if len(names) > len(shown) else ""
    return f"the server has no model {server.model}; it has {', '.join(shown)}{more}"


def _describe_cause(failure: _Failure) -> str | None:
    """Return the sentence of the first row that matches."""
    for cause in _CAUSES:
        is_by_page = failure.is_page and cause.statuses  # another server's page: see `_describe_wrong_address`
        if cause.matches(failure.text, failure.statuses) and not is_by_page:
            return _fill(cause.says, failure)
    return None


def _fill(says: str, failure: _Failure) -> str:
    server = failure.server
    sentence = says.format(
        model=server.model,
        address=failure.address,
        said=failure.said,
        variable=key_variable(server.provider),
    )
    is_connection = not failure.statuses and "{address}" in says
    proxy = _find_proxy(server) if is_connection else None
    return f"{sentence} (through the proxy of {proxy})" if proxy else sentence


def _describe_wait(failure: _Failure) -> str | None:
    waits = [asked_pause(link) for link in failure.links]
    longest = max((wait for wait in waits if wait), default=None)
    if longest is None:
        return None
    return f"the server asks to wait {count(int(longest), 'second')}: {failure.said}"


def _describe_wrong_address(failure: _Failure) -> str | None:
    if not failure.is_elsewhere:
        return None
    server = failure.server
    others = failure.statuses - {200, 404, 405}
    if failure.is_page and others:
        return f"{failure.address} replied with a web page, not the model: {failure.said} (status {min(others)})"
    right = server.find_address()
    if right is not None:
        return f"the model is not at {failure.address}, but at {right}: use that address"
    kind = "a web page" if failure.is_page else "no chat completion"
    if server.base_url is None:
        return f"the reply was {kind}: {failure.said}"
    sentence = f"{failure.address} replied with {kind} ({failure.said}): correct the address"
    has_usual_end = urlsplit(server.base_url).path.rstrip("/").endswith("/v1")
    if server.provider == "openai" and not has_usual_end:
        sentence += "; it usually ends with /v1"
    return sentence


def _describe_broken(failure: _Failure) -> str | None:
    if failure.statuses or not _BROKEN.search(failure.text):
        return None
    server = failure.server
    proxy = _find_proxy(server)
    if proxy:
        return f"the connection to {failure.address} failed: check the proxy of {proxy}, or set NO_PROXY"
    if failure.address.lower().startswith("http://") and server.speaks_tls():
        return f"{failure.address} speaks TLS: write https://"
    return f"{failure.address} closed the connection without a complete reply: see its log, or ask again"


_DESCRIBERS = (
    _describe_time,
    _describe_overflow,
    _describe_wrong_model,
    _describe_wait,
    _describe_cause,
    _describe_wrong_address,
    _describe_broken,
)


def _full_text(error: BaseException) -> str:
    response = getattr(error, "response", None)
    try:
        page = str(getattr(response, "text", "") or "")
    except (RuntimeError, OSError):  # a stream that was not read
        page = ""
    return f"{error} {getattr(error, 'body', '') or ''} {page}"


def _find_words(links: list[BaseException]) -> str:
    """Return the server's own words, on one line."""
    words = _find_message(links) or _find_title(_full_text(links[0]))
    if not words:
        words = str(links[0]).strip().rstrip(".") or type(links[0]).__name__
    return shorten(visible_line(words), _MAX_SAID)


def _find_message(links: list[BaseException]) -> str:
    for link in links:
        bodies = [getattr(link, "body", None), *link.args[:1]]
        for body in bodies:
            words = _read_message(body)
            if words:
                return words
    return ""


def _find_title(text: str) -> str:
    """Return the title of a web page; nothing for other texts."""
    title = _TITLE.search(text)
    if title and title[1].strip():
        return title[1].strip()
    return "a page without a title" if _PAGE.search(text) else ""


def _read_message(body: Any) -> str:
    """Return the message of a JSON error, whose key differs from server to server."""
    if isinstance(body, list) and body:
        return _read_message(body[0])
    if not isinstance(body, Mapping):
        return ""
    for key in ("error", "message", "detail", "msg"):
        value = body.get(key)
        words = value.rstrip(".") if isinstance(value, str) else _read_message(value)
        if words:
            return words
    return ""


def _find_proxy(server: Server) -> str | None:
    """Return the proxy's name in the environment through which the server is reached."""
    split = urlsplit(server.base_url or "https://")
    host = split.hostname or ""
    proxies = urllib.request.getproxies()
    if host and urllib.request.proxy_bypass(host):
        return None
    for name in (split.scheme, "all"):
        if name in proxies:
            return f"{name.upper()}_PROXY"
    return None
