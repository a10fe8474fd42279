"""Ratings that a model gives, from 0 to 10."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field

_MOST = 10.0


def _clamp(value: float) -> float:
    return min(max(value, 0.0), _MOST)


# A number out of range says enough: the reply has been paid for, and is not asked for again.
Rating: TypeAlias = Annotated[float, Field(allow_inf_nan=False), AfterValidator(_clamp)]
"""A finite number; one below 0 counts as 0, and one above 10 as 10."""
