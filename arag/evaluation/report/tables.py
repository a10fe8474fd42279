"""The tables of a report: means with 95% confidence intervals, as texts for readers and as numbers for CSV files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from arag.evaluation.report.frame import Runs
from arag.evaluation.report.paper import CITATION, differences, find_model, paper_results
from arag.models.prices import format_dollars

NONE = "–"
INTERVALS = "Means, with 95% confidence intervals: Wilson's for yes or no, else of the bootstrap."


class Measure(NamedTuple):
    """A measure of each question; a method's figure is the mean over its questions.

    Attributes:
        name: Its column in the frame.
        title: Its name for readers.
        unit: Its unit. "yes or no" is 1 or 0 and has a Wilson interval; all others have bootstrap intervals.
        skips_gaps: Whether questions without a known value are skipped. Otherwise one such question makes the method's
            figure unknown: the cost of some questions says little about the cost of all.
    """

    name: str
    title: str
    unit: Literal["yes or no", "share", "number", "tokens", "seconds", "dollars"]
    skips_gaps: bool = False


class Interval(NamedTuple):
    """A mean over questions with its 95% confidence interval; NaN if it is unknown."""

    mean: float
    low: float
    high: float


LLM_ACC = Measure("correct", "LLM-Acc", "yes or no", skips_gaps=True)
CONTAIN_ACC = Measure("contain", "Contain-Acc", "yes or no")
RETRIEVED = Measure("retrieved_tokens", "Retrieved tokens", "tokens")
EVIDENCE = Measure("evidence_tokens", "Evidence tokens", "tokens")
CALLS = Measure("model_calls", "Model calls", "number")
COST = Measure("cost", "Cost", "dollars")
STEPS = Measure("steps", "Steps", "number")
SECONDS = Measure("seconds", "Seconds", "seconds", skips_gaps=True)
ACCURACY = (
    LLM_ACC,
    CONTAIN_ACC,
    Measure("contain_with_aliases", "Contain-Acc with aliases", "yes or no"),
    Measure("exact_match", "Exact match with aliases", "yes or no"),
    Measure("f1", "F1 with aliases", "share"),
)
EFFORT = (
    Measure("gold_seen", "Gold seen", "share", skips_gaps=True),
    Measure("gold_read", "Gold read", "share", skips_gaps=True),
    Measure("gold_cited", "Gold cited", "share", skips_gaps=True),
    *(RETRIEVED, EVIDENCE, STEPS, CALLS, SECONDS),
)
COSTS = (
    Measure("input_tokens", "Input tokens", "tokens"),
    Measure("cached_tokens", "Cached tokens", "tokens"),
    Measure("output_tokens", "Output tokens", "tokens"),
    Measure("reasoning_tokens", "Reasoning tokens", "tokens"),
    COST,
)


class Table(NamedTuple):
    """A table: its rows have a method or a run in the first column, and texts in all others."""

    title: str
    rows: pd.DataFrame
    notes: Sequence[str] = ()


def interval(measure: Measure, rows: pd.DataFrame) -> Interval:
    """Return the mean of a measure over questions, of which the failed count as wrong, and have no other figures."""
    answered = rows if measure in ACCURACY else rows[rows["error"].isna()]
    values = answered[measure.name].astype(float)
    known = values.dropna()
    if known.empty or (len(known) < len(values) and not measure.skips_gaps):
        return Interval(np.nan, np.nan, np.nan)
    if measure.unit == "yes or no":
        low, high = stats.binomtest(int(known.sum()), len(known)).proportion_ci(method="wilson")
    else:
        low, high = _bootstrap(known)
    return Interval(known.mean(), low, high)


def paired(first: pd.Series, second: pd.Series) -> tuple[int, Interval, float]:
    """Compare two methods on the questions that both have.

    Args:
        first: A measure of the first method, by question.
        second: The same of the second.

    Returns:
        The number of questions; the mean difference, second minus first; and the two-sided p-value of a paired
        permutation test.
    """
    both = pd.concat([first, second], axis=1, join="inner").dropna().astype(float)
    difference = both.iloc[:, 1] - both.iloc[:, 0]
    if difference.empty or (difference == 0).all():
        return len(both), Interval(0.0, 0.0, 0.0), 1.0
    if len(both) == 1:
        return 1, Interval(*[difference.iloc[0]] * 3), 1.0
    test = stats.permutation_test(
        [both.iloc[:, 1], both.iloc[:, 0]],
        lambda one, other, axis: np.mean(one - other, axis=axis),
        vectorized=True,
        permutation_type="samples",
        n_resamples=9_999,
        rng=0,
    )
    return len(both), Interval(difference.mean(), *_bootstrap(difference)), float(test.pvalue)


def _bootstrap(values: pd.Series) -> tuple[float, float]:
    if (values == values.iloc[0]).all():
        return values.iloc[0], values.iloc[0]
    sample = stats.bootstrap([values], np.mean, n_resamples=10_000, method="percentile", rng=0)
    return float(sample.confidence_interval.low), float(sample.confidence_interval.high)


def show(measure: Measure, found: Interval) -> str:
    """Return a mean with its interval as a text; shares in percent."""
    if np.isnan(found.mean):
        return NONE
    if measure.unit == "dollars":
        return f"{format_dollars(found.mean)} [{found.low:.4f}, {found.high:.4f}]"
    scale = 100 if measure.unit in {"yes or no", "share"} else 1
    form = ",.0f" if measure.unit == "tokens" else ",.1f" if scale == 100 else ",.2f"
    return f"{scale * found.mean:{form}} [{scale * found.low:{form}}, {scale * found.high:{form}}]"


def headline(frame: pd.DataFrame) -> Measure:
    """Return the measure of correct answers: LLM-Acc if there is a judge."""
    return LLM_ACC if frame["correct"].notna().any() else CONTAIN_ACC


def means(frame: pd.DataFrame, measures: Sequence[Measure], by: str = "title", head: str = "Method") -> pd.DataFrame:
    """Return the means of measures, a row for each method; measures that no method has are left out."""
    rows = []
    for name, some in frame.groupby(by, sort=False):
        rows.append({head: name} | {measure.title: show(measure, interval(measure, some)) for measure in measures})
    table = pd.DataFrame(rows)
    return table.drop(columns=[m.title for m in measures if (table[m.title] == NONE).all()])


def run_tables(runs: Runs, baseline: str | None = None) -> list[Table]:
    """Return the tables of one run, the most important first.

    Args:
        runs: The run.
        baseline: The method that the others are compared with. Default: the first in the paper's order.
    """
    ((name, plan),) = runs.plans.items()
    frame = runs.frame
    first = baseline or frame["method"].iloc[0]
    compared = compare(frame, first)
    summary = means(frame, (LLM_ACC, CONTAIN_ACC, RETRIEVED, EVIDENCE, CALLS, SECONDS, COST))
    tables = [
        Table("Summary", summary, [f"Over all questions asked, of which failed ones count as wrong. {INTERVALS}"]),
        Table(
            f"Compared with {runs.facts(first).title}",
            compared,
            ["In percentage points, on the questions that both methods have. p: two-sided paired permutation test."],
        ),
        Table("Accuracy", means(frame, ACCURACY), ["With aliases: any of the gold answer's aliases counts as well."]),
        Table("Evidence and effort", means(frame, EFFORT), ["Over answered questions. Gold: documents or pages."]),
        Table("Tokens and cost a question", means(frame, COSTS), ["As the providers report them."]),
        _preparations(runs),
        Table("Calls by tool", _count_tools(frame)),
        Table("Stop reasons", pd.crosstab(frame["title"], frame["stop_reason"]).rename_axis("Method").reset_index()),
    ]
    if dataset := runs.datasets[name]:
        notes = [CITATION + ".", *differences(plan, runs.models[name], frame["question_id"].nunique())]
        tables.append(Table(f"Beside the paper: {dataset}", beside_paper(frame, dataset), notes))
    return [table for table in [*tables, _methods(runs)] if not table.rows.empty]


def compare(frame: pd.DataFrame, first: str) -> pd.DataFrame:
    """Compare each method with the first one, on the questions that both have."""
    by_method = {name: some.set_index("question_id") for name, some in frame.groupby("method", sort=False)}
    rows = []
    for measure in [m for m in (LLM_ACC, CONTAIN_ACC) if frame[m.name].notna().any()]:
        for other in by_method.values():
            if other["method"].iloc[0] == first:
                continue
            count, found, p = paired(by_method[first][measure.name], other[measure.name])
            mean, low, high = (100 * value for value in found)
            rows.append(
                {
                    "Method": other["title"].iloc[0],
                    "Measure": measure.title,
                    "Questions": f"{count:,}",
                    "Difference": f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]",
                    "p": "< 0.001" if p < 0.001 else f"{p:.3f}",
                }
            )
    return pd.DataFrame(rows)


def beside_paper(frame: pd.DataFrame, dataset: str) -> pd.DataFrame:
    """Return our accuracy beside the paper's for a dataset, with its methods first."""
    theirs = paper_results()[paper_results()["dataset"] == dataset]
    ours = means(frame, (LLM_ACC, CONTAIN_ACC)).set_index("Method").add_suffix(" (ours)")
    titles = list(dict.fromkeys([*theirs["method"], *ours.index]))
    table = ours.reindex(titles)
    for model, some in theirs.groupby("model", sort=False):
        results = some.set_index("method").reindex(titles)
        for column, title in (("llm_acc", "LLM-Acc"), ("contain_acc", "Contain-Acc")):
            if results[column].notna().any():
                table[f"{title} (paper, {model})"] = results[column].map("{:.1f}".format, na_action="ignore")
    return table.astype(object).fillna(NONE).rename_axis("Method").reset_index()


def overview_tables(runs: Runs) -> list[Table]:
    """Return the tables of several runs (paper, Table 1): methods by dataset and model, costs and settings."""
    accuracy, costs = {}, {}
    for name, some in runs.frame.groupby("run", sort=False):
        table = means(some, (LLM_ACC, CONTAIN_ACC)).set_index("Method")
        model = find_model(runs.models[name])
        paper = paper_results()
        results = paper[(paper["dataset"] == runs.datasets[name]) & (paper["model"] == model)].set_index("method")
        for title in table.columns:
            accuracy[f"{name}: {title}"] = table[title]
            if not results.empty:
                column = results["llm_acc" if title == LLM_ACC.title else "contain_acc"]
                accuracy[f"{name}: {title} (paper)"] = column.map("{:.1f}".format, na_action="ignore")
        costs[name] = means(some, (COST,)).set_index("Method").get(COST.title)
    order = [*paper_results()["method"].unique(), *runs.frame["title"].unique()]
    rows = pd.DataFrame(accuracy)
    rows = rows.reindex([title for title in dict.fromkeys(order) if title in rows.index])
    tables = [
        Table("Accuracy", rows.astype(object).fillna(NONE).rename_axis("Method").reset_index(), [INTERVALS]),
        Table(
            "Cost of a question",
            pd.DataFrame({name: some for name, some in costs.items() if some is not None})
            .reindex(list(runs.frame["title"].unique()))
            .astype(object)
            .fillna(NONE)
            .rename_axis("Method")
            .reset_index(),
        ),
        Table("Steps and tokens", means(runs.frame, (STEPS, RETRIEVED, EVIDENCE, SECONDS), by="run", head="Run")),
        Table("Runs", pd.DataFrame([_describe_run(runs, name) for name in runs.plans])),
    ]
    return [table for table in tables if not table.rows.empty and len(table.rows.columns) > 1]


def _describe_run(runs: Runs, name: str) -> dict[str, str]:
    plan = runs.plans[name]
    asked = runs.frame.loc[runs.frame["run"] == name, "question_id"].nunique()
    return {
        "Run": name,
        "Questions": f"{asked:,}",
        "Judge": plan.judge or "none",
        "Embedder": str((plan.contents or {}).get("embedder", "unknown")),
        "Presentation": plan.presentation,
        "Steps": str(plan.max_steps),
        "Model options": ", ".join(f"{key} {value}" for key, value in plan.model_options.items()) or NONE,
        "Folder": str(runs.folders[name]),
    }


def _count_tools(frame: pd.DataFrame) -> pd.DataFrame:
    counts = pd.DataFrame(list(frame["tools"]), index=frame["title"]).groupby(level=0, sort=False).sum().astype(int)
    return counts[counts.sum(axis=1) > 0].rename_axis("Method").reset_index() if len(counts.columns) else counts


def _preparations(runs: Runs) -> Table:
    rows = []
    for method in runs.frame["method"].unique():
        facts = runs.facts(method)
        if (work := facts.preparation) is None or not work.usage["model_calls"]:
            continue
        rows.append(
            {
                "Method": facts.title,
                "Seconds": NONE if work.seconds is None else f"{work.seconds:,.1f}",
                "Model calls": f"{work.usage['model_calls']:,}",
                "Input tokens": f"{work.usage['input_tokens']:,}",
                "Output tokens": f"{work.usage['output_tokens']:,}",
                "Cost": NONE if work.cost is None else format_dollars(work.cost),
            }
        )
    note = "What the work before the first question costs in all, whether or not this run has paid for it."
    return Table("Index-time work", pd.DataFrame(rows), [note])


def _methods(runs: Runs) -> Table:
    marks = {True: "✓", False: "✗", None: NONE}
    rows: list[dict[str, str]] = []
    notes: dict[str, list[str]] = {}
    for method in runs.frame["method"].unique():
        facts = runs.facts(method)
        settings = ", ".join(
            f"{name} {value if isinstance(value, str) else json.dumps(value)}" for name, value in facts.settings.items()
        )
        if facts.differs:
            notes.setdefault(facts.differs, []).append(facts.title)
        rows.append(
            {
                "Method": facts.title,
                "What it does": facts.description,
                "Settings": settings or NONE,
                "Autonomous strategy": marks[facts.autonomous],
                "Iterative": marks[facts.iterative],
                "Interleaved tool use": marks[facts.interleaved],
            }
        )
    told = ["The last three columns are those of the paper's Table 4; the marks are our reading of each method."]
    return Table("Methods", pd.DataFrame(rows), [*told, *(f"{', '.join(t)}: {text}" for text, t in notes.items())])


def csv_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the figures of each run and method as numbers: shares from 0 to 1, unknown ones empty."""
    rows = []
    for (run, method, title), some in frame.groupby(["run", "method", "title"], sort=False):
        row = {"run": run, "method": method, "title": title, "questions": len(some)}
        row["failed"] = int(some["error"].notna().sum())
        for measure in (*ACCURACY, *EFFORT, *COSTS):
            found = interval(measure, some)
            row |= {measure.name: found.mean, f"{measure.name}_low": found.low, f"{measure.name}_high": found.high}
        rows.append(row)
    return pd.DataFrame(rows)


def to_markdown(table: pd.DataFrame) -> str:
    """Return a table in Markdown."""
    rows = [[str(name) for name in table.columns], ["---"] * len(table.columns)]
    rows += [[str(cell).replace("|", "\\|") for cell in row] for row in table.itertuples(index=False)]
    rows[0] = [name.replace("|", "\\|") for name in rows[0]]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"
