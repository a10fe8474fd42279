"""The cost of model calls, by the price list of the package genai-prices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib.metadata import version
from typing import Any

_FREE = "extractive"
_OPEN_WEIGHTS = "gpt-oss"
_CLOSED = ("gpt-", "o1", "o3", "o4-", "claude-", "gemini-")  # models that only makers and resellers can host


def cost(model_calls: Iterable[Mapping[str, Any]]) -> float | None:
    """Return the cost of model calls, in US dollars at today's list prices.

    Cache writes, discounts and surcharges are not counted.

    Returns:
        The sum; None if it is unknown, because a model has no price or its provider reported no tokens.
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


def cite_prices() -> str:
    """Return the source of the prices, for reports."""
    return f"genai-prices {version('genai-prices')}"


def _price(call: Mapping[str, Any]) -> float | None:
    """Return a call's cost, or None."""
    from genai_prices import Usage, calc_price

    model = str(call.get("model") or "").removeprefix("models/")  # as Google reports it
    provider = call.get("provider") or None
    tokens, written = call.get("input_tokens") or 0, call.get("output_tokens") or 0  # cached ones, reasoning included
    if model == _FREE:
        return 0.0
    # Any server with OpenAI's protocol reports OpenAI as its provider: it may be the user's own.
    is_open = _OPEN_WEIGHTS in model
    if not (tokens or written) or (is_open and provider == "openai"):
        return None
    cached = min(call.get("cached_tokens") or 0, tokens)
    usage = Usage(input_tokens=tokens, cache_read_tokens=cached, output_tokens=written)
    # A closed model costs the same through a proxy, whose name the list may not have.
    for seller in (provider, None) if model.startswith(_CLOSED) and not is_open else (provider,):
        with suppress(LookupError):
            return float(calc_price(usage, model, provider_id=seller).total_price)
    return None
