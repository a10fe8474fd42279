"""`arag eval run`, `ablate` and `scale`: methods over questions."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from arag.errors import InputError
from arag.evaluation.cli.asking import confirm_embedder
from arag.evaluation.cli.options import (
    DEFAULT_MAX_STEPS,
    FAILED,
    ConcurrencyOption,
    EffortOption,
    IndexOption,
    JsonOption,
    JudgeOption,
    LimitOption,
    MaxCostOption,
    MaxStepsOption,
    ModelOption,
    ModelOptionsOption,
    OutOption,
    QuestionsOption,
    TopKOption,
    show_written,
)
from arag.evaluation.cli.progress import progress_bar, show_failures, show_summary, summarise
from arag.terminal import err, out, print_json, warn

if TYPE_CHECKING:
    from arag.evaluation.budget import Budget


def run(
    questions: QuestionsOption,
    index: IndexOption,
    method: Annotated[list[str], typer.Option("--method", help="A method; give it again for more than one.")],
    model: ModelOption = None,
    judge: JudgeOption = None,
    reasoning_effort: EffortOption = None,
    model_option: ModelOptionsOption = None,
    limit: LimitOption = None,
    concurrency: ConcurrencyOption = 8,
    top_k: TopKOption = 5,
    max_steps: MaxStepsOption = DEFAULT_MAX_STEPS,
    max_cost: MaxCostOption = None,
    folder: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Where the records go.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Answer questions with methods, and keep a record of each; run again, it goes on where it was.

    Exit code 1 means that questions failed or were left out; the next run tries them again.
    """
    # A name that says nothing is preceded by one that may: musique/questions.json.
    target = folder or Path("runs") / (
        questions.resolve().parent.name if questions.stem == "questions" else questions.stem
    )
    summaries = _run(
        questions,
        index,
        method,
        target,
        model=model,
        judge=judge,
        model_options=_model_options(model_option, reasoning_effort),
        top_k=top_k,
        max_steps=max_steps,
        limit=limit,
        concurrency=concurrency,
        budget=_budget(max_cost, [target]),
        quiet=as_json,
    )
    if as_json:
        print_json({"folder": str(target), "methods": summaries})
    if not _is_complete(summaries):
        raise typer.Exit(FAILED)


def ablate(
    questions: QuestionsOption,
    index: IndexOption,
    folder: OutOption,
    model: ModelOption = None,
    judge: JudgeOption = None,
    reasoning_effort: EffortOption = None,
    model_option: ModelOptionsOption = None,
    limit: LimitOption = None,
    concurrency: ConcurrencyOption = 8,
    top_k: TopKOption = 5,
    max_steps: MaxStepsOption = DEFAULT_MAX_STEPS,
    max_cost: MaxCostOption = None,
) -> None:
    """Run A-RAG with all of its tools and without each of them (paper, Table 2); `arag eval report` compares them."""
    summaries = _run(
        questions,
        index,
        ["arag", "arag-without-keyword", "arag-without-semantic", "arag-without-read"],
        folder,
        model=model,
        judge=judge,
        model_options=_model_options(model_option, reasoning_effort),
        top_k=top_k,
        max_steps=max_steps,
        limit=limit,
        concurrency=concurrency,
        budget=_budget(max_cost, [folder]),
    )
    if not _is_complete(summaries):
        raise typer.Exit(FAILED)


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
    model_option: ModelOptionsOption = None,
    limit: LimitOption = 300,
    concurrency: ConcurrencyOption = 8,
    top_k: TopKOption = 5,
    max_cost: MaxCostOption = None,
) -> None:
    """Run one method with more and more steps, and with more and more reasoning (paper, Figure 4)."""
    from arag.evaluation.datasets import load_questions
    from arag.evaluation.report.experiment_page import write_page
    from arag.evaluation.report.scaling_page import scaling_page
    from arag.evaluation.scaling import EFFORT, STEPS, measure, setting_folder, write_scaling

    settings: list[tuple[Path, int, str | None]] = [
        *((setting_folder(folder, STEPS, str(most)), most, None) for most in steps or [5, 10, 15, 20]),
        *((setting_folder(folder, EFFORT, name), DEFAULT_MAX_STEPS, name) for name in effort or ()),
    ]
    budget = _budget(max_cost, [target for target, _, _ in settings])
    complete = True
    for target, max_steps, reasoning_effort in settings:
        summaries = _run(
            questions,
            index,
            [method],
            target,
            model=model,
            judge=judge,
            model_options=_model_options(model_option, reasoning_effort),
            top_k=top_k,
            max_steps=max_steps,
            limit=limit,
            concurrency=concurrency,
            budget=budget,
        )
        complete = complete and _is_complete(summaries)
    found = measure(folder, method, [question.id for question in load_questions(questions)[:limit]])
    files = [*write_scaling(found, folder), write_page(scaling_page(found), folder / "scale.html")]
    show_written(files, found.notes, as_json=False)
    if not complete:
        raise typer.Exit(FAILED)


def _run(
    questions: Path,
    index: Path,
    methods: Sequence[str],
    folder: Path,
    *,
    model: str | None,
    judge: str | None,
    model_options: Mapping[str, Any],
    top_k: int,
    max_steps: int,
    limit: int | None,
    concurrency: int,
    budget: Budget,
    quiet: bool = False,
) -> list[dict[str, Any]]:
    """Answer questions with methods; return what each has reached."""
    from arag.evaluation.corpora import contents, make_index, missing_gold
    from arag.evaluation.datasets import load_questions
    from arag.evaluation.judge import Judge
    from arag.evaluation.methods import Options
    from arag.evaluation.methods import method as find_method
    from arag.evaluation.preparation import prepare
    from arag.evaluation.runs import Plan, Runner, open_run, record_file
    from arag.models.chat import EXTRACTIVE, MODEL_VARIABLE, load_model
    from arag.models.prices import cite_prices
    from arag.retrieval.index import open_index

    wanted = [find_method(name) for name in dict.fromkeys(methods)]
    asked = load_questions(questions)[:limit]
    cite_prices()  # a list of one's own that cannot be read is told of before anything is paid for
    chat_model = load_model(model, **model_options)
    of_judge = Judge(load_model(judge), judge) if judge else None
    plan = Plan(
        questions=str(questions),
        index=str(index),
        model=model or os.environ.get(MODEL_VARIABLE) or EXTRACTIVE,
        judge=judge,
        model_options=model_options,
        options=Options(top_k=top_k, max_steps=max_steps),
        asked=len(asked),
    )
    if any(each.uses_vectors for each in wanted):
        confirm_embedder(index)
    open_run(folder, plan)  # another plan is refused before anything is ingested, and another index after it
    for note in make_index(questions, index):
        err.print(note)
    open_run(folder, replace(plan, contents=contents(index)))
    summaries = []
    with open_index(index) as opened:
        if (warning := missing_gold(asked, opened)) is not None:
            warn(f"Warning: {warning}")
        for each in wanted:
            file = record_file(folder, each.name)
            if not budget.is_used_up():
                prepared = prepare(each, opened, chat_model, plan.options, folder)
                if prepared is not None:
                    budget.pay(prepared["cost"], [plan.model] if prepared["cost"] is None else [])
                with progress_bar(each.name, asked, file, judged=judge is not None) as shown:
                    runner = Runner(
                        each,
                        opened,
                        chat_model,
                        plan.options,
                        judge=of_judge,
                        concurrency=concurrency,
                        budget=budget,
                        on_record=shown,
                    )
                    runner.run(asked, file)
            records = file.read()
            summaries.append(summarise(each.name, asked, records, judged=judge is not None))
            if not quiet:
                show_summary(summaries[-1])
            show_failures(asked, records, judged=judge is not None)
    if not quiet:
        out.print(f"Records: {folder}")
    return summaries


def _is_complete(summaries: Sequence[Mapping[str, Any]]) -> bool:
    return all(summary["answered"] == summary["questions"] and not summary["unjudged"] for summary in summaries)


def _budget(limit: float | None, folders: Sequence[Path]) -> Budget:
    """Return what may be spent; what runs in these folders have cost before is a part of it.

    Raises:
        InputError: There is a limit, and what they have cost is not known.
    """
    from arag.evaluation.budget import Budget
    from arag.evaluation.runs import count_spent

    budget = Budget(limit)
    for folder in folders if limit is not None else ():
        count_spent(folder, budget)
    budget.check()
    return budget


def _model_options(given: Sequence[str] | None, reasoning_effort: str | None) -> dict[str, Any]:
    """Return the options of the model's class.

    Raises:
        InputError: One is no NAME=VALUE, is given twice, or is a key, which would stand in the run's folder.
    """
    options: dict[str, Any] = {"reasoning_effort": reasoning_effort} if reasoning_effort else {}
    for option in given or ():
        name, equals, value = option.partition("=")
        if not name or not equals:
            raise InputError(f"--model-option {option!r}: NAME=VALUE is needed, as temperature=0")
        if name in options:
            raise InputError(f"--model-option {name}: it is given twice")
        if "api_key" in name:
            raise InputError("--model-option: keys would be stored with the run; set an environment variable instead")
        options[name] = _value(value)
    return options


def _value(text: str) -> Any:
    """Return what a text says in JSON, or else the text; `NaN`, which equals nothing, is a text."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text


def _refuse(constant: str) -> None:
    raise ValueError(constant)
