"""Middleware in front of all routes of the LangGraph API server: it refuses requests from foreign web pages.

A development server has no authentication, and any page in the user's browser can reach it. A browser sends the page's
origin (`Origin`) and the host name that the page used (`Host`); a page may use a host name of its own that resolves to
this machine. Other programs send no origin and are let through.

`langgraph.json` names this module's application; the server adds its routes to it. The server's own CORS headers allow
any origin, but refused requests do not get that far.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

ORIGINS_VARIABLE = "ARAG_ORIGINS"
HOSTS_VARIABLE = "ARAG_HOSTS"

_STUDIO = re.compile(r"https://([a-z]+\.)?smith\.langchain\.com")
_INSIDE = "/noauth/"  # prefix of the root path when the server calls itself; no outside request has it


class Gate:
    """Refuses requests with origins or host names that the operator has not allowed.

    Args:
        app: The application behind it.
        environment: The operator's environment variables.
    """

    def __init__(self, app: ASGIApp, environment: Mapping[str, str] = os.environ) -> None:
        self._app = app
        self._origins = _split_list(environment, ORIGINS_VARIABLE)
        self._hosts = {"localhost", socket.gethostname().lower(), *_split_list(environment, HOSTS_VARIABLE)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a refused request, and pass on any other."""
        refusal = None
        if scope["type"] in {"http", "websocket"} and not f"{scope.get('root_path', '')}/".startswith(_INSIDE):
            refusal = self._find_refusal(Headers(scope=scope))
        if refusal is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await WebSocketClose(1008, refusal)(scope, receive, send)
        else:
            await PlainTextResponse(refusal, 403)(scope, receive, send)

    def _find_refusal(self, headers: Headers) -> str | None:
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) > 1 or len(origins) > 1:
            return "A request must not have more than one Host or Origin header."
        host = hosts[0].lower() if hosts else ""
        if not self._is_own(host):
            return (
                f"This server does not accept the host {host!r}. Use localhost or an IP address, or start it with "
                f"{HOSTS_VARIABLE} set to that name (separate several with commas)."
            )
        if not origins:
            return None
        origin = origins[0].lower()
        own = origin in {f"http://{host}", f"https://{host}"}
        if own or origin in self._origins or _STUDIO.fullmatch(origin):
            return None
        return (
            f"Pages from {origin!r} may not use this server. To allow them, start it with {ORIGINS_VARIABLE} set to "
            "that origin (separate several with commas)."
        )

    def _is_own(self, host: str) -> bool:
        """Return whether a host is this machine: a page can make a name resolve to it, but not an IP address."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name in self._hosts or host in self._hosts:
            return True
        try:
            ip_address(name)
        except ValueError:
            return False
        return True


def _split_list(environment: Mapping[str, str], variable: str) -> set[str]:
    parts = (part.strip().rstrip("/").lower() for part in environment.get(variable, "").split(","))
    return {part for part in parts if part}


app = Starlette(middleware=[Middleware(Gate)])
