"""A chat model that a run's config chooses: values of its fields, or one of several models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config
from langchain_core.runnables.configurable import DynamicRunnable

_KEPT = 32  # models that runs have chosen: each remembers what its server refuses

Change: TypeAlias = Callable[[Runnable[Any, Any]], Runnable[Any, Any]]


class ChosenModel(Runnable[Any, AIMessage]):
    """Makes the model that a run's config chooses when it is called, and changes it as the agent needs it.

    Args:
        read_choice: Returns what a config chooses.
        make: Makes the model that a config chooses.
    """

    def __init__(
        self,
        read_choice: Callable[[RunnableConfig], Mapping[str, Any]],
        make: Callable[[RunnableConfig], Runnable[Any, Any]],
    ) -> None:
        self._read_choice = read_choice
        self._make = make
        self._made: list[tuple[Mapping[str, Any], Runnable[Any, Any]]] = []

    def then(self, change: Change) -> ChosenModel:
        """Return this model with one more change."""
        return ChosenModel(self._read_choice, lambda config: change(self._make(config)))

    def invoke(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> AIMessage:  # noqa: A002
        """Call the model."""
        reply: AIMessage = self._choose(config).invoke(input, config, **options)
        return reply

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> AIMessage:  # noqa: A002
        """Call the model."""
        reply: AIMessage = await self._choose(config).ainvoke(input, config, **options)
        return reply

    def _choose(self, config: RunnableConfig | None) -> Runnable[Any, Any]:
        config = ensure_config(config)
        choice = self._read_choice(config)
        for known, model in self._made.copy():
            if known == choice:
                return model
        model = self._make(config)
        self._made = [*self._made[1 - _KEPT :], (choice, model)]
        return model


def as_chosen(model: Runnable[Any, Any]) -> ChosenModel | None:
    """Return a model of LangChain's that a run's config chooses, of either kind; None for other ones."""
    if isinstance(model, DynamicRunnable):  # `configurable_fields` or `configurable_alternatives` of a model
        names = [spec.id for spec in model.config_specs]

        def read_choice(config: RunnableConfig) -> Mapping[str, Any]:
            configurable = config.get("configurable", {})
            return {name: configurable[name] for name in names if name in configurable}

        return ChosenModel(read_choice, lambda config: model.prepare(config)[0])

    from langchain.chat_models.base import _ConfigurableModel

    if isinstance(model, _ConfigurableModel):
        return ChosenModel(model._model_params, model._model)  # noqa: SLF001 - there is no public way
    return None
