"""What the command line does at Ctrl-C: it says what becomes of the work, and ends at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from typer.core import TyperGroup

from arag.terminal import Console

INTERRUPTED = 130  # as shells have it for what Ctrl-C ends
_LAST_SECONDS = 1.0  # that what is running has to close its files

_RESUMED = "What was written stays; the next run goes on from there."
_WHOLE = "The index is whole: as it was before, or as the command leaves it."
_AFTERWARDS = {
    "ingest": _RESUMED,
    "run": _RESUMED,
    "ablate": _RESUMED,
    "scale": _RESUMED,
    "failures": _RESUMED,
    "ask": "There is no answer; asking again starts from the beginning.",
    "report": "The report is not complete; the next run writes all of it again.",
    "remove": _WHOLE,
    "compact": _WHOLE,
}
"""What is true after an interrupted command; of all others there is nothing to say."""


class Interrupted(Exception):  # noqa: N818 - it is no error
    """Ctrl-C was pressed.

    Attributes:
        command: The command that was running.
    """

    def __init__(self, command: str) -> None:
        super().__init__(command)
        self.command = command


class Commands(TyperGroup):
    """The commands, with a word at Ctrl-C, at which Typer itself ends without one."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise Interrupted(ctx.invoked_subcommand or "") from error


def end_interrupted(command: str) -> NoReturn:
    """Say so, and end without waiting for threads, which a service that hangs would hold up.

    Args:
        command: The command that was running.
    """
    err = Console(stderr=True)  # one of its own: what was interrupted may hold the other one's lock
    err.print(" ".join(filter(None, ["Interrupted.", _AFTERWARDS.get(command)])))
    with suppress(OSError):  # of a pipe that nobody reads from any more
        sys.stdout.flush()
    os._exit(INTERRUPTED)


@contextmanager
def soon_interrupted(command: str) -> Iterator[None]:
    """End soon after Ctrl-C: LangGraph waits for the tools that are running, and these for a service that may hang.

    Args:
        command: The command that is running.
    """

    def interrupt(*_: object) -> NoReturn:
        end = threading.Timer(_LAST_SECONDS, end_interrupted, [command])
        end.daemon = True
        end.start()
        raise KeyboardInterrupt

    former = signal.getsignal(signal.SIGINT)
    if former is signal.default_int_handler:  # what runs in the background is often started to ignore it
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)
