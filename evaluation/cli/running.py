"""`arag eval run`, `ablate` and `scale`: run methods on questions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from arag.evaluation.cli.options import (
    ConcurrencyOption,
    JudgeOption,
    LimitOption,
    MaxCostOption,
    OutOption,
    PresentationOption,
    QuestionsOption,
    SetOption,
    read_settings,
    show_written,
)
from arag.evaluation.cli.progress import method_progress, show_failures, show_summary, summarise, work_progress
from arag.options import (
    DEFAULT_MAX_STEPS,
    DEFAULT_TOP_K,
    DocumentsOption,
    EffortOption,
    IndexToMakeOption,
    JsonOption,
    MaxStepsOption,
    ModelOption,
    ModelOptionsOption,
    TopKOption,
    WhereOption,
    read_model_options,
    read_scope,
)
from arag.terminal import FAILED, err, out, print_json, warn

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from arag.errors import ModelError
    from arag.evaluation.budget import Budget
    from arag.evaluation.methods import Method, Options
    from arag.retrieval.index import Index
    from arag.retrieval.scope import Scope
    from arag.retrieval.storage import IndexStore
    from arag.retrieval.tools import Presentation

_ABLATION = ["arag", "arag-without-keyword", "arag-without-semantic", "arag-without-read"]


def run(
    questions: QuestionsOption,
    index: IndexToMakeOption,
    method: Annotated[
        list[str], typer.Option("--method", help="A method, or a module with METHODS; repeatable. See `methods`.")
    ],
    model: ModelOption = None,
    judge: JudgeOption = None,
    reasoning_effort: EffortOption = None,
    model_option: ModelOptionsOption = None,
    limit: LimitOption = None,
    concurrency: ConcurrencyOption = 8,
    top_k: TopKOption = DEFAULT_TOP_K,
    presentation: PresentationOption = "compact",
    where: WhereOption = None,
    documents: DocumentsOption = None,
    max_steps: MaxStepsOption = DEFAULT_MAX_STEPS,
    max_cost: MaxCostOption = None,
    setting: SetOption = None,
    folder: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Where to write the records.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Answer questions with methods and keep a record of each. Run it again to continue.

    Exit code 1 means that questions failed or were skipped; the next run tries them again.
    """
    from arag.evaluation.datasets import name_dataset

    target = folder or Path("runs") / name_dataset(questions)
    options = read_model_options(model_option, reasoning_effort)
    experiment = _Experiment(
        questions,
        index,
        method,
        model,
        judge,
        options,
        limit,
        concurrency,
        top_k,
        presentation,
        read_scope(where, documents),
        max_steps,
        setting or (),
    )
    summaries = experiment.run(target, _budget(max_cost, [target]), quiet=as_json)
    if as_json:
        print_json({"folder": str(target), "methods": summaries})
    _check_complete(summaries)


def ablate(
    questions: QuestionsOption,
    index: IndexToMakeOption,
    folder: OutOption,
    model: ModelOption = None,
    judge: JudgeOption = None,
    reasoning_effort: EffortOption = None,
    model_option: ModelOptionsOption = None,
    limit: LimitOption = None,
    concurrency: ConcurrencyOption = 8,
    top_k: TopKOption = DEFAULT_TOP_K,
    presentation: PresentationOption = "compact",
    where: WhereOption = None,
    documents: DocumentsOption = None,
    max_steps: MaxStepsOption = DEFAULT_MAX_STEPS,
    max_cost: MaxCostOption = None,
) -> None:
    """Run A-RAG with all tools and without each of them (paper, Table 2). Compare them with `arag eval report`."""
    run(
        questions,
        index,
        _ABLATION,
        model,
        judge,
        reasoning_effort,
        model_option,
        limit,
        concurrency,
        top_k,
        presentation,
        where,
        documents,
        max_steps,
        max_cost,
        folder=folder,
    )


def scale(
    questions: QuestionsOption,
    index: IndexToMakeOption,
    folder: OutOption,
    method: Annotated[str, typer.Option(help="The method.")] = "arag",
    model: ModelOption = None,
    judge: JudgeOption = None,
    steps: Annotated[
        list[int] | None, typer.Option(min=1, help="Maximum steps; repeatable. Default: 5 10 15 20.")
    ] = None,
    effort: Annotated[list[str] | None, typer.Option(help="A reasoning effort; repeatable.")] = None,
    model_option: ModelOptionsOption = None,
    limit: LimitOption = 300,
    concurrency: ConcurrencyOption = 8,
    top_k: TopKOption = DEFAULT_TOP_K,
    presentation: PresentationOption = "compact",
    where: WhereOption = None,
    documents: DocumentsOption = None,
    max_cost: MaxCostOption = None,
    setting: SetOption = None,
) -> None:
    """Run one method with different step limits and reasoning efforts (paper, Figure 4)."""
    from arag.evaluation.datasets import load_questions
    from arag.evaluation.report.scaling import EFFORT, STEPS, make_scaling, setting_folder

    options = read_model_options(model_option, None)
    scope = read_scope(where, documents)
    common = _Experiment(
        questions,
        index,
        [method],
        model,
        judge,
        options,
        limit,
        concurrency,
        top_k,
        presentation,
        scope,
        settings=setting or (),
    )
    settings = {
        setting_folder(folder, STEPS, str(most)): replace(common, max_steps=most) for most in steps or [5, 10, 15, 20]
    } | {
        setting_folder(folder, EFFORT, name): replace(common, model_options=read_model_options(model_option, name))
        for name in effort or ()
    }
    budget = _budget(max_cost, list(settings))
    summaries = [each for target, experiment in settings.items() for each in experiment.run(target, budget)]
    found = make_scaling(folder, method, [question.id for question in load_questions(questions)[:limit]])
    show_written(found.write(folder, "scale"), found.notes, as_json=False)
    _check_complete(summaries)


@dataclass(frozen=True, slots=True)
class _Experiment:
    """Methods to run on questions, as given on the command line."""

    questions: Path
    index: IndexStore
    methods: Sequence[str]
    model: str | None
    judge: str | None
    model_options: Mapping[str, Any]
    limit: int | None
    concurrency: int
    top_k: int
    presentation: Presentation
    scope: Scope | None
    max_steps: int = DEFAULT_MAX_STEPS
    settings: Sequence[str] = ()

    def run(self, folder: Path, budget: Budget, *, quiet: bool = False) -> list[dict[str, Any]]:
        """Answer the questions; return the results of each method."""
        from arag.evaluation.corpora import contents, locate_gold, make_index, missing_gold
        from arag.evaluation.datasets import load_questions
        from arag.evaluation.judge import Judge
        from arag.evaluation.methods import Options, find_methods
        from arag.evaluation.preparation import check_requirements
        from arag.evaluation.report.figures import light_records
        from arag.evaluation.runs import Plan, Runner, name_payer, open_run, record_file
        from arag.models.chat import EXTRACTIVE, MODEL_VARIABLE, load_model
        from arag.models.prices import cite_prices
        from arag.retrieval.index import open_index
        from arag.retrieval.trust import check_embedder

        methods, asked = find_methods(self.methods), load_questions(self.questions)[: self.limit]
        cite_prices()  # an unreadable price list fails here, before anything is paid for
        model = load_model(self.model, **self.model_options)
        judge = Judge(load_model(self.judge), self.judge) if self.judge else None
        options = Options(
            top_k=self.top_k,
            presentation=self.presentation,
            max_steps=self.max_steps,
            settings=read_settings(self.settings, methods),
        )
        for method in methods.values():
            check_requirements(method, model, options)
        plan = Plan(
            questions=str(self.questions),
            index=str(self.index.location),
            model=self.model or os.environ.get(MODEL_VARIABLE) or EXTRACTIVE,
            judge=self.judge,
            model_options=self.model_options,
            options=options,
            scope=None if self.scope is None else self.scope.model_dump(mode="json", exclude_none=True),
            methods={name: method.facts(options) for name, method in methods.items()},
            asked=len(asked),
        )
        if any(method.uses_vectors for method in methods.values()):
            check_embedder(self.index)
        open_run(folder, plan)  # a different plan is refused before ingesting, a different index after it
        for note in make_index(self.questions, self.index):
            err.print(note)
        plan = open_run(folder, replace(plan, contents=contents(self.index)))
        asked = locate_gold(asked, self.index)
        summaries = []
        with open_index(self.index) as opened:
            index = opened if self.scope is None else opened.limited_to(self.scope)
            if (warning := missing_gold(asked, index)) is not None:
                warn(f"Warning: {warning}")
            for method in methods.values():
                file = record_file(folder, method.name)
                records, _ = light_records(file.file)
                failed = None
                if not budget.is_used_up():
                    if method.prepare is not None:
                        payer = name_payer(folder, plan, method.name)
                        failed = self._prepare(method, folder, index, model, options, budget, payer)
                    if failed is None:
                        with method_progress(method.name, asked, records, judged=judge is not None) as add:
                            Runner(method, index, model, options, judge, self.concurrency, budget, add).run(asked, file)
                summaries.append(summarise(method.name, asked, records, judged=judge is not None))
                if not quiet:
                    show_summary(summaries[-1])
                if failed is None:
                    show_failures(asked, records, judged=judge is not None)
                else:
                    warn(f"Failed: {failed}")
        if not quiet:
            out.print(f"Records: {folder}")
        return summaries

    def _prepare(
        self,
        method: Method,
        folder: Path,
        index: Index,
        model: BaseChatModel,
        options: Options,
        budget: Budget,
        payer: str,
    ) -> ModelError | None:
        """Do a method's index-time work; return the error if a model call fails: the other methods still run."""
        from arag.errors import ModelError
        from arag.evaluation.event_loop import run
        from arag.evaluation.preparation import prepare_run
        from arag.evaluation.store import open_store
        from arag.evaluation.workplace import Workplace

        with work_progress(method.name) as show:
            place = Workplace(index, model, options, open_store(index), self.concurrency, budget=budget, run=payer)
            place.on_announced, place.on_progress = err.print, show
            try:
                run(prepare_run(method, place, folder))
            except ModelError as error:
                return error
        return None


def _check_complete(summaries: Sequence[Mapping[str, Any]]) -> None:
    """Exit with code 1 if answers or verdicts are missing."""
    if any(summary["answered"] < summary["questions"] or summary["unjudged"] for summary in summaries):
        raise typer.Exit(FAILED)


def _budget(limit: float | None, folders: Sequence[Path]) -> Budget:
    """Return the budget, less what runs in these folders have already cost.

    Raises:
        InputError: There is a limit, but what they have cost is unknown.
    """
    from arag.evaluation.budget import Budget
    from arag.evaluation.runs import count_spent

    budget = Budget(limit)
    for folder in folders if limit is not None else ():
        count_spent(folder, budget)
    budget.check()
    return budget
