"""Questions to the agent, for `arag ask` and `arag chat`: shown as they are answered, and stopped at once by Ctrl-C."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from langchain_core.messages import HumanMessage

from arag.cli.showing import RunView
from arag.errors import ModelError
from arag.graph.graph import create_arag_agent
from arag.models.asking import is_provider_error
from arag.models.chat import load_model
from arag.retrieval.tools import TOOL_NAMES

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.types import Checkpointer

    from arag.graph.state import State
    from arag.retrieval.index import Index

_THREAD: RunnableConfig = {"configurable": {"thread_id": "chat"}}
_SECONDS_ASLEEP = 0.5


class Session:
    """Asks the agent questions, one after another.

    Runs are asynchronous because such runs can be cancelled. A synchronous run ends only when its tool does, which may
    be waiting for a service that hangs. The thread of that tool is left behind.

    Args:
        index: The index.
        model: The model's name; None for the default one.
        model_options: Options of the model's class.
        tools: Names of the model's tools; all if there are none.
        checkpointer: Keeps the conversation.
        settings: Further settings of the agent.

    Attributes:
        state: The last question's state, as far as it got.

    Raises:
        InputError: A setting is not valid.
        ModelError: The model cannot be created.
    """

    def __init__(
        self,
        index: Index,
        model: str | None,
        model_options: Mapping[str, Any],
        *,
        tools: Sequence[str] | None = None,
        checkpointer: Checkpointer = None,
        **settings: Any,
    ) -> None:
        self._model = model or "in ARAG_MODEL"
        chosen = load_model(model, **model_options)
        self._agent = create_arag_agent(chosen, index, tools=tools or TOOL_NAMES, checkpointer=checkpointer, **settings)
        self.state = cast("State", {})

    def ask(self, question: str, view: RunView | None) -> None:
        """Ask a question.

        Args:
            question: The question.
            view: Shows the run as it happens.

        Raises:
            ModelError: A call to the model failed.
            KeyboardInterrupt: Ctrl-C was pressed.
        """
        try:
            _runner().run(self._ask(question, view))
        except Exception as error:
            if not is_provider_error(error):
                raise
            raise ModelError(f"the model {self._model} failed: {error}") from error

    async def _ask(self, question: str, view: RunView | None) -> None:
        self.state = cast("State", {})
        given: Any = {"messages": [HumanMessage(question)]}
        modes: list[Any] = ["values", "updates", "messages"] if view else ["values"]
        waking = asyncio.create_task(_wake_often())
        try:
            async for mode, event in self._agent.astream(given, _THREAD, stream_mode=modes):
                if mode == "values":
                    self.state = cast("State", event)
                elif view:
                    view.show(mode, event)
        finally:
            waking.cancel()
            if view:
                view.end_line()


async def _wake_often() -> None:
    """Keep the event loop from sleeping for long: while it sleeps, it misses a Ctrl-C that another thread received."""
    while True:  # noqa: ASYNC110 - an event would not wake it either
        await asyncio.sleep(_SECONDS_ASLEEP)


@cache
def _runner() -> asyncio.Runner:
    """Return the event loop of this process. Providers' clients keep connections that only it can use."""
    return asyncio.Runner()
