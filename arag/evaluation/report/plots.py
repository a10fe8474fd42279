"""The plots of a report, as SVG."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import pandas as pd
from cycler import cycler
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from arag.evaluation.report.paper import paper_results
from arag.evaluation.report.tables import CONTAIN_ACC, LLM_ACC, RETRIEVED, Measure, interval

_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "arag",  # the same records give the same bytes
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "ytick.left": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.axisbelow": True,
    "axes.prop_cycle": cycler(color=["#0f6a70", "#d08a2e", "#6c5aa8", "#b8506e", "#6f9440", "#4a78b5", "#8a8378"]),
}
_WIDTH = 7.2  # inches


def accuracy(frame: pd.DataFrame, dataset: str | None, model: str | None) -> str:
    """Draw the accuracy of each method with its intervals; diamonds are the paper's."""
    titles = list(frame["title"].unique())
    measures = [measure for measure in (LLM_ACC, CONTAIN_ACC) if frame[measure.name].notna().any()]
    paper = paper_results()
    theirs = paper[(paper["dataset"] == dataset) & (paper["model"] == model)].set_index("method").reindex(titles)
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(_WIDTH, 0.9 + 0.42 * len(titles)), layout="constrained")
        axes = figure.subplots()
        for number, measure in enumerate(measures):
            places = [place + 0.24 * number - 0.12 * (len(measures) - 1) for place in range(len(titles))]
            found = [interval(measure, frame[frame["title"] == title]) for title in titles]
            means = [100 * each.mean for each in found]
            errors = [[100 * (e.mean - e.low) for e in found], [100 * (e.high - e.mean) for e in found]]
            axes.errorbar(
                means, places, xerr=errors, fmt="o", markersize=6, capsize=0, elinewidth=2, label=measure.title
            )
            column = "llm_acc" if measure is LLM_ACC else "contain_acc"
            if theirs[column].notna().any():
                axes.plot(
                    theirs[column],
                    places,
                    "D",
                    markersize=5,
                    mfc="none",
                    mec="#5d636c",
                    label=f"{measure.title}, paper",
                )
        axes.set(yticks=range(len(titles)), yticklabels=titles, xlim=(0, 101), xlabel="percent of the questions")
        axes.grid(axis="y", visible=False)
        axes.invert_yaxis()
        figure.legend(loc="outside upper left", ncols=4, frameon=False)
        return _to_svg(figure)


def plane(frame: pd.DataFrame, measure: Measure) -> str:
    """Draw accuracy against retrieved tokens, a point for each method with its intervals."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(_WIDTH, 3.8), layout="constrained")
        axes = figure.subplots()
        for number, (title, some) in enumerate(frame.groupby("title", sort=False)):
            x, y = interval(RETRIEVED, some), interval(measure, some)
            axes.errorbar(
                x.mean,
                100 * y.mean,
                xerr=[[x.mean - x.low], [x.high - x.mean]],
                yerr=[[100 * (y.mean - y.low)], [100 * (y.high - y.mean)]],
                fmt="os^Dv"[number % 5],
                label=title,
            )
        axes.set(
            xlabel="retrieved tokens a question", ylabel=f"{measure.title}, percent", xlim=(0, None), ylim=(0, 101)
        )
        figure.legend(loc="outside right upper", frameon=False)
        return _to_svg(figure)


def stacks(counts: pd.DataFrame, label: str) -> str:
    """Draw counts of kinds as a bar for each row: causes of failures, or calls of tools.

    Args:
        counts: The counts, a row for each method and a column for each kind.
        label: What is counted.
    """
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(_WIDTH, 1.0 + 0.42 * len(counts)), layout="constrained")
        axes = figure.subplots()
        counts.plot.barh(stacked=True, ax=axes, xlabel=label, ylabel="", width=0.62, legend=False)
        axes.grid(axis="y", visible=False)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.invert_yaxis()
        figure.legend(loc="outside upper left", ncols=4, frameon=False)
        return _to_svg(figure)


def course(frame: pd.DataFrame, settings: Sequence[tuple[str, str]], measure: Measure, label: str) -> str:
    """Draw the accuracy of each method over a setting: steps, or the effort of reasoning (paper, Figure 4).

    Args:
        frame: The records.
        settings: The setting's values in order, each with its run's name.
        measure: The measure of accuracy.
        label: What was varied.
    """
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(_WIDTH, 3.4), layout="constrained")
        axes = figure.subplots()
        for title, some in frame.groupby("title", sort=False):
            found = [interval(measure, some[some["run"] == run]) for _, run in settings]
            means = [100 * each.mean for each in found]
            errors = [[100 * (e.mean - e.low) for e in found], [100 * (e.high - e.mean) for e in found]]
            axes.errorbar([value for value, _ in settings], means, yerr=errors, fmt="o-", capsize=3, label=title)
        figure.legend(loc="outside right upper", frameon=False)
        axes.set(ylabel=f"{measure.title}, percent", xlabel=label, ylim=(0, 101))
        return _to_svg(figure)


def _to_svg(figure: Figure) -> str:
    """Return a figure as SVG that stands in a page."""
    out = io.StringIO()
    figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    return "<svg" + out.getvalue().partition("<svg")[2]
