"""Printing and progress bars for all commands; untrusted text is shown but never interpreted.

Markup and emoji codes are printed literally.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import rich.console
from rich.console import RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.segment import Segment
from rich.table import Column
from rich.text import Text

from arag.text.normalise import name_estimate
from arag.text.visible import OBEYED, visible, visible_line

FAILED = 1  # exit code of a command that failed, wholly or in part
INTERRUPTED = 130  # exit code that shells use for Ctrl-C

_PATIENCE_SECONDS = 3.0  # of silence
_BAR_WIDTH = 12  # columns of the usual 80


class Console(rich.console.Console):
    """A console that escapes control characters and ignores markup."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, soft_wrap=True, markup=False, emoji=False, highlight=False)
        self.outlives_reader = False  # set by commands that also write a file

    def on_broken_pipe(self) -> None:
        """Print nothing more, as the reader of a pipe has seen enough; most commands end then."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())
        if not self.outlives_reader:
            raise SystemExit(FAILED)

    def render(
        self, renderable: RenderableType, options: rich.console.ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render anything: texts, tables, progress bars."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)

    def print_line(self, *parts: str | tuple[str, str], style: str | None = None) -> None:
        """Print one line, of strings and of pairs of a string and a style."""
        line = Text()
        for part in parts:
            if isinstance(part, str):
                line.append(visible_line(part))
            else:
                text, part_style = part
                line.append(visible_line(text), part_style)
        self.print(line, style=style)


out = Console()
err = Console(stderr=True)


def warn(line: str) -> None:
    """Print a warning on stderr."""
    err.print_line(line, style="yellow")


def show_error(error: Exception) -> None:
    """Print an error on stderr in one line."""
    err.print_line(("Error:", "bold red"), f" {error}")


def end_at_once(code: int) -> NoReturn:
    """Exit without waiting for threads, which a hanging service could block."""
    with suppress(OSError):  # the reader of a pipe may be gone
        sys.stdout.flush()
    os._exit(code)


def print_json(value: Any) -> None:
    """Print a value as JSON, with control characters escaped; programs read the same value."""
    encoding = sys.stdout.encoding or ""
    # In another encoding, a stream would write Python's escapes for some characters, which JSON does not have.
    is_utf8 = encoding.lower() == "utf-8"
    text = json.dumps(value, ensure_ascii=not is_utf8, indent=2)
    print(OBEYED.sub(_escape_in_json, text))  # noqa: T201 - a console would wrap it


def _escape_in_json(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1]


@contextmanager
def explaining_wait(line: str) -> Iterator[None]:
    """Print a line on stderr if what is done inside takes more than a few seconds."""
    timer = threading.Timer(_PATIENCE_SECONDS, lambda: err.print_line(line))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class _TimeLeftColumn(ProgressColumn):
    """Shows the time left, as a task's field `seconds_left` has it, or else by its speed."""

    max_refresh = 1.0  # seconds

    def __init__(self) -> None:
        super().__init__(Column(max_width=16))  # wider texts take two lines

    def render(self, task: Task) -> Text:
        seconds = task.fields.get("seconds_left", task.time_remaining)
        if seconds is None or task.finished:
            return Text()
        return Text(f"{name_estimate(seconds)} left", style="progress.remaining")


def progress(*columns: ProgressColumn, transient: bool = True) -> Progress:
    """Return progress bars for stderr, which show on a terminal only; `transient` ones vanish when they end."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(_BAR_WIDTH),
        *columns,
        TimeElapsedColumn(),
        _TimeLeftColumn(),
        console=err,
        transient=transient,
        disable=not err.is_terminal,
    )
