"""`arag mcp`: serve an index to other agents."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Annotated

import typer

from arag.options import DocumentsOption, IndexOption, WhereOption, open_scoped
from arag.terminal import err


def mcp(
    index: IndexOption,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", "-m", help="Model for the tool `ask`. Default: $ARAG_MODEL; with neither, there is no such tool."
        ),
    ] = None,
    memory: Annotated[
        bool, typer.Option("--memory/--no-memory", help="Leave out of searches what the session was shown before.")
    ] = True,
    http: Annotated[bool, typer.Option("--http", help="Serve over HTTP instead of stdin and stdout.")] = False,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at; 0 for any free one.")] = 8765,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="File with the token that clients must send over HTTP. Default: $ARAG_MCP_TOKEN.",
        ),
    ] = None,
    where: WhereOption = None,
    documents: DocumentsOption = None,
) -> None:
    """Serve an index to other agents, over the Model Context Protocol (MCP)."""
    from arag.models.chat import MODEL_VARIABLE
    from arag.retrieval.trust import check_embedder
    from arag.serving.mcp import TOKEN_VARIABLE, serve_mcp

    check_embedder(index)
    token = token_file.read_text("utf-8", "replace").strip() if token_file else os.environ.get(TOKEN_VARIABLE) or None
    if not http:  # a thread waits for stdin, and nothing has to be closed
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    with open_scoped(index, where, documents) as opened:
        serve_mcp(
            opened,
            model=model or os.environ.get(MODEL_VARIABLE),
            memory=memory,
            http=http,
            host=host,
            port=port,
            token=token,
            on_ready=lambda url: err.print(f"Serving {index.location} at {url}"),
        )
