"""The ways to reach an MCP server: stdin and stdout for one client, HTTP for several."""

from __future__ import annotations

import hmac
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from types import FrameType
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from arag.errors import InputError
from arag.graph.server import Gate

_PATH = "/mcp"
_LAST_SECONDS = 2  # for open requests, when the server stops


async def serve_stdio(server: Server[Any]) -> None:
    """Serve the client at stdin and stdout until it leaves."""
    # The SDK diverts the file descriptor; what `print` has buffered by the end would still reach the client.
    async with stdio_server() as (received, sent):
        with redirect_stdout(sys.stderr):
            await server.run(received, sent, server.create_initialization_options())


def serve_http(server: Server[Any], host: str, port: int, token: str | None, on_ready: Callable[[str], None]) -> None:
    """Serve over streamable HTTP; `serve_mcp` explains the arguments.

    Raises:
        InputError: The address cannot be used.
        KeyboardInterrupt: Ctrl-C was pressed.
    """
    # The gate checks Host and Origin, as it does for the other server.
    settings = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = server.streamable_http_app(streamable_http_path=_PATH, transport_security=settings)
    if token is not None:
        app.add_middleware(_TokenCheck, token=token)
    app.add_middleware(Gate)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise InputError(f"cannot listen at {host}, port {port}: {error}") from error
    with listening:
        name = f"[{host}]" if family == socket.AF_INET6 else host
        on_ready(f"http://{name}:{listening.getsockname()[1]}{_PATH}")
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=_LAST_SECONDS)
        served = _Server(config)
        served.run(sockets=[listening])
    if served.interrupted:
        raise KeyboardInterrupt  # a task that is ending can lose what uvicorn raises for Ctrl-C


class _Server(uvicorn.Server):
    """A server that knows whether Ctrl-C ended it."""

    interrupted = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End the server."""
        self.interrupted = self.interrupted or sig == signal.SIGINT
        super().handle_exit(sig, frame)


class _TokenCheck:
    """Refuses requests without the token.

    Args:
        app: The application behind it.
        token: The token.
    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a refused request, and pass on any other."""
        if scope["type"] == "http":
            given = Headers(scope=scope).get("authorization", "")
            if not hmac.compare_digest(given.encode(), self._expected):
                refusal = PlainTextResponse(
                    "Send the server's token: Authorization: Bearer <token>.", 401, {"WWW-Authenticate": "Bearer"}
                )
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)
