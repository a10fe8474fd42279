"""The command line of experiments: `arag eval run`, ..."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

if TYPE_CHECKING:
    from arag.evaluation.datasets import Question
    from arag.evaluation.records import Record

eval_app = typer.Typer(help="Compare methods on questions: the paper's experiments.", no_args_is_help=True)
out = Console(soft_wrap=True)
err = Console(stderr=True)

FAILED = 1


@eval_app.command()
def methods() -> None:
    """List the methods that can be compared."""
    from arag.evaluation.methods import all_methods

    table = Table(box=None)
    for column in ("name", "in the paper", "what it does"):
        table.add_column(column)
    for method in all_methods().values():
        table.add_row(method.name, method.title, method.description)
    out.print(table)


@eval_app.command()
def run(
    questions: Annotated[Path, typer.Option("--questions", metavar="FILE", help="Questions with gold answers.")],
    index: Annotated[
        Path,
        typer.Option(
            "--index",
            "-i",
            metavar="DIR",
            help="The index's folder. Where there is none, the paragraphs that come with the questions are ingested.",
        ),
    ],
    method: Annotated[list[str], typer.Option("--method", help="A method; give it again for more than one.")],
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="provider:model. Default: $ARAG_MODEL, else extractive.")
    ] = None,
    judge: Annotated[
        str | None, typer.Option("--judge", help="provider:model of a judge, for LLM-Acc. Default: none.")
    ] = None,
    reasoning_effort: Annotated[str | None, typer.Option(help="For models that reason: minimal, low, ...")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first questions.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="How many questions at once.")] = 8,
    top_k: Annotated[int, typer.Option(min=1, help="Chunks of a search.")] = 5,
    max_steps: Annotated[int, typer.Option(min=1, help="Most steps before an answer is forced.")] = 15,
    max_cost: Annotated[float | None, typer.Option(help="US dollars after which no more questions are begun.")] = None,
    folder: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Where the records go.")] = None,
) -> None:
    """Answer questions with methods, and keep a record of each; run again, it goes on where it was.

    Exit code 1 means that questions failed or were left out; the next run tries them again.
    """
    from arag.evaluation.datasets import load_questions
    from arag.evaluation.judge import Judge
    from arag.evaluation.methods import Options
    from arag.evaluation.methods import method as find_method
    from arag.evaluation.runs import Plan, Runner, open_run, record_file
    from arag.graph.models import load_model
    from arag.retrieval.index import open_index

    wanted = [find_method(name) for name in dict.fromkeys(method)]
    asked = load_questions(questions)[:limit]
    _make_index(questions, index)
    model_options = {"reasoning_effort": reasoning_effort} if reasoning_effort else {}
    chat_model = load_model(model, **model_options)
    target = folder or Path("runs") / questions.resolve().parent.name
    plan = Plan(
        questions=str(questions),
        index=str(index),
        model=model or "default",
        judge=judge,
        model_options=model_options,
        options=Options(top_k=top_k, max_steps=max_steps),
    )
    open_run(target, plan)
    complete = True
    with open_index(index) as opened:
        for each in wanted:
            file = record_file(target, each.name)
            with _progress(each.name, asked, file.read()) as shown:
                runner = Runner(
                    each,
                    opened,
                    chat_model,
                    plan.options,
                    judge=Judge(load_model(judge), judge) if judge else None,
                    concurrency=concurrency,
                    max_cost=max_cost,
                    on_record=shown,
                )
                runner.run(asked, file)
            complete = _summarise(each.name, asked, file.read()) and complete
    out.print(f"Records: {target}", highlight=False)
    if not complete:
        raise typer.Exit(FAILED)


def _make_index(questions: Path, index: Path) -> None:
    """Ingest the paragraphs that come with questions, where there is no index yet."""
    from arag.evaluation.datasets import paragraphs, write_corpus
    from arag.ingest.pipeline import run_ingest
    from arag.retrieval.errors import InputError
    from arag.retrieval.manifest import FILE_NAME

    if (index / FILE_NAME).exists():
        return
    found = paragraphs(questions)
    if not found:
        raise InputError(
            f"there is no index in {index}, and {questions} holds no paragraphs to make one of: run `arag ingest` first"
        )
    corpus = write_corpus(found, index.with_name(f"{index.name}.corpus.jsonl"))
    err.print(f"Ingesting {len(found):,} paragraphs into {index}", highlight=False)
    run_ingest([corpus], index)


@contextmanager
def _progress(name: str, questions: Sequence[Question], known: dict[str, Record]) -> Iterator[Callable[[Record], None]]:
    """Draw a bar with the accuracy so far, the cost and the time left."""
    records = {question.id: known[question.id] for question in questions if question.id in known}
    columns: tuple[Any, ...] = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task(name, total=len(questions), state=_state(records))

        def shown(record: Record) -> None:
            records[record["question_id"]] = record
            done = sum(record["error"] is None for record in records.values())
            progress.update(task, completed=done, state=_state(records))

        progress.update(task, completed=sum(record["error"] is None for record in records.values()))
        yield shown


def _state(records: dict[str, Record]) -> str:
    done = [record for record in records.values() if record["error"] is None]
    if not done:
        return ""
    contained = sum(record["contain"] for record in done) / len(done)
    costs = [record["cost"] for record in done]
    spent = "cost unknown" if None in costs else f"${sum(cost or 0.0 for cost in costs):.2f}"
    return f"Contain-Acc {contained:.1%}, {spent}"


def _summarise(name: str, questions: Sequence[Question], records: dict[str, Record]) -> bool:
    """Print what a method has reached; return whether every question was answered."""
    mine = [records[question.id] for question in questions if question.id in records]
    done = {record["question_id"]: record for record in mine if record["error"] is None}
    errors = [record for record in mine if record["error"] is not None]
    unjudged = [r for r in done.values() if r["judgement"] is not None and r["judgement"]["correct"] is None]
    line = f"[bold]{name}[/] {len(done):,} of {len(questions):,} answered"
    out.print(f"{line}, {_state(done)}" if done else line, highlight=False)
    for record in errors[:3]:
        err.print(f"[yellow]Failed:[/] {record['question_id']}: {record['error']}", highlight=False)
    if unjudged:
        err.print(f"[yellow]Unjudged:[/] {len(unjudged):,}", highlight=False)
    return len(done) == len(questions) and not unjudged
