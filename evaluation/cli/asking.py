"""What the command line asks before it sends texts where only an index's files say."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from arag.terminal import err


def confirm_embedder(index: Path) -> None:
    """Ask once, on a terminal, whether an embedder that only the index names may be used; a yes is remembered.

    Args:
        index: The index's folder; there need not be an index.

    Raises:
        UnnamedEmbedderError: There is no terminal, or the answer is no.
    """
    from arag.retrieval.trust import UnnamedEmbedderError, check_embedder, remember

    try:
        check_embedder(index)
    except UnnamedEmbedderError as error:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise
        err.print(f"The index in {index} names the embedder {error.name}: {error.consequence}.")
        if not typer.confirm("Use it, and remember that?", err=True):
            raise
        remember(error.name)
