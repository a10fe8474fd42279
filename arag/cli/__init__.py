"""The command line: `arag` with its commands."""

from __future__ import annotations

import logging
import sys
import traceback
import warnings
from importlib.metadata import version
from io import TextIOWrapper
from typing import Annotated, Any

import typer

from arag.cli.asking import ask, chat
from arag.cli.ingesting import ingest
from arag.cli.listing import list_documents
from arag.cli.maintaining import copy, info, remove, verify
from arag.cli.searching import read, search_keyword, search_semantic
from arag.cli.serving import mcp
from arag.evaluation.cli import eval_app
from arag.interruption import INTERRUPTED, Commands, Interrupted, end_at_once
from arag.terminal import FAILED, Console, err, out, show_error, styled

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
search_app = typer.Typer(help="Search an index without a model.", no_args_is_help=True)
app.add_typer(search_app, name="search", cls=Commands)
app.add_typer(eval_app, name="eval", cls=Commands)
search_app.command("keyword")(search_keyword)
search_app.command("semantic")(search_semantic)
for command in (ingest, ask, chat, mcp, read, info, remove, verify, copy):
    app.command()(command)
app.command("list")(list_documents)


def _version(wanted: bool) -> None:
    if wanted:
        out.print(version("langgraph-arag"))
        raise typer.Exit


@app.callback()
def options(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """An agent that searches a corpus by itself: build an index, ask questions, inspect the results."""


def main() -> None:
    """Run the command line; our own errors print one line on stderr and exit with code 1."""
    from arag.errors import ARAGError

    _quiet()
    if isinstance(sys.stdout, TextIOWrapper):  # arguments and file names may contain bytes that are not text
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app()
    except ARAGError as error:
        show_error(error)
        sys.exit(FAILED)
    except Interrupted:
        Console(stderr=True).print("Interrupted.")  # the interrupted code may hold the other console's lock
        end_at_once(INTERRUPTED)
    finally:
        sys.excepthook = _show_bug  # Typer has installed its own


def _show_bug(*error: Any) -> None:
    """Print the traceback of an unexpected error through our console: its message may contain untrusted text."""
    err.print("".join(traceback.format_exception(*error)).rstrip())


def _quiet() -> None:
    """Hide libraries' progress bars and notices, and print our own warnings in one line each."""
    logging.getLogger("transformers").setLevel(logging.ERROR)

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        err.print(styled(("Note:", "yellow"), f" {message}"))

    warnings.showwarning = show
