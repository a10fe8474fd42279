"""The data of plots; `plots.html` draws them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

from arag.evaluation.scores import Interval

_HEIGHT = 340  # pixels of a scatter plot
_LINE = 16  # pixels between two labels
_SHIFTS = sorted(
    (_LINE // 2 * steps for steps in range(-40, 41)), key=abs
)  # vertical offsets of labels from their dots
_DETOUR = 12  # pixels of offset that are worth avoiding one line
_ON_A_PHONE, _ON_A_DESK = 2.6, 0.85  # width of a letter, in percent of the plot
_TICKS = 5


@dataclass(frozen=True, slots=True)
class Share:
    """A mean between 0 and 1 with its interval, as a row of a plot.

    Attributes:
        found: The mean; None if unknown.
        told: What the row shows, in words.
        kind: The mean's CSS class.
        beside: A value to compare with, without an interval.
        beside_told: What that is, in words.
    """

    found: Interval | None
    told: str
    kind: str = "headline"
    beside: float | None = None
    beside_told: str = ""


@dataclass(frozen=True, slots=True)
class Stack:
    """Values as one bar.

    Attributes:
        values: The values by their CSS classes.
        largest: The sum that fills the full width.
        told: What the bar shows, in words.
    """

    values: Mapping[str, float]
    largest: float
    told: str


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a scatter plot, with intervals in x and y.

    Attributes:
        label: Its label.
        told: What it shows, in words.
        x: Its x value.
        y: Its y value, 0 to 1.
    """

    label: str
    told: str
    x: Interval
    y: Interval


@dataclass(frozen=True, slots=True)
class Plane:
    """A scatter plot or a line plot.

    Attributes:
        points: The points, with x from 0 to 1.
        x_ticks: The x positions of the ticks, 0 to 1, and their labels.
        joined: Whether a line joins the points; then their labels are not shown.
        labels: For each label, the side of its dot and its y position: `wide` for desktops, `narrow` for phones, where
            labels take a larger part of the width.
    """

    points: Sequence[Point]
    x_ticks: Sequence[tuple[float, str]]
    joined: bool = False
    labels: Mapping[str, Sequence[tuple[int, float]]] = field(default_factory=dict)
    height: ClassVar[int] = _HEIGHT

    @property
    def y_ticks(self) -> list[float]:
        """The y ticks, in percent."""
        return ticks(100 * max(point.y.high for point in self.points))

    def down(self, value: float) -> float:
        """Return the y position of a value between 0 and 1, in pixels from the top."""
        return round(_HEIGHT * (1 - 100 * value / self.y_ticks[-1]), 1)


def make_plane(points: Sequence[Point]) -> Plane:
    """Return a scatter plot whose labels do not overlap, with axes from 0."""
    x_ticks = ticks(max(point.x.high for point in points))
    scaled = [replace(point, x=_divide(point.x, x_ticks[-1])) for point in points]
    plane = Plane(scaled, [(tick / x_ticks[-1], f"{tick:,g}") for tick in x_ticks])
    dots, lines = [], []
    for point in scaled:
        x, y = 100 * point.x.mean, plane.down(point.y.mean)
        dots.append((point.x.mean, y, point.label))
        lines.append(_Box(100 * point.x.low, 100 * point.x.high, y, y))
        lines.append(_Box(x, x, plane.down(point.y.high), plane.down(point.y.low)))
    letters = {"wide": _ON_A_DESK, "narrow": _ON_A_PHONE}
    return replace(plane, labels={kind: _places(dots, letter, lines) for kind, letter in letters.items()})


def ticks(highest: float) -> list[float]:
    """Return round numbers from 0 to the highest value or just above it."""
    if highest <= 0:
        return [0.0, 1.0]
    power = 10 ** math.floor(math.log10(highest / _TICKS))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10, 20) if highest / (power * factor) <= _TICKS)
    return [step * number for number in range(math.ceil(round(highest / step, 9)) + 1)]


def _divide(found: Interval, end: float) -> Interval:
    return replace(found, mean=found.mean / end, low=found.low / end, high=found.high / end)


def _places(
    dots: Sequence[tuple[float, float, str]], letter: float, lines: Sequence[_Box] = ()
) -> list[tuple[int, float]]:
    """Return the side and the y position of each label.

    No label overlaps another label or a dot, and labels avoid lines if there is room nearby.
    """
    taken = [_label(100 * x - 2, 100 * x + 2, y) for x, y, _ in dots]
    places = []
    for own, (x, y, label) in enumerate(dots):
        sides = (-1, 1) if x > 0.55 else (1, -1)
        width = letter * len(label) + 4
        free = [
            (abs(shift) + _DETOUR * sum(box.meets(line) for line in lines), side, y + shift, box)
            for shift in _SHIFTS
            for side in sides
            for box in [_label(100 * x + min(0, side * width), 100 * x + max(0, side * width), y + shift)]
            if box.is_inside() and not any(box.meets(other) for n, other in enumerate(taken) if n != own)
        ]
        _, side, down, box = min(free, key=lambda place: place[0], default=(0, sides[0], y, taken[own]))
        taken.append(box)
        places.append((side, down))
    return places


def _label(begins: float, ends: float, y: float) -> _Box:
    return _Box(begins, ends, y - _LINE / 2, y + _LINE / 2)


class _Box(NamedTuple):
    """The area of a label, a dot or a line: x in percent, y in pixels."""

    begins: float
    ends: float
    top: float
    bottom: float

    def is_inside(self) -> bool:
        return self.begins >= -2 and self.ends <= 104 and self.top >= -_LINE / 2 and self.bottom <= _HEIGHT + _LINE / 2

    def meets(self, other: _Box) -> bool:
        across = self.begins < other.ends and other.begins < self.ends
        return across and self.top < other.bottom and other.top < self.bottom
