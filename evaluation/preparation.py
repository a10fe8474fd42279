"""The index-time work of methods: done once for each run, before its first question, and recorded."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TypedDict

from langchain_core.language_models import BaseChatModel

from arag.errors import InputError
from arag.evaluation.files import write_file
from arag.evaluation.methods import Method, Options
from arag.models.prices import cost
from arag.models.usage import Usage, total
from arag.retrieval.index import Index

FILE_NAME = "prepared.json"


class Preparation(TypedDict):
    """What a method's index-time work took."""

    seconds: float
    usage: Usage
    cost: float | None
    """US dollars; None if a model's price is unknown."""


def prepare(method: Method, index: Index, model: BaseChatModel, options: Options, folder: Path) -> Preparation | None:
    """Do a method's index-time work, if it has any and this run has not done it yet.

    Args:
        method: The method.
        index: The index.
        model: The model.
        options: Settings that methods share.
        folder: The run folder, where the time and cost are recorded.

    Returns:
        What the work took; None if there was nothing to do.
    """
    done = load_preparations(folder)
    if method.prepare is None or method.name in done:
        return None
    began = time.perf_counter()
    calls = method.prepare(index, model, options)
    done[method.name] = Preparation(seconds=time.perf_counter() - began, usage=total(calls), cost=cost(calls))
    write_file(folder / FILE_NAME, json.dumps(done, indent=2) + "\n")
    return done[method.name]


def load_preparations(folder: Path) -> dict[str, Preparation]:
    """Return what the index-time work took in a run, by method.

    Raises:
        InputError: The file is damaged.
    """
    file = folder / FILE_NAME
    if not file.exists():
        return {}
    try:
        return dict(json.loads(file.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise InputError(f"{file} is damaged: {error}") from error
