"""The models that an agent takes: by name, as objects, with fallbacks or fields that a run may set."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableBinding, RunnableWithFallbacks
from langchain_core.tools import BaseTool

from arag.errors import ModelError
from arag.models.chat import load_model
from arag.models.chosen import ChosenModel, as_chosen

Model: TypeAlias = str | BaseChatModel | Runnable[Any, AIMessage]


def as_model(model: Model | Sequence[Model]) -> Runnable[Any, AIMessage]:
    """Return a model that tools can be bound to.

    Args:
        model: A name for `load_model`; a chat model, also with fallbacks (`with_fallbacks`), bound options (`bind`,
            `with_config`) or fields that a run's config sets (`init_chat_model(configurable_fields=...)`, or its own
            `configurable_fields` and `configurable_alternatives`); or a list of these, of which each takes over if the
            one before it fails.

    Raises:
        ModelError: It is something else, or a model cannot be created.
    """
    if isinstance(model, Sequence) and not isinstance(model, str):
        if not model:
            raise ModelError("the list of models is empty")
        first, *others = [as_model(each) for each in model]
        return first.with_fallbacks(others) if others else first
    if isinstance(model, RunnableWithFallbacks):
        fallbacks = [as_model(each) for each in model.fallbacks]
        return model.model_copy(update={"runnable": as_model(model.runnable), "fallbacks": fallbacks})
    if isinstance(model, RunnableBinding):
        if "tools" in model.kwargs:
            raise ModelError("the model has tools bound already: give it without them, and the tools as `tools`")
        return model.model_copy(update={"bound": as_model(model.bound)})
    if isinstance(model, Runnable) and hasattr(model, "bind_tools"):
        return model if isinstance(model, BaseChatModel) else as_chosen(model) or model
    return load_model(cast("str", model))  # or it raises the error


def find_chat_model(model: Runnable[Any, Any]) -> Runnable[Any, Any]:
    """Return the model inside fallbacks and bound options: the one that is asked first."""
    if isinstance(model, RunnableWithFallbacks):
        return find_chat_model(model.runnable)
    if isinstance(model, RunnableBinding):
        return find_chat_model(model.bound)
    return model


def bind_tools(
    model: Runnable[Any, AIMessage],
    tools: Sequence[BaseTool],
    **options: Any,
) -> Runnable[Any, AIMessage]:
    """Bind tools to a model and to each of its fallbacks, asking for one call at a time if the provider supports that.

    Args:
        model: The model.
        tools: The tools.
        options: More options of `bind_tools`, such as `tool_choice`.

    Raises:
        ModelError: A model cannot call tools.
    """
    if isinstance(model, RunnableWithFallbacks):
        changes = {
            "runnable": bind_tools(model.runnable, tools, **options),
            "fallbacks": [bind_tools(fallback, tools, **options) for fallback in model.fallbacks],
        }
        return model.model_copy(update=changes)
    if isinstance(model, ChosenModel):
        return model.then(partial(bind_tools, tools=tools, **options))
    if isinstance(model, RunnableBinding):
        return bind_tools(model.bound, tools, **options).bind(**model.kwargs).with_config(model.config)
    chat_model: Any = model
    if "parallel_tool_calls" in inspect.signature(type(chat_model).bind_tools).parameters:
        options["parallel_tool_calls"] = False
    try:
        bound: Runnable[Any, AIMessage] = chat_model.bind_tools(tools, **options)
    except NotImplementedError as error:
        raise ModelError(f"{type(model).__name__} cannot call tools: its class has no `bind_tools`") from error
    return bound
