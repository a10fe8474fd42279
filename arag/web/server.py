"""Serves the pages of an index on this machine."""

from __future__ import annotations

import secrets
import socket
from pathlib import Path
from typing import Any

from arag.errors import InputError
from arag.graph.graph import create_arag_agent
from arag.models.chat import load_model
from arag.retrieval.index import Index
from arag.terminal import out

_HOST = "127.0.0.1"
_SHUTDOWN_SECONDS = 2  # for open requests after Ctrl-C


def serve_web(index: Index, *, model: str, options: dict[str, Any], port: int, reports: Path | None) -> None:
    """Serve pages to search, read and ask, to this machine only, until Ctrl-C. The address is printed on stdout.

    Args:
        index: The index, limited to what may be seen.
        model: The model that answers questions.
        options: Options of the model's class.
        port: The port; 0 for any that is free.
        reports: A folder with pages of runs and reports, which are listed.

    Raises:
        InputError: The extra `web` is not installed, or the server cannot listen at the port.
        ModelError: The model or the index's embedder cannot be loaded.
        KeyboardInterrupt: The user stopped it.
    """
    try:
        import PIL  # noqa: F401 - the pictures of pages need it
        import uvicorn

        from arag.web.site import Site
    except ModuleNotFoundError as error:
        needed = "pip install 'langgraph-arag[web]'"
        raise InputError(f"the pages need the package {error.name}: {needed}") from error
    index.embedder.load()
    agent = create_arag_agent(load_model(model, **options), index)
    try:
        listener = socket.create_server((_HOST, port))
    except OSError as error:
        raise InputError(f"cannot listen at {_HOST}, port {port}: {error.strerror}") from error
    actual_port = listener.getsockname()[1]
    token = secrets.token_urlsafe(32)
    app = Site(index, agent, model, reports).make_app(token, actual_port)
    out.print_line(f"Open http://{_HOST}:{actual_port}/?token={token}")
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=_SHUTDOWN_SECONDS, ws="none")
    uvicorn.Server(config).run(sockets=[listener])
