"""What all tables of a report share: their form, and the means of measures by method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from arag.evaluation.report.figures import NONE, Measure, interval, show


class Table(NamedTuple):
    """A table of texts, whose rows are named by their methods or runs."""

    title: str
    rows: pd.DataFrame
    notes: Sequence[str] = ()
    is_lead: bool = False
    """Whether it stands before the plots."""
    is_shaded: bool = False
    """Whether its cells are shares in percent, which a background shows."""


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


def method_rows(rows: Mapping[str, Mapping[str, str]]) -> pd.DataFrame:
    """Return rows of texts that are named by methods."""
    return pd.DataFrame.from_dict(rows, orient="index").fillna(NONE).rename_axis("Method")
