"""The page that shows how accuracy grows with what a run may spend (paper, Figure 4)."""

from __future__ import annotations

from collections.abc import Sequence

from arag.evaluation.report import plots
from arag.evaluation.report.tables import in_words
from arag.evaluation.report.templates import Drawing, templates
from arag.evaluation.scaling import EFFORT, STEPS, Point, Scaling, table

_TITLES = {STEPS: "Accuracy by most steps", EFFORT: "Accuracy by reasoning effort"}
_ACROSS = {STEPS: "most steps before an answer is forced", EFFORT: "reasoning effort"}
_END = 0.97  # of the width: the last value's letters need some room


def scaling_page(scaling: Scaling) -> str:
    """Draw how accuracy grows with what a run may spend.

    Args:
        scaling: What each setting has reached.
    """
    drawings = []
    for setting, title in _TITLES.items():
        points = [point for point in scaling.points if point.setting == setting and point.accuracy is not None]
        if points:
            caption = f"{scaling.measure.title} in percent; upright lines are 95% confidence intervals."
            plot = plots.course(_stops(points, scaling.measure.title), from_zero=setting == STEPS)
            drawings.append(Drawing(title, caption, plot, _ACROSS[setting]))
    return (
        templates()
        .get_template("summary.html")
        .render(title="Test-time scaling", notes=scaling.notes, drawings=drawings, tables=[table(scaling)])
    )


def _stops(points: Sequence[Point], measure: str) -> list[plots.Stop]:
    found = []
    for place, point in enumerate(points):
        if point.accuracy is not None:
            at = _across(point, points[-1]) if point.setting == STEPS else (place + 0.5) / len(points)
            found.append(
                plots.Stop(at, point.value, point.accuracy, f"{point.name}: {in_words(measure, point.accuracy)}")
            )
    return found


def _across(point: Point, last: Point) -> float:
    return int(point.value) / int(last.value) * _END
