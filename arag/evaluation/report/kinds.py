"""Tables that tell kinds of questions apart: accuracy by kind, complete lists, and refusals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from arag.evaluation.report.figures import (
    INTERVALS,
    LISTS,
    NONE,
    RULE_ACC,
    Interval,
    Measure,
    headline,
    interval,
    show,
)
from arag.evaluation.report.table import Table, means, method_rows

_LISTS_NOTE = (
    "By rules: a gold item is found if the answer has it as whole words; other items are read from the answer's "
    "bullets, or from its sentence with the most gold items. The judge matches items by their meaning."
)
_REFUSALS_NOTE = (
    "By rule: an answer is a refusal if its first sentence says that the corpus does not hold the fact. Precision is "
    "over all refusals, recall over the questions that the corpus does not answer."
)


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
        note = f"{measure.title} in percent, with the number of questions of each kind. {INTERVALS}"
        tables.append(
            Table("Accuracy by kind of question", _by_kind(frame, measure), [note], is_lead=True, is_shaded=True)
        )
    lists = frame[frame["form"] == "list"]
    if not lists.empty:
        tables.append(Table("Complete lists", means(lists, LISTS), [_LISTS_NOTE]))
    if (frame["form"] == "absent").any():
        rows = {title: _count_refusals(some) for title, some in frame.groupby("title", sort=False)}
        tables.append(Table("Refusals", method_rows(rows), [_REFUSALS_NOTE]))
    return tables


def refusal_figures(rows: pd.DataFrame) -> tuple[Interval, Interval]:
    """Return precision and recall of a method's refusals."""
    counts = Refusals.of(rows)
    return counts.precision, counts.recall


def _by_kind(frame: pd.DataFrame, measure: Measure) -> pd.DataFrame:
    columns: dict[str, dict[str, str]] = {}
    for kind, some in frame.groupby("kind"):
        name = f"{kind or 'other'} ({some['question_id'].nunique():,})"
        for title, rows in some.groupby("title", sort=False):
            columns.setdefault(name, {})[title] = show(measure, interval(measure, rows))
    titles = frame["title"].unique()
    return pd.DataFrame(columns).reindex(titles).fillna(NONE).rename_axis("Method")


class Refusals(NamedTuple):
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
    def of(cls, rows: pd.DataFrame) -> Refusals:
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
    counts = Refusals.of(rows)
    return {
        "Questions without an answer": f"{counts.absent:,}",
        "Refused": f"{counts.refused_absent:,}",
        "Refused of others": f"{counts.refused - counts.refused_absent:,}",
        "Precision, %": show(RULE_ACC, counts.precision),
        "Recall, %": show(RULE_ACC, counts.recall),
    }
