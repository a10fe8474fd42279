"""The tables of a report: means with 95% confidence intervals, as texts for readers and as numbers for CSV files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from arag.evaluation.report.frame import EXPERIMENT, Run, paper_results
from arag.models.prices import format_dollars

NONE = "–"
INTERVALS = "Means, with 95% confidence intervals: Wilson's for yes or no, else of the bootstrap."


class Measure(NamedTuple):
    """A measure of each question; a method's figure is the mean over its questions.

    Attributes:
        name: Its column in the frame.
        title: Its name for readers.
        unit: Its unit; "yes or no" is 1 or 0, and has a Wilson interval.
        skips_gaps: Whether questions without a known value are skipped. Otherwise one such question makes the method's
            figure unknown: the cost of some questions says little about the cost of all.
    """

    name: str
    title: str
    unit: Literal["yes or no", "share", "number", "tokens", "dollars"]
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
SECONDS = Measure("seconds", "Seconds", "number")
ACCURACY = (
    LLM_ACC,
    CONTAIN_ACC,
    Measure("contain_with_aliases", "Contain-Acc with aliases", "yes or no"),
    Measure("exact_match", "Exact match with aliases", "yes or no"),
    Measure("f1", "F1 with aliases", "share"),
)
EFFORT = (
    Measure("gold_seen", "Gold seen, %", "share", skips_gaps=True),
    Measure("gold_read", "Gold read, %", "share", skips_gaps=True),
    Measure("gold_cited", "Gold cited, %", "share", skips_gaps=True),
    *(RETRIEVED, EVIDENCE, STEPS, CALLS, SECONDS),
)
COSTS = (
    Measure("input_tokens", "Input tokens", "tokens"),
    Measure("cached_tokens", "Cached tokens", "tokens"),
    Measure("output_tokens", "Output tokens", "tokens"),
    Measure("reasoning_tokens", "Reasoning tokens", "tokens"),
    Measure("unusable", "Unusable replies, %", "share", skips_gaps=True),
    COST,
)
_COLUMNS = {"llm_acc": LLM_ACC, "contain_acc": CONTAIN_ACC}  # of the paper's results
_FORMS: dict[str, Callable[[float], str]] = {
    "dollars": format_dollars,
    "tokens": "{:,.0f}".format,
    "number": "{:,.2f}".format,
}
_REPORTED = "As the providers report them. Unusable replies were not the JSON object that was asked for."


class Table(NamedTuple):
    """A table of texts, whose rows are named by their methods or runs."""

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
    """Compare a measure of two methods, by question, on the questions that both have.

    Returns:
        The number of questions; the mean difference, second minus first; and the two-sided p-value of a paired
        permutation test.
    """
    difference = (second - first).dropna()
    mean = difference.mean() if len(difference) else 0.0
    if len(difference) < 2 or not difference.any():
        return len(difference), Interval(mean, mean, mean), 1.0
    # Of one sample, the signs are permuted.
    test = stats.permutation_test([difference], np.mean, permutation_type="samples", n_resamples=9_999, rng=0)
    return len(difference), Interval(mean, *_bootstrap(difference)), float(test.pvalue)


def _bootstrap(values: pd.Series) -> tuple[float, float]:
    if (values == values.iloc[0]).all():
        return values.iloc[0], values.iloc[0]
    sample = stats.bootstrap([values], np.mean, n_resamples=10_000, method="percentile", rng=0)
    return float(sample.confidence_interval.low), float(sample.confidence_interval.high)


def show(measure: Measure, figure: Interval) -> str:
    """Return a mean with its interval, if it has any width, as a text; shares in percent."""
    form = _FORMS.get(measure.unit, lambda share: f"{100 * share:.1f}")
    mean, low, high = map(form, figure)
    if np.isnan(figure.mean):
        return NONE
    return mean if figure.low == figure.high else f"{mean} [{low}, {high}]"


def headline(frame: pd.DataFrame) -> Measure:
    """Return the measure of correct answers: LLM-Acc if there is a judge."""
    return LLM_ACC if frame["correct"].notna().any() else CONTAIN_ACC


def means(frame: pd.DataFrame, measures: Sequence[Measure]) -> pd.DataFrame:
    """Return the means of measures, a row for each method; measures that no method has are left out."""
    by_method = frame.groupby("title", sort=False)
    table = pd.DataFrame({m.title: by_method.apply(lambda some, m=m: show(m, interval(m, some))) for m in measures})
    return table.loc[:, (table != NONE).any()].rename_axis("Method")


def run_tables(run: Run, frame: pd.DataFrame, baseline: str | None = None) -> list[Table]:
    """Return the tables of one run, the most important first; others are compared with the baseline, or the first."""
    first = baseline or frame["method"].iloc[0]
    tables = [
        Table(
            "Summary",
            means(frame, (LLM_ACC, CONTAIN_ACC, COST, RETRIEVED, EVIDENCE, CALLS, SECONDS)),
            [f"Over all questions asked, of which failed ones count as wrong. {INTERVALS}"],
        ),
        Table(
            f"Compared with {run.plan.methods[first].title}",
            compare(frame, first),
            ["In percentage points, on the questions that both methods have. p: two-sided paired permutation test."],
        ),
        Table("Accuracy", means(frame, ACCURACY), ["With aliases: any of the gold answer's aliases counts as well."]),
        Table("Evidence and effort", means(frame, EFFORT), ["Over answered questions. Gold: documents or pages."]),
        Table("Tokens and cost a question", means(frame, COSTS), [_REPORTED]),
        _preparations(run),
        Table("Stop reasons", pd.crosstab(frame["title"].rename("Method"), frame["stop_reason"])),
        _methods(run, frame),
    ]
    if run.dataset:
        tables.insert(-1, Table(f"Beside the paper: {run.dataset}", _accuracy([run], frame), [EXPERIMENT]))
    return [table for table in tables if not table.rows.empty]


def compare(frame: pd.DataFrame, first: str) -> pd.DataFrame:
    """Compare each method with the first one, on the questions that both have."""
    by_method = {name: some.set_index("question_id") for name, some in frame.groupby("method", sort=False)}
    baseline = by_method.pop(first)
    rows = []
    for measure in [measure for measure in (LLM_ACC, CONTAIN_ACC) if frame[measure.name].notna().any()]:
        for other in by_method.values():
            questions, difference, p = paired(baseline[measure.name], other[measure.name])
            if not questions:
                continue
            mean, low, high = (f"{100 * value:+.1f}" for value in difference)
            row = {"Method": other["title"].iloc[0], "Measure": measure.title, "Questions": f"{questions:,}"}
            rows.append({**row, "Difference": f"{mean} [{low}, {high}]", "p": f"{p:.3f}" if p >= 0.001 else "< 0.001"})
    return pd.DataFrame(rows).set_index("Method") if rows else pd.DataFrame()


def overview_tables(runs: Sequence[Run], frame: pd.DataFrame) -> list[Table]:
    """Return the tables of several runs (paper, Table 1): methods by dataset and model, their efforts and settings."""
    efforts = {name: means(some, (COST, *EFFORT)) for name, some in frame.groupby("run", sort=False)}
    asked = frame.groupby("run")["question_id"].nunique()
    settings = {r.name: {"Questions": f"{asked[r.name]:,}", **r.describe(), "Folder": str(r.folder)} for r in runs}
    return [
        Table("Accuracy", _accuracy(runs, frame), [INTERVALS]),
        Table("Cost and effort of a question", pd.concat(efforts, names=["Run"]).reset_index("Method").fillna(NONE)),
        Table("Runs", _rows(settings).rename_axis("Run")),
    ]


def _accuracy(runs: Sequence[Run], frame: pd.DataFrame) -> pd.DataFrame:
    """Return our accuracy beside the paper's on the same datasets: a row for each method, the paper's first."""
    parts = {}
    for run in runs:
        parts[run.name] = means(frame[frame["run"] == run.name], (LLM_ACC, CONTAIN_ACC))
        if run.dataset:
            some = paper_results()[paper_results()["dataset"] == run.dataset]
            theirs = some.pivot_table(list(_COLUMNS), "method", "model", sort=False).map("{:.1f}".format)
            theirs.columns = [f"{_COLUMNS[column].title} (paper, {model})" for column, model in theirs.columns]
            parts[run.dataset] = theirs
    table = pd.concat(parts, axis=1)
    table.columns = [f"{name}: {title}" for name, title in table.columns]
    titles = dict.fromkeys([*paper_results()["method"], *frame["title"]])
    return table.reindex([title for title in titles if title in table.index]).fillna(NONE).rename_axis("Method")


def _rows(rows: Mapping[str, Mapping[str, str]]) -> pd.DataFrame:
    return pd.DataFrame.from_dict(rows, orient="index").fillna(NONE).rename_axis("Method")


def _preparations(run: Run) -> Table:
    rows = {
        facts.title: {
            "Model calls": f"{work['model_calls']:,}",
            "Input tokens": f"{work['input_tokens']:,}",
            "Output tokens": f"{work['output_tokens']:,}",
            "Cost": NONE if facts.preparation_cost is None else format_dollars(facts.preparation_cost),
        }
        for facts in run.plan.methods.values()
        if (work := facts.preparation) and work["model_calls"]
    }
    note = "What the work before the first question costs in all, whether or not this run has paid for it."
    return Table("Index-time work", _rows(rows), [note])


def _methods(run: Run, frame: pd.DataFrame) -> Table:
    """Return what the methods do, with the marks of the paper's Table 4."""
    marks = {True: "✓", False: "✗", None: NONE}
    methods = [run.plan.methods[method] for method in frame["method"].unique()]
    rows = {
        facts.title: {
            "What it does": facts.description,
            "Settings": ", ".join(f"{name} {value}" for name, value in facts.settings.items()) or NONE,
            "Autonomous strategy": marks[facts.autonomous],
            "Iterative": marks[facts.iterative],
            "Interleaved tool use": marks[facts.interleaved],
        }
        for facts in methods
    }
    notes = ["The last three columns are those of the paper's Table 4; the marks are our reading of each method."]
    notes += [f"{facts.title}: {facts.differs}" for facts in methods if facts.differs]
    return Table("Methods", _rows(rows), notes)


def csv_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the figures of each run and method as numbers: shares from 0 to 1, unknown ones empty."""
    rows = []
    for (run, method, title), some in frame.groupby(["run", "method", "title"], sort=False):
        row = {"run": run, "method": method, "title": title, "questions": len(some)}
        row["failed"] = int(some["error"].notna().sum())
        for measure in (*ACCURACY, *EFFORT, *COSTS):
            figure = interval(measure, some)
            row |= {measure.name: figure.mean, f"{measure.name}_low": figure.low, f"{measure.name}_high": figure.high}
        rows.append(row)
    return pd.DataFrame(rows)
