"""The index-time work of methods: done once for each run, before its first question, and recorded."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NotRequired, cast

from filelock import FileLock
from langchain_core.language_models import BaseChatModel
from pydantic import TypeAdapter
from typing_extensions import TypedDict

from arag.errors import InputError, ModelError
from arag.evaluation.files import describe_damage, write_file
from arag.evaluation.methods import Method, Options
from arag.evaluation.structured import require_language_model
from arag.evaluation.workplace import Workplace
from arag.models.prices import cost
from arag.models.usage import ModelCall, Usage, total

FILE_NAME = "prepared.json"


class Preparation(TypedDict):
    """What a method's index-time work took. Those of earlier versions lack what was reused."""

    seconds: float
    usage: Usage
    """Of the model calls that this method of the run paid for."""
    cost: float | None
    """US dollars; None if a model's price is unknown."""
    reused: NotRequired[Usage]
    """Of the model calls that other runs or methods have paid for: with `usage`, what the index costs in all."""
    reused_cost: NotRequired[float | None]
    """US dollars; None if a model's price is unknown."""


_PREPARATIONS = TypeAdapter(dict[str, Preparation])


async def prepare(method: Method, place: Workplace) -> Preparation | None:
    """Do a method's index-time work. What was done before, for any run, is not done again.

    Args:
        method: The method.
        place: The index, the model and everything else that the work needs.

    Returns:
        What the work took; None if the method has none.

    Raises:
        InputError: The model is the built-in one and the method needs a language model, something is not installed,
            the budget is too small, or another process does the same work.
        ModelError: A model call failed. What was finished is kept.
        StorageError: The results cannot be kept.
    """
    check_requirements(method, place.model, place.options)
    if method.prepare is None:
        return None
    began = time.perf_counter()
    with place.store.locked(method.work or method.name):
        try:
            await method.prepare(place)
        except ModelError as error:
            raise ModelError(f"index-time work of {method.name}: {error}") from error
    return Preparation(
        seconds=time.perf_counter() - began,
        usage=total(place.paid),
        cost=cost(place.paid),
        reused=total(place.reused),
        reused_cost=cost(place.reused),
    )


async def prepare_run(method: Method, place: Workplace, folder: Path) -> Preparation | None:
    """Do a method's index-time work, if it has any, and record what it took; see `prepare`.

    The work is gone through again each time a run goes on, as what was kept may have been deleted.

    Args:
        method: The method.
        place: What the work needs.
        folder: The run folder, where what it took is recorded.

    Returns:
        What the work has taken in all; None if the method has none.
    """
    prepared = await prepare(method, place)
    if prepared is None:
        return None
    with FileLock((folder / FILE_NAME).with_suffix(".lock")):  # other methods of the run may be worked on elsewhere
        done = load_preparations(folder)
        known = done.get(method.name)
        if known is not None:
            prepared = _add(known, prepared, place.made)
        if prepared != known:
            write_file(folder / FILE_NAME, json.dumps({**done, method.name: prepared}, indent=2) + "\n")
    return prepared


def _add(known: Preparation, again: Preparation, made: list[ModelCall]) -> Preparation:
    """Return what work took that was recorded before, with the calls that were made again."""
    if not made:
        return known
    before: Mapping[str, Any] = known["usage"]
    more: Mapping[str, Any] = total(made)
    price = cost(made)
    usage = cast("Usage", {name: before[name] + count for name, count in more.items()})
    paid = None if known["cost"] is None or price is None else known["cost"] + price
    return {**known, "seconds": known["seconds"] + again["seconds"], "usage": usage, "cost": paid}


def check_requirements(method: Method, model: BaseChatModel, options: Options) -> None:
    """Check that a method can work: its packages, its settings and its model.

    Raises:
        InputError: Something is not installed, a setting is not valid, or the model is not a language model.
    """
    if (missing := method.missing()) is not None:
        raise InputError(f"{method.name} cannot run: {missing}")
    options.of(method.name, method.settings)
    if method.language_model:
        require_language_model(model, f"run {method.name}")


def load_preparations(folder: Path) -> dict[str, Preparation]:
    """Return what the index-time work took in a run, by method.

    Raises:
        InputError: The file is damaged.
    """
    file = folder / FILE_NAME
    if not file.exists():
        return {}
    try:
        return _PREPARATIONS.validate_json(file.read_bytes())
    except ValueError as error:
        raise InputError(f"{file} is damaged: {describe_damage(error)}") from error
