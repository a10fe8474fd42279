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
from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from langgraph.runtime import get_runtime
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as ASGIScope
from starlette.websockets import WebSocketClose

from arag.errors import InputError
from arag.graph.context import make_loader
from arag.graph.graph import build_graph
from arag.models.chat import EXTRACTIVE, MODEL_VARIABLE
from arag.retrieval.index import Index, open_index
from arag.retrieval.scope import Scope

INDEX_VARIABLE = "ARAG_INDEX"
SCOPE_VARIABLE = "ARAG_USER_SCOPE"
ORIGINS_VARIABLE = "ARAG_ORIGINS"
HOSTS_VARIABLE = "ARAG_HOSTS"

_STUDIO = re.compile(r"https://([a-z]+\.)?smith\.langchain\.com")
_INSIDE = "/noauth/"  # prefix of the root path when the server calls itself; no outside request has it


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
    if user is None or field not in user:
        raise InputError(
            f"this server gives each user a scope ({SCOPE_VARIABLE}={field}), and this run's user has none: the "
            "server's authentication must set it"
        )
    conditions = user[field]
    scope = Scope(**conditions) if isinstance(conditions, Mapping) else Scope()
    if scope == Scope():  # what a missing entry of the operator's own table may look like
        raise InputError(f"the user's {field} is not a scope: it needs `where`, `documents` or both")
    return scope


class Gate:
    """Refuses requests with origins or host names that the operator has not allowed."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._origins = _split_list(ORIGINS_VARIABLE)
        self._hosts = {"localhost", socket.gethostname().lower(), *_split_list(HOSTS_VARIABLE)}

    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        """Answer a refused request, and pass on any other."""
        is_outside = not f"{scope.get('root_path', '')}/".startswith(_INSIDE)
        refusal = self._find_refusal(scope) if is_outside and scope["type"] in {"http", "websocket"} else ""
        answer = self._app
        if refusal:
            is_socket = scope["type"] == "websocket"
            answer = WebSocketClose(1008, refusal) if is_socket else PlainTextResponse(refusal, 403)
        await answer(scope, receive, send)

    def _find_refusal(self, scope: ASGIScope) -> str:
        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) > 1 or len(origins) > 1:
            return "A request must not have more than one Host or Origin header."
        host = hosts[0].lower() if hosts else ""
        if not self._is_own(host):
            return f"This server does not accept the host {host!r}: name it in {HOSTS_VARIABLE}, or use localhost."
        origin = origins[0].lower() if origins else f"http://{host}"
        own = {f"http://{host}", f"https://{host}", *self._origins}
        if origin in own or _STUDIO.fullmatch(origin):
            return ""
        return f"Pages from {origin!r} may not use this server: the origin is not in {ORIGINS_VARIABLE}."

    def _is_own(self, host: str) -> bool:
        """Return whether a host is this machine: a page can make a name resolve to it, but not an IP address."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
            return name in self._hosts or host in self._hosts or bool(ip_address(name))
        except ValueError:
            return False


def _split_list(variable: str) -> set[str]:
    parts = (part.strip().rstrip("/").lower() for part in os.environ.get(variable, "").split(","))
    return {part for part in parts if part}


# The server provides its own checkpointer.
graph = build_graph(
    make_loader(os.environ.get(MODEL_VARIABLE) or EXTRACTIVE, open_server_index, find_user_scope=find_user_scope),
    name="arag",
)
app = Starlette(middleware=[Middleware(Gate)])
