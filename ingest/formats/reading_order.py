"""The order in which a person reads the shapes of a slide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

_Shape = TypeVar("_Shape")


class Place(NamedTuple):
    """Where a shape is, in any unit of length."""

    left: float
    top: float
    height: float


def in_reading_order(places: Mapping[_Shape, Place]) -> list[_Shape]:
    """Return shapes by rows from top to bottom, and each row from left to right.

    A shape belongs to the row above it if its middle is beside the first shape of that row.
    """
    rows: list[list[_Shape]] = []
    bottom = 0.0
    for shape in sorted(places, key=lambda shape: places[shape].top):
        place = places[shape]
        middle = place.top + place.height / 2
        if not rows or middle >= bottom:
            rows.append([])
            bottom = place.top + place.height
        rows[-1].append(shape)
    ordered: list[_Shape] = []
    for row in rows:
        ordered += sorted(row, key=lambda shape: (places[shape].left, places[shape].top))
    return ordered
