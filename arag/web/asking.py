"""Runs of the agent: each goes on when its tab is closed, and several tabs can follow it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

from arag.errors import ARAGError, InputError
from arag.graph.graph import create_arag_agent
from arag.graph.state import list_calls
from arag.models.chat import load_model, naming_failures
from arag.retrieval.index import Index
from arag.text.normalise import shorten
from arag.text.visible import visible

_MAX_KEPT = 100  # runs
_MAX_AT_ONCE = 4
_MAX_SHOWN = 300  # characters of a step


@dataclass
class Run:
    """A question to the agent, and what came of it so far."""

    question: str
    events: list[str] = field(default_factory=list)
    """What happened, as server-sent events."""
    state: dict[str, Any] = field(default_factory=dict)
    error: str = ""
    is_done: bool = False
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    task: asyncio.Task[None] | None = None

    async def add(self, kind: str, text: str) -> None:
        """Add an event, and tell all that follow."""
        self.events.append(f"event: {kind}\ndata: {json.dumps(visible(text))}\n\n")
        async with self.changed:
            self.changed.notify_all()

    async def follow(self) -> AsyncIterator[str]:
        """Yield all events from the first one on, until the run ends."""
        sent = 0
        while sent < len(self.events) or not self.is_done:
            async with self.changed:
                while sent == len(self.events) and not self.is_done:
                    await self.changed.wait()
            new = self.events[sent:]
            sent += len(new)
            for event in new:
                yield event


class Runs:
    """The runs of a server, by their number.

    Args:
        index: The index.
        model: The model's name.
        options: Options of the model's class.
    """

    def __init__(self, index: Index, model: str, options: dict[str, Any]) -> None:
        self.model = model
        self.by_number: dict[int, Run] = {}
        self._index = index
        self._options = options
        self._agent: Any = None
        self._loading = asyncio.Lock()
        self._free = asyncio.Semaphore(_MAX_AT_ONCE)
        self._begun = 0

    def begin(self, question: str) -> int:
        """Begin a run, and return its number."""
        if not question.strip():
            raise InputError("the question is blank")
        self._begun += 1
        run = Run(question)
        self.by_number[self._begun] = run
        for number in [number for number, each in self.by_number.items() if each.is_done][:-_MAX_KEPT]:
            del self.by_number[number]
        run.task = asyncio.create_task(self._answer(run))
        return self._begun

    async def _answer(self, run: Run) -> None:
        try:
            async with self._free, self._loading:
                if self._agent is None:
                    self._agent = await asyncio.to_thread(self._load)
            async with self._free:
                with naming_failures(f"the model {self.model}"):
                    await self._stream(run)
        except ARAGError as error:
            run.error = str(error)
        except asyncio.CancelledError:
            run.error = "It was stopped."
        except Exception:
            run.error = "A fault of this program; its server shows the details."
            raise
        finally:
            run.is_done = True
            await run.add("end", run.error)

    def _load(self) -> Any:
        self._index.embedder.load()
        return create_arag_agent(load_model(self.model, **self._options), self._index)

    async def _stream(self, run: Run) -> None:
        question: Any = {"messages": [("user", run.question)]}
        async for mode, event in self._agent.astream(question, stream_mode=["values", "updates", "messages"]):
            if mode == "values":
                run.state = event
                continue
            for kind, text in _describe(mode, event):
                await run.add(kind, text)


def _describe(mode: str, event: Any) -> Iterator[tuple[str, str]]:
    """Yield what a person sees of an event: pieces of text, tool calls, and the chunks that they found."""
    if mode == "messages":
        message, _ = event
        if message.type in {"ai", "AIMessageChunk"} and message.text:
            yield "text", message.text
        return
    for node, update in event.items():
        if node == "agent":
            for call in list_calls(update["messages"][-1]):
                arguments = json.dumps(call["args"], ensure_ascii=False)
                yield "step", shorten(f"{call['name']} {arguments}", _MAX_SHOWN)
        elif node == "tools":
            for result in update["messages"]:
                chunk_ids = ", ".join((result.artifact or {}).get("chunk_ids", ()))
                first_line, _, _ = result.text.partition("\n")
                yield "step", shorten(f"→ {chunk_ids or first_line}", _MAX_SHOWN)
