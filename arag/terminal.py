r"""Printing and progress bars for all commands; untrusted text is shown but never interpreted.

Titles, ids, file names, chunks, model answers and errors may contain characters that a terminal interprets: escape
sequences that set the clipboard or clear the screen, and controls that reorder or hide text. They are printed as Python
escapes them (`\x1b`). Markup and emoji codes are printed literally; styles come only from `styled`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from typing import Any

import rich.console
from rich.console import ConsoleRenderable, RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.text import Text

FAILED = 1  # exit code of a command that failed, wholly or in part

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

    def render_str(self, text: str, **options: Any) -> Text:
        """Convert a string to a text; Rich's own method would drop some controls."""
        return super().render_str(visible(text), **options)

    def render(
        self, renderable: RenderableType, options: rich.console.ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render anything, including text that bypasses `render_str`, such as a progress bar's columns."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


out = Console()
err = Console(stderr=True)


def styled(*parts: str | tuple[str, str]) -> ConsoleRenderable:
    """Join strings, and pairs of a string and a style, into one text."""
    return Text.assemble(*(visible(part) if isinstance(part, str) else (visible(part[0]), part[1]) for part in parts))


def warn(line: str) -> None:
    """Print a warning on stderr."""
    err.print(line, style="yellow")


def show_error(error: Exception) -> None:
    """Print an error on stderr in one line."""
    err.print(styled(("Error:", "bold red"), f" {error}"))


def print_json(value: Any) -> None:
    """Print a value as JSON, with control characters escaped; programs read the same value."""
    # Streams of other encodings escape as Python does, which is not valid JSON.
    text = json.dumps(value, ensure_ascii=(sys.stdout.encoding or "").lower() != "utf-8", indent=2)
    print(_OBEYED.sub(_escaped, text))  # noqa: T201 - a console would wrap and style it


def _escaped(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1]


def progress(*columns: ProgressColumn, transient: bool = True, hidden: bool = False) -> Progress:
    """Return progress bars for stderr, with elapsed and remaining time; nothing is drawn if it is not a terminal.

    Args:
        *columns: Columns to the right of the bar.
        transient: Whether to remove the bars when they are complete.
        hidden: Whether to draw nothing.
    """
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        *columns,
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
        console=err,
        transient=transient,
        disable=hidden or not err.is_terminal,
    )
