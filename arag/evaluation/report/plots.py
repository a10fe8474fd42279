"""The plots of a report, as SVG."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from cycler import cycler
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from arag.evaluation.report.tables import RETRIEVED, Interval, Measure, interval

_COLORS = "#0f6a70 #d08a2e #6c5aa8 #b8506e #6f9440 #4a78b5 #8a8378 #9a4f24 #c2b23a #3f4650".split()  # for ten methods
_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "arag",  # the same records give the same bytes
    "text.parse_math": False,  # titles and causes may have a $
    "font.family": "sans-serif",
    "font.size": 9,
    **{f"axes.spines.{side}": False for side in ("top", "right", "left")},
    "ytick.left": False,
    "lines.markersize": 5,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.axisbelow": True,
    "axes.prop_cycle": cycler(color=_COLORS),
}
_WIDTH = 7.2  # inches


def plane(frame: pd.DataFrame, measure: Measure) -> Markup:
    """Draw accuracy against retrieved tokens, a point for each method with its intervals."""

    def paint(axes: Axes) -> None:
        for number, (title, some) in enumerate(frame.groupby("title", sort=False)):
            tokens, across = _points([interval(RETRIEVED, some)])
            means, errors = _points([interval(measure, some)], 100)
            axes.errorbar(tokens, means, errors, across, fmt="os^Dv"[number % 5], label=title, clip_on=False)
        label = f"{measure.title}, percent"
        axes.set(xlabel="retrieved tokens a question", ylabel=label, xlim=(0, None), ylim=(0, 101))

    return _draw(3.8, paint)


def stacks(counts: pd.DataFrame, label: str) -> Markup:
    """Draw counts as a bar for each row (a method), with a part for each column (a kind of what the label says)."""

    def paint(axes: Axes) -> None:
        counts.plot.barh(stacked=True, ax=axes, xlabel=label, ylabel="", width=0.62, legend=False)
        axes.grid(axis="y", visible=False)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.invert_yaxis()

    return _draw(1.4 + 0.42 * len(counts), paint)


def course(frame: pd.DataFrame, setting: str, measure: Measure) -> Markup:
    """Draw the accuracy of each method over a setting, a column of the frame (paper, Figure 4)."""

    def paint(axes: Axes) -> None:
        for title, some in frame.groupby("title", sort=False):
            intervals = {str(value): interval(measure, rows) for value, rows in some.groupby(setting, observed=True)}
            means, errors = _points([*intervals.values()], 100)
            axes.errorbar([*intervals], means, errors, fmt="o-", capsize=3, label=title)
        axes.set(ylabel=f"{measure.title}, percent", xlabel=setting, ylim=(0, 101))

    return _draw(3.4, paint)


def _points(intervals: Sequence[Interval], scale: float = 1) -> tuple[Any, Any]:
    """Return means, and how far the intervals reach below and above them."""
    means, lows, highs = scale * np.array(intervals).T
    return means, [means - lows, highs - means]


def _draw(height: float, paint: Callable[[Axes], None]) -> Markup:
    """Return a figure as SVG that stands in a page."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        paint(figure.subplots())
        figure.legend(frameon=False, loc="outside right upper")
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    return Markup("<svg" + out.getvalue().partition("<svg")[2])  # noqa: S704 - of our own
