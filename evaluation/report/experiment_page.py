"""The pages of single experiments: scaling (paper, Figure 4) and failures (Figure 5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from arag.evaluation.failures import Failure
from arag.evaluation.report import plots
from arag.evaluation.report.templates import Row, templates
from arag.evaluation.scaling import EFFORT, STEPS, Point
from arag.evaluation.scores import Interval
from arag.retrieval.files import written_whole
from arag.retrieval.tools import whole_characters

_TITLES = {STEPS: "Accuracy by most steps", EFFORT: "Accuracy by reasoning effort"}
_UNDECIDED = "not decided"
_COLOURS = ("c1", "c2", "c3", "c4", "c5", "c6")


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a page: rows of plots under a title.

    Attributes:
        title: The title.
        caption: What the rows show.
        rows: The rows.
        kind: `shares` where the rows are drawn from 0 to 100%.
        legend: What each CSS class of a colour means.
    """

    title: str
    caption: str
    rows: list[Row]
    kind: str = ""
    legend: dict[str, str] = field(default_factory=dict)


def write_page(text: str, file: Path) -> Path:
    """Write a page; returns the file."""
    with written_whole(file) as out:
        out.write(whole_characters(text).encode())
    return file


def scaling_page(points: Sequence[Point]) -> str:
    """Draw how accuracy grows with what a run may spend.

    Args:
        points: What each setting has reached.
    """
    figures = []
    for setting, title in _TITLES.items():
        rows = [_point(point) for point in points if point.setting == setting]
        if rows:
            caption = f"{points[0].measure} over all questions, with 95% confidence intervals; steps taken on average."
            figures.append(Figure(title, caption, rows, "shares"))
    return templates().get_template("experiment.html").render(title="Test-time scaling", figures=figures)


def _point(point: Point) -> Row:
    found = Interval(point.accuracy, point.low, point.high, point.questions)
    told = f"{point.accuracy:.1%}, interval {point.low:.1%} to {point.high:.1%}"
    detail = f"{point.steps:.1f} steps, {point.retrieved_tokens:,.0f} tokens"
    drawing = plots.shares([plots.Dot(found, "headline", told)])
    return Row(f"{point.setting} {point.value}", drawing, f"{100 * point.accuracy:.1f}", detail)


def failures_page(found: Sequence[Failure]) -> str:
    """Draw the split of wrong answers by cause, method by method.

    Args:
        found: The wrong answers.
    """
    figures = [_split("Causes", "What the wrong answers of each method come from.", found, lambda f: f.cause)]
    chains = [failure for failure in found if failure.cause == "reasoning chain error"]
    if chains:
        caption = "What went wrong in the reasoning chains that failed."
        figures.append(_split("Within reasoning chain errors", caption, chains, lambda f: f.chain_cause))
    return templates().get_template("experiment.html").render(title="Why answers are wrong", figures=figures)


def _split(title: str, caption: str, found: Sequence[Failure], cause: Callable[[Failure], str]) -> Figure:
    causes = [name for name, _ in Counter(cause(failure) for failure in found).most_common() if name]
    kinds = dict(zip(causes, _COLOURS, strict=False)) | {"": "c0"}
    rows = []
    for method in dict.fromkeys(failure.method for failure in found):
        counts = Counter(cause(failure) for failure in found if failure.method == method)
        some = {name: counts[name] for name in kinds if counts[name]}
        told = ", ".join(f"{name or _UNDECIDED}: {count}" for name, count in some.items())
        drawing = plots.stack(list(some.values()), [kinds[name] for name in some], sum(some.values()), told)
        rows.append(Row(method, drawing, f"{sum(some.values()):,}", told))
    legend = {name or _UNDECIDED: kind for name, kind in kinds.items() if any(cause(f) == name for f in found)}
    return Figure(title, caption, rows, legend=legend)
