"""A report as files: a page with plots and tables, pages of questions and of their runs, Markdown and CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pandas as pd
from markupsafe import Markup

from arag.errors import InputError, StorageError
from arag.evaluation.failures import CHAIN_CAUSES, CHAIN_ERROR, ITERATIVE, ONE_SHOT, Failure, csv_cell, first_level
from arag.evaluation.report import plots
from arag.evaluation.report.frame import Runs, load_runs
from arag.evaluation.report.paper import find_model
from arag.evaluation.report.tables import (
    COST,
    INTERVALS,
    LLM_ACC,
    Interval,
    Measure,
    Table,
    csv_rows,
    headline,
    overview_tables,
    run_tables,
    show,
    to_markdown,
)
from arag.evaluation.runs import RecordFile, record_file
from arag.page import count, render, trace_page

_MARKS = {1.0: ("right", "✓"), 0.0: ("wrong", "✗")}
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


class _Figure(NamedTuple):
    title: str
    caption: str
    svg: Markup


def write_report(
    folders: Sequence[Path],
    out: Path,
    *,
    pages: bool = True,
    baseline: str | None = None,
    dataset: str | None = None,
    on_page: Callable[[int, int], None] | None = None,
) -> list[Path]:
    """Write a report of one or more runs: `report.html`, `report.md`, `report.csv`, and for one run `questions.csv`.

    Args:
        folders: The runs' folders.
        out: The folder to write to; it is created.
        pages: Whether to write a page for each question of one run, and for each method's way to its answer.
        baseline: The method that the others of one run are compared with. Default: the first in the paper's order.
        dataset: The paper's dataset, if the names of the questions' files do not show it.
        on_page: Called after each of these pages with how many are written, and how many will be.

    Returns:
        The files, without the pages of questions.

    Raises:
        InputError: A folder holds no run, or no records, or the baseline is not one of its methods.
        StorageError: The report cannot be written.
    """
    runs = load_runs(folders, dataset)
    known = sorted(runs.frame["method"].unique())
    if baseline is not None and baseline not in known:
        raise InputError(f"the run has no records of {baseline!r}; it has: {', '.join(known)}")
    is_one = len(folders) == 1
    tables = run_tables(runs, baseline) if is_one else overview_tables(runs)
    questions = _list_questions(runs.frame) if is_one else []
    page = render(
        "report.html",
        package="arag.evaluation.report",
        title=_title(runs),
        facts=_facts(runs) if is_one else [],
        warnings=_warnings(runs),
        figures=_draw(runs),
        tables=tables,
        methods=list(runs.frame["title"].unique()),
        questions=questions,
        headline=headline(runs.frame).title,
        has_pages=pages,
    )
    facts = _facts(runs) if is_one else []
    lines = [*(f"{line}\n" for line in _warnings(runs)), *(f"- {name}: {value}" for name, value in facts), ""]
    markdown = "\n".join([f"# {_title(runs)}\n", *lines, *map(_to_section, tables)])
    files = {"report.html": page, "report.md": markdown, "report.csv": csv_rows(runs.frame).to_csv(index=False)}
    if is_one:
        files["questions.csv"] = _questions_csv(runs.frame)
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (out / name).write_text(text, encoding="utf-8", errors="replace", newline="")
        if is_one and pages:
            total = len(questions) + int(runs.frame["has_page"].sum())
            for done, (name, text) in enumerate(_question_pages(runs, questions), 1):
                file = out / "questions" / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8", errors="replace")
                if on_page:
                    on_page(done, total)
    except OSError as error:
        raise StorageError(f"the report cannot be written to {out}: {error.strerror}") from error
    return [out / name for name in files]


def failures_page(failures: Sequence[Failure]) -> str:
    """Draw the wrong answers of each method by cause (paper, Figure 5).

    Args:
        failures: The wrong answers.
    """
    figures = []
    for taxonomy in (ITERATIVE, ONE_SHOT):
        some = [(f.method, first_level(f.final)) for f in failures if f.taxonomy is taxonomy]
        chains = [
            (f.method, f.final) for f in failures if f.taxonomy is taxonomy and first_level(f.final) == CHAIN_ERROR
        ]
        causes = list(dict.fromkeys(map(first_level, taxonomy.causes)))
        figures += _draw_causes(taxonomy.title, "Wrong answers of each method by cause.", some, causes)
        figures += _draw_causes("Within reasoning chain errors", "Their second level.", chains, list(CHAIN_CAUSES))
    decided = pd.Series(["a person" if f.label else f.decided_by or "nobody yet" for f in failures], dtype=str)
    told = ", ".join(f"{number:,} by {name}" for name, number in decided.value_counts().items())
    return render(
        "report.html",
        package="arag.evaluation.report",
        title="Why answers are wrong",
        facts=[("Wrong answers", f"{len(failures):,}"), ("Decided", told or "none")],
        warnings=[] if failures else ["No method that searches has wrong answers."],
        figures=figures,
        tables=[],
        questions=[],
    )


def _draw_causes(title: str, caption: str, found: Sequence[tuple[str, str]], causes: Sequence[str]) -> list[_Figure]:
    if not found:
        return []
    known = [(method, cause if cause in causes else "undecided") for method, cause in found]
    frame = pd.DataFrame(known, columns=["method", "cause"])
    counts = pd.crosstab(frame["method"], frame["cause"])
    counts = counts[[cause for cause in (*causes, "undecided") if cause in counts]]
    return [_Figure(title, caption, Markup(plots.stacks(counts, "wrong answers")))]  # noqa: S704 - of our own


# --- what a report says ---


def _title(runs: Runs) -> str:
    if len(runs.plans) > 1:
        return "Methods by dataset and model"
    ((name, plan),) = runs.plans.items()
    answered = runs.frame["question_id"].nunique()
    of = f"{answered:,} of " if answered < plan.asked else ""
    methods = count(runs.frame["method"].nunique(), "method")
    return f"{runs.datasets[name] or 'Results'}: {methods}, {of}{count(max(answered, plan.asked), 'question')}"


def _facts(runs: Runs) -> list[tuple[str, str]]:
    ((name, plan),) = runs.plans.items()
    contents = plan.contents or {}
    facts = {
        "Model": ", ".join(runs.models[name]) or plan.model,
        "Model options": ", ".join(f"{key} {value}" for key, value in plan.model_options.items()),
        "Judge": plan.judge or "none",
        "Embedder": str(contents.get("embedder", "unknown")),
        "Index": ", ".join(f"{contents[key]:,} {key}" for key in ("documents", "chunks") if key in contents),
        "Scope": str(plan.scope or ""),
        "Top k": str(plan.top_k),
        "Presentation": plan.presentation,
        "Max steps": str(plan.max_steps),
        "Started": plan.date,
    }
    return [(name, value) for name, value in facts.items() if value]


def _warnings(runs: Runs) -> list[str]:
    lines = []
    for run, some in runs.frame.groupby("run", sort=False):
        where = f"{run}: " if len(runs.plans) > 1 else ""
        counts = some.groupby("title", sort=False)["question_id"].nunique()
        asked = max(runs.plans[str(run)].asked, counts.max())
        if (counts < asked).any():
            told = ", ".join(f"{title} {number:,}" for title, number in counts.items())
            lines.append(f"{where}Not all of {asked:,} questions have been asked ({told}): run it again to go on.")
        failed = some[some["error"].notna()].groupby("title", sort=False).size()
        if len(failed):
            told = ", ".join(f"{title} {number:,}" for title, number in failed.items())
            lines.append(f"{where}Failed, and counted as wrong: {told}. The next run tries them again.")
        if some["correct"].notna().any() and (unjudged := int(some["correct"].isna().sum())):
            lines.append(f"{where}Answers without a verdict, which LLM-Acc leaves out: {unjudged:,}.")
    return lines


def _draw(runs: Runs) -> list[_Figure]:
    frame, measure = runs.frame, headline(runs.frame)
    svgs: list[tuple[str, str, str]] = []
    if len(runs.plans) == 1:
        ((name, models),) = runs.models.items()
        svgs.append(("Accuracy", INTERVALS, plots.accuracy(frame, runs.datasets[name], find_model(models))))
        if frame["retrieved_tokens"].fillna(0).gt(0).any():
            caption = "What accuracy costs in retrieved text. Lines are 95% confidence intervals."
            svgs.append(("Accuracy against retrieved tokens", caption, plots.plane(frame, measure)))
        tools = pd.DataFrame(list(frame["tools"]), index=frame["title"]).groupby(level=0, sort=False).sum()
        if tools.size and frame["tools"].map(len).gt(1).any():
            svgs.append(("Calls by tool", "All calls without an error.", plots.stacks(tools, "calls")))
    else:
        steps = {name: plan.max_steps for name, plan in runs.plans.items()}
        efforts = {name: plan.model_options.get("reasoning_effort") for name, plan in runs.plans.items()}
        if len(set(steps.values())) > 1 and len(set(efforts.values())) == 1:
            settings = [(str(value), name) for name, value in sorted(steps.items(), key=lambda item: item[1])]
            svgs.append(("Over steps", INTERVALS, plots.course(frame, settings, measure, "maximum steps")))
        known = {name: effort for name, effort in efforts.items() if effort in _EFFORTS}
        if len(set(known.values())) > 1:
            ranked = sorted(known.items(), key=lambda item: _EFFORTS.index(item[1]))
            settings = [(effort, name) for name, effort in ranked]
            svgs.append(("Over effort", INTERVALS, plots.course(frame, settings, measure, "reasoning effort")))
    return [_Figure(title, caption, Markup(svg)) for title, caption, svg in svgs]  # noqa: S704 - of our own


def _to_section(table: Table) -> str:
    return "\n".join([f"## {table.title}\n", to_markdown(table.rows), *(f"{note}\n" for note in table.notes)])


def _questions_csv(frame: pd.DataFrame) -> str:
    """Return a row for each question, with columns for each method; correct answers are 1, others 0."""
    columns = (
        "prediction",
        "correct",
        "contain",
        "retrieved_tokens",
        "evidence_tokens",
        "steps",
        "seconds",
        "cost",
        "error",
    )
    tables = []
    for method, some in frame.groupby("method", sort=False):
        table = some.set_index(["question_id", "question", "answer"])[list(columns)]
        tables.append(table.add_prefix(f"{method}_"))
    texts = pd.concat(tables, axis=1).reset_index()
    for column in texts:
        texts[column] = [csv_cell(value) if isinstance(value, str) else value for value in texts[column]]
    return str(texts.to_csv(index=False))


# --- questions ---


class _Result(NamedTuple):
    """A method's result for a question: its row, a CSS class and a sign, and the page of its run."""

    title: str
    row: dict[str, Any]
    kind: str
    sign: str
    page: str


class _Question(NamedTuple):
    number: int
    row: dict[str, Any]
    results: list[_Result]
    are_same: bool
    is_solved: bool


def _list_questions(frame: pd.DataFrame) -> list[_Question]:
    measure = headline(frame)
    titles = frame.drop_duplicates("method").set_index("method")["title"]
    questions = []
    for number, (_, some) in enumerate(
        frame.sort_values(["number", "question_id"], kind="stable").groupby("question_id", sort=False), 1
    ):
        rows = {row["method"]: row for row in some.to_dict("records")}
        results = [
            _Result(title, row, *_mark(row, measure), _page_of(number, row))
            for method, title in titles.items()
            for row in [rows.get(method, {})]
        ]
        kinds = {result.kind for result in results}
        questions.append(_Question(number, next(iter(rows.values())), results, len(kinds) == 1, "right" in kinds))
    return questions


def _mark(row: dict[str, Any], measure: Measure) -> tuple[str, str]:
    if not row:
        return "missing", "–"
    if row["error"] is not None and not pd.isna(row["error"]):
        return "failed", "!"
    return _MARKS.get(row[measure.name], ("unjudged", "?"))


def _page_of(number: int, row: dict[str, Any]) -> str:
    return f"{number}/{quote(row['method'])}.html" if row and row["has_page"] else ""


def _question_pages(runs: Runs, questions: Sequence[_Question]) -> Iterator[tuple[str, str]]:
    """Yield the pages of runs and of questions with their names; only one run's messages are in memory at a time."""
    ((name, folder),) = runs.folders.items()
    numbers = {question.row["question_id"]: question.number for question in questions}
    for method in runs.frame["method"].unique():
        records = record_file(folder, method)
        last = {record["question_id"]: place for place, record in enumerate(RecordFile(records.file).each())}
        for place, record in enumerate(RecordFile(records.file).each()):
            if place == last[record["question_id"]] and record["messages"]:
                state = {**record, "answer": record["prediction"]}
                page = trace_page(state, error=record["error"] or "", model=runs.plans[name].model)
                yield f"{numbers[record['question_id']]}/{method}.html", page
    for question in questions:
        yield (
            f"{question.number}.html",
            render(
                "question.html",
                package="arag.evaluation.report",
                question=question,
                count=len(questions),
                figures=_figures,
                LLM_ACC=LLM_ACC,
            ),
        )


def _figures(row: dict[str, Any]) -> list[str]:
    """Return a record's figures as texts."""
    known = {name: value for name, value in row.items() if not isinstance(value, list | dict) and not pd.isna(value)}
    lines = [count(int(known["steps"]), "step")] if "steps" in known else []
    lines += [f"{known['retrieved_tokens']:,.0f} tokens retrieved"] if "retrieved_tokens" in known else []
    lines += [f"{known['seconds']:.1f} s"] if "seconds" in known else []
    lines += [show(COST, Interval(known["cost"], 0, 0)).partition(" ")[0]] if "cost" in known else []
    lines += [f"gold {name} {100 * known[f'gold_{name}']:.0f}%" for name in ("seen", "read") if f"gold_{name}" in known]
    return [*lines, str(known.get("stop_reason", "")).replace("_", " ")]
