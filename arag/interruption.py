"""What the command line does at Ctrl-C: it says that nothing is lost, and ends at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from rich.console import Console
from typer.core import TyperGroup

INTERRUPTED = 130  # as shells have it for what Ctrl-C ends
_LAST_SECONDS = 1.0  # that what is running has to close its files


class Interrupted(Exception):  # noqa: N818 - it is no error
    """Ctrl-C was pressed."""


class Commands(TyperGroup):
    """The commands, with a word at Ctrl-C, at which Typer itself ends without one."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise Interrupted from error


def end_interrupted() -> NoReturn:
    """Say so, and end without waiting for threads, which a service that hangs would hold up."""
    err = Console(stderr=True)
    err.print("Interrupted. What was written stays; the next run goes on from there.", soft_wrap=True)
    with suppress(OSError):  # of a pipe that nobody reads from any more
        sys.stdout.flush()
    os._exit(INTERRUPTED)


@contextmanager
def soon_interrupted() -> Iterator[None]:
    """End soon after Ctrl-C: LangGraph waits for the tools that are running, and these for a service that may hang."""

    def interrupt(*_: object) -> NoReturn:
        end = threading.Timer(_LAST_SECONDS, end_interrupted)
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
