"""`arag eval run`: run methods on questions."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from filelock import Timeout
from rich.progress import MofNCompleteColumn, TaskID, TextColumn

from arag.errors import ARAGError, InputError
from arag.graph import DEFAULT_MAX_STEPS
from arag.models.names import EXTRACTIVE
from arag.options import (
    IndexOption,
    JsonOption,
    ModelOption,
    ModelOptionsOption,
    TopKOption,
    read_model_options,
    read_pairs,
)
from arag.retrieval import DEFAULT_TOP_K
from arag.terminal import FAILED, err, out, print_json, progress, warn
from arag.text.normalise import count

if TYPE_CHECKING:
    from arag.evaluation.datasets import Question
    from arag.evaluation.experiment import Variant
    from arag.evaluation.method import Method
    from arag.evaluation.records import Record
    from arag.evaluation.runs import MethodRun

_MAX_PROBLEMS = 3  # more would hide the results above them; all are in the records

_QuestionsOption = Annotated[Path, typer.Option(metavar="FILE", help="Questions with gold answers.")]
_MethodsOption = Annotated[
    list[str], typer.Option(help="A method, table1, ablation, or a module with METHODS; repeatable.")
]
_JudgeOption = Annotated[str | None, typer.Option(help="provider:model of a judge, for LLM-Acc. Default: none.")]
_EffortsOption = Annotated[
    list[str] | None, typer.Option(metavar="EFFORT", help="low, medium, ...; several make a run for each.")
]
_LimitOption = Annotated[int | None, typer.Option(min=1, help="Use only the first N questions.")]
_ConcurrencyOption = Annotated[int, typer.Option(min=1, help="Questions to run at the same time.")]
_PresentationOption = Annotated[
    Literal["compact", "paper"], typer.Option(help="What A-RAG's tools show: compact, or the paper's plain lists.")
]
_MaxStepsOption = Annotated[
    list[int] | None, typer.Option(min=1, help="A-RAG's steps at most, 15 by default; several make a run for each.")
]
_MaxCostOption = Annotated[
    float | None,
    typer.Option(
        min=0, help="Begin no more calls once this many US dollars are spent, those of earlier runs included."
    ),
]
_SettingsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="METHOD.NAME=VALUE",
        help="A method's own setting, such as linear-rag.threshold=0.4; repeatable. VALUE is JSON, else a string.",
    ),
]
_RecordOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Record the model's replies here; `--model replay:FILE` plays them."),
]
_FolderOption = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Where to write the records. Default: runs/DATASET.")
]


def run(
    questions: _QuestionsOption,
    index: IndexOption,
    method: _MethodsOption,
    model: ModelOption = EXTRACTIVE,
    judge: _JudgeOption = None,
    reasoning_effort: _EffortsOption = None,
    model_option: ModelOptionsOption = None,
    limit: _LimitOption = None,
    concurrency: _ConcurrencyOption = 8,
    top_k: TopKOption = DEFAULT_TOP_K,
    presentation: _PresentationOption = "compact",
    max_steps: _MaxStepsOption = None,
    max_cost: _MaxCostOption = None,
    setting: _SettingsOption = None,
    record: _RecordOption = None,
    folder: _FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Answer questions with methods, keep a record of each, and report. Run it again to continue.

    If the index does not exist, the paragraphs that come with the questions are ingested.

    With several step limits or reasoning efforts there is a run for each, in a folder of its own (paper, Figure 4).

    Exit code 1 means that questions failed or were skipped; the next run tries them again.
    """
    from arag.evaluation.experiment import Experiment

    variants = _list_variants(max_steps or [], reasoning_effort or [], read_model_options(model_option))
    experiment = Experiment(
        questions,
        index,
        _make_methods(method, setting or ()),
        model=model,
        judge=judge or None,
        out=folder,
        variants=variants,
        limit=limit,
        concurrency=concurrency,
        top_k=top_k,
        presentation=presentation,
        max_cost=max_cost,
        announce=err.print_line,
        record=record,
    )
    summaries = []
    with experiment.open() as runs:
        for each in runs:
            summary = _run(each)
            summaries.append(summary)
            if not as_json:
                _show_summary(each, summary)
    if as_json:
        print_json({"folder": str(experiment.folder), "methods": summaries})
    files = _write_report_if_possible(experiment.folders(), experiment.folder)
    if not as_json:
        show_written(files)
    if not all(summary["complete"] for summary in summaries):
        raise typer.Exit(FAILED)


def _run(run: MethodRun) -> dict[str, Any]:
    """Answer the open questions of a run, show its progress and its problems, and return a summary."""
    error: Exception | None = None
    try:
        _answer(run)
    except Exception as failure:  # noqa: BLE001 - one method does not stop the others
        error = failure
    records = run.file.read()
    _show_problems(run.questions, records, error)
    return {
        "folder": str(run.folder),
        "method": run.method.name,
        **_summarise(run.questions, records),
        "complete": error is None and run.is_complete(),
        "error": None if error is None else str(error),
    }


def _answer(run: MethodRun) -> None:
    if run.is_complete():
        return
    name = run.method.name
    with preparing(name) as run.context.progress:
        prepared = run.prepare()
    with _answering(name, run.questions, run.file.read()) as show:
        for record in run.answer(prepared):
            show(record)


def _list_variants(steps: Sequence[int], efforts: Sequence[str], options: Mapping[str, Any]) -> list[Variant]:
    """Return the variants of an experiment, each with a name if there are several.

    With several of both, steps vary with the model's own effort, and efforts with the default of steps. Model options
    that are given win over efforts.
    """
    from arag.evaluation.experiment import Variant

    def make(name: str, steps: int, effort: str | None) -> Variant:
        effort_option = {"reasoning_effort": effort} if effort else {}
        return Variant(name=name, max_steps=steps, model_options={**effort_option, **options})

    only_steps = steps[0] if len(steps) == 1 else DEFAULT_MAX_STEPS
    only_effort = efforts[0] if len(efforts) == 1 else None
    variants = {}
    if len(steps) > 1:
        for each in steps:
            variants[f"max-steps-{each}"] = each, only_effort
    if len(efforts) > 1:
        for effort in efforts:
            variants[f"effort-{effort}"] = only_steps, effort
    if not variants:
        variants[""] = only_steps, only_effort
    return [make(name, *varied) for name, varied in variants.items()]


def _make_methods(names: Sequence[str], options: Sequence[str]) -> list[Method]:
    """Return methods by their names, with the settings that `--set` options give."""
    from arag.evaluation.methods import find_methods, make_method

    kinds = find_methods(names)
    settings: dict[str, dict[str, Any]] = {name: {} for name in kinds}
    for target, value in read_pairs("--set", options, "linear-rag.threshold=0.4").items():
        method, _, name = target.rpartition(".")
        if method not in kinds:
            raise InputError(f"--set {target}: give METHOD.NAME=VALUE for one of the methods {', '.join(kinds)}")
        settings[method][name] = value
    return [make_method(kind, settings[name]) for name, kind in kinds.items()]


def write_report(folders: Sequence[Path], target: Path, **options: Any) -> list[Path]:
    """Write the report of runs; return its files."""
    try:
        from arag.evaluation.report import pages
    except ImportError as error:
        raise InputError(f"a report needs {error.name}: pip install 'langgraph-arag[eval]'") from error
    return pages.write_report(folders, target, **options)


def _write_report_if_possible(folders: Sequence[Path], target: Path) -> list[Path]:
    """Write the report without pages of questions; if that fails, say why: the records are there."""
    try:
        return write_report(folders, target, pages=False)
    except InputError as error:
        warn(f"No report: {error}")
        return []


# --- printing ---


@contextmanager
def preparing(name: str) -> Iterator[Callable[[str, int, int], None]]:
    """Draw a bar for each part of the work before the first question; yield a function for `RunContext.progress`."""
    with progress(MofNCompleteColumn(), transient=False) as bar:
        tasks: dict[str, TaskID] = {}

        def show(title: str, done: int, total: int) -> None:
            if title not in tasks:
                tasks[title] = bar.add_task(f"{name}: {title}", total=total)
            bar.update(tasks[title], completed=done, total=total)

        yield show


@contextmanager
def _answering(
    name: str, questions: Sequence[Question], records: dict[str, Record]
) -> Iterator[Callable[[Record], None]]:
    """Draw a bar with the accuracy so far, the cost and the time left; yield a function that takes a new record."""
    with progress(TextColumn("{task.fields[figures]}", markup=False), transient=False) as bar:
        task = bar.add_task(name, total=len(questions), figures="")

        def show(record: Record) -> None:
            records[record["question_id"]] = record
            if bar.disable:
                return
            summary = _summarise(questions, records)
            bar.update(task, completed=summary["answered"], figures=_describe(summary))

        yield show


def _summarise(questions: Sequence[Question], records: Mapping[str, Record]) -> dict[str, Any]:
    """Return a method's results so far.

    Accuracies are over the questions asked so far: failed ones count as wrong, unjudged ones do not count.
    """
    from arag.models.extractive import admits_no_answer

    asked = _list_asked(questions, records)
    failed = sum(record["error"] is not None for record in asked)
    answered = len(asked) - failed
    without = sum(admits_no_answer(record["prediction"]) for record in asked)
    contain = sum(record["contain"] for record in asked)
    right = sum(record.get("right", record["contain"]) for record in asked)
    has_forms = any(record.get("form", "text") != "text" for record in asked)
    prices = [record["cost"] for record in asked]
    verdicts = []
    for record in asked:
        judgement = record["judgement"]
        if judgement is None:
            continue
        prices.append(judgement["cost"])
        if judgement["correct"] is not None:
            verdicts.append(judgement["correct"])
    return {
        "questions": len(questions),
        "answered": answered,
        "no_answer_found": without,
        "failed": failed,
        "judged": len(verdicts),
        "contain": contain / len(asked) if answered else None,
        "right": right / len(asked) if answered and has_forms else None,
        "correct": sum(verdicts) / (len(verdicts) + failed) if verdicts else None,
        "cost": _add_prices(prices),
    }


def _list_asked(questions: Sequence[Question], records: Mapping[str, Record]) -> list[Record]:
    return [records[question.id] for question in questions if question.id in records]


def _add_prices(prices: Sequence[float | None]) -> float | None:
    """Return the sum of prices; None if one of them is unknown."""
    dollars: float = 0
    for price in prices:
        if price is None:
            return None
        dollars += price
    return dollars


def _describe(summary: Mapping[str, Any]) -> str:
    from arag.graph.outcome import NO_ANSWER_FOUND

    answered = f"{summary['answered']:,} of {summary['questions']:,} answered"
    if summary["no_answer_found"]:
        answered += f" ({NO_ANSWER_FOUND}: {summary['no_answer_found']:,})"
    parts = [answered]
    if summary["correct"] is not None:
        parts.append(f"LLM-Acc {summary['correct']:.1%}")
    if summary["right"] is not None:
        parts.append(f"Rule-Acc {summary['right']:.1%}")
    elif summary["contain"] is not None:
        parts.append(f"Contain-Acc {summary['contain']:.1%}")
    if summary["cost"] is None:
        parts.append("cost unknown")
    else:
        parts.append(f"${summary['cost']:.2f}")
    return ", ".join(parts)


def _show_summary(run: MethodRun, summary: Mapping[str, Any]) -> None:
    variant = f" {run.variant}:" if run.variant else ""
    out.print_line((run.method.name, "bold"), f"{variant} {_describe(summary)}")


def _show_problems(questions: Sequence[Question], records: Mapping[str, Record], error: Exception | None) -> None:
    """Print which questions have no answer or no verdict, and why, and the error that ended the run, if any."""
    asked = _list_asked(questions, records)
    lines = []
    for record in asked:
        judgement = record["judgement"]
        if record["error"]:
            lines.append(f"Failed: {record['question_id']}: {record['error']}")
        elif judgement and judgement["correct"] is None:
            lines.append(f"Unjudged: {record['question_id']}: {judgement['reason']}")
    for line in lines[:_MAX_PROBLEMS]:
        warn(line)
    if len(lines) > _MAX_PROBLEMS:
        warn(f"{len(lines) - _MAX_PROBLEMS:,} more such questions are in the records.")
    if error is None:
        return
    warn(f"The run ended, with {count(len(questions) - len(asked), 'question')} not begun: {error}")
    if not isinstance(error, ARAGError | Timeout):  # the message of a Timeout names the lock of another process
        err.print("".join(traceback.format_exception(error)).rstrip())


def show_written(files: Sequence[Path]) -> None:
    """Print which files were written."""
    for file in files:
        out.print_line(f"Written: {file}")
