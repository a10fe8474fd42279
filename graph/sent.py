"""What a chat model was sent: the request behind all middleware, which may shorten it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tracers.context import register_configure_hook

from arag.retrieval.tools.seen import find_artifacts
from arag.text.tokens import count_tokens


class SentMessages(BaseCallbackHandler):
    """Keeps the messages of the last model call: calls for a summary or a choice of tools come before it.

    Attributes:
        request: The request that led to the call.
        messages: The messages; None if no model was called.
    """

    run_inline = True

    def __init__(self, request: Any) -> None:
        self.request = request
        self.messages: Sequence[BaseMessage] | None = None

    def on_chat_model_start(self, serialized: Any, messages: list[list[BaseMessage]], **_: Any) -> None:  # noqa: ARG002
        """Keep the messages of a model call."""
        self.messages = messages[0]


_sent: ContextVar[SentMessages | None] = ContextVar("arag_sent", default=None)
register_configure_hook(_sent, inheritable=True)


def current_sent() -> SentMessages | None:
    """Return what watches the model calls of the code that runs now, if anything does."""
    return _sent.get()


@contextmanager
def watch_sent(request: Any) -> Iterator[SentMessages]:
    """Keep what a model is sent in the body of a `with` statement."""
    sent = SentMessages(request)
    token = _sent.set(sent)
    try:
        yield sent
    finally:
        _sent.reset(token)


def find_intact_results(sent: Sequence[BaseMessage], messages: Sequence[BaseMessage]) -> list[str]:
    """Return the ids of the calls whose results the model was sent as the retrieval tools gave them.

    Args:
        sent: What the model was sent.
        messages: The conversation, which has the results' artifacts.
    """
    given: dict[str, int] = {}
    for result in _list_results(messages):
        for artifact in find_artifacts([result]):
            given[result.tool_call_id] = artifact["retrieved_tokens"]
    intact = []
    for result in _list_results(sent):
        # Other middleware may have cleared the text, or moved it to a file: in the conversation, too.
        if count_tokens(result.text) == given.get(result.tool_call_id):
            intact.append(result.tool_call_id)
    return intact


def _list_results(messages: Iterable[BaseMessage]) -> list[ToolMessage]:
    return [message for message in messages if isinstance(message, ToolMessage)]
