"""`arag shell`: commands over an index's documents, as the agent's tool runs them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from arag.errors import InputError
from arag.options import DocumentsOption, IndexOption, WhereOption, WithinOption, open_scoped
from arag.terminal import FAILED, out, show_error

if TYPE_CHECKING:
    from arag.retrieval.index import Index


def shell(
    index: IndexOption,
    command: Annotated[
        str | None, typer.Argument(metavar="COMMAND", help="The command; without one, each line of the input is one.")
    ] = None,
    within: WithinOption = "",
    where: WhereOption = None,
    documents: DocumentsOption = None,
) -> None:
    """Run a command such as `rg -i harbour | head` over an index's documents, in a shell that reaches nothing else.

    A document is a file: its title, then one line a sentence or table row.
    rg, grep, ls, find, cat, sed, awk, sort, pipes and loops work.
    `meaning "a question"` prints the nearest sentences, `sql "SELECT ..."` queries all tables.
    Exit code 1 means that nothing matched; others are the command's own.
    """
    with open_scoped(index, where, documents, within) as opened:
        if command is not None:
            raise typer.Exit(_run(opened, command))
        code = 0
        for line in _read_lines():
            try:
                code = _run(opened, line)
            except InputError as error:
                show_error(error)
                code = FAILED
    raise typer.Exit(code)


def _run(index: Index, command: str) -> int:
    from arag.retrieval.corpus.shell.run import run_shell

    result = run_shell(index, command)
    out.print(result.text)
    return result.exit_code


def _read_lines() -> Iterator[str]:
    """Yield the lines from the terminal or from a pipe that are not blank."""
    is_typed = sys.stdin.isatty() and sys.stdout.isatty()
    if is_typed:
        with suppress(ImportError):
            import readline  # noqa: F401 - gives `input` its history
    while True:
        try:
            line = input("$ " if is_typed else "")
        except EOFError:
            return
        if line.strip() == "exit":
            return
        if line.strip():
            yield line
