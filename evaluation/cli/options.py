"""What the commands of experiments share: their options, and the list of written files."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from arag.errors import InputError
from arag.terminal import out, print_json, warn

QuestionsOption = Annotated[Path, typer.Option("--questions", metavar="FILE", help="Questions with gold answers.")]
JudgeOption = Annotated[
    str | None, typer.Option("--judge", help="provider:model of a judge, for LLM-Acc. Default: none.")
]
LimitOption = Annotated[int | None, typer.Option(min=1, help="Use only the first N questions.")]
ConcurrencyOption = Annotated[int, typer.Option(min=1, help="Questions to run at the same time.")]
PresentationOption = Annotated[
    Literal["compact", "paper"], typer.Option(help="What A-RAG's tools show: compact, or the paper's plain lists.")
]
MaxCostOption = Annotated[
    float | None,
    typer.Option(
        help="Start no new questions once this many US dollars are spent, counting all methods, settings, verdicts and "
        "earlier attempts."
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="METHOD.NAME=VALUE",
        help="A method's own setting, such as linear-rag.threshold=0.4; repeatable. VALUE is JSON, else a string.",
    ),
]
OutOption = Annotated[Path, typer.Option("--out", metavar="DIR", help="Where to write the records.")]
RunArgument = Annotated[Path, typer.Argument(metavar="DIR", help="A run folder.")]


def read_settings(values: Sequence[str] | None, methods: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return methods' own settings, by method and name, from `--set` options.

    Args:
        values: The options.
        methods: The names of the methods that are run.

    Raises:
        InputError: One is not METHOD.NAME=VALUE, or is for another method.
    """
    found: dict[str, dict[str, Any]] = {}
    for given in values or ():
        place, equals, value = given.partition("=")
        method, dot, name = place.rpartition(".")
        if not (equals and dot and method and name):
            raise InputError(f"--set {given}: give METHOD.NAME=VALUE, such as linear-rag.threshold=0.4")
        if method not in methods:
            raise InputError(f"--set {given}: the method {method!r} is not run; methods: {', '.join(methods)}")
        try:
            found.setdefault(method, {})[name] = json.loads(value)
        except ValueError:
            found.setdefault(method, {})[name] = value
    return found


def show_written(files: Sequence[Path], notes: Sequence[str], as_json: bool) -> None:
    """Print which files were written, and notes for their readers."""
    if as_json:
        print_json({"files": [str(file) for file in files], "notes": list(notes)})
        return
    for note in notes:
        warn(f"Note: {note}")
    for file in files:
        out.print(f"Written: {file}")
