"""The cost of model calls, by the price list of the package genai-prices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_FREE = "extractive"
_OPEN_WEIGHTS = "gpt-oss"  # OpenAI's open models: other servers have them, too, and report OpenAI as the provider


def cost(model_calls: Iterable[Mapping[str, Any]]) -> float | None:
    """Return the cost of model calls, in US dollars at today's list prices.

    Cache writes, discounts and surcharges are not counted.

    Returns:
        The sum; None if it is unknown, because a provider has no price for a model or reported no tokens.
    """
    total: float = 0
    for call in model_calls:
        price = _price(call)
        if price is None:
            return None
        total += price
    return total


def format_dollars(amount: float) -> str:
    """Format an amount for readers."""
    if amount == 0:
        return "$0"
    if amount < 0.0001:
        return "< $0.0001"
    if amount < 1:
        return f"${amount:.4f}"
    return f"${amount:,.2f}"


def _price(call: Mapping[str, Any]) -> float | None:
    """Return a call's cost; None if it is unknown."""
    from genai_prices import Usage, calc_price

    model = str(call.get("model") or "").removeprefix("models/")  # as Google reports it
    if model == _FREE:
        return 0
    provider = call.get("provider")
    if not provider:
        return None
    if provider == "openai" and _OPEN_WEIGHTS in model:
        return None
    input_tokens = call.get("input_tokens") or 0  # cached ones included
    output_tokens = call.get("output_tokens") or 0  # reasoning included
    if not input_tokens and not output_tokens:
        return None
    usage = Usage(
        input_tokens=input_tokens,
        cache_read_tokens=min(call.get("cached_tokens") or 0, input_tokens),
        output_tokens=output_tokens,
    )
    try:
        return float(calc_price(usage, model, provider_id=provider).total_price)
    except LookupError:  # the list has no price for this model
        return None
