"""Runs of the agent, which go on when their page is closed."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event, Thread
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage

from arag.errors import ARAGError, without_credentials
from arag.models.chat import naming_failures
from arag.page import RunView

_TICK = 0.1  # seconds between two looks at a run
_FAULT = "The program has a fault: its terminal shows the details."


class Run:
    """A question to the agent, which is asked at once, and what came of it so far."""

    def __init__(self, question: str, agent: Any, model: str) -> None:
        self.question = question
        self._model = model
        self._state: dict[str, Any] = {"messages": [HumanMessage(question)]}
        self._error = _FAULT  # until it is known better
        self._ended = Event()
        Thread(target=self._ask, args=[agent], daemon=True).start()

    def follow(self) -> Iterator[AnyMessage]:
        """Yield all messages behind the question, as they come, until the run ends."""
        shown = 1
        has_ended = False
        while not has_ended:
            has_ended = self._ended.wait(_TICK)
            new = self._state["messages"][shown:]
            yield from new
            shown += len(new)

    def view(self) -> RunView:
        """Return what a page shows of the run after its end."""
        return RunView.from_state(self._state, error=self._error, model=self._model)

    def _ask(self, agent: Any) -> None:
        try:
            with naming_failures(f"the model {self._model}"):
                for state in agent.stream(self._state, stream_mode="values"):
                    self._state = state
            self._error = ""
        except ARAGError as error:
            self._error = without_credentials(str(error))
        finally:
            self._ended.set()
