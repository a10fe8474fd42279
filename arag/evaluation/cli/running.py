"""`arag eval run`: run methods on questions."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from arag.errors import InputError
from arag.evaluation.cli.progress import answering, preparing, show_problems, show_summary, summarise
from arag.evaluation.cli.reporting import load_report, show_written
from arag.options import (
    DEFAULT_MAX_STEPS,
    DEFAULT_TOP_K,
    DocumentsOption,
    IndexToMakeOption,
    JsonOption,
    ModelOption,
    ModelOptionsOption,
    TopKOption,
    WhereOption,
    read_model_options,
    read_scope,
)
from arag.terminal import FAILED, err, print_json, warn

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from arag.evaluation.budget import Budget
    from arag.evaluation.method import Method
    from arag.evaluation.plan import Plan
    from arag.retrieval.scope import Scope
    from arag.retrieval.storage import IndexStore

_RETRIES = 12  # of a model's client, over about a minute: rate limits are usual in experiments


def run(
    questions: Annotated[Path, typer.Option("--questions", metavar="FILE", help="Questions with gold answers.")],
    index: IndexToMakeOption,
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
            help="Make no more model calls once this many US dollars are spent, counting all methods, verdicts and "
            "earlier runs in the same folder."
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

    With several step limits or reasoning efforts there is a run for each, in a folder of its own (paper, Figure 4).

    Exit code 1 means that questions failed or were skipped; the next run tries them again.
    """
    from arag.evaluation.budget import Budget
    from arag.evaluation.cache import Store
    from arag.evaluation.datasets import name_dataset
    from arag.evaluation.methods import find_methods, make_method
    from arag.models.chat import EXTRACTIVE, MODEL_VARIABLE

    kinds = find_methods(method)
    settings = _read_settings(setting or (), kinds)
    target = folder or Path("runs") / name_dataset(questions)
    experiments = {
        target / name: _Experiment(
            questions=questions,
            index=index,
            methods=[make_method(kind, settings.get(name, {})) for name, kind in kinds.items()],
            model=model or os.environ.get(MODEL_VARIABLE) or EXTRACTIVE,
            judge=judge,
            model_options=read_model_options(model_option, effort),
            limit=limit,
            concurrency=concurrency,
            top_k=top_k,
            presentation=presentation,
            scope=read_scope(where, documents),
            max_steps=steps,
        )
        for name, steps, effort in _list_variants(max_steps or [], reasoning_effort or [])
    }
    budget = Budget([Store(each) for each in experiments], max_cost)
    summaries = [
        summary for each, experiment in experiments.items() for summary in experiment.run(each, budget, quiet=as_json)
    ]
    if as_json:
        print_json({"folder": str(target), "methods": summaries})
    _write_report(list(experiments), target, quiet=as_json)
    if any(summary["error"] or not summary["complete"] for summary in summaries):
        raise typer.Exit(FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Experiment:
    """What one run folder holds: methods on questions, with one model."""

    questions: Path
    index: IndexStore
    methods: Sequence[Method]
    model: str
    judge: str | None
    model_options: Mapping[str, Any]
    limit: int | None
    concurrency: int
    top_k: int
    presentation: Literal["compact", "paper"]
    scope: Scope | None
    max_steps: int

    def run(self, folder: Path, budget: Budget, *, quiet: bool) -> list[dict[str, Any]]:
        """Answer the questions; return a summary for each method."""
        from arag.evaluation.cache import CallCache, Store, store_folder
        from arag.evaluation.corpora import describe_contents, locate_gold, make_index, missing_gold
        from arag.evaluation.datasets import load_questions
        from arag.evaluation.judge import Judge
        from arag.evaluation.method import Lab
        from arag.evaluation.plan import add_preparation, open_run
        from arag.evaluation.runs import answer_questions, list_open, prepare, record_file
        from arag.models.chat import EXTRACTIVE
        from arag.retrieval.index import open_index

        every = load_questions(self.questions)
        for method in self.methods if self.model == EXTRACTIVE else ():
            if method.needs_model:
                raise InputError(f"{method.name} needs a language model: give one with --model, as provider:model")
        model = load_patient(self.model, **self.model_options)
        judging = load_judge(self.judge) if self.judge else None
        plan = self._plan(len(every[: self.limit]))
        open_run(folder, plan)  # another plan is refused before ingesting, another index after it
        for line in make_index(every, self.index):
            err.print(line)
        open_run(folder, plan.model_copy(update={"contents": describe_contents(self.index)}))
        ledger, kept = Store(folder), Store(store_folder(self.index.location))
        cache = CallCache(ledger, ledger, budget.check)
        preparing_model = model.model_copy(update={"cache": CallCache(kept, ledger, budget.check)})
        judge = None
        if judging is not None:
            judge = Judge(judging.model_copy(update={"cache": cache}), self.judge or "")
        summaries = []
        with open_index(self.index) as whole:
            asked = locate_gold(every[: self.limit], whole)
            index = whole if self.scope is None else whole.limited_to(self.scope)
            if (warning := missing_gold(asked, index)) is not None:
                warn(f"Warning: {warning}")
            lab = Lab(
                index,
                model.model_copy(update={"cache": cache}),
                kept,
                top_k=self.top_k,
                presentation=self.presentation,
                max_steps=self.max_steps,
                at_once=self.concurrency,
                announce=err.print,
            )
            for method in self.methods:
                file, judged = record_file(folder, method.name), judge is not None
                error = None
                try:
                    if list_open(asked, file.read(), judged=judged):
                        with preparing(method.name) as lab.progress:
                            prepared, effort = prepare(method, lab, preparing_model)
                            add_preparation(folder, method.name, effort)
                        with answering(method.name, asked, file, judged=judged) as show:
                            answer_questions(method, lab, prepared, asked, file, judge, show)
                except Exception as failure:  # noqa: BLE001 - one method does not stop the others
                    error = failure
                records = file.read()
                summary = {"folder": str(folder), **summarise(method.name, asked, records, judged=judged)}
                summaries.append({**summary, "error": error and str(error)})
                if not quiet:
                    show_summary(summary)
                show_problems(asked, records, error)
        return summaries

    def _plan(self, asked: int) -> Plan:
        from arag.evaluation.plan import describe_method, make_plan

        return make_plan(
            questions=str(self.questions.resolve()),
            index=str(_absolute(self.index)),
            model=self.model,
            judge=self.judge,
            model_options=self.model_options,
            top_k=self.top_k,
            presentation=self.presentation,
            max_steps=self.max_steps,
            scope=None if self.scope is None else self.scope.model_dump(mode="json", exclude_none=True),
            methods={method.name: describe_method(method) for method in self.methods},
            asked=asked,
        )


def _absolute(index: IndexStore) -> Path | str:
    return index.location.resolve() if isinstance(index.location, Path) else index.location


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
    if len(steps) <= 1 and len(efforts) <= 1:
        return [("", next(iter(steps), DEFAULT_MAX_STEPS), next(iter(efforts), None))]
    if len(steps) > 1 and len(efforts) > 1:
        return [*_list_variants(steps, []), *_list_variants([], efforts)]
    if len(steps) > 1:
        return [(f"max-steps-{most}", most, next(iter(efforts), None)) for most in steps]
    return [(f"effort-{effort}", next(iter(steps), DEFAULT_MAX_STEPS), effort) for effort in efforts]


def _read_settings(values: Sequence[str], methods: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return methods' own settings, by method and name, from `--set` options."""
    settings: dict[str, dict[str, Any]] = {}
    for option in values:
        place, equals, value = option.partition("=")
        method, dot, name = place.rpartition(".")
        if not (equals and dot and method and name):
            raise InputError(f"--set {option}: give METHOD.NAME=VALUE, such as linear-rag.threshold=0.4")
        if method not in methods:
            raise InputError(f"--set {option}: the method {method!r} is not run; methods: {', '.join(methods)}")
        try:
            settings.setdefault(method, {})[name] = json.loads(value)
        except ValueError:
            settings.setdefault(method, {})[name] = value
    return settings


def _write_report(folders: Sequence[Path], target: Path, *, quiet: bool) -> None:
    """Write the report, without a page for each question."""
    try:
        files = load_report().write_report(folders, target, pages=False)
    except InputError as error:
        warn(f"No report: {error}")
        return
    if not quiet:
        show_written(files, as_json=False)
