"""The cost of model calls, by the price list of the package genai-prices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

_FREE = "extractive"
_OPEN_WEIGHTS = "gpt-oss"  # of OpenAI: any server with its protocol may have them, and reports OpenAI as its provider


def cost(model_calls: Iterable[Mapping[str, Any]]) -> float | None:
    """Return the cost of model calls, in US dollars at today's list prices.

    Cache writes, discounts and surcharges are not counted.

    Returns:
        The sum; None if it is unknown, because a provider has no price for a model or reported no tokens.
    """
    dollars = [_price(call) for call in model_calls]
    return None if None in dollars else sum(filter(None, dollars))


def format_dollars(amount: float) -> str:
    """Format an amount for readers."""
    if amount == 0:
        return "$0"
    if amount < 0.0001:
        return "< $0.0001"
    return f"${amount:.4f}" if amount < 1 else f"${amount:,.2f}"


def _price(call: Mapping[str, Any]) -> float | None:
    """Return a call's cost, or None."""
    from genai_prices import Usage, calc_price

    model = str(call.get("model") or "").removeprefix("models/")  # as Google reports it
    provider = call.get("provider")
    tokens, written = call.get("input_tokens") or 0, call.get("output_tokens") or 0  # cached ones, reasoning included
    if model == _FREE:
        return 0.0
    if not provider or not (tokens or written) or (provider == "openai" and _OPEN_WEIGHTS in model):
        return None
    cached = min(call.get("cached_tokens") or 0, tokens)
    usage = Usage(input_tokens=tokens, cache_read_tokens=cached, output_tokens=written)
    with suppress(LookupError):
        return float(calc_price(usage, model, provider_id=provider).total_price)
    return None
