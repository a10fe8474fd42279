"""The command line of experiments: `arag eval run`, ..."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
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
err = Console(stderr=True, soft_wrap=True)

FAILED = 1
_SHOWN = 3  # failures that are told of


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
JudgeOption = Annotated[
    str | None, typer.Option("--judge", help="provider:model of a judge, for LLM-Acc. Default: none.")
]
LimitOption = Annotated[int | None, typer.Option(min=1, help="Only the first questions.")]
ConcurrencyOption = Annotated[int, typer.Option(min=1, help="How many questions at once.")]
OutOption = Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the records go.")]
RunArgument = Annotated[Path, typer.Argument(metavar="DIR", help="A run's folder.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]


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
    questions: QuestionsOption,
    index: IndexOption,
    method: Annotated[list[str], typer.Option("--method", help="A method; give it again for more than one.")],
    model: ModelOption = None,
    judge: JudgeOption = None,
    reasoning_effort: Annotated[str | None, typer.Option(help="For models that reason: minimal, low, ...")] = None,
    limit: LimitOption = None,
    concurrency: ConcurrencyOption = 8,
    top_k: Annotated[int, typer.Option(min=1, help="Chunks of a search.")] = 5,
    max_steps: Annotated[int, typer.Option(min=1, help="Most steps before an answer is forced.")] = 15,
    max_cost: Annotated[float | None, typer.Option(help="US dollars after which no more questions are begun.")] = None,
    folder: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Where the records go.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Answer questions with methods, and keep a record of each; run again, it goes on where it was.

    Exit code 1 means that questions failed or were left out; the next run tries them again.
    """
    from arag.evaluation.corpora import make_index, missing_gold
    from arag.evaluation.datasets import load_questions
    from arag.evaluation.judge import Judge
    from arag.evaluation.methods import Options
    from arag.evaluation.methods import method as find_method
    from arag.evaluation.preparation import prepare
    from arag.evaluation.runs import Plan, Runner, load_records, open_run, record_file, spent
    from arag.graph.models import EXTRACTIVE, MODEL_VARIABLE, load_model
    from arag.retrieval.index import open_index

    wanted = [find_method(name) for name in dict.fromkeys(method)]
    asked = load_questions(questions)[:limit]
    model_options = {"reasoning_effort": reasoning_effort} if reasoning_effort else {}
    chat_model = load_model(model, **model_options)
    of_judge = Judge(load_model(judge), judge) if judge else None
    # A name that says nothing is preceded by one that may: musique/questions.json.
    target = folder or Path("runs") / (
        questions.resolve().parent.name if questions.stem == "questions" else questions.stem
    )
    plan = Plan(
        questions=str(questions),
        index=str(index),
        model=model or os.environ.get(MODEL_VARIABLE) or EXTRACTIVE,
        judge=judge,
        model_options=model_options,
        options=Options(top_k=top_k, max_steps=max_steps),
    )
    open_run(target, plan)
    for note in make_index(questions, index):
        err.print(note, highlight=False, markup=False)
    summaries = []
    with open_index(index) as opened:
        if (warning := missing_gold(asked, opened)) is not None:
            err.print(f"Warning: {warning}", style="yellow", highlight=False, markup=False)
        for each in wanted:
            prepare(each, opened, chat_model, plan.options, target)
            file = record_file(target, each.name)
            others = [
                record for name, some in load_records(target).items() if name != each.name for record in some.values()
            ]
            with _progress(each.name, asked, file.read()) as shown:
                runner = Runner(
                    each,
                    opened,
                    chat_model,
                    plan.options,
                    judge=of_judge,
                    concurrency=concurrency,
                    max_cost=None if max_cost is None else max_cost - spent(others),
                    on_record=shown,
                )
                runner.run(asked, file)
            records = file.read()
            summaries.append(_summary(each.name, asked, records))
            if not as_json:
                _show_summary(summaries[-1])
            _show_failures(asked, records)
    if as_json:
        print(json.dumps({"folder": str(target), "methods": summaries}, indent=2))  # noqa: T201
    else:
        out.print(f"Records: {target}", highlight=False, markup=False)
    if any(summary["answered"] < summary["questions"] or summary["unjudged"] for summary in summaries):
        raise typer.Exit(FAILED)


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


def _summary(name: str, questions: Sequence[Question], records: Mapping[str, Record]) -> dict[str, Any]:
    """Return what a method has reached.

    Accuracies are of the questions that were begun: failed ones count as wrong, unjudged ones do not count.
    """
    from arag.evaluation.report.figures import CONTAIN_ACC, LLM_ACC, figure

    mine = [records[question.id] for question in questions if question.id in records]
    done = [record for record in mine if record["error"] is None]
    judgements = [record["judgement"] for record in done if record["judgement"] is not None]
    contain, correct = figure(CONTAIN_ACC, mine), figure(LLM_ACC, mine)
    prices = [record["cost"] for record in mine] + [judgement["cost"] for judgement in judgements]
    return {
        "method": name,
        "questions": len(questions),
        "answered": len(done),
        "failed": len(mine) - len(done),
        "unjudged": sum(judgement["correct"] is None for judgement in judgements),
        "contain": contain.mean if contain and done else None,
        "correct": correct.mean if correct and judgements else None,
        "cost": None if None in prices else sum(price or 0.0 for price in prices),
    }


def _show_summary(summary: Mapping[str, Any]) -> None:
    parts = [f"[bold]{summary['method']}[/] {summary['answered']:,} of {summary['questions']:,} answered"]
    if summary["correct"] is not None:
        parts.append(f"LLM-Acc {summary['correct']:.1%}")
    if summary["contain"] is not None:
        parts.append(f"Contain-Acc {summary['contain']:.1%}")
    parts.append("cost unknown" if summary["cost"] is None else f"${summary['cost']:.2f}")
    out.print(", ".join(parts), highlight=False)


def _show_failures(questions: Sequence[Question], records: Mapping[str, Record]) -> None:
    mine = [records[question.id] for question in questions if question.id in records]
    failed = [f"{record['question_id']}: {record['error']}" for record in mine if record["error"] is not None]
    verdicts = [(record["question_id"], record["judgement"]) for record in mine]
    unjudged = [f"{name}: {of['reason']}" for name, of in verdicts if of is not None and of["correct"] is None]
    not_begun = len(questions) - len(mine)
    for title, some in (("Failed", failed), ("Unjudged", unjudged)):
        for line in some[:_SHOWN]:
            err.print(f"{title}: {line}", style="yellow", highlight=False, markup=False)
        if len(some) > _SHOWN:
            err.print(f"{title}: {len(some) - _SHOWN:,} more", style="yellow", highlight=False)
    if not_begun:
        err.print(f"Not begun: {not_begun:,}, as --max-cost was reached", style="yellow", highlight=False)


@eval_app.command()
def ablate(
    questions: QuestionsOption,
    index: IndexOption,
    folder: OutOption,
    model: ModelOption = None,
    judge: JudgeOption = None,
    limit: LimitOption = None,
    concurrency: ConcurrencyOption = 8,
) -> None:
    """Run A-RAG with all of its tools and without each of them (paper, Table 2); `arag eval report` compares them."""
    names = ["arag", "arag-without-keyword", "arag-without-semantic", "arag-without-read"]
    run(questions, index, names, model, judge, limit=limit, concurrency=concurrency, folder=folder)


@eval_app.command()
def scale(
    questions: QuestionsOption,
    index: IndexOption,
    folder: OutOption,
    method: Annotated[str, typer.Option(help="The method.")] = "arag",
    model: ModelOption = None,
    judge: JudgeOption = None,
    steps: Annotated[
        list[int] | None, typer.Option(min=1, help="Most steps; again for more. Default: 5 10 15 20.")
    ] = None,
    effort: Annotated[list[str] | None, typer.Option(help="A reasoning effort; again for more.")] = None,
    limit: LimitOption = 300,
    concurrency: ConcurrencyOption = 8,
) -> None:
    """Run one method with more and more steps, and with more and more reasoning (paper, Figure 4)."""
    from arag.evaluation.report.experiment_page import scaling_page, write_page
    from arag.evaluation.scaling import EFFORT, STEPS, measure, write_scaling

    points = []
    complete = True
    settings: list[tuple[str, str, dict[str, Any]]] = [
        *((STEPS, str(most), {"max_steps": most}) for most in steps or [5, 10, 15, 20]),
        *((EFFORT, name, {"reasoning_effort": name}) for name in effort or ()),
    ]
    for what, value, options in settings:
        target = folder / f"{what}-{value}"
        try:
            run(
                questions, index, [method], model, judge, limit=limit, concurrency=concurrency, folder=target, **options
            )
        except typer.Exit:  # some questions failed, as `run` has said: the other settings are measured all the same
            complete = False
        points.append(measure(target, method, what, value))
    for file in (*write_scaling(points, folder), write_page(scaling_page(points), folder / "scale.html")):
        out.print(f"Written: {file}", highlight=False)
    if not complete:
        raise typer.Exit(FAILED)


@eval_app.command()
def failures(
    folder: RunArgument,
    judge: Annotated[str | None, typer.Option("--judge", help="provider:model that says what is left open.")] = None,
    labels: Annotated[Path | None, typer.Option("--labels", metavar="CSV", help="The CSV, filled in.")] = None,
) -> None:
    """Say why answers are wrong (paper, Figure 5), as far as the records tell; write a CSV for what they do not."""
    from arag.evaluation.failures import diagnose, read_labels, write_labels
    from arag.evaluation.failures import failures as find_failures
    from arag.evaluation.report.experiment_page import failures_page, write_page
    from arag.evaluation.runs import load_plan, load_records
    from arag.graph.models import load_model
    from arag.retrieval.index import open_index

    with open_index(load_plan(folder).index) as opened:
        found = find_failures({name: some.values() for name, some in load_records(folder).items()}, opened)
    if labels is not None:
        found = read_labels(found, labels)
    if judge is not None:
        found = diagnose(found, load_model(judge))
    table = Table(box=None)
    for column in ("method", "cause", "in the reasoning chain", "wrong answers", "share"):
        table.add_column(column, justify="right" if column in {"wrong answers", "share"} else "left")
    counts = Counter((failure.method, failure.cause, failure.chain_cause) for failure in found)
    of_method = Counter(failure.method for failure in found)
    for (name, cause, chain_cause), count in sorted(counts.items(), key=lambda item: (item[0][0], -item[1])):
        table.add_row(name, cause or "(not decided)", chain_cause, f"{count:,}", f"{count / of_method[name]:.0%}")
    out.print(table)
    file = folder / "failures.csv"
    write_labels(found, file)
    page = write_page(failures_page(found), folder / "failures.html")
    out.print(f"Written: {page}", highlight=False)
    undecided = sum(not failure.decided_by for failure in found)
    out.print(f"{file}: {undecided:,} of {len(found):,} are not decided; fill in `cause` and give it with --labels.")


@eval_app.command()
def report(
    folder: RunArgument,
    target: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Where it goes. Default: DIR.")] = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="METHOD", help="The method that the others are compared with.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(metavar="NAME", help="The paper's dataset, where the questions' file does not tell.")
    ] = None,
    pages: Annotated[bool, typer.Option(help="Write a page for each question and each of its runs.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Write what a run has shown: report.md and report.csv for a paper, report.html with plots and every question."""
    from arag.evaluation.report.figures import make_report
    from arag.evaluation.report.page import write_report

    found = make_report(folder, baseline=baseline, dataset=dataset)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, disable=not (pages and sys.stderr.isatty()), transient=True) as progress:
        task = progress.add_task("Questions", total=len(found.questions))
        page = write_report(
            found, target or folder, pages=pages, told=lambda done: progress.update(task, completed=done)
        )
    files = [page.with_suffix(".md"), page.with_suffix(".csv"), page]
    if as_json:
        print(json.dumps({"files": [str(file) for file in files], "notes": found.notes}, indent=2))  # noqa: T201
        return
    for note in found.notes:
        err.print(f"Note: {note}", style="yellow", highlight=False, markup=False)
    for file in files:
        out.print(f"Written: {file}", highlight=False, markup=False)
