"""What the commands share: their options, and how they tell of files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from arag.terminal import out, print_json, warn

DEFAULT_MAX_STEPS = 15

QuestionsOption = Annotated[Path, typer.Option("--questions", metavar="FILE", help="Questions with gold answers.")]
IndexOption = Annotated[
    Path,
    typer.Option(
        "--index",
        "-i",
        metavar="DIR",
        help="The index's folder. Where there is none, the paragraphs that come with the questions are ingested.",
    ),
]
ModelOption = Annotated[
    str | None, typer.Option("--model", "-m", help="provider:model. Default: $ARAG_MODEL, else extractive.")
]
ModelOptionsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--model-option",
        metavar="NAME=VALUE",
        help="An option of the model's class, as temperature=0; again for more. VALUE is JSON, or else a text.",
    ),
]
EffortOption = Annotated[str | None, typer.Option(help="For models that reason: minimal, low, ...")]
JudgeOption = Annotated[
    str | None, typer.Option("--judge", help="provider:model of a judge, for LLM-Acc. Default: none.")
]
LimitOption = Annotated[int | None, typer.Option(min=1, help="Only the first questions.")]
ConcurrencyOption = Annotated[int, typer.Option(min=1, help="How many questions at once.")]
TopKOption = Annotated[int, typer.Option(min=1, help="Chunks of a search.")]
MaxStepsOption = Annotated[int, typer.Option(min=1, help="Most steps before an answer is forced.")]
MaxCostOption = Annotated[
    float | None,
    typer.Option(
        help="US dollars after which no more questions are begun: of all methods and settings, of verdicts and of "
        "earlier attempts."
    ),
]
OutOption = Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the records go.")]
RunArgument = Annotated[Path, typer.Argument(metavar="DIR", help="A run's folder.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]


def show_written(files: Sequence[Path], notes: Sequence[str], as_json: bool) -> None:
    """Tell which files were written, and what a reader of them must know."""
    if as_json:
        print_json({"files": [str(file) for file in files], "notes": list(notes)})
        return
    for note in notes:
        warn(f"Note: {note}")
    for file in files:
        out.print(f"Written: {file}")
