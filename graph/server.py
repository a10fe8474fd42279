"""The graph and the middleware that `langgraph.json` names, for LangGraph Studio and the LangGraph API server.

ARAG_INDEX names the index, ARAG_MODEL the model; without it, the built-in one is used. A run's context, which Studio
shows as a form, sets the rest. ARAG_USER_SCOPE names the field of authenticated users that holds each user's scope.

A development server has no authentication, and any page in the user's browser can reach it. So requests are refused if
they come from a foreign page or use a host name that is not this machine's. Programs send no origin and are not
affected.
"""

from __future__ import annotations

import json
import os
import re
import socket
from dataclasses import dataclass

from langgraph.runtime import get_runtime
from starlette import status
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as ASGIScope
from starlette.websockets import WebSocketClose

from arag.errors import InputError
from arag.graph.context import make_loader
from arag.graph.graph import build_graph
from arag.models.names import EXTRACTIVE, MODEL_VARIABLE
from arag.retrieval.index import Index, open_index
from arag.retrieval.scope import Scope, read_scope

INDEX_VARIABLE = "ARAG_INDEX"
SCOPE_VARIABLE = "ARAG_USER_SCOPE"
ORIGINS_VARIABLE = "ARAG_ORIGINS"
HOSTS_VARIABLE = "ARAG_HOSTS"

_STUDIO = re.compile(r"https://([a-z]+\.)?smith\.langchain\.com")
_OWN_HOSTS = ["localhost", "127.0.0.1", "[::1]", "api"]  # the server calls itself as "api"


def open_server_index() -> Index:
    """Open the server's index.

    Raises:
        InputError: The environment does not name an index.
    """
    address = os.environ.get(INDEX_VARIABLE)
    if not address:
        raise InputError(f"this server has no index: start it with {INDEX_VARIABLE} set to a folder or an address")
    return open_index(address)


def find_user_scope() -> Scope | None:
    """Return the scope of the run's user, as the server's authentication has set it; None if users have no scopes.

    Raises:
        InputError: Users have scopes, and this one has none that is valid.
    """
    field = os.environ.get(SCOPE_VARIABLE)
    if not field:
        return None
    conditions = None
    server = get_runtime().server_info
    if server is not None and server.user is not None and field in server.user:
        conditions = server.user[field]
    try:
        return read_scope(conditions)
    except InputError as error:
        raise InputError(
            f"this server gives each user a scope ({SCOPE_VARIABLE}={field}), and this run's user has none that is "
            f"valid: {error}"
        ) from error


@dataclass(frozen=True)
class AllowedPages:
    """The foreign pages that may use the server."""

    origins: frozenset[str]
    patterns: tuple[re.Pattern[str], ...]
    """Of other origins."""

    def allow(self, origin: str) -> bool:
        """Return whether pages of an origin may use the server."""
        return origin in self.origins or any(pattern.fullmatch(origin) for pattern in self.patterns)


def find_allowed_pages() -> AllowedPages:
    """Return the pages that the environment and `http.cors` of langgraph.json name; `*` names none."""
    cors = json.loads(os.environ.get("LANGGRAPH_HTTP") or "{}").get("cors") or {}
    origins = {*_read_list(ORIGINS_VARIABLE), *_read_list("CORS_ALLOW_ORIGINS"), *cors.get("allow_origins", ())}
    patterns = [_STUDIO]
    if cors.get("allow_origin_regex"):
        patterns.append(re.compile(cors["allow_origin_regex"]))
    return AllowedPages(frozenset(origins), tuple(patterns))


def refuse_foreign_pages(app: ASGIApp, allowed: AllowedPages) -> ASGIApp:
    """Return an app that refuses requests of web pages other than its own and those that are allowed."""

    async def check(scope: ASGIScope, receive: Receive, send: Send) -> None:
        headers = Headers(raw=scope.get("headers", []))
        origin = headers.get("origin", "")
        host = headers.get("host")
        if origin in {"", f"http://{host}", f"https://{host}"} or allowed.allow(origin):
            answer: ASGIApp = app
        elif scope["type"] == "websocket":
            answer = WebSocketClose(status.WS_1008_POLICY_VIOLATION)
        else:
            refusal = (
                f"Pages from {origin!r} may not use this server: the origin is neither in {ORIGINS_VARIABLE} nor in "
                "http.cors of langgraph.json."
            )
            answer = PlainTextResponse(refusal, status.HTTP_403_FORBIDDEN)
        await answer(scope, receive, send)

    return check


def _read_list(variable: str) -> list[str]:
    """Return the items of an environment variable, which are separated by commas, without slashes at their ends."""
    items = []
    for part in os.environ.get(variable, "").split(","):
        item = part.strip()
        if item:
            items.append(item.rstrip("/"))
    return items


# The server provides its own checkpointer.
loader = make_loader(
    os.environ.get(MODEL_VARIABLE) or EXTRACTIVE,
    open_server_index,
    find_user_scope=find_user_scope,
)
graph = build_graph(loader, name="arag")
hosts = [*_OWN_HOSTS, socket.gethostname(), *_read_list(HOSTS_VARIABLE)]
app = Starlette(
    middleware=[
        Middleware(TrustedHostMiddleware, allowed_hosts=hosts),
        Middleware(refuse_foreign_pages, allowed=find_allowed_pages()),
    ]
)
