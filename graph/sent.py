"""What a chat model was sent: the request behind all middleware, which may shorten it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tracers.context import register_configure_hook

from arag.retrieval.tools.seen import find_artifacts, is_as_given


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


@dataclass(frozen=True)
class SentResults:
    """The results of tools that a model was sent."""

    as_given: Sequence[str]
    """Ids of the calls whose results are as the retrieval tools gave them."""
    as_kept: Sequence[str]
    """Ids of calls of other tools whose results are those of the conversation."""
    changed: Mapping[str, str]
    """By the ids of the other calls, the results. Other middleware may have cleared a text, taken words out of it or
    moved it to a file: in the conversation, too."""


def find_sent_results(sent: Sequence[BaseMessage], messages: Sequence[BaseMessage]) -> SentResults:
    """Return the results that a model was sent.

    Args:
        sent: What the model was sent.
        messages: The conversation, which has the results' artifacts.
    """
    kept = {result.tool_call_id: result for result in _list_results(messages)}
    as_given: list[str] = []
    as_kept: list[str] = []
    changed: dict[str, str] = {}
    for result in _list_results(sent):
        call_id = result.tool_call_id
        if call_id not in kept:
            continue
        artifact = next(find_artifacts([kept[call_id]]), None)
        if artifact is not None and is_as_given(result.text, artifact):
            as_given.append(call_id)
        elif artifact is None and result.text == kept[call_id].text:
            as_kept.append(call_id)
        else:
            changed[call_id] = result.text
    return SentResults(as_given, as_kept, changed)


def find_quoted_results(prompt: Sequence[BaseMessage], messages: Sequence[BaseMessage]) -> SentResults:
    """Return the results that the prompt of a forced answer has, as the conversation has them."""
    text = "\n".join(message.text for message in prompt)
    quoted = [result for result in _list_results(messages) if result.text in text]
    return find_sent_results(quoted, messages)


def _list_results(messages: Iterable[BaseMessage]) -> list[ToolMessage]:
    return [message for message in messages if isinstance(message, ToolMessage)]
