"""The figures of a report as numbers, for CSV files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from arag.evaluation.report.figures import ACCURACY, COSTS, EFFORT, LISTS, Interval, interval
from arag.evaluation.report.kinds import Refusals


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
        refusals = Refusals.of(some)
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
