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

from arag.evaluation.report.figures import RETRIEVED, Interval, Measure, interval

_COLORS = [  # one for each of the ten methods of the paper's Table 1
    "#0f6a70",
    "#d08a2e",
    "#6c5aa8",
    "#b8506e",
    "#6f9440",
    "#4a78b5",
    "#8a8378",
    "#9a4f24",
    "#c2b23a",
    "#3f4650",
]
_MARKERS = "os^Dv"  # with ten colors, methods differ in color or marker
_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "arag",  # the same records give the same bytes
    "text.parse_math": False,  # titles and causes may contain a $
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "ytick.left": False,
    "lines.markersize": 5,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.axisbelow": True,
    "axes.prop_cycle": cycler(color=_COLORS),
}
_WIDTH = 7.2  # inches
_PERCENT = 100
_PERCENT_LIMITS = (0, 101)  # of an axis; a line at 100 is drawn in full


def plane(frame: pd.DataFrame, measure: Measure) -> Markup:
    """Draw accuracy against retrieved tokens: a point for each method, with its intervals.

    Args:
        frame: The records of one run.
        measure: The measure of accuracy.

    Returns:
        The plot as SVG.
    """

    def paint(axes: Axes) -> None:
        for number, (title, some) in enumerate(frame.groupby("title", sort=False)):
            tokens, token_errors = _points([interval(RETRIEVED, some)])
            means, errors = _points([interval(measure, some)], _PERCENT)
            marker = _MARKERS[number % len(_MARKERS)]
            axes.errorbar(
                tokens,
                means,
                yerr=errors,
                xerr=token_errors,
                fmt=marker,
                label=title,
                clip_on=False,
            )
        axes.set(
            xlabel="retrieved tokens a question",
            ylabel=f"{measure.title}, percent",
            xlim=(0, None),
            ylim=_PERCENT_LIMITS,
        )

    return _draw(3.8, paint)


def stacks(counts: pd.DataFrame, label: str) -> Markup:
    """Draw counts as stacked bars.

    Args:
        counts: A row for each bar (a method), a column for each part of the bars.
        label: The unit of the counts.

    Returns:
        The plot as SVG.
    """

    def paint(axes: Axes) -> None:
        counts.plot.barh(stacked=True, ax=axes, xlabel=label, ylabel="", width=0.62, legend=False)
        axes.grid(axis="y", visible=False)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.invert_yaxis()

    return _draw(1.4 + 0.42 * len(counts), paint)


def course(frame: pd.DataFrame, setting: str, measure: Measure) -> Markup:
    """Draw the accuracy of each method over a setting (paper, Figure 4).

    Args:
        frame: The records of runs that differ in the setting.
        setting: Its column in the frame.
        measure: The measure of accuracy.

    Returns:
        The plot as SVG.
    """

    def paint(axes: Axes) -> None:
        for title, some in frame.groupby("title", sort=False):
            values: list[str] = []
            intervals: list[Interval] = []
            for value, rows in some.groupby(setting, observed=True):
                values.append(str(value))
                intervals.append(interval(measure, rows))
            means, errors = _points(intervals, _PERCENT)
            axes.errorbar(values, means, errors, fmt="o-", capsize=3, label=title)
        axes.set(
            xlabel=setting,
            ylabel=f"{measure.title}, percent",
            ylim=_PERCENT_LIMITS,
        )

    return _draw(3.4, paint)


def _points(intervals: Sequence[Interval], scale: float = 1) -> tuple[Any, Any]:
    """Return means, and the lengths of their intervals below and above them."""
    means, lows, highs = scale * np.array(intervals).T
    return means, [means - lows, highs - means]


def _draw(height: float, paint: Callable[[Axes], None]) -> Markup:
    """Return a figure as an SVG element."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        paint(figure.subplots())
        figure.legend(frameon=False, loc="outside right upper")
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    _, tag, rest = out.getvalue().partition("<svg")  # the XML declaration comes before it
    return Markup(tag + rest)  # noqa: S704 - Matplotlib escapes texts
