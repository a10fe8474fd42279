"""A report as files: a page with plots and tables, pages of questions and of their runs, and a CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pandas as pd
from markupsafe import Markup
from rich.progress import MofNCompleteColumn

from arag.errors import InputError
from arag.evaluation.failures import CHAIN_CAUSES, CHAIN_ERROR
from arag.evaluation.report import plots
from arag.evaluation.report.frame import Run, load_runs
from arag.evaluation.report.tables import (
    COST,
    EFFORT,
    INTERVALS,
    Interval,
    csv_rows,
    headline,
    overview_tables,
    run_tables,
    show,
)
from arag.evaluation.runs import record_file
from arag.page import render, trace_page
from arag.terminal import progress
from arag.text.normalise import count

_SIGNS = {"right": "✓", "wrong": "✗", "failed": "!", "unjudged": "?", "missing": "–"}
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


class _Figure(NamedTuple):
    title: str
    caption: str
    svg: Markup


def write_report(folders: Sequence[Path], out: Path, *, pages: bool = True, baseline: str | None = None) -> list[Path]:
    """Write a report of one or more runs: `report.html` and `report.csv`.

    Args:
        folders: The runs' folders.
        out: The folder to write to; it is created.
        pages: Whether to write a page for each question of one run, and for each method's way to its answer.
        baseline: The method that the others of one run are compared with. Default: the first in the paper's order.

    Returns:
        The two files.

    Raises:
        InputError: A folder holds no run, or no records, or the baseline is not one of its methods.
    """
    runs, frame = load_runs(folders)
    known = sorted(frame["method"].unique())
    if baseline is not None and baseline not in known:
        raise InputError(f"the run has no records of {baseline!r}; it has: {', '.join(known)}")
    is_one = len(runs) == 1
    questions = _list_questions(frame) if is_one else []
    page = render(
        "evaluation/report/report.html",
        title=_title(runs, frame),
        facts=runs[0].describe() if is_one else {},
        warnings=_warn(runs, frame),
        figures=list(_draw(runs, frame)),
        tables=run_tables(runs[0], frame, baseline) if is_one else overview_tables(runs, frame),
        methods=list(frame["title"].unique()),
        questions=questions,
        headline=headline(frame).title,
        has_pages=pages,
    )
    if is_one and pages:
        with progress(MofNCompleteColumn()) as bar:
            made = _question_pages(runs[0], frame, questions)
            for name, text in bar.track(made, len(questions) + len(frame), description="Pages"):
                _write(out / "questions" / name, text)
    _write(out / "report.html", page)
    _write(out / "report.csv", csv_rows(frame).to_csv(index=False))
    return [out / "report.html", out / "report.csv"]


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8", errors="replace", newline="")


# --- what a report says ---


def _title(runs: Sequence[Run], frame: pd.DataFrame) -> str:
    if len(runs) > 1:
        return "Methods by dataset and model"
    methods, questions = count(frame["method"].nunique(), "method"), count(frame["question_id"].nunique(), "question")
    return f"{runs[0].dataset or 'Results'}: {methods}, {questions}"


def _warn(runs: Sequence[Run], frame: pd.DataFrame) -> list[str]:
    """Return which methods have answers that are missing, failed or unjudged."""
    lines = []
    for run in runs:
        by_method = frame[frame["run"] == run.name].groupby("title", sort=False)
        asked = max(run.plan.asked, by_method.size().max())
        for title, some in by_method:
            verdicts = some["correct"].count()
            counts = {
                "not asked yet": asked - len(some),
                "failed, and counted as wrong": some["error"].count(),
                "without a verdict, and left out of LLM-Acc": len(some) - verdicts if verdicts else 0,
            }
            if gaps := [f"{number:,} {what}" for what, number in counts.items() if number]:
                lines.append(f"{title}{f' on {run.name}' if len(runs) > 1 else ''}: {'; '.join(gaps)}.")
    return [*lines, "The next run goes on with these questions."] if lines else []


def _draw(runs: Sequence[Run], frame: pd.DataFrame) -> Iterator[_Figure]:
    if len(runs) == 1:
        if frame["retrieved_tokens"].gt(0).any():
            caption = "What accuracy costs in retrieved text. Lines are 95% confidence intervals."
            yield _Figure("Accuracy against retrieved tokens", caption, plots.plane(frame, headline(frame)))
        yield from _draw_causes(runs[0], frame)
    yield from _draw_courses(runs, frame)


def _draw_courses(runs: Sequence[Run], frame: pd.DataFrame) -> Iterator[_Figure]:
    """Draw accuracy over steps or effort (paper, Figure 4), of runs that differ in nothing else."""
    rows = [(run.subject, run.plan.max_steps, run.plan.model_options.get("reasoning_effort")) for run in runs]
    settings = pd.DataFrame(rows, [run.name for run in runs], ["subject", "maximum steps", "reasoning effort"])
    settings["reasoning effort"] = pd.Categorical(settings["reasoning effort"], _EFFORTS, ordered=True)
    joined = frame.join(settings, on="run")
    for varied, fixed in permutations(["maximum steps", "reasoning effort"]):
        for (subject, _), some in joined.groupby(["subject", fixed], sort=False, dropna=False, observed=True):
            some = some.dropna(subset=varied)  # noqa: PLW2901
            if len(some[varied].unique()) > 1:
                yield _Figure(f"Over {varied}: {subject}", INTERVALS, plots.course(some, varied, headline(some)))


def _draw_causes(run: Run, frame: pd.DataFrame) -> Iterator[_Figure]:
    """Draw why answers are wrong (paper, Figure 5), for methods that search step by step and those that do not."""
    wrong = frame.dropna(subset="cause")
    is_one_shot = wrong["method"].isin([name for name, facts in run.plan.methods.items() if facts.iterative is False])
    is_chain = wrong["cause"].isin([*CHAIN_CAUSES, CHAIN_ERROR])
    first_level = wrong.assign(cause=wrong["cause"].mask(is_chain, CHAIN_ERROR))
    for title, some in (
        ("Why answers of methods that search step by step are wrong", first_level[~is_one_shot]),
        ("Within reasoning chain errors", wrong[is_chain]),
        ("Why answers of methods that retrieve once are wrong", first_level[is_one_shot]),
    ):
        if len(some):
            counts = pd.crosstab(some["title"], some["cause"])
            yield _Figure(title, "Wrong answers of each method by cause.", plots.stacks(counts, "wrong answers"))


# --- questions ---


def _list_questions(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the questions with the results of all methods: their rows, a CSS class, a sign, and the run's page."""
    verdicts = frame[headline(frame).name].map({1.0: "right", 0.0: "wrong"}).fillna("unjudged")
    shown = frame.assign(kind=verdicts.mask(frame["error"].notna(), "failed"))
    questions = []
    for number, (_, some) in enumerate(shown.groupby("question_id", sort=False), 1):
        rows = {row["title"]: row for row in some.to_dict("records")}
        results = [rows.get(title, {"title": title, "kind": "missing"}) for title in frame["title"].unique()]
        for result in results:
            result["sign"] = _SIGNS[result["kind"]]
            result["page"] = f"{number}/{quote(result['method'])}.html" if "method" in result else ""
        kinds = {result["kind"] for result in results}
        question = {name: some.iloc[0][name] for name in ("question_id", "question", "answer", "aliases")}
        marks = {"are_same": len(kinds) == 1, "is_solved": "right" in kinds}
        questions.append({**question, **marks, "number": number, "results": results})
    return questions


def _question_pages(run: Run, frame: pd.DataFrame, questions: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield the pages of runs and of questions with their names; a question's last record is the one that stays."""
    numbers = {question["question_id"]: question["number"] for question in questions}
    for method in frame["method"].unique():
        for record in record_file(run.folder, method).each():
            state = {**record, "answer": record["prediction"]}
            page = trace_page(state, error=record["error"] or "", model=run.plan.model)
            yield f"{numbers[record['question_id']]}/{method}.html", page
    for question in questions:
        values = {"question": question, "count": len(questions), "figures": _figures}
        yield f"{question['number']}.html", render("evaluation/report/question.html", **values)


def _figures(row: dict[str, Any]) -> list[str]:
    """Return a record's figures as texts."""
    shown = [(m.title, show(m, Interval(*[row[m.name]] * 3))) for m in (*EFFORT, COST) if not pd.isna(row[m.name])]
    words = [("Ended", str(row["stop_reason"]).replace("_", " ")), ("Wrong", row["cause"])]
    return [f"{title}: {text}" for title, text in [*shown, *words] if not pd.isna(text)]
