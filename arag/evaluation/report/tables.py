"""The tables of a report: means with 95% confidence intervals, as texts for readers and as numbers for CSV files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from arag.evaluation.report.figures import (
    ACCURACY,
    CALLS,
    CONTAIN_ACC,
    COST,
    COSTS,
    EFFORT,
    EVIDENCE,
    INTERVALS,
    LISTS,
    LLM_ACC,
    NONE,
    RETRIEVED,
    RULE_ACC,
    SECONDS,
    Interval,
    Measure,
    headline,
    interval,
    is_known,
    paired,
    show,
)
from arag.evaluation.report.frame import EXPERIMENT, Run, paper_results
from arag.models.prices import format_dollars

_PAPERS_MEASURES = {"llm_acc": LLM_ACC, "contain_acc": CONTAIN_ACC}  # by column of the paper's results

_LISTS_NOTE = (
    "By rules: a gold item is found if the answer has it as whole words; other items are read from the answer's "
    "bullets, or from its sentence with the most gold items. The judge matches items by their meaning."
)
_REFUSALS_NOTE = (
    "By rule: an answer is a refusal if its first sentence says that the corpus does not hold the fact. Precision is "
    "over all refusals, recall over the questions that the corpus does not answer."
)


class Table(NamedTuple):
    """A table of texts, whose rows are named by their methods or runs."""

    title: str
    rows: pd.DataFrame
    notes: Sequence[str] = ()


def means(frame: pd.DataFrame, measures: Sequence[Measure]) -> pd.DataFrame:
    """Return the means of measures as texts.

    Args:
        frame: The records.
        measures: The measures.

    Returns:
        A row for each method, and a column for each measure that any method has.
    """
    rows: dict[str, dict[str, str]] = {}
    for title, some in frame.groupby("title", sort=False):
        rows[title] = {measure.title: show(measure, interval(measure, some)) for measure in measures}
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("Method")
    has_figures = (table != NONE).any()
    return table.loc[:, has_figures]


# --- one run ---


def run_tables(run: Run, frame: pd.DataFrame, baseline: str | None = None) -> list[Table]:
    """Return the tables of one run, the most important first.

    Args:
        run: The run.
        frame: Its records.
        baseline: The method that the others are compared with. Default: the first one.

    Returns:
        The tables that have rows.
    """
    first = baseline or frame["method"].iloc[0]
    tables = [
        Table(
            "Summary",
            means(frame, (LLM_ACC, RULE_ACC, CONTAIN_ACC, COST, RETRIEVED, EVIDENCE, CALLS, SECONDS)),
            [f"Over all questions asked, of which failed ones count as wrong. {INTERVALS}"],
        ),
        *kind_tables(frame),
        Table(
            f"Compared with {run.plan.methods[first].title}",
            compare(frame, first),
            ["In percentage points, on the questions that both methods have. p: two-sided paired permutation test."],
        ),
        Table(
            "Accuracy",
            means(frame, ACCURACY),
            ["With aliases: any of the gold answer's aliases counts as well."],
        ),
        Table(
            "Evidence and effort",
            means(frame, EFFORT),
            ["Over answered questions. Gold: documents or pages."],
        ),
        Table(
            "Tokens and cost a question",
            means(frame, COSTS),
            ["As the providers report them. Unusable replies were not the JSON object that was asked for."],
        ),
        _preparations(run),
        Table("Stop reasons", pd.crosstab(frame["title"].rename("Method"), frame["stop_reason"])),
    ]
    if run.dataset:
        tables.append(Table(f"Beside the paper: {run.dataset}", _accuracy([run], frame), [EXPERIMENT]))
    tables.append(_methods(run, frame))
    return [table for table in tables if not table.rows.empty]


def compare(frame: pd.DataFrame, first: str) -> pd.DataFrame:
    """Compare each method with the first one, on the questions that both have.

    Args:
        frame: The records.
        first: The name of the first method.

    Returns:
        A row for each other method and each measure of correct answers.
    """
    by_method = {name: some.set_index("question_id") for name, some in frame.groupby("method", sort=False)}
    baseline = by_method.pop(first)
    rows: list[dict[str, str]] = []
    for measure in (LLM_ACC, RULE_ACC, CONTAIN_ACC):
        if not is_known(measure, frame):
            continue
        for other in by_method.values():
            questions, difference, p = paired(baseline[measure.name], other[measure.name])
            if not questions:
                continue
            mean, low, high = (f"{100 * value:+.1f}" for value in difference)
            row = {
                "Method": other["title"].iloc[0],
                "Measure": measure.title,
                "Questions": f"{questions:,}",
                "Difference": f"{mean} [{low}, {high}]",
                "p": f"{p:.3f}" if p >= 0.001 else "< 0.001",
            }
            rows.append(row)
    if not rows:
        return pd.DataFrame()
    return pd.DataFrame(rows).set_index("Method")


def _preparations(run: Run) -> Table:
    """Return the cost of the work before the first question."""
    rows: dict[str, dict[str, str]] = {}
    for facts in run.plan.methods.values():
        usage = facts.preparation
        if not usage or not usage["model_calls"]:
            continue
        cost = facts.preparation_cost
        rows[facts.title] = {
            "Model calls": f"{usage['model_calls']:,}",
            "Input tokens": f"{usage['input_tokens']:,}",
            "Output tokens": f"{usage['output_tokens']:,}",
            "Cost": NONE if cost is None else format_dollars(cost),
        }
    note = "What the work before the first question costs in all, whether or not this run has paid for it."
    return Table("Index-time work", _rows(rows), [note])


def _methods(run: Run, frame: pd.DataFrame) -> Table:
    """Return a description of each method, with the marks of the paper's Table 4."""
    marks = {True: "✓", False: "✗", None: NONE}
    rows: dict[str, dict[str, str]] = {}
    notes = ["The last three columns are those of the paper's Table 4; the marks are our reading of each method."]
    for method in frame["method"].unique():
        facts = run.plan.methods[method]
        settings = ", ".join(f"{name} {value}" for name, value in facts.settings.items())
        rows[facts.title] = {
            "What it does": facts.description,
            "Settings": settings or NONE,
            "Autonomous strategy": marks[facts.autonomous],
            "Iterative": marks[facts.iterative],
            "Interleaved tool use": marks[facts.interleaved],
        }
        if facts.differs:
            notes.append(f"{facts.title}: {facts.differs}")
    return Table("Methods", _rows(rows), notes)


# --- kinds of questions ---


def kind_tables(frame: pd.DataFrame) -> list[Table]:
    """Return the tables that tell kinds of questions apart; none if all are of one kind and ask for texts.

    Args:
        frame: The records of one run.

    Returns:
        Accuracy by kind, the agreement of complete lists, and refusals; a row for each method.
    """
    measure = headline(frame)
    tables: list[Table] = []
    if frame["kind"].ne("").any():
        note = f"{measure.title}, with the number of questions of each kind."
        tables.append(Table("Accuracy by kind of question", _by_kind(frame, measure), [note, INTERVALS]))
    lists = frame[frame["form"] == "list"]
    if not lists.empty:
        tables.append(Table("Complete lists", means(lists, LISTS), [_LISTS_NOTE]))
    if (frame["form"] == "absent").any():
        rows = {title: _count_refusals(some) for title, some in frame.groupby("title", sort=False)}
        tables.append(Table("Refusals", _rows(rows), [_REFUSALS_NOTE]))
    return tables


def _by_kind(frame: pd.DataFrame, measure: Measure) -> pd.DataFrame:
    columns: dict[str, dict[str, str]] = {}
    for kind, some in frame.groupby("kind"):
        name = f"{kind or 'other'} ({some['question_id'].nunique():,})"
        for title, rows in some.groupby("title", sort=False):
            columns.setdefault(name, {})[title] = show(measure, interval(measure, rows))
    titles = frame["title"].unique()
    return pd.DataFrame(columns).reindex(titles).fillna(NONE).rename_axis("Method")


class _Refusals(NamedTuple):
    """How well a method tells questions that the corpus does not answer from others."""

    absent: int
    refused: int
    refused_absent: int

    @property
    def precision(self) -> Interval:
        """The share of its refusals that are right."""
        return _share(self.refused_absent, self.refused)

    @property
    def recall(self) -> Interval:
        """The share of the questions without an answer that it refuses."""
        return _share(self.refused_absent, self.absent)

    @classmethod
    def of(cls, rows: pd.DataFrame) -> _Refusals:
        """Count the refusals among a method's answers; failed questions are none."""
        is_absent = rows["form"] == "absent"
        is_refused = rows["refused"] == 1
        return cls(int(is_absent.sum()), int(is_refused.sum()), int((is_absent & is_refused).sum()))


def _share(part: int, whole: int) -> Interval:
    if not whole:
        return Interval(np.nan, np.nan, np.nan)
    low, high = stats.binomtest(part, whole).proportion_ci(method="wilson")
    return Interval(part / whole, low, high)


def _count_refusals(rows: pd.DataFrame) -> dict[str, str]:
    counts = _Refusals.of(rows)
    return {
        "Questions without an answer": f"{counts.absent:,}",
        "Refused": f"{counts.refused_absent:,}",
        "Refused of others": f"{counts.refused - counts.refused_absent:,}",
        "Precision, %": show(RULE_ACC, counts.precision),
        "Recall, %": show(RULE_ACC, counts.recall),
    }


# --- several runs ---


def overview_tables(runs: Sequence[Run], frame: pd.DataFrame) -> list[Table]:
    """Return the tables of several runs (paper, Table 1): methods by dataset and model, their efforts and settings.

    Args:
        runs: The runs.
        frame: Their records.

    Returns:
        The tables.
    """
    efforts: dict[str, pd.DataFrame] = {}
    by_kind: dict[str, dict[str, pd.DataFrame]] = {}
    notes: dict[str, Sequence[str]] = {}
    for name, some in frame.groupby("run", sort=False):
        efforts[name] = means(some, (COST, *EFFORT))
        for table in kind_tables(some):
            by_kind.setdefault(table.title, {})[name] = table.rows
            notes[table.title] = table.notes
    questions = frame.groupby("run")["question_id"].nunique()
    settings: dict[str, dict[str, str]] = {}
    for run in runs:
        settings[run.name] = {
            "Questions": f"{questions[run.name]:,}",
            **run.describe(),
            "Folder": str(run.folder),
        }
    return [
        Table("Accuracy", _accuracy(runs, frame), [INTERVALS]),
        *(Table(title, _join_runs(rows), notes[title]) for title, rows in by_kind.items()),
        Table("Cost and effort of a question", _join_runs(efforts)),
        Table("Runs", _rows(settings).rename_axis("Run")),
    ]


def _join_runs(rows: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of several runs below each other, with their methods in a column."""
    return pd.concat(rows, names=["Run"]).reset_index("Method").fillna(NONE)


def _accuracy(runs: Sequence[Run], frame: pd.DataFrame) -> pd.DataFrame:
    """Return our accuracy beside the paper's on the same datasets: a row for each method, the paper's first."""
    parts: dict[str, pd.DataFrame] = {}
    for run in runs:
        parts[run.name] = means(frame[frame["run"] == run.name], (LLM_ACC, RULE_ACC, CONTAIN_ACC))
        if run.dataset:
            parts[run.dataset] = _papers_accuracy(run.dataset)
    table = pd.concat(parts, axis=1)
    table.columns = [f"{name}: {title}" for name, title in table.columns]
    titles = dict.fromkeys([*paper_results()["method"], *frame["title"]])
    in_order = table.reindex([title for title in titles if title in table.index])
    return in_order.fillna(NONE).rename_axis("Method")


def _papers_accuracy(dataset: str) -> pd.DataFrame:
    """Return the paper's accuracy on a dataset: a row for each method, a column for each measure and model."""
    results = paper_results()
    results = results[results["dataset"] == dataset]
    table = results.pivot_table(list(_PAPERS_MEASURES), "method", "model", sort=False).map("{:.1f}".format)
    table.columns = [f"{_PAPERS_MEASURES[column].title} (paper, {model})" for column, model in table.columns]
    return table


def _rows(rows: Mapping[str, Mapping[str, str]]) -> pd.DataFrame:
    return pd.DataFrame.from_dict(rows, orient="index").fillna(NONE).rename_axis("Method")


# --- the CSV ---


def csv_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the figures of each run and method as numbers.

    Args:
        frame: The records.

    Returns:
        A row for each run and method; shares are from 0 to 1, unknown figures NaN.
    """
    rows: list[dict[str, Any]] = []
    for (run, method, title), some in frame.groupby(["run", "method", "title"], sort=False):
        row = {
            "run": run,
            "method": method,
            "title": title,
            "questions": len(some),
            "failed": int(some["error"].notna().sum()),
        }
        figures = {measure.name: interval(measure, some) for measure in (*ACCURACY, *LISTS, *EFFORT, *COSTS)}
        refusals = _Refusals.of(some)
        figures["refusal_precision"] = refusals.precision
        figures["refusal_recall"] = refusals.recall
        rows.append(row | _as_columns(figures))
    return pd.DataFrame(rows)


def kind_csv_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the accuracy of each run, method and kind of question as numbers.

    Args:
        frame: The records.

    Returns:
        A row for each run, method and kind.
    """
    rows: list[dict[str, Any]] = []
    for (run, method, title, kind), some in frame.sort_values("kind", kind="stable").groupby(
        ["run", "method", "title", "kind"], sort=False
    ):
        row = {"run": run, "method": method, "title": title, "kind": kind, "questions": len(some)}
        figures = {measure.name: interval(measure, some) for measure in (*ACCURACY, *LISTS)}
        rows.append(row | _as_columns(figures))
    return pd.DataFrame(rows)


def _as_columns(figures: Mapping[str, Interval]) -> dict[str, float]:
    """Return figures with their intervals as the columns of a CSV file."""
    columns: dict[str, float] = {}
    for name, figure in figures.items():
        columns[name] = figure.mean
        columns[f"{name}_low"] = figure.low
        columns[f"{name}_high"] = figure.high
    return columns
