"""What tests of methods share: a model that a function plays, a lab in a folder, and a question asked in it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

from arag.evaluation.cache import CallCache, Store
from arag.evaluation.method import Answer, Session
from arag.evaluation.run_context import RunContext


class Player(BaseChatModel):
    """A model whose replies a function gives: a text, what JSON can hold, a message, or an error to raise.

    Attributes:
        play: Gets the messages of a call.
        calls: The messages of each call, in order.
        options: The options of each call, such as `temperature`.
    """

    play: Callable[[list[Any]], Any]
    calls: list[list[Any]] = Field(default_factory=list)
    options: list[dict[str, Any]] = Field(default_factory=list)
    lock: Any = Field(default_factory=threading.Lock)

    @property
    def _llm_type(self) -> str:
        return "player"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model": "player"}

    def bind_tools(self, tools, **options):
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **options)

    def _generate(self, messages, stop=None, run_manager=None, **options):
        with self.lock:
            self.calls.append(messages)
            self.options.append(options)
        reply = self.play(messages)
        if isinstance(reply, Exception):
            raise reply
        if not isinstance(reply, AIMessage):
            reply = AIMessage(reply if isinstance(reply, str) else json.dumps(reply))
        reply = reply.model_copy(
            update={
                "usage_metadata": reply.usage_metadata
                or {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110},
                "response_metadata": {
                    "model_name": "gpt-5-mini",
                    "model_provider": "openai",
                    **reply.response_metadata,
                },
            }
        )
        return ChatResult(generations=[ChatGeneration(message=reply)])


def script(*replies: Any) -> Callable[[list[Any]], Any]:
    """Return a function that plays replies in their order."""
    waiting = list(replies)
    return lambda messages: waiting.pop(0)


def make_lab(index, play, folder, **options: Any) -> RunContext:
    """Return a lab whose model a function plays, and whose calls are kept in a folder."""
    store = Store(folder)
    return RunContext(index, Player(play=play, cache=CallCache(store)), store, **options)


def ask(method, lab: RunContext, question: str) -> tuple[Answer, Session]:
    """Prepare a method and ask it a question; return its answer and what the session has noted."""
    prepared = method.prepare(Session(lab))
    session = Session(lab)
    answer = method.answer(question, session, prepared)
    return (Answer(answer) if isinstance(answer, str) else answer), session
