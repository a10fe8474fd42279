"""Writes a report as files: a page with plots and tables, pages of questions and of their runs, and a CSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pandas as pd
from markupsafe import Markup
from rich.progress import MofNCompleteColumn

from arag.errors import InputError
from arag.evaluation.failures import CHAIN_CAUSES, CHAIN_ERROR
from arag.evaluation.records import record_file
from arag.evaluation.report import plots
from arag.evaluation.report.figures import COST, EFFORT, INTERVALS, Interval, headline, show
from arag.evaluation.report.figures_csv import csv_rows, kind_csv_rows
from arag.evaluation.report.frame import Run, load_runs
from arag.evaluation.report.tables import overview_tables, run_tables
from arag.models.names import EXTRACTIVE
from arag.page import render, trace_page
from arag.terminal import progress
from arag.text.normalise import count

_SIGNS = {"right": "✓", "wrong": "✗", "failed": "!", "unjudged": "?", "missing": "–"}
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")  # in the order of a plot
_QUESTION_FIELDS = ("question_id", "question", "answer", "aliases")


class _Figure(NamedTuple):
    title: str
    caption: str
    svg: Markup


def write_report(folders: Sequence[Path], out: Path, *, pages: bool = True, baseline: str | None = None) -> list[Path]:
    """Write a report of one or more runs: `report.html`, `report.csv`, and `kinds.csv` if questions have kinds.

    Args:
        folders: The runs' folders.
        out: The folder to write to; it is created.
        pages: Whether to write a page for each question of one run, and for each method's way to its answer.
        baseline: The method that the others of one run are compared with. Default: the first in the paper's order.

    Returns:
        The files.

    Raises:
        InputError: A folder holds no run, or no records, or the baseline is not one of its methods.
    """
    runs, frame = load_runs(folders)
    methods = sorted(frame["method"].unique())
    if baseline is not None and baseline not in methods:
        raise InputError(f"the run has no records of {baseline!r}; it has: {', '.join(methods)}")

    if len(runs) == 1:
        facts = runs[0].describe()
        tables = run_tables(runs[0], frame, baseline)
        questions = _list_questions(frame)
    else:
        facts = {}
        tables = overview_tables(runs, frame)
        questions = []
    report = render(
        "evaluation/report/report.html",
        title=_title(runs, frame),
        facts=facts,
        warnings=_warn(runs, frame),
        figures=list(_draw(runs, frame)),
        tables=tables,
        methods=list(frame["title"].unique()),
        questions=questions,
        headline=headline(frame).title,
        has_pages=pages,
    )
    if len(runs) == 1 and pages:
        _write_pages(runs[0], frame, questions, out / "questions")
    _write(out / "report.html", report)
    _write(out / "report.csv", csv_rows(frame).to_csv(index=False))
    files = [out / "report.html", out / "report.csv"]
    if frame["kind"].ne("").any():
        _write(out / "kinds.csv", kind_csv_rows(frame).to_csv(index=False))
        files.append(out / "kinds.csv")
    return files


def _write_pages(run: Run, frame: pd.DataFrame, questions: Sequence[dict[str, Any]], folder: Path) -> None:
    """Write a page for each question, and for each record."""
    pages = _question_pages(run, frame, questions)
    total = len(questions) + len(frame)
    with progress(MofNCompleteColumn()) as bar:
        for name, page in bar.track(pages, total, description="Pages"):
            _write(folder / name, page)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8", errors="replace", newline="")


# --- the report's page ---


def _title(runs: Sequence[Run], frame: pd.DataFrame) -> str:
    if len(runs) > 1:
        return "Methods by dataset and model"
    methods = count(frame["method"].nunique(), "method")
    questions = count(frame["question_id"].nunique(), "question")
    return f"{runs[0].dataset or 'Results'}: {methods}, {questions}"


def _warn(runs: Sequence[Run], frame: pd.DataFrame) -> list[str]:
    """Return a sentence if no language model answered, and one for each method with missing or unjudged answers."""
    lines: list[str] = []
    for run in runs:
        by_method = frame[frame["run"] == run.name].groupby("title", sort=False)
        asked = max(run.plan.asked, by_method.size().max())
        for title, some in by_method:
            gaps = _find_gaps(some, asked)
            if gaps:
                name = f"{title} on {run.name}" if len(runs) > 1 else title
                lines.append(f"{name}: {'; '.join(gaps)}.")
    if lines:
        lines.append("The next run goes on with these questions.")
    return [*_name_built_in(runs), *_name_replays(runs), *lines]


def _name_built_in(runs: Sequence[Run]) -> list[str]:
    """Return a sentence if the built-in model, which quotes by fixed rules, answered in some or all of the runs."""
    names = [run.name for run in runs if run.plan.model == EXTRACTIVE]
    if not names:
        return []
    place = "" if len(names) == len(runs) else f" in {', '.join(names)}"
    return [f"No language model was used{place}: the built-in model quotes sentences by fixed rules."]


def _name_replays(runs: Sequence[Run]) -> list[str]:
    """Return a sentence for each run whose replies were recorded before: where, and who gave them."""
    lines: list[str] = []
    for run in runs:
        if run.replayed_from:
            place = f" in {run.name}" if len(runs) > 1 else ""
            models = ", ".join(run.models) or "an unnamed model"
            lines.append(f"Replies{place} were replayed from {run.replayed_from}, given by {models}.")
    return lines


def _find_gaps(rows: pd.DataFrame, asked: int) -> list[str]:
    """Return the numbers of a method's missing, failed and unjudged answers as texts."""
    verdicts = rows["correct"].count()
    has_judge = verdicts > 0
    counts = {
        "not asked yet": asked - len(rows),
        "failed, and counted as wrong": rows["error"].count(),
        "without a verdict, and left out of LLM-Acc": len(rows) - verdicts if has_judge else 0,
    }
    return [f"{number:,} {gap}" for gap, number in counts.items() if number]


def _draw(runs: Sequence[Run], frame: pd.DataFrame) -> Iterator[_Figure]:
    if len(runs) == 1:
        if frame["retrieved_tokens"].gt(0).any():
            yield _Figure(
                title="Accuracy against retrieved tokens",
                caption="What accuracy costs in retrieved text. Lines are 95% confidence intervals.",
                svg=plots.plane(frame, headline(frame)),
            )
        yield from _draw_causes(runs[0], frame)
    yield from _draw_courses(runs, frame)


def _draw_courses(runs: Sequence[Run], frame: pd.DataFrame) -> Iterator[_Figure]:
    """Draw accuracy over steps or effort (paper, Figure 4), for runs that differ in nothing else."""
    settings_of_runs: dict[str, dict[str, Any]] = {}
    for run in runs:
        settings_of_runs[run.name] = {
            "subject": run.subject,
            "maximum steps": run.plan.max_steps,
            "reasoning effort": run.plan.model_options.get("reasoning_effort"),
        }
    settings = pd.DataFrame.from_dict(settings_of_runs, orient="index")
    settings["reasoning effort"] = pd.Categorical(settings["reasoning effort"], _EFFORTS, ordered=True)
    joined = frame.join(settings, on="run")
    for varied, fixed in permutations(["maximum steps", "reasoning effort"]):
        for (subject, _), some in joined.groupby(["subject", fixed], sort=False, dropna=False, observed=True):
            rows = some.dropna(subset=varied)
            if len(rows[varied].unique()) > 1:
                yield _Figure(
                    title=f"Over {varied}: {subject}",
                    caption=INTERVALS,
                    svg=plots.course(rows, varied, headline(rows)),
                )


def _draw_causes(run: Run, frame: pd.DataFrame) -> Iterator[_Figure]:
    """Draw the causes of wrong answers (paper, Figure 5), for iterative methods and for those that retrieve once."""
    wrong = frame.dropna(subset="cause")
    one_shot_methods = [name for name, facts in run.plan.methods.items() if facts.iterative is False]
    is_one_shot = wrong["method"].isin(one_shot_methods)
    is_chain = wrong["cause"].isin([*CHAIN_CAUSES, CHAIN_ERROR])
    first_level = wrong.assign(cause=wrong["cause"].mask(is_chain, CHAIN_ERROR))
    parts = {
        "Why answers of methods that search step by step are wrong": first_level[~is_one_shot],
        "Within reasoning chain errors": wrong[is_chain],
        "Why answers of methods that retrieve once are wrong": first_level[is_one_shot],
    }
    for title, some in parts.items():
        if some.empty:
            continue
        counts = pd.crosstab(some["title"], some["cause"])
        yield _Figure(
            title=title,
            caption="Wrong answers of each method by cause.",
            svg=plots.stacks(counts, "wrong answers"),
        )


# --- questions ---


def _list_questions(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the questions with the results of all methods: their rows, a CSS class, a sign, and the run's page."""
    verdicts = frame[headline(frame).name].map({1.0: "right", 0.0: "wrong"}).fillna("unjudged")
    shown = frame.assign(kind=verdicts.mask(frame["error"].notna(), "failed"))
    titles = frame["title"].unique()
    questions: list[dict[str, Any]] = []
    for number, (_, some) in enumerate(shown.groupby("question_id", sort=False), 1):
        results = _list_results(some, titles, number)
        kinds = {result["kind"] for result in results}
        question = {name: some.iloc[0][name] for name in _QUESTION_FIELDS}
        question |= {
            "number": number,
            "are_same": len(kinds) == 1,
            "is_solved": "right" in kinds,
            "results": results,
        }
        questions.append(question)
    return questions


def _list_results(rows: pd.DataFrame, titles: Iterable[str], number: int) -> list[dict[str, Any]]:
    """Return the results of all methods for a question."""
    by_title = {row["title"]: row for row in rows.to_dict("records")}
    results: list[dict[str, Any]] = []
    for title in titles:
        if title in by_title:
            row = by_title[title]
            page = f"{number}/{quote(row['method'])}.html"
        else:
            row = {"title": title, "kind": "missing"}
            page = ""
        results.append({**row, "sign": _SIGNS[row["kind"]], "page": page})
    return results


def _question_pages(run: Run, frame: pd.DataFrame, questions: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield the pages of records and of questions with their names; a later record of a question replaces its page."""
    numbers = {question["question_id"]: question["number"] for question in questions}
    for method in frame["method"].unique():
        for record in record_file(run.folder, method).each():
            name = f"{numbers[record['question_id']]}/{method}.html"
            state = {**record, "answer": record["prediction"]}
            yield name, trace_page(state, error=record["error"] or "", model=run.plan.model)
    for question in questions:
        page = render(
            "evaluation/report/question.html",
            question=question,
            count=len(questions),
            figures=_figures,
        )
        yield f"{question['number']}.html", page


def _figures(row: dict[str, Any]) -> list[str]:
    """Return a record's figures as texts."""
    lines: list[str] = []
    for measure in (*EFFORT, COST):
        value = row[measure.name]
        if not pd.isna(value):
            lines.append(f"{measure.title}: {show(measure, Interval(value, value, value))}")
    end = str(row["end"]).replace("_", " ")
    lines.append(f"Ended: {end}")
    if not pd.isna(row["cause"]):
        lines.append(f"Wrong: {row['cause']}")
    return lines
