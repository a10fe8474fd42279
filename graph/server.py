"""The graph and the middleware that `langgraph.json` names, for LangGraph Studio and the LangGraph API server.

The index comes from ARAG_INDEX, the model from ARAG_MODEL, else the built-in one; a run's context, which Studio shows
as a form, sets the rest. ARAG_USER_SCOPE names the field of authenticated users that holds the scope that each may see.

A development server has no authentication, and any page in the user's browser can reach it. So requests that come from
a foreign page, or under a host name that is not this machine's, are refused. Programs send no origin: they are let
through.
"""

from __future__ import annotations

import os
import re
import socket

from langgraph.runtime import get_runtime
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
    """Open the server's index."""
    index = os.environ.get(INDEX_VARIABLE)
    if not index:
        raise InputError(f"this server has no index: start it with {INDEX_VARIABLE} set to a folder or an address")
    return open_index(index)


def find_user_scope() -> Scope | None:
    """Return the scope of the run's user, which the server's authentication has set, or None if users have none."""
    field = os.environ.get(SCOPE_VARIABLE)
    if not field:
        return None
    server = get_runtime().server_info
    user = server.user if server is not None else None
    conditions = user[field] if user is not None and field in user else None
    try:
        return read_scope(conditions)
    except InputError as error:
        raise InputError(
            f"this server gives each user a scope ({SCOPE_VARIABLE}={field}), and this run's user has none that is "
            f"valid: {error}"
        ) from error


def refuse_foreign_pages(app: ASGIApp, allowed_origins: list[str]) -> ASGIApp:
    """Return an app that refuses requests of web pages other than its own, Studio and the allowed ones."""

    async def check(scope: ASGIScope, receive: Receive, send: Send) -> None:
        headers = Headers(raw=scope.get("headers", []))
        origin, host = headers.get("origin", ""), headers.get("host")
        if not origin or origin in {f"http://{host}", f"https://{host}", *allowed_origins} or _STUDIO.fullmatch(origin):
            await app(scope, receive, send)
        else:
            refusal = f"Pages from {origin!r} may not use this server: the origin is not in {ORIGINS_VARIABLE}."
            answer = WebSocketClose(1008) if scope["type"] == "websocket" else PlainTextResponse(refusal, 403)
            await answer(scope, receive, send)

    return check


def _split_list(variable: str) -> list[str]:
    return [part.strip().rstrip("/") for part in os.environ.get(variable, "").split(",") if part.strip()]


# The server provides its own checkpointer.
graph = build_graph(
    make_loader(os.environ.get(MODEL_VARIABLE) or EXTRACTIVE, open_server_index, find_user_scope=find_user_scope),
    name="arag",
)
hosts = [*_OWN_HOSTS, socket.gethostname(), *_split_list(HOSTS_VARIABLE)]
app = Starlette(
    middleware=[
        Middleware(TrustedHostMiddleware, allowed_hosts=hosts),
        Middleware(refuse_foreign_pages, allowed_origins=_split_list(ORIGINS_VARIABLE)),
    ]
)
