"""The cost of model calls, by the price list of the package genai-prices."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import Any

_FREE = "extractive"
# Versions of a model: gpt-5-mini-2025-08-07, claude-haiku-4-5-20251001, gemini-2.0-flash-001.
_VERSION = re.compile(r"[-@](\d{4}-\d{2}-\d{2}|\d{8}|\d{3}|latest)$")
_FOLDER = "models/"  # prefix of the names that Google reports
_OPEN_WEIGHTS = "gpt-oss"  # any server with OpenAI's protocol reports OpenAI as its provider
_CLOSED = ("gpt-", "o1", "o3", "o4-", "claude-", "gemini-")  # models that only makers and resellers can host


def cost(model_calls: Iterable[Mapping[str, Any]]) -> float | None:
    """Return the cost of model calls, in US dollars at today's list prices.

    Cache writes, discounts and surcharges are not counted.

    Args:
        model_calls: The calls, as in the final state's `model_calls`.

    Returns:
        The sum; None if it is unknown, because a model has no price or its provider reported no tokens.
    """
    dollars = [_price(call) for call in model_calls]
    known = [each for each in dollars if each is not None]
    return sum(known) if len(known) == len(dollars) else None


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

    model = str(call.get("model") or "").removeprefix(_FOLDER)
    provider = call.get("provider") or None
    tokens, written = call.get("input_tokens") or 0, call.get("output_tokens") or 0  # reasoning included
    if model == _FREE:
        return 0.0
    if not (tokens or written) or (_OPEN_WEIGHTS in model and provider == "openai"):
        return None
    cached = min(call.get("cached_tokens") or 0, tokens)  # part of the prompt's tokens
    usage = Usage(input_tokens=tokens, cache_read_tokens=cached, output_tokens=written)
    # A closed model costs the same through a proxy, whose name the list may not have.
    sellers = [provider, None] if model.startswith(_CLOSED) and _OPEN_WEIGHTS not in model else [provider]
    for seller in dict.fromkeys(sellers):
        for name in dict.fromkeys([model, _VERSION.sub("", model)]):
            try:
                return float(calc_price(usage, name, provider_id=seller).total_price)
            except LookupError:
                continue
    return None
