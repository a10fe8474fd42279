"""The models of experiments: real ones without retries of their own, and recordings that are played again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel

from arag.errors import InputError
from arag.evaluation.cache import CallCache
from arag.evaluation.recordings import REPLAY, ReplayModel
from arag.models.chat import load_model
from arag.models.extractive import ExtractiveModel
from arag.models.names import EXTRACTIVE, MODEL_VARIABLE


def load_without_retries(model: str | BaseChatModel | None, **options: Any) -> BaseChatModel:
    """Return a model whose client does not wait out rate limits: sessions do. A chat model is returned as it is.

    `replay:FILE` plays the recording in a file.
    """
    if isinstance(model, str) and model.startswith(REPLAY):
        if options:
            raise InputError(f"{model} takes no options: it repeats what was recorded, {', '.join(options)} included")
        return ReplayModel.open(Path(model.removeprefix(REPLAY)))
    loaded = load_model(model, **options)
    can_retry = "max_retries" in type(loaded).model_fields
    if isinstance(model, BaseChatModel) or not can_retry or "max_retries" in options:
        return loaded
    return load_model(model, **options, max_retries=0)


def name_model(model: str | BaseChatModel | None) -> str:
    """Return the name of a model for the plan of a run."""
    if model is None:
        return os.environ.get(MODEL_VARIABLE) or EXTRACTIVE
    if isinstance(model, str):
        return model
    if isinstance(model, ExtractiveModel):
        return EXTRACTIVE
    name = getattr(model, "model_name", None) or getattr(model, "model", None)
    kind = type(model).__name__
    return f"{kind}:{name}" if name else kind


def with_cache(model: BaseChatModel, cache: CallCache, recorder: BaseCallbackHandler | None = None) -> BaseChatModel:
    """Return a model with a cache, whose calls are recorded if there is a recorder."""
    if recorder is None:
        return model.model_copy(update={"cache": cache})
    return model.model_copy(update={"cache": cache, "callbacks": [recorder]})
