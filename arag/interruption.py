"""Ctrl-C on the command line: exit at once."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any, NoReturn

from typer.core import TyperGroup

INTERRUPTED = 130  # exit code that shells use for Ctrl-C


class Interrupted(Exception):  # noqa: N818 - it is not an error
    """Ctrl-C was pressed."""


class Commands(TyperGroup):
    """A command group that reports Ctrl-C; Typer itself exits silently."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise Interrupted from error


def end_at_once(code: int) -> NoReturn:
    """Exit without waiting for threads, which a hanging service could block."""
    with suppress(OSError):  # the reader of a pipe may be gone
        sys.stdout.flush()
    os._exit(code)
