"""What a run's model calls cost, by the list in `prices.json` and one of your own."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from arag.errors import InputError

PRICES_VARIABLE = "ARAG_PRICES"
# Versions of a model: gpt-5-mini-2025-08-07, claude-haiku-4-5-20251001, gemini-2.0-flash-001. What else may stand
# behind a name is another model, unless a pattern says so: gpt-5-mini is no gpt-5.
_VERSION = re.compile(r"[-@](\d{4}-\d{2}-\d{2}|\d{8}|\d{3}|latest)$")
_FOLDER = "models/"  # in front of the names that Google reports
_MILLION = 1_000_000


class _Price(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    model: str = Field(min_length=1)
    """A name that a provider reports, or a pattern of names."""
    up_to_input_tokens: int | None = Field(None, ge=0)
    """The longest prompt that it is for."""
    input: float = Field(ge=0)
    cached_input: float = Field(ge=0)
    output: float = Field(ge=0)


class _Prices(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    about: str = ""
    as_of: str = Field("", pattern=r"^(20\d\d-\d\d)?$")
    prices: list[_Price]


def cost(model_calls: Iterable[Mapping[str, Any]]) -> float | None:
    """Return what model calls cost, in US dollars by the providers' public lists, or by the file in `ARAG_PRICES`.

    Writing to a provider's cache, and discounts and surcharges of any kind, are not counted.

    Args:
        model_calls: The calls, as the final state's `model_calls` has them.

    Returns:
        The sum; None where it cannot be known: a model is not in the list, or its provider reported no tokens.

    Raises:
        InputError: `ARAG_PRICES` does not hold the name of a list of prices.
    """
    lists = _lists()
    total = 0.0
    for call in model_calls:
        of_call = _cost(call, lists)
        if of_call is None:
            return None
        total += of_call
    return total


def prices_as_of() -> str:
    """Return the month of the list, as YYYY-MM; of your own, where it has one.

    Raises:
        InputError: `ARAG_PRICES` does not hold the name of a list of prices.
    """
    return next(each.as_of for each in _lists() if each.as_of)


def _cost(call: Mapping[str, Any], lists: Sequence[_Prices]) -> float | None:
    tokens = call.get("input_tokens") or 0
    cached = min(call.get("cached_tokens") or 0, tokens)  # a part of the prompt's tokens
    written = call.get("output_tokens") or 0  # reasoning is a part of it
    price = _price(str(call.get("model") or ""), tokens, lists)
    if price is None:
        return None
    dollars = (tokens - cached) * price.input + cached * price.cached_input + written * price.output
    # A call takes some tokens: where none are reported, nothing is known about its cost, unless it is free.
    return float(dollars) / _MILLION if tokens or written or not price.output else None


def _price(model: str, tokens: int, lists: Sequence[_Prices]) -> _Price | None:
    model = model.removeprefix(_FOLDER)
    for each in lists:
        name = _entry(model, {price.model for price in each.prices})
        if name is not None:
            fitting = (price for price in each.prices if price.model == name)
            return next((price for price in fitting if _holds(price, tokens)), None)
    return None


def _entry(model: str, names: Iterable[str]) -> str | None:
    """Return the name in a list that stands for a model: its own, that without its version, the longest pattern."""
    known = sorted(names, key=lambda name: (-len(name), name))
    for exact in (model, _VERSION.sub("", model)):
        if exact in known:
            return exact
    return next((name for name in known if fnmatchcase(model, name)), None) if model else None


def _holds(price: _Price, tokens: int) -> bool:
    return price.up_to_input_tokens is None or tokens <= price.up_to_input_tokens


def _lists() -> list[_Prices]:
    """Return the lists of prices, the one that counts first."""
    own = os.environ.get(PRICES_VARIABLE)
    return [*([_own(Path(own))] if own else []), _providers()]


def _own(file: Path) -> _Prices:
    try:
        return _read(file, file.stat().st_mtime_ns)
    except FileNotFoundError:
        raise InputError(f"{PRICES_VARIABLE} is {str(file)!r}: there is no such file") from None
    except OSError as error:
        raise InputError(f"{PRICES_VARIABLE} is {str(file)!r}, which cannot be read: {error.strerror}") from error


@cache
def _read(file: Path, _changed: int) -> _Prices:
    try:
        return _Prices.model_validate_json(file.read_bytes())
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()]
        raise InputError(
            f"{PRICES_VARIABLE} is {str(file)!r}, which is no list of prices ({'; '.join(faults).removeprefix(': ')}). "
            'One is {"prices": [{"model": "qwen*", "input": 0.1, "cached_input": 0.1, "output": 0.4}]}, in US dollars '
            "per million tokens"
        ) from error


@cache
def _providers() -> _Prices:
    return _Prices.model_validate_json(files("arag.models").joinpath("prices.json").read_bytes())
