"""The cost of a run, and the cap that a caller may set."""

from __future__ import annotations

from collections.abc import Sequence

from arag.errors import InputError
from arag.models.prices import cost
from arag.models.usage import ModelCall


def would_exceed(max_cost: float, calls: Sequence[ModelCall], last_calls: int) -> bool:
    """Return whether one more call would take a run above `max_cost` US dollars, with those that end it.

    Each call to come is taken to cost as much as the last one, which had nearly the same conversation.

    Args:
        max_cost: The cap.
        calls: The model calls so far.
        last_calls: How many calls end the run: a forced answer, and a structured one.

    Raises:
        InputError: The cost is unknown.
    """
    spent = cost(calls)
    last = cost(calls[-1:])
    if spent is None or last is None:
        unknown = [call["model"] for call in calls if cost([call]) is None]
        raise InputError(
            f"max_cost cannot be kept: the price of {unknown[0] or 'a model without a name'} is unknown, or its "
            "provider reports no tokens. Leave max_cost out, and limit max_steps"
        )
    return spent + last * (1 + last_calls) > max_cost
