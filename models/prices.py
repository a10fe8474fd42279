"""The cost of a run's model calls, from the package genai-prices and your own price list."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from arag.errors import InputError

PRICES_VARIABLE = "ARAG_PRICES"
# Versions of a model: gpt-5-mini-2025-08-07, claude-haiku-4-5-20251001, gemini-2.0-flash-001.
_VERSION = re.compile(r"[-@](\d{4}-\d{2}-\d{2}|\d{8}|\d{3}|latest)$")
_FOLDER = "models/"  # prefix of the names that Google reports
_MILLION = 1_000_000
_CLOSED = (
    "gpt-",
    "o1",
    "o3",
    "o4-",
    "claude-",
    "gemini-",
)  # models that only makers and resellers can host
_OPEN_WEIGHTS = "gpt-oss"


class _Price(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    model: str = Field(min_length=1)
    """A name that a provider reports, or a pattern of names."""
    up_to_input_tokens: int | None = Field(None, ge=0)
    """The longest prompt that the price applies to."""
    input: float = Field(ge=0)
    cached_input: float = Field(ge=0)
    output: float = Field(ge=0)


class _Prices(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    about: str = ""
    as_of: str = Field("", pattern=r"^(20\d\d-\d\d)?$")
    prices: list[_Price]


_BUILT_IN = _Price(model="extractive", input=0, cached_input=0, output=0)


def cost(model_calls: Iterable[Mapping[str, Any]]) -> float | None:
    """Return the cost of model calls, in US dollars.

    Models in the file that `ARAG_PRICES` names are priced by that file, all others by the installed version of
    genai-prices, at today's list price. Cache writes, discounts and surcharges are not counted.

    Args:
        model_calls: The calls, as in the final state's `model_calls`.

    Returns:
        The sum; None if it is unknown, because a model has no price or its provider reported no tokens.

    Raises:
        InputError: `ARAG_PRICES` does not name a valid price list.
    """
    own = _read_own()
    total = 0.0
    for call in model_calls:
        of_call = _cost(call, [*own.prices, _BUILT_IN])
        if of_call is None:
            return None
        total += of_call
    return total


def format_dollars(amount: float) -> str:
    """Format an amount for readers."""
    if amount == 0:
        return "$0"
    if amount < 0.0001:
        return "< $0.0001"
    return f"${amount:.4f}" if amount < 1 else f"${amount:,.2f}"


def cite_prices() -> str:
    """Return the source of the prices, for reports: the month of your own list if it has one, or genai-prices' version.

    Raises:
        InputError: `ARAG_PRICES` does not name a valid price list.
    """
    return _read_own().as_of or f"genai-prices {version('genai-prices')}"


def _cost(call: Mapping[str, Any], own: Collection[_Price]) -> float | None:
    model = str(call.get("model") or "").removeprefix(_FOLDER)
    tokens = call.get("input_tokens") or 0
    cached = min(call.get("cached_tokens") or 0, tokens)  # part of the prompt's tokens
    written = call.get("output_tokens") or 0  # reasoning included
    free = False
    if name := _find_name(model, {price.model for price in own}):
        rows = [price for price in own if price.model == name]
        price = next((p for p in rows if p.up_to_input_tokens is None or tokens <= p.up_to_input_tokens), None)
        if price is None:
            return None
        free = not price.output
        dollars = (tokens - cached) * price.input + cached * price.cached_input + written * price.output
        dollars /= _MILLION
    else:
        found = _look_up(model, call.get("provider") or None, tokens, cached, written)
        if found is None:
            return None
        dollars = found
    # Every call uses tokens: if none are reported, its cost is unknown, unless it is free.
    return dollars if tokens or written or free else None


def _look_up(model: str, provider: str | None, tokens: int, cached: int, written: int) -> float | None:
    """Return a call's price in genai-prices' list, or None."""
    from genai_prices import Usage, calc_price

    if _OPEN_WEIGHTS in model and provider == "openai":  # any server with OpenAI's protocol reports that provider
        return None
    usage = Usage(input_tokens=tokens, cache_read_tokens=cached, output_tokens=written)
    # Without a provider, the model's name must do. A closed model costs the same through a proxy.
    is_closed = model.startswith(_CLOSED) and _OPEN_WEIGHTS not in model
    providers = dict.fromkeys([provider, None] if is_closed else [provider])
    for seller, name in product(providers, dict.fromkeys([model, _VERSION.sub("", model)])):
        with suppress(LookupError):
            return float(calc_price(usage, name, provider_id=seller).total_price)
    return None


def _find_name(model: str, names: Collection[str]) -> str | None:
    """Return the name in a list that matches a model: its own, its own without the version, or the longest pattern."""
    for exact in (model, _VERSION.sub("", model)):
        if exact in names:
            return exact
    fitting = [name for name in names if model and fnmatchcase(model, name)]
    return min(fitting, key=lambda name: (-len(name), name), default=None)


def _read_own() -> _Prices:
    """Read your own price list; it is empty if you have none."""
    named = os.environ.get(PRICES_VARIABLE)
    if not named:
        return _Prices(prices=[])
    try:
        return _Prices.model_validate_json(Path(named).read_bytes())
    except FileNotFoundError:
        raise InputError(f"{PRICES_VARIABLE} is {named!r}: there is no such file") from None
    except OSError as error:
        raise InputError(f"{PRICES_VARIABLE} is {named!r}, which cannot be read: {error.strerror}") from error
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()]
        raise InputError(
            f"{PRICES_VARIABLE} is {named!r}, which is not a valid price list "
            f"({'; '.join(faults).removeprefix(': ')}). A valid one, in US dollars per million tokens: "
            '{"prices": [{"model": "qwen*", "input": 0.1, "cached_input": 0.1, "output": 0.4}]}'
        ) from error
