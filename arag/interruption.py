"""Ctrl-C on the command line: say what happens to the work, and exit at once."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any, NoReturn

from typer.core import TyperGroup

from arag.terminal import Console

INTERRUPTED = 130  # exit code that shells use for Ctrl-C

_RESUMED = "Completed work is kept; the next run continues from there."
_WHOLE = "The index is intact: either unchanged or fully updated."
_AFTERWARDS = {
    "ingest": _RESUMED,
    "run": _RESUMED,
    "failures": _RESUMED,
    "ask": "No answer was given; asking again starts over.",
    "report": "The report is incomplete; the next run rewrites it.",
    "remove": _WHOLE,
    "copy": "The target is unfinished, or unchanged; the same command continues.",
}
"""What to say after an interrupted command; the others need no explanation."""


class Interrupted(Exception):  # noqa: N818 - it is not an error
    """Ctrl-C was pressed.

    Attributes:
        command: The command that was running.
    """

    def __init__(self, command: str) -> None:
        super().__init__(command)
        self.command = command


class Commands(TyperGroup):
    """A command group that reports Ctrl-C; Typer itself exits silently."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise Interrupted(ctx.invoked_subcommand or "") from error


def end_interrupted(command: str) -> NoReturn:
    """Print what happened, and exit at once.

    Args:
        command: The command that was running.
    """
    err = Console(stderr=True)  # a separate console: the interrupted code may hold the other one's lock
    err.print(" ".join(filter(None, ["Interrupted.", _AFTERWARDS.get(command)])))
    end_at_once(INTERRUPTED)


def end_at_once(code: int) -> NoReturn:
    """Exit without waiting for threads, which a hanging service could block."""
    with suppress(OSError):  # the reader of a pipe may be gone
        sys.stdout.flush()
    os._exit(code)
