"""The tables of a report: means with 95% confidence intervals, as texts for readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from arag.evaluation.method import ABILITIES
from arag.evaluation.report.figures import (
    ACCURACY,
    CALLS,
    CONTAIN_ACC,
    COST,
    COSTS,
    EFFORT,
    INPUT_TOKENS,
    INTERVALS,
    LISTS_F1,
    LLM_ACC,
    NONE,
    RETRIEVED,
    RULE_ACC,
    headline,
    interval,
    is_known,
    paired,
    show,
)
from arag.evaluation.report.frame import EXPERIMENT, Run, paper_results
from arag.evaluation.report.kinds import kind_tables, refusal_figures
from arag.evaluation.report.table import Table, means, method_rows
from arag.models.prices import format_dollars

_PAPERS_MEASURES = {"llm_acc": LLM_ACC, "contain_acc": CONTAIN_ACC}  # by column of the paper's results

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
        summary(run, frame, first),
        *kind_tables(frame),
        _abilities(run, frame),
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
        Table("Stop reasons", pd.crosstab(frame["title"].rename("Method"), frame["end"])),
    ]
    if run.dataset:
        tables.append(Table(f"Beside the paper: {run.dataset}", _accuracy([run], frame), [EXPERIMENT]))
    tables.append(_methods(run, frame))
    return [table for table in tables if not table.rows.empty]


def summary(run: Run, frame: pd.DataFrame, first: str) -> Table:
    """Return what matters most in one table: accuracy, its difference from the first method, effort and cost."""
    measure = headline(frame)
    lists = frame[frame["form"] == "list"]
    absent = frame["form"] == "absent"
    table = means(frame, (LLM_ACC, RULE_ACC, CONTAIN_ACC, CALLS, INPUT_TOKENS, RETRIEVED, COST))
    baseline = frame[frame["method"] == first].set_index("question_id")[measure.name]
    differences: dict[str, str] = {}
    for (method, title), rows in frame.groupby(["method", "title"], sort=False):
        _, difference, p = paired(baseline, rows.set_index("question_id")[measure.name])
        differences[title] = NONE if method == first else f"{100 * difference.mean:+.1f} [p {_show_p(p)}]"
    if len(differences) > 1:
        place = table.columns.get_loc(measure.title) + 1
        table.insert(place, f"Against {run.plan.methods[first].title}", pd.Series(differences))
    if not lists.empty:
        found = {title: show(LISTS_F1, interval(LISTS_F1, rows)) for title, rows in lists.groupby("title")}
        table["Lists, F1 %"] = pd.Series(found)
    if absent.any():
        titles = frame.groupby("title", sort=False)
        table["Refusals right, %"] = titles.apply(lambda rows: show(RULE_ACC, refusal_figures(rows)[0]))
        table["Absent facts refused, %"] = titles.apply(lambda rows: show(RULE_ACC, refusal_figures(rows)[1]))
    note = f"Over all questions asked, of which failed ones count as wrong. p: paired permutation test. {INTERVALS}"
    return Table("Summary", table.fillna(NONE), [note], is_lead=True)


def _show_p(p: float) -> str:
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"


def _abilities(run: Run, frame: pd.DataFrame) -> Table:
    """Return what each method can do and what it cannot."""
    rows: dict[str, dict[str, str]] = {}
    for method in frame["method"].unique():
        facts = run.plan.methods[method]
        if facts.abilities is not None:
            able = facts.abilities.split()
            rows[facts.title] = {title: "✓" if name in able else "✗" for name, title in ABILITIES.items()}
    note = "By how each method works here, not by its results. ✗ marks what it cannot do at all."
    return Table("What each method cannot do", method_rows(rows), [note], is_lead=True)


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
                "p": _show_p(p),
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
    return Table("Index-time work", method_rows(rows), [note])


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
    return Table("Methods", method_rows(rows), notes)


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
        Table("Accuracy", _accuracy(runs, frame), [INTERVALS], is_lead=True),
        *(Table(title, _join_runs(rows), notes[title]) for title, rows in by_kind.items()),
        Table("Cost and effort of a question", _join_runs(efforts)),
        Table("Runs", method_rows(settings).rename_axis("Run")),
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
