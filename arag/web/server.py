"""Serves the pages of an index on this machine."""

from __future__ import annotations

import logging
import secrets
import socket
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from arag.errors import InputError
from arag.graph.graph import create_arag_agent
from arag.models.chat import load_model
from arag.models.names import EXTRACTIVE
from arag.retrieval.index import Index, ensure_open
from arag.terminal import out

_HOST = "127.0.0.1"
_SHUTDOWN_SECONDS = 2  # for open requests after Ctrl-C


def serve_web(
    index: Index | str | Path,
    *,
    model: str = EXTRACTIVE,
    options: Mapping[str, Any] | None = None,
    port: int = 0,
    reports: Path | None = None,
) -> None:
    """Serve pages to search, read and ask, to this machine only, until Ctrl-C. The address is printed on stdout.

    Args:
        index: The index, limited to what may be seen, or where it is.
        model: The model that answers questions; by default the built-in one.
        options: Options of the model's class.
        port: The port; 0 for any that is free.
        reports: A folder with pages of runs and reports, which are listed.

    Raises:
        InputError: The extra `web` is not installed, or the server cannot listen at the port.
        IndexNotFoundError: There is no index there.
        ModelError: The model or the index's embedder cannot be loaded.

    Example:
        >>> busy = socket.create_server(("127.0.0.1", 0))
        >>> serve_web(index, port=busy.getsockname()[1])
        Traceback (most recent call last):
            ...
        arag.errors.InputError: cannot listen at 127.0.0.1, port ...
    """
    try:
        import PIL  # noqa: F401 - the pictures of pages need it
        import uvicorn

        from arag.web.originals import start_drawing
        from arag.web.site import Site
    except ModuleNotFoundError as error:
        raise InputError(f"the pages need the package {error.name}: pip install 'langgraph-arag[web]'") from error
    opened = ensure_open(index)
    has_pdfs = any(document.source.lower().endswith(".pdf") for document in opened.documents())
    drawing = threading.Thread(target=start_drawing, daemon=True)
    if has_pdfs:
        drawing.start()  # while the models are loaded
    opened.embedder.load()
    agent = create_arag_agent(load_model(model, **(options or {})), opened)
    try:
        listener = socket.create_server((_HOST, port))
    except OSError as error:
        raise InputError(f"cannot listen at {_HOST}, port {port}: {error.strerror}") from error
    actual_port = listener.getsockname()[1]
    token = secrets.token_urlsafe(32)
    app = Site(opened, agent, model, reports).make_app(token, actual_port)
    if has_pdfs:
        drawing.join()  # or the first picture would wait for a process of its own
    out.print_line(f"Open http://{_HOST}:{actual_port}/?token={token}")
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=_SHUTDOWN_SECONDS, ws="none")
    server = uvicorn.Server(config)
    logging.getLogger("uvicorn.error").addFilter(lambda _: not server.should_exit)  # open pages are no errors at Ctrl-C
    server.run(sockets=[listener])
