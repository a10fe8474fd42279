"""What a run's model calls cost, by the list in `prices.json`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

# Versions of a model: gpt-5-mini-2025-08-07, claude-haiku-4-5-20251001, gemini-2.0-flash-001. What else may stand
# behind a name is another model: gpt-5-mini is no gpt-5.
_VERSION = re.compile(r"[-@](\d{4}-\d{2}-\d{2}|\d{8}|\d{3}|latest)$")
_FOLDER = "models/"  # in front of the names that Google reports
_MILLION = 1_000_000


def cost(model_calls: Iterable[Mapping[str, Any]]) -> float | None:
    """Return what model calls cost, in US dollars by the providers' public lists.

    Writing to a provider's cache, and discounts and surcharges of any kind, are not counted.

    Args:
        model_calls: The calls, as the final state's `model_calls` has them.

    Returns:
        The sum; None where it cannot be known: a model is not in the list, or its provider reported no tokens.
    """
    total = 0.0
    for call in model_calls:
        of_call = _cost(call)
        if of_call is None:
            return None
        total += of_call
    return total


def prices_as_of() -> str:
    """Return the month of the list, as YYYY-MM."""
    return str(_list()["as_of"])


def _cost(call: Mapping[str, Any]) -> float | None:
    tokens = call.get("input_tokens") or 0
    cached = min(call.get("cached_tokens") or 0, tokens)  # a part of the prompt's tokens
    written = call.get("output_tokens") or 0  # reasoning is a part of it
    price = _price(str(call.get("model") or ""), tokens)
    if price is None:
        return None
    dollars = (tokens - cached) * price["input"] + cached * price["cached_input"] + written * price["output"]
    # A call takes some tokens: where none are reported, nothing is known about its cost, unless it is free.
    return float(dollars) / _MILLION if tokens or written or not price["output"] else None


def _price(model: str, tokens: int) -> dict[str, Any] | None:
    model = model.removeprefix(_FOLDER)
    for name in (model, _VERSION.sub("", model)):  # a version may have a price of its own
        for price in _list()["prices"]:
            if price["model"] == name and tokens <= price.get("up_to_input_tokens", tokens):
                return dict(price)
    return None


@cache
def _list() -> dict[str, Any]:
    """Return the list."""
    return dict(json.loads(files("arag.graph").joinpath("prices.json").read_text("utf-8")))
