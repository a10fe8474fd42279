"""`arag eval run`: run methods on questions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from arag.errors import InputError
from arag.evaluation.cli.progress import answering, describe, preparing, show_problems, summarise
from arag.evaluation.cli.reporting import load_report, show_written
from arag.graph import DEFAULT_MAX_STEPS
from arag.options import (
    DocumentsOption,
    IndexOption,
    JsonOption,
    ModelOption,
    ModelOptionsOption,
    TopKOption,
    WhereOption,
    read_model_options,
    read_pairs,
    read_scope,
)
from arag.retrieval import DEFAULT_TOP_K
from arag.terminal import FAILED, err, out, print_json, warn

if TYPE_CHECKING:
    from langchain_core.caches import BaseCache
    from langchain_core.language_models import BaseChatModel

    from arag.evaluation.datasets import Question
    from arag.evaluation.judge import Judge
    from arag.evaluation.method import Lab, Method

_RETRIES = 12  # of a model's client, over about a minute: rate limits are usual in experiments


def run(
    questions: Annotated[Path, typer.Option("--questions", metavar="FILE", help="Questions with gold answers.")],
    index: IndexOption,
    method: Annotated[
        list[str],
        typer.Option(
            "--method", help="A method, table1, ablation, or a module with METHODS; repeatable. See `methods`."
        ),
    ],
    model: ModelOption = None,
    judge: Annotated[
        str | None, typer.Option("--judge", help="provider:model of a judge, for LLM-Acc. Default: none.")
    ] = None,
    reasoning_effort: Annotated[
        list[str] | None,
        typer.Option(
            "--reasoning-effort",
            metavar="EFFORT",
            help="low, medium, high or another value that the model accepts; several make a run for each.",
        ),
    ] = None,
    model_option: ModelOptionsOption = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Use only the first N questions.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Questions to run at the same time.")] = 8,
    top_k: TopKOption = DEFAULT_TOP_K,
    presentation: Annotated[
        Literal["compact", "paper"], typer.Option(help="What A-RAG's tools show: compact, or the paper's plain lists.")
    ] = "compact",
    where: WhereOption = None,
    documents: DocumentsOption = None,
    max_steps: Annotated[
        list[int] | None,
        typer.Option(
            "--max-steps",
            min=1,
            help=f"A-RAG's steps before an answer is forced, {DEFAULT_MAX_STEPS} by default; several make a run for "
            "each.",
        ),
    ] = None,
    max_cost: Annotated[
        float | None,
        typer.Option(
            help="Begin no model call once this many US dollars are spent, counting all methods, verdicts and earlier "
            "runs in the same folder. Calls under way are finished and paid: a method makes up to --concurrency calls "
            "at a time for a question."
        ),
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
    from arag.evaluation.cache import Budget, CallCache, Store, store_folder
    from arag.evaluation.corpora import describe_contents, locate_gold, make_index, missing_gold
    from arag.evaluation.datasets import load_questions, name_dataset
    from arag.evaluation.judge import Judge
    from arag.evaluation.method import Lab
    from arag.evaluation.plan import Plan, describe_method, merge_plan, open_run
    from arag.models.chat import EXTRACTIVE, MODEL_VARIABLE
    from arag.retrieval.index import open_index

    # Whatever may be refused is refused before anything is written.
    methods = _make_methods(method, setting or ())
    every = load_questions(questions)
    model = model or os.environ.get(MODEL_VARIABLE) or EXTRACTIVE
    if model == EXTRACTIVE and (needing := [each.name for each in methods if each.needs_model]):
        raise InputError(f"{needing[0]} needs a language model: give one with --model, as provider:model")
    judge_model = load_judge(judge) if judge else None
    scope = read_scope(where, documents)
    target = folder or Path("runs") / name_dataset(questions)
    plans, models = {}, {}
    for name, steps, effort in _list_variants(max_steps or [], reasoning_effort or []):
        options = ({"reasoning_effort": effort} if effort else {}) | read_model_options(model_option)
        models[target / name] = load_patient(model, **options)
        plans[target / name] = Plan(
            questions=str(questions.resolve()),
            index=str(index.location.resolve() if isinstance(index.location, Path) else index.location),
            model=model,
            judge=judge,
            model_options=options,
            top_k=top_k,
            presentation=presentation,
            max_steps=steps,
            scope=None if scope is None else scope.model_dump(mode="json", exclude_none=True),
            methods={each.name: describe_method(each) for each in methods},
            asked=len(every[:limit]),
        )
        merge_plan(target / name, plans[target / name])
    for line in make_index(every, index):
        err.print(line)
    contents = describe_contents(index)
    for place, plan in plans.items():  # which refuses another index, too
        open_run(place, plan.model_copy(update={"contents": contents}))
    ledgers, kept = {place: Store(place) for place in plans}, Store(store_folder(index.location))
    budget = Budget(list(ledgers.values()), max_cost)
    summaries = []
    with open_index(index) as whole:
        asked = locate_gold(every[:limit], whole)
        searched = whole if scope is None else whole.limited_to(scope)
        if (warning := missing_gold(asked, searched)) is not None:
            warn(f"Warning: {warning}")
        for place, plan in plans.items():
            cache = CallCache(ledgers[place], ledgers[place], budget.check)
            lab = Lab(
                searched,
                _cached(models[place], cache),
                kept,
                top_k=top_k,
                presentation=presentation,
                max_steps=plan.max_steps,
                at_once=concurrency,
                announce=err.print,
            )
            preparing_model = _cached(models[place], CallCache(kept, ledgers[place], budget.check))
            judging = None if judge_model is None else Judge(_cached(judge_model, cache), judge or "")
            for each in methods:
                summaries.append(_run(each, lab, preparing_model, asked, place, judging))
                if not as_json:
                    out.print(describe(summaries[-1]))
    if as_json:
        print_json({"folder": str(target), "methods": summaries})
    files = _write_report(list(plans), target)
    if not as_json:
        show_written(files)
    if any(summary["error"] or not summary["complete"] for summary in summaries):
        raise typer.Exit(FAILED)


def _run(
    method: Method, lab: Lab, model: BaseChatModel, questions: Sequence[Question], folder: Path, judge: Judge | None
) -> dict[str, Any]:
    """Answer the questions with a method, whose work before the first one uses `model`; return a summary."""
    from arag.evaluation.plan import add_preparation
    from arag.evaluation.runs import answer_questions, list_open, prepare, record_file

    file, judged, error = record_file(folder, method.name), judge is not None, None
    try:
        if list_open(questions, file.read(), judged=judged):
            with preparing(method.name) as lab.progress:
                prepared, effort = prepare(method, lab, model)
                add_preparation(folder, method.name, effort)
            with answering(method.name, questions, file.read()) as show:
                answer_questions(method, lab, prepared, questions, file, judge, show)
    except Exception as failure:  # noqa: BLE001 - one method does not stop the others
        error = failure
    records = file.read()
    show_problems(questions, records, error)
    complete = not list_open(questions, records, judged=judged)
    summary = {"folder": str(folder), **summarise(method.name, questions, records)}
    return {**summary, "complete": complete, "error": error and str(error)}


def _cached(model: BaseChatModel, cache: BaseCache) -> BaseChatModel:
    return model.model_copy(update={"cache": cache})


def load_patient(name: str, **options: Any) -> BaseChatModel:
    """Return a model whose client waits out rate limits, if it can retry."""
    from arag.models.chat import load_model

    model = load_model(name, **options)
    can_retry = "max_retries" in type(model).model_fields and "max_retries" not in options
    return load_model(name, **options, max_retries=_RETRIES) if can_retry else model


def load_judge(name: str) -> BaseChatModel:
    """Return a judge's model."""
    from arag.models.chat import EXTRACTIVE

    if name == EXTRACTIVE:
        raise InputError("the built-in extractive model cannot judge: give a language model, as provider:model")
    return load_patient(name)


def _list_variants(steps: Sequence[int], efforts: Sequence[str]) -> list[tuple[str, int, str | None]]:
    """Return the runs for step limits and efforts: the folder's name, the steps and the effort of each.

    With several of both, steps vary with the model's own effort, and efforts with the default of steps.
    """
    if len(steps) > 1 and len(efforts) > 1:
        return [*_list_variants(steps, []), *_list_variants([], efforts)]
    most, effort = next(iter(steps), DEFAULT_MAX_STEPS), next(iter(efforts), None)
    if len(steps) > 1:
        return [(f"max-steps-{each}", each, effort) for each in steps]
    if len(efforts) > 1:
        return [(f"effort-{each}", most, each) for each in efforts]
    return [("", most, effort)]


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


def _write_report(folders: Sequence[Path], target: Path) -> list[Path]:
    """Write the report, without a page for each question; return its files."""
    try:
        return list(load_report().write_report(folders, target, pages=False))
    except InputError as error:
        warn(f"No report: {error}")
        return []
