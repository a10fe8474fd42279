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

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from arag.evaluation.datasets import Question
    from arag.evaluation.method import Lab, Method
    from arag.evaluation.runs import Record

_MAX_PROBLEMS = 3  # that are shown


def run(
    questions: Annotated[Path, typer.Option(metavar="FILE", help="Questions with gold answers.")],
    index: IndexOption,
    method: Annotated[
        list[str], typer.Option(help="A method, table1, ablation, or a module with METHODS; repeatable.")
    ],
    model: ModelOption = EXTRACTIVE,
    judge: Annotated[str | None, typer.Option(help="provider:model of a judge, for LLM-Acc. Default: none.")] = None,
    reasoning_effort: Annotated[
        list[str] | None, typer.Option(metavar="EFFORT", help="low, medium, ...; several make a run for each.")
    ] = None,
    model_option: ModelOptionsOption = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Use only the first N questions.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Questions to run at the same time.")] = 8,
    top_k: TopKOption = DEFAULT_TOP_K,
    presentation: Annotated[
        Literal["compact", "paper"], typer.Option(help="What A-RAG's tools show: compact, or the paper's plain lists.")
    ] = "compact",
    max_steps: Annotated[
        list[int] | None, typer.Option(min=1, help="A-RAG's steps at most, 15 by default; several make a run for each.")
    ] = None,
    max_cost: Annotated[
        float | None,
        typer.Option(min=0, help="Begin no call once so many US dollars are spent, by earlier runs as well."),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="METHOD.NAME=VALUE",
            help="A method's own setting, such as linear-rag.threshold=0.4; repeatable. VALUE is JSON, else a string.",
        ),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Where to write the records. Default: runs/DATASET.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Answer questions with methods, keep a record of each, and report. Run it again to continue.

    If the index does not exist, the paragraphs that come with the questions are ingested.

    With several step limits or reasoning efforts there is a run for each, in a folder of its own (paper, Figure 4).

    Exit code 1 means that questions failed or were skipped; the next run tries them again.
    """
    from arag.evaluation.cache import CallCache, Store, store_folder
    from arag.evaluation.corpora import describe_contents, locate_gold, make_index
    from arag.evaluation.datasets import load_questions, name_dataset
    from arag.evaluation.method import Lab
    from arag.evaluation.plan import Plan, describe_method, open_run
    from arag.retrieval.index import open_index
    from arag.retrieval.storage.locations import store_at

    # Almost everything that may be refused is refused before anything is written.
    methods = _make_methods(method, setting or ())
    every = load_questions(questions)
    if model == EXTRACTIVE and (needing := [each.name for each in methods if each.needs_model]):
        raise InputError(f"{needing[0]} needs a language model: give one with --model, as provider:model")
    judge_model = load_without_retries(judge) if judge else None
    target = folder or Path("runs") / name_dataset(questions)
    variants: dict[Path, tuple[int, dict[str, Any]]] = {}
    for name, (steps, effort) in _list_variants(max_steps or [], reasoning_effort or []).items():
        effort_option = {"reasoning_effort": effort} if effort else {}
        variants[target / name] = steps, effort_option | read_model_options(model_option)
    models = {place: load_without_retries(model, **options) for place, (_, options) in variants.items()}
    store = store_at(index)
    for line in make_index(every, store):
        err.print_line(line)
    contents = describe_contents(store)
    for place, (steps, options) in variants.items():
        plan = Plan(
            questions=str(questions.resolve()),
            index=str(store.location.resolve() if isinstance(store.location, Path) else store.location),
            model=model,
            judge=judge,
            model_options=options,
            top_k=top_k,
            presentation=presentation,
            max_steps=steps,
            contents=contents,
            methods={each.name: describe_method(each) for each in methods},
            asked=len(every[:limit]),
        )
        open_run(place, plan)
    ledger, kept, summaries = Store(target), Store(store_folder(store.location)), []
    with open_index(store) as searched:
        asked = locate_gold(every[:limit], searched)
        gold = [document for question in asked for document in question.gold_documents]
        if gold and not any(map(searched.document, gold)):
            warn(f"Warning: none of the questions' gold documents ({gold[0]!r}, ...) is in the index")
        cache = CallCache(ledger, max_cost=max_cost)  # of all variants, which begin with the same calls
        for place, (steps, _) in variants.items():
            lab = Lab(
                searched,
                models[place].model_copy(update={"cache": cache}),
                kept,
                judge=judge_model.model_copy(update={"cache": cache}) if judge_model else None,
                top_k=top_k,
                presentation=presentation,
                max_steps=steps,
                at_once=concurrency,
                announce=err.print_line,
            )
            preparing_model = models[place].model_copy(update={"cache": CallCache(kept, ledger, max_cost)})
            for each in methods:
                summaries.append(_run(each, lab, preparing_model, asked, place))
                if not as_json:
                    variant = f" {place.name}:" if len(variants) > 1 else ""
                    out.print_line((each.name, "bold"), f"{variant} {_describe(summaries[-1])}")
    if as_json:
        print_json({"folder": str(target), "methods": summaries})
    try:
        files = write_report(list(variants), target, pages=False)
    except InputError as error:
        warn(f"No report: {error}")
        files = []
    if not as_json:
        show_written(files)
    if not all(summary["complete"] for summary in summaries):
        raise typer.Exit(FAILED)


def _run(method: Method, lab: Lab, model: BaseChatModel, questions: Sequence[Question], folder: Path) -> dict[str, Any]:
    """Answer the questions with a method, whose work before the first one uses `model`; return a summary."""
    from arag.evaluation.plan import add_preparation
    from arag.evaluation.runs import answer_questions, list_open, prepare, record_file

    file, judged = record_file(folder, method.name), lab.judge is not None
    error: Exception | None = None
    try:
        if list_open(questions, file.read(), judged=judged):
            with preparing(method.name) as lab.progress:
                prepared, calls = prepare(method, lab, model)
                add_preparation(folder, method.name, calls)
            with _answering(method.name, questions, file.read()) as show:
                answer_questions(method, lab, prepared, questions, file, show)
    except Exception as failure:  # noqa: BLE001 - one method does not stop the others
        error = failure
    records = file.read()
    _show_problems(questions, records, error)
    complete = error is None and not list_open(questions, records, judged=judged)
    summary = {"folder": str(folder), "method": method.name, **_summarise(questions, records)}
    return {**summary, "complete": complete, "error": error and str(error)}


def load_without_retries(name: str, **options: Any) -> BaseChatModel:
    """Return a model whose client does not wait out rate limits: sessions do, and count no pauses as seconds."""
    from arag.models.chat import load_model

    model = load_model(name, **options)
    can_retry = "max_retries" in type(model).model_fields and "max_retries" not in options
    return load_model(name, **options, max_retries=0) if can_retry else model


def _list_variants(steps: Sequence[int], efforts: Sequence[str]) -> dict[str, tuple[int, str | None]]:
    """Return the steps and the effort of each run, by the name of its folder.

    With several of both, steps vary with the model's own effort, and efforts with the default of steps.
    """
    most = steps[0] if len(steps) == 1 else DEFAULT_MAX_STEPS
    effort = efforts[0] if len(efforts) == 1 else None
    variants = {f"max-steps-{each}": (each, effort) for each in steps if len(steps) > 1}
    variants |= {f"effort-{each}": (most, each) for each in efforts if len(efforts) > 1}
    return variants or {"": (most, effort)}


def _make_methods(names: Sequence[str], options: Sequence[str]) -> list[Method]:
    """Return methods by their names, with the settings that `--set` options give."""
    from arag.evaluation.methods import find_methods, make_method

    kinds = find_methods(names)
    settings: dict[str, dict[str, Any]] = {name: {} for name in kinds}
    for place, value in read_pairs("--set", options, "linear-rag.threshold=0.4").items():
        method, _, name = place.rpartition(".")
        if method not in kinds:
            raise InputError(f"--set {place}: give METHOD.NAME=VALUE for one of the methods {', '.join(kinds)}")
        settings[method][name] = value
    return [make_method(kind, settings[name]) for name, kind in kinds.items()]


def write_report(folders: Sequence[Path], target: Path, **options: Any) -> list[Path]:
    """Write the report of runs; return its files."""
    try:
        from arag.evaluation.report import pages
    except ImportError as error:
        raise InputError(f"a report needs {error.name}: pip install 'langgraph-arag[eval]'") from error
    return pages.write_report(folders, target, **options)


# --- what is printed ---


@contextmanager
def preparing(name: str) -> Iterator[Callable[[str, int, int], None]]:
    """Draw a bar for each part of the work before the first question; yield what `Lab.progress` is."""
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
    """Draw a bar with the accuracy so far, the cost and the time left; yield what is called with each new record."""
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
    asked = [records[question.id] for question in questions if question.id in records]
    failed = sum(record["error"] is not None for record in asked)
    judgements = [judgement for record in asked if (judgement := record["judgement"])]
    verdicts = [judgement["correct"] for judgement in judgements if judgement["correct"] is not None]
    prices = [record["cost"] for record in asked] + [judgement["cost"] for judgement in judgements]
    return {
        "questions": len(questions),
        "answered": len(asked) - failed,
        "failed": failed,
        "judged": len(verdicts),
        "contain": sum(record["contain"] for record in asked) / len(asked) if failed < len(asked) else None,
        "correct": sum(verdicts) / (len(verdicts) + failed) if verdicts else None,
        "cost": None if None in prices else sum(price or 0 for price in prices),
    }


def _describe(summary: Mapping[str, Any]) -> str:
    accuracies = {"LLM-Acc": summary["correct"], "Contain-Acc": summary["contain"]}
    parts = [f"{name} {share:.1%}" for name, share in accuracies.items() if share is not None]
    price = "cost unknown" if summary["cost"] is None else f"${summary['cost']:.2f}"
    return ", ".join([f"{summary['answered']:,} of {summary['questions']:,} answered", *parts, price])


def _show_problems(questions: Sequence[Question], records: Mapping[str, Record], error: Exception | None) -> None:
    """Print which questions have no answer or no verdict, and why, and what ended the run, if anything did."""
    asked = [records[question.id] for question in questions if question.id in records]
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
    if error is not None:
        warn(f"The run ended, with {len(questions) - len(asked):,} questions not begun: {error}")
        if not isinstance(error, ARAGError | Timeout):  # whose message names the lock that another process has
            err.print("".join(traceback.format_exception(error)).rstrip())


def show_written(files: Sequence[Path]) -> None:
    """Print which files were written."""
    for file in files:
        out.print_line(f"Written: {file}")
