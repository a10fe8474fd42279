r"""How every command prints, draws progress and asks: texts from outside are shown, and do nothing.

Titles, ids, file names, chunks, model answers and errors may hold characters that a terminal obeys: escape sequences
that set the clipboard or clear the screen, and controls that reorder or hide text. They are printed as Python writes
them (`\x1b`). Markup and emoji codes are printed as they stand; styles come from `styled` alone.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import rich.console
import typer
from rich.console import ConsoleRenderable, RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.text import Text

FAILED = 1  # exit code of a command that could not do its work, or not all of it

# All controls but newline and tab, half characters, line separators, and what reorders text or is no part of any
# writing: embeddings, overrides and isolates, invisible operators, annotations, tags. Joiners, zero-width spaces and
# soft hyphens stay: Persian, Khmer and emoji need them, and they move nothing.
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    """Return a text in which every character that a terminal obeys is written out; newlines and tabs stay."""
    return _OBEYED.sub(lambda match: match[0].encode("unicode_escape").decode(), text.replace("\r\n", "\n"))


class Console(rich.console.Console):
    """A console that prints texts visibly, and reads no markup in them."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, soft_wrap=True, markup=False, emoji=False, highlight=False)

    def render_str(self, text: str, **options: Any) -> Text:
        """Make a text of a string; Rich's own would drop some controls here."""
        return super().render_str(visible(text), **options)

    def render(
        self, renderable: RenderableType, options: rich.console.ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render anything: also what no string was made into a text for, as a progress bar's columns."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


out = Console()
err = Console(stderr=True)


def styled(*parts: str | tuple[str, str]) -> ConsoleRenderable:
    """Return a text of strings, and of pairs of a string and a style."""
    return Text.assemble(*(visible(part) if isinstance(part, str) else (visible(part[0]), part[1]) for part in parts))


def warn(line: str) -> None:
    """Say something on stderr."""
    err.print(line, style="yellow")


def print_json(value: Any) -> None:
    """Print a value as JSON; what a terminal obeys is escaped, which is the same value to programs."""
    # Streams of other encodings escape as Python does, which is no JSON.
    text = json.dumps(value, ensure_ascii=(sys.stdout.encoding or "").lower() != "utf-8", indent=2)
    print(_OBEYED.sub(_escaped, text))  # noqa: T201 - a console would wrap and style it


def _escaped(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1]


def progress(*columns: ProgressColumn, transient: bool = True, hidden: bool = False) -> Progress:
    """Return what draws bars on stderr, where that is a terminal: what is done, how long it took, and what is left.

    Args:
        *columns: What stands behind the bar.
        transient: Whether the bars go when they are complete.
        hidden: Whether nothing is drawn.
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


def confirm_embedder(index: Path) -> None:
    """Ask once, on a terminal, whether an embedder that only the index names may be used; a yes is remembered.

    Args:
        index: The index's folder; there need not be an index.

    Raises:
        UnnamedEmbedderError: There is no terminal, or the answer is no.
    """
    from arag.retrieval.trust import UnnamedEmbedderError, check_embedder, remember

    try:
        check_embedder(index)
    except UnnamedEmbedderError as error:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise
        err.print(f"The index in {index} names the embedder {error.name}: {error.consequence}.")
        if not typer.confirm("Use it, and remember that?", err=True):
            raise
        remember(error.name)
