"""The tables of a report: means with 95% confidence intervals, as texts for readers and as numbers for CSV files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from arag.evaluation.report.frame import Run
from arag.evaluation.report.paper import CITATION, differences, find_model, paper_results
from arag.models.prices import format_dollars
from arag.retrieval.text import count

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
    Measure("unusable", "Unusable replies", "share", skips_gaps=True),
    COST,
)
_COLUMNS = {"llm_acc": LLM_ACC, "contain_acc": CONTAIN_ACC}  # of the paper's results
_REPORTED = "As the providers report them. Unusable replies were not the JSON object that was asked for, in % of all."
_CLEAR = 0.05  # the p-value below which a difference is called clear


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
    mean = difference.mean() if len(both) else 0.0
    if len(both) < 2 or (difference == 0).all():
        return len(both), Interval(mean, mean, mean), 1.0
    test = stats.permutation_test(
        [both.iloc[:, 1], both.iloc[:, 0]],
        lambda one, other, axis: np.mean(one - other, axis=axis),
        vectorized=True,
        permutation_type="samples",
        n_resamples=9_999,
        rng=0,
    )
    return len(both), Interval(mean, *_bootstrap(difference)), float(test.pvalue)


def _bootstrap(values: pd.Series) -> tuple[float, float]:
    if (values == values.iloc[0]).all():
        return values.iloc[0], values.iloc[0]
    sample = stats.bootstrap([values], np.mean, n_resamples=10_000, method="percentile", rng=0)
    return float(sample.confidence_interval.low), float(sample.confidence_interval.high)


def show(measure: Measure, figure: Interval) -> str:
    """Return a mean with its interval, if it has any width, as a text; shares in percent."""
    mean, low, high = (_show(measure, value) for value in figure)
    if np.isnan(figure.mean):
        return NONE
    return mean if figure.low == figure.high else f"{mean} [{low}, {high}]"


def _show(measure: Measure, value: float) -> str:
    if measure.unit == "dollars":
        return format_dollars(value)
    if measure.unit in {"yes or no", "share"}:
        return f"{100 * value:.1f}"
    return f"{value:,.0f}" if measure.unit == "tokens" else f"{value:,.2f}"


def headline(frame: pd.DataFrame) -> Measure:
    """Return the measure of correct answers: LLM-Acc if there is a judge."""
    return LLM_ACC if frame["correct"].notna().any() else CONTAIN_ACC


def summarise(frame: pd.DataFrame) -> str:
    """Say in a few sentences which method is the most accurate, how sure that is, and what it costs."""
    measure = headline(frame)
    by_title = {str(title): some for title, some in frame.groupby("title", sort=False)}
    known = [title for title, some in by_title.items() if some[measure.name].notna().any()]
    accuracy = {title: interval(measure, by_title[title]) for title in known}
    best, *others = sorted(known, key=lambda title: -accuracy[title].mean)
    mean, low, high = (f"{100 * value:.1f}" for value in accuracy[best])
    questions, cost = count(by_title[best][measure.name].count(), "question"), interval(COST, by_title[best]).mean
    price = "" if np.isnan(cost) else f", at {format_dollars(cost)} a question"
    text = f"{best} answers {mean}% of {questions} correctly [{low}, {high}] by {measure.title}{price}."
    if not others:
        return text
    values = (by_title[title].set_index("question_id")[measure.name] for title in (others[0], best))
    in_common, difference, p = paired(*values)
    points, low, high = (f"{100 * value:.1f}" for value in difference)
    sure = "a clear difference" if p < _CLEAR else "no clear difference"
    behind = f"{points} points behind [{low}, {high}], {_show_p(p)}: {sure}" if in_common else "on other questions"
    return f"{text} The next best is {others[0]}, {behind}."


def means(frame: pd.DataFrame, measures: Sequence[Measure], by: str = "title", head: str = "Method") -> pd.DataFrame:
    """Return the means of measures, a row for each method; measures that no method has are left out."""
    table = pd.DataFrame(
        {head: name} | {measure.title: show(measure, interval(measure, some)) for measure in measures}
        for name, some in frame.groupby(by, sort=False)
    )
    return table.loc[:, (table != NONE).any()]


def run_tables(run: Run, frame: pd.DataFrame, baseline: str | None = None) -> list[Table]:
    """Return the tables of one run, the most important first.

    Args:
        run: The run.
        frame: Its records.
        baseline: The method that the others are compared with. Default: the first in the paper's order.
    """
    first = baseline or frame["method"].iloc[0]
    stops = pd.crosstab(frame["title"], frame["stop_reason"])
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
        Table("Calls by tool", count_tools(frame)),
        Table("Stop reasons", stops.rename_axis("Method").reset_index()),
        _methods(run, frame),
    ]
    if run.dataset:
        notes = [CITATION + ".", *differences(run.plan, run.models, frame["question_id"].nunique())]
        tables.insert(-1, Table(f"Beside the paper: {run.dataset}", beside_paper(frame, run.dataset), notes))
    return [table for table in tables if len(table.rows.columns) > 1]


def compare(frame: pd.DataFrame, first: str) -> pd.DataFrame:
    """Compare each method with the first one, on the questions that both have."""
    by_method = {name: some.set_index("question_id") for name, some in frame.groupby("method", sort=False)}
    baseline = by_method.pop(first)
    rows = []
    for measure in [measure for measure in (LLM_ACC, CONTAIN_ACC) if frame[measure.name].notna().any()]:
        for other in by_method.values():
            questions, difference, p = paired(baseline[measure.name], other[measure.name])
            mean, low, high = (f"{100 * value:+.1f}" for value in difference)
            row = {"Method": other["title"].iloc[0], "Measure": measure.title, "Questions": f"{questions:,}"}
            rows.append({**row, "Difference": f"{mean} [{low}, {high}]", "p": _show_p(p).removeprefix("p = ")})
    return pd.DataFrame(rows)


def _show_p(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def beside_paper(frame: pd.DataFrame, dataset: str) -> pd.DataFrame:
    """Return our accuracy beside the paper's for a dataset, with its methods first."""
    theirs = paper_results()[paper_results()["dataset"] == dataset]
    table = means(frame, (LLM_ACC, CONTAIN_ACC)).set_index("Method").add_suffix(" (ours)")
    table = table.reindex(dict.fromkeys([*theirs["method"], *table.index]))
    for model, some in theirs.groupby("model", sort=False):
        for column, measure in _COLUMNS.items():
            if some[column].notna().any():
                table[f"{measure.title} (paper, {model})"] = some.set_index("method")[column].map("{:.1f}".format)
    return _with_gaps(table)


def overview_tables(runs: Sequence[Run], frame: pd.DataFrame) -> list[Table]:
    """Return the tables of several runs (paper, Table 1): methods by dataset and model, costs and settings."""
    paper = paper_results()
    accuracy, costs = {}, {}
    for run in runs:
        table = means(frame[frame["run"] == run.name], (LLM_ACC, CONTAIN_ACC, COST)).set_index("Method")
        model = find_model(run.models)
        theirs = paper[(paper["dataset"] == run.dataset) & (paper["model"] == model)].set_index("method")
        for column, measure in _COLUMNS.items():
            if measure.title in table:
                accuracy[f"{run.name}: {measure.title}"] = table[measure.title]
                if theirs[column].notna().any():
                    shown = theirs[column].map("{:.1f}".format, na_action="ignore")
                    accuracy[f"{run.dataset}, {model}: {measure.title} (paper)"] = shown
        if COST.title in table:
            costs[run.name] = table[COST.title]
    settings = [{"Run": run.name, **run.describe(), "Folder": str(run.folder)} for run in runs]
    titles = list(frame["title"].unique())
    known = dict.fromkeys([*paper["method"], *titles])
    rows = pd.DataFrame(accuracy)
    tables = [
        Table("Accuracy", _with_gaps(rows.reindex([title for title in known if title in rows.index])), [INTERVALS]),
        Table("Cost of a question", _with_gaps(pd.DataFrame(costs, index=titles))),
        Table("Steps and tokens", means(frame, (STEPS, RETRIEVED, EVIDENCE, SECONDS), by="run", head="Run")),
        Table("Runs", pd.DataFrame(settings).fillna(NONE)),
    ]
    return [table for table in tables if len(table.rows.columns) > 1]


def _with_gaps(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with its index as the first column, and a sign in its gaps."""
    return table.astype(object).fillna(NONE).rename_axis("Method").reset_index()


def count_tools(frame: pd.DataFrame) -> pd.DataFrame:
    """Return how often each method called each tool without an error; methods without calls are left out."""
    counts = pd.DataFrame(list(frame["tools"]), index=frame["title"]).groupby(level=0, sort=False).sum().astype(int)
    return counts[counts.sum(axis=1) > 0].rename_axis("Method").reset_index()


def _preparations(run: Run) -> Table:
    rows = [
        {
            "Method": facts.title,
            "Seconds": NONE if work.seconds is None else f"{work.seconds:,.1f}",
            "Model calls": f"{work.usage['model_calls']:,}",
            "Input tokens": f"{work.usage['input_tokens']:,}",
            "Output tokens": f"{work.usage['output_tokens']:,}",
            "Unusable replies": f"{work.unusable / work.usage['model_calls']:.1%}",
            "Cost": NONE if work.cost is None else format_dollars(work.cost),
        }
        for facts in run.plan.methods.values()
        if (work := facts.preparation) and work.usage["model_calls"]
    ]
    note = "What the work before the first question costs in all, whether or not this run has paid for it."
    return Table("Index-time work", pd.DataFrame(rows), [note])


def _methods(run: Run, frame: pd.DataFrame) -> Table:
    """Return what the methods do, with the marks of the paper's Table 4."""
    marks = {True: "✓", False: "✗", None: NONE}
    methods = [run.plan.methods[method] for method in frame["method"].unique()]
    rows = [
        {
            "Method": facts.title,
            "What it does": facts.description,
            "Settings": ", ".join(f"{name} {value}" for name, value in facts.settings.items()) or NONE,
            "Autonomous strategy": marks[facts.autonomous],
            "Iterative": marks[facts.iterative],
            "Interleaved tool use": marks[facts.interleaved],
        }
        for facts in methods
    ]
    notes = ["The last three columns are those of the paper's Table 4; the marks are our reading of each method."]
    notes += [f"{facts.title}: {facts.differs}" for facts in methods if facts.differs]
    return Table("Methods", pd.DataFrame(rows), notes)


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


def to_markdown(table: pd.DataFrame) -> str:
    """Return a table in Markdown."""
    rows = [table.columns, ["---"] * len(table.columns), *table.itertuples(index=False)]
    escaped = ([str(cell).replace("|", "\\|") for cell in row] for row in rows)
    return "".join(f"| {' | '.join(row)} |\n" for row in escaped)
