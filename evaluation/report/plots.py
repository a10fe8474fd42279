"""Plots as SVG without a size of their own: they fill what they stand in, and take its colours and letters.

Across they are measured in percent, down in pixels, so that letters and marks stay as large on a phone as on a desk.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from arag.evaluation.scores import Interval

_ROW = 26  # pixels of a row
_HEIGHT = 340
_LINE = 16  # pixels between two labels
_SHIFTS = sorted((_LINE // 2 * steps for steps in range(-40, 41)), key=abs)  # of labels, up and down from their dots
_DETOUR = 12  # pixels that a label goes further to stand on one line less
_ON_A_PHONE, _ON_A_DESK = 2.6, 0.85  # percent of the width that a letter takes
_TICKS = 5


@dataclass(frozen=True, slots=True)
class Dot:
    """A mean in a row.

    Attributes:
        found: The mean and its interval, 0 to 1.
        kind: A CSS class.
        told: What it is, in words.
    """

    found: Interval
    kind: str
    told: str


@dataclass(frozen=True, slots=True)
class Point:
    """A method in a plane."""

    label: str
    x: Interval
    y: Interval


@dataclass(frozen=True, slots=True)
class Stop:
    """A mean on the way from left to right.

    Attributes:
        at: Where it is across, 0 to 1.
        label: What stands below it.
        found: The mean and its interval, 0 to 1.
        told: What it is, in words.
    """

    at: float
    label: str
    found: Interval
    told: str


def shares(dots: Sequence[Dot], beside: Sequence[tuple[float, str]] = ()) -> Markup:
    """Draw means between 0 and 1 with their intervals, one below the other.

    Args:
        dots: The means.
        beside: Values without an interval, and what they are.
    """
    height = _ROW * max(len(dots), 1)
    told = "; ".join([dot.told for dot in dots] + [text for _, text in beside])
    # The lines reach over the gaps between rows.
    parts = [_line(f"{tick}%", -8, f"{tick}%", height + 8, "grid") for tick in range(0, 101, 25)]
    for number, dot in enumerate(dots):
        y = number * _ROW + _ROW / 2
        parts.append(_line(_percent(dot.found.low), y, _percent(dot.found.high), y, f"whisker {dot.kind}"))
        parts.append(Markup('<circle cx="{}" cy="{}" r="5" class="{}"/>').format(_percent(dot.found.mean), y, dot.kind))
    for value, text in beside:
        diamond = Markup(
            '<svg x="{}" y="{}" class="over"><path d="M0-6 6 0 0 6-6 0z" class="beside"><title>{}</title></path></svg>'
        )
        parts.append(diamond.format(_percent(value), height / 2, text))
    return _svg("track", height, told, parts)


def stack(values: Sequence[float], kinds: Sequence[str], largest: float, told: str) -> Markup:
    """Draw values as one bar.

    Args:
        values: The values.
        kinds: A CSS class for each.
        largest: The sum that fills the width.
        told: What the bar shows, in words.
    """
    parts, begins = [], 0.0
    for value, kind in zip(values, kinds, strict=True):
        bar = Markup('<rect x="{}" y="4" width="{}" height="18" class="{}"/>')
        parts.append(bar.format(_percent(begins / largest), _percent(value / largest), kind))
        begins += value
    return _svg("track", _ROW, told, parts)


def plane(points: Sequence[Point], across: str, up: str) -> Markup:
    """Draw points with their intervals both ways: twice, of which a page shows the `wide` or the `narrow` one.

    Labels must not cover each other, and on a phone they take a larger part of the width.

    Args:
        points: The points; what goes up is between 0 and 1.
        across: What goes across.
        up: What goes up.
    """
    wide, narrow = _plane(points, across, up, _ON_A_DESK), _plane(points, across, up, _ON_A_PHONE)
    return Markup('<div class="wide">{}</div><div class="narrow">{}</div>').format(wide, narrow)


def _plane(points: Sequence[Point], across: str, up: str, letter: float) -> Markup:
    x_ticks = ticks(max(point.x.high for point in points))
    y_ticks = ticks(100 * max(point.y.high for point in points))
    x_end = x_ticks[-1]
    height = _scale(y_ticks)
    parts = _grid(y_ticks)
    parts += [_below(tick / x_end, f"{tick:,g}") for tick in x_ticks]
    lines = []
    for point in points:
        x, y = point.x.mean / x_end, height(point.y.mean)
        low, high = point.x.low / x_end, point.x.high / x_end
        top, bottom = height(point.y.high), height(point.y.low)
        parts.append(_line(_percent(low), y, _percent(high), y, "whisker thin"))
        parts.append(_line(_percent(x), bottom, _percent(x), top, "whisker thin"))
        lines += [_Box(100 * low, 100 * high, y, y), _Box(100 * x, 100 * x, top, bottom)]
    dots = [(point.x.mean / x_end, height(point.y.mean), point.label) for point in points]
    for (x, dot, label), (side, y) in zip(dots, _places(dots, letter, lines), strict=True):
        drawn = Markup(
            '<svg x="{}" class="over"><path d="M{} {}L{} {}" class="leader"/>'
            '<text x="{}" y="{}" dy=".35em" class="label {}">{}</text></svg>'
        )
        anchor = "start" if side > 0 else "end"
        parts.append(drawn.format(_percent(x), 6 * side, dot, 11 * side, y, 13 * side, y, anchor, label))
    for x, dot, _ in dots:
        parts.append(Markup('<circle cx="{}" cy="{}" r="5.5" class="headline"/>').format(_percent(x), dot))
    told = "; ".join(f"{p.label}: {p.x.mean:,.0f} {across}, {100 * p.y.mean:.1f} {up}" for p in points)
    return _svg("plane", _HEIGHT, told, parts)


def course(stops: Sequence[Stop], *, from_zero: bool) -> Markup:
    """Draw means and their intervals from left to right, joined by lines.

    Args:
        stops: The means, in their order across.
        from_zero: Whether what goes across begins at 0, on the left.
    """
    y_ticks = ticks(100 * max(stop.found.high for stop in stops))
    height = _scale(y_ticks)
    parts = _grid(y_ticks)
    for one, other in pairwise(stops):
        ends = (height(one.found.mean), height(other.found.mean))
        parts.append(_line(_percent(one.at), ends[0], _percent(other.at), ends[1], "course"))
    for stop in stops:
        at, top = _percent(stop.at), height(stop.found.high)
        parts.append(_line(at, height(stop.found.low), at, top, "whisker headline"))
        dot = Markup('<circle cx="{}" cy="{}" r="5.5" class="headline"><title>{}</title></circle>')
        parts.append(dot.format(at, height(stop.found.mean), stop.told))
        value = Markup('<text x="{}" y="{}" class="label middle">{:.1f}</text>')
        parts.append(value.format(at, round(top - 9, 1), 100 * stop.found.mean))
    parts += [_below(stop.at, stop.label) for stop in stops]
    if from_zero:
        parts.append(_below(0, "0"))
    return _svg("plane", _HEIGHT, "; ".join(stop.told for stop in stops), parts)


def ticks(highest: float) -> list[float]:
    """Return round numbers from 0 up to the highest value or just above it."""
    if highest <= 0:
        return [0.0, 1.0]
    power = 10 ** math.floor(math.log10(highest / _TICKS))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10, 20) if highest / (power * factor) <= _TICKS)
    return [step * number for number in range(math.ceil(round(highest / step, 9)) + 1)]


def _places(
    dots: Sequence[tuple[float, float, str]], letter: float, lines: Sequence[_Box] = ()
) -> list[tuple[int, float]]:
    """Return where labels go, right or left of their dots and how far down.

    None covers a label or a dot, and they keep off the lines where there is room near by.
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


@dataclass(frozen=True, slots=True)
class _Box:
    """What a label, a dot or a line covers: percent across, pixels down."""

    begins: float
    ends: float
    top: float
    bottom: float

    def is_inside(self) -> bool:
        return self.begins >= -2 and self.ends <= 104 and self.top >= -_LINE / 2 and self.bottom <= _HEIGHT + _LINE / 2

    def meets(self, other: _Box) -> bool:
        return (
            self.begins < other.ends
            and other.begins < self.ends
            and self.top < other.bottom
            and other.top < self.bottom
        )


def _scale(y_ticks: Sequence[float]) -> Callable[[float], float]:
    """Return how far down a value between 0 and 1 stands, where ticks go up in percent."""
    return lambda value: round(_HEIGHT * (1 - 100 * value / y_ticks[-1]), 1)


def _grid(y_ticks: Sequence[float]) -> list[Markup]:
    parts = []
    for tick in y_ticks:
        y = _scale(y_ticks)(tick / 100)
        parts.append(_line("0%", y, "100%", y, "grid"))
        parts.append(Markup('<text x="-8" y="{}" dy=".35em" class="tick end">{:g}</text>').format(y, tick))
    return parts


def _below(at: float, text: str) -> Markup:
    return Markup('<text x="{}" y="{}" class="tick middle">{}</text>').format(_percent(at), _HEIGHT + 20, text)


def _line(x1: str, y1: float, x2: str, y2: float, kind: str) -> Markup:
    return Markup('<line x1="{}" y1="{}" x2="{}" y2="{}" class="{}"/>').format(x1, y1, x2, y2, kind)


def _svg(kind: str, height: float, told: str, parts: Sequence[Markup]) -> Markup:
    opening = Markup('<svg class="{}" width="100%" height="{}" role="img" aria-label="{}">').format(kind, height, told)
    return opening + Markup().join(parts) + Markup("</svg>")


def _percent(share: float) -> str:
    return f"{100 * share:.2f}%"
