"""An index as a server for agents of other programs, over the Model Context Protocol (MCP).

The package `mcp` is an extra: it is imported when a server is made.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from langchain_core.language_models import BaseChatModel

from arag.errors import InputError
from arag.retrieval.index import Index

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

TOKEN_VARIABLE = "ARAG_MCP_TOKEN"  # noqa: S105 - a variable's name
DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8765


def make_mcp_server(index: Index, *, model: str | BaseChatModel | None = None, memory: bool = True) -> Server[Any]:
    """Make an MCP server for an index: the SDK's `Server`, to run with any of its transports.

    It offers the three retrieval tools, with the schemas and texts that the agent's model gets, and the documents as
    resources `arag://documents/{id}`. Errors are results with `isError`, which a model can correct.

    Args:
        index: The index. It must stay open while the server runs.
        model: A chat model, or a string for `load_model`: then there is also the tool `ask`, for which the agent
            answers a question.
        memory: Whether searches leave out what the session was shown before. A client that
            serves several conversations in one session needs False. After ten minutes without a call, and over HTTP in
            protocol versions without sessions, nothing is left out. A read never leaves anything out.

    Raises:
        InputError: The package `mcp` is not installed.
        ModelError: The model string is not valid, or the model cannot be created.

    Example:
        >>> server = make_mcp_server(index, model="extractive")
        >>> server.name
        'arag'
    """
    with _needing_mcp():
        from arag.serving.mcp_handlers import Service
    return Service(index, model, memory=memory).server


def serve_mcp(
    index: Index,
    *,
    model: str | BaseChatModel | None = None,
    memory: bool = True,
    http: bool = False,
    host: str = DEFAULT_HOST,
    port: int = DEFAULT_PORT,
    token: str | None = None,
    on_ready: Callable[[str], None] | None = None,
) -> None:
    """Serve an index over MCP until the client leaves, or until Ctrl-C.

    Args:
        index: The index.
        model: A chat model, or a string for `load_model`, for the tool `ask`; without it, there is no such tool.
        memory: Whether searches leave out what the session was shown before; see `make_mcp_server`.
        http: Serve over streamable HTTP instead of stdin and stdout. Requests from web pages, and under host names that
            are not this machine's, are refused unless ARAG_ORIGINS and ARAG_HOSTS list them.
        host: The address to listen at.
        port: The port; 0 for any that is free.
        token: What clients must send as `Authorization: Bearer <token>`.
        on_ready: Called with the server's URL when it listens.

    Raises:
        InputError: The package `mcp` is not installed, the token is not valid, the address cannot be used, or other
            machines could reach it without a token.
        ModelError: The model string is not valid, or the model cannot be created.

    Example:
        >>> serve_mcp(index, http=True, host="0.0.0.0")
        Traceback (most recent call last):
            ...
        arag.errors.InputError: other machines can reach 0.0.0.0: ...
    """
    if http:
        _check_access(host, token)
    with redirect_stdout(sys.stderr):  # stdout is the client's
        server = make_mcp_server(index, model=model, memory=memory)
    import anyio

    from arag.serving.mcp_transports import serve_http, serve_stdio

    if http:
        serve_http(server, host, port, token, on_ready or (lambda _: None))
    else:
        anyio.run(serve_stdio, server)


@contextmanager
def _needing_mcp() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"mcp", "mcp_types"}:
            raise
        raise InputError("an MCP server needs the package mcp: pip install 'langgraph-arag[mcp]'") from error


def _check_access(host: str, token: str | None) -> None:
    """Refuse a server that other machines could use without a token."""
    if token is not None and not re.fullmatch("[!-~]+", token):
        raise InputError("the token is not valid: it must be of ASCII characters, at least one, and without spaces")
    if token is None and not _is_loopback(host):
        raise InputError(
            f"other machines can reach {host}: give a token that clients must send, with --token-file FILE, in "
            f"{TOKEN_VARIABLE} or as token=..., or listen at {DEFAULT_HOST}"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
