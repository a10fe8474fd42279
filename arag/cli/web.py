"""`arag web`: pages of an index for a browser on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arag.models.names import EXTRACTIVE
from arag.options import (
    DocumentsOption,
    ModelOption,
    ModelOptionsOption,
    WhereOption,
    WithinOption,
    open_scoped,
    read_model_options,
)


def web(
    index: Annotated[
        str,
        typer.Argument(
            metavar="INDEX", envvar="ARAG_INDEX", help="The index: a folder, or the address of a PostgreSQL database."
        ),
    ] = "",
    named: Annotated[
        str, typer.Option("--index", "-i", metavar="LOCATION", help="The index, named as for other commands.")
    ] = "",
    model: ModelOption = EXTRACTIVE,
    model_option: ModelOptionsOption = None,
    where: WhereOption = None,
    documents: DocumentsOption = None,
    within: WithinOption = "",
    reports: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", file_okay=False, exists=True, help="Show pages of runs and reports, too."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at; 0 for any free one.")] = 0,
) -> None:
    """Search, read and ask in a browser on this machine: hits and citations open the page, with the sentence marked.

    Open the address that it prints: its token lets you in, and nobody else. Ctrl-C ends it.
    """
    from arag.web.server import serve_web

    location = named or index
    if not location:
        raise typer.BadParameter("name the index: arag web INDEX")
    options = read_model_options(model_option)
    with open_scoped(location, where, documents, within) as opened:
        serve_web(opened, model=model, options=options, port=port, reports=reports)
