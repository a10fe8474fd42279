r"""Printing and progress bars for all commands; untrusted text is shown but never interpreted.

Documents, file names, model answers and errors may hold characters that a terminal obeys: escape sequences that set the
clipboard or clear the screen, and controls that reorder or hide text. They are printed as Python escapes them (`\x1b`);
Rich drops some. Markup and emoji codes are printed literally.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NoReturn

import rich.console
from rich.console import RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.text import Text

FAILED = 1  # exit code of a command that failed, wholly or in part
INTERRUPTED = 130  # exit code that shells use for Ctrl-C

# All controls except newline and tab, lone surrogates, line separators, and characters that reorder text or are not
# part of any writing: embeddings, overrides and isolates, invisible operators, annotations, tags. Joiners, zero-width
# spaces and soft hyphens stay: Persian, Khmer and emoji need them, and they do not reorder anything.
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    """Escape every character that a terminal interprets, except newlines and tabs."""
    return _OBEYED.sub(lambda match: match[0].encode("unicode_escape").decode(), text.replace("\r\n", "\n"))


class Console(rich.console.Console):
    """A console that escapes control characters and ignores markup."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, soft_wrap=True, markup=False, emoji=False, highlight=False)

    def render(
        self, renderable: RenderableType, options: rich.console.ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render anything: texts, tables, progress bars."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


out = Console()
err = Console(stderr=True)
styled = Text.assemble  # joins strings, and pairs of a string and a style


def warn(line: str) -> None:
    """Print a warning on stderr."""
    err.print(line, style="yellow")


def show_error(error: Exception) -> None:
    """Print an error on stderr in one line."""
    err.print(styled(("Error:", "bold red"), f" {error}"))


def end_at_once(code: int) -> NoReturn:
    """Exit without waiting for threads, which a hanging service could block."""
    with suppress(OSError):  # the reader of a pipe may be gone
        sys.stdout.flush()
    os._exit(code)


def print_json(value: Any) -> None:
    """Print a value as JSON, with control characters escaped; programs read the same value."""
    # Streams of other encodings escape as Python does, which is not valid JSON.
    text = json.dumps(value, ensure_ascii=(sys.stdout.encoding or "").lower() != "utf-8", indent=2)
    print(_OBEYED.sub(lambda match: json.dumps(match[0])[1:-1], text))  # noqa: T201 - a console would wrap it


def progress(*columns: ProgressColumn, transient: bool = True) -> Progress:
    """Return progress bars for stderr; `transient` ones vanish in the end. They need a terminal."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        *columns,
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
        console=err,
        transient=transient,
        disable=not err.is_terminal,
    )
