"""The command line: `arag` with its commands."""

from __future__ import annotations

import logging
import sys
import traceback
import warnings
from importlib.metadata import version
from io import TextIOWrapper
from typing import Annotated

import typer

from arag.cli.ask import ask, chat, mcp
from arag.cli.hyphens import TAKES_HYPHENS, OneTextCommand
from arag.cli.index import copy, grep, info, list_documents, read, remove, search, sql, verify
from arag.cli.ingest import ingest
from arag.cli.shell import shell
from arag.cli.web import web
from arag.errors import ARAGError, InputError
from arag.evaluation.cli import eval_app
from arag.options import CommandGroup
from arag.terminal import FAILED, INTERRUPTED, Console, end_at_once, err, out, show_error

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.add_typer(eval_app, name="eval")
for command in (ingest, ask, chat, search, grep, sql, shell, read, info, remove, verify, copy, mcp, web):
    settings = TAKES_HYPHENS if command in (search, grep, shell) else None
    kind = OneTextCommand if command in (grep, sql, shell) else None
    app.command(cls=kind, context_settings=settings)(command)
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
    """Run the command line. Our own errors, and those of files, print one line on stderr and exit with code 1."""
    logging.getLogger("transformers").setLevel(logging.ERROR)
    warnings.showwarning = lambda message, *_, **__: err.print_line(("Note:", "yellow"), f" {message}")
    if isinstance(sys.stdout, TextIOWrapper):  # arguments and file names may contain bytes that are not text
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except ARAGError as error:
        show_error(error)
        sys.exit(FAILED)
    except BrokenPipeError:  # the reader of a pipe has seen enough
        end_at_once(FAILED)
    except OSError as error:  # such as a full disk behind stdout, which would fail again at the end of the process
        show_error(error if error.filename else InputError(f"the output cannot be written: {error.strerror}"))
        end_at_once(FAILED)
    except SystemExit as end:
        if end.code == INTERRUPTED:  # Typer says nothing
            Console(stderr=True).print("Interrupted.")  # the interrupted code may hold the other console's lock
            end_at_once(INTERRUPTED)
        raise
    except Exception:  # noqa: BLE001 - a bug, whose message may contain untrusted text
        err.print(traceback.format_exc().rstrip())
        sys.exit(FAILED)
