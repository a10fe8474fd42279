"""`arag ingest`: write documents into an index."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.progress import TextColumn

from arag.cli.showing import show_progress, show_summary
from arag.errors import InputError
from arag.options import IndexOption, JsonOption
from arag.terminal import err, print_json, progress

LEFT_OUT = 3  # exit code of `ingest` when it left something out; 2 means a usage error


def ingest(
    paths: Annotated[
        list[str],  # a Path would make the current folder of an empty name
        typer.Argument(
            metavar="PATH...",
            help="Files and folders to read: txt, md, html, pdf, csv, tsv, ipynb, json, jsonl, programs, and with the "
            "extra `office` docx, pptx, xlsx, odt, epub, eml and others.",
        ),
    ],
    index: IndexOption,
    embedder: Annotated[
        str | None,
        typer.Option(
            help="Embedder as provider:model, plus @base_url for an OpenAI-compatible server. Default: the index's "
            "embedder, then $ARAG_EMBEDDER, then huggingface:sentence-transformers/all-MiniLM-L6-v2."
        ),
    ] = None,
    chunk_tokens: Annotated[
        int | None, typer.Option(help="Maximum tokens per chunk, at least 50. Default: the index's setting, or 1,000.")
    ] = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="Remove documents that came from PATH and are no longer there.")
    ] = False,
    read_as: Annotated[
        list[str] | None,
        typer.Option("--as", metavar=".ENDING=.KNOWN", help="Read files with an ending like another: .log=.txt."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write documents into an index; later runs embed only what has changed.

    Exit code 3 means that the index was written, but something was left out.
    """
    from arag.ingest.pipeline import run_ingest

    readers = dict(pair.partition("=")[::2] for pair in read_as or ())
    if not all(readers.values()):
        raise InputError("--as needs two endings, such as .log=.txt")
    with progress(TextColumn("{task.fields[figures]}"), hidden=as_json) as bars:
        summary = run_ingest(
            paths,
            index,
            embedder=embedder,
            chunk_tokens=chunk_tokens,
            prune=prune,
            readers=readers,
            progress=False if as_json else show_progress(bars) if err.is_terminal else True,
        )
    if as_json:
        print_json(asdict(summary))
    else:
        show_summary(summary, index)
    if summary.problems:
        raise typer.Exit(LEFT_OUT)
