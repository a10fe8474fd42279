"""A chat model that follows a script, and assertions about what it was sent: no key, no network, deterministic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.messages.tool import invalid_tool_call, tool_call
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, Field


class Request(BaseModel):
    """What a model was sent in one call: the messages, and what was bound to it or passed with the call."""

    messages: list[Any]
    options: dict[str, Any]

    @property
    def tool_names(self) -> list[str]:
        return [tool["function"]["name"] for tool in self.options.get("tools") or ()]


class ScriptedModel(BaseChatModel):
    """Returns scripted replies, one per call: messages, exceptions to raise, or functions of the messages sent.

    Attributes:
        script: The replies. A call more than there are is an AssertionError.
        calls: The requests that it received, in order.
    """

    script: list[Any]
    calls: list[Request] = Field(default_factory=list)

    def __init__(self, *script: AIMessage | Exception | Callable[[list[BaseMessage]], AIMessage], **fields: Any):
        super().__init__(script=list(script), **fields)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools, *, tool_choice=None, parallel_tool_calls=None, **options):
        bound = {"tool_choice": tool_choice, "parallel_tool_calls": parallel_tool_calls}
        options |= {name: value for name, value in bound.items() if value is not None}
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **options)

    def assert_used_up(self) -> None:
        assert len(self.calls) == len(self.script), f"{len(self.calls)} of {len(self.script)} replies were used"

    def _generate(self, messages, stop=None, run_manager=None, **options):
        if stop is not None:
            options["stop"] = stop
        self.calls.append(Request(messages=list(messages), options=options))
        return ChatResult(generations=[ChatGeneration(message=self._reply(list(messages), options))])

    def _reply(self, messages: list[BaseMessage], options: dict[str, Any]) -> AIMessage:
        """Return the reply to the last call in `calls`."""
        assert len(self.calls) <= len(self.script), f"the model was called more than {len(self.script)} times"
        reply = self.script[len(self.calls) - 1]
        if isinstance(reply, Exception):
            raise reply
        return reply(messages) if callable(reply) else reply.model_copy(deep=True)


def call(name: str, call_id: str = "", /, **arguments: Any) -> AIMessage:
    """Return a reply that calls a tool."""
    return calls((name, arguments), ids=[call_id] if call_id else ())


def calls(*wanted: tuple[str, dict[str, Any]], ids: Sequence[str] = (), text: str = "") -> AIMessage:
    """Return a reply that calls several tools, by their names and arguments."""
    ids = ids or [str(uuid4()) for _ in wanted]
    made = [tool_call(name=name, args=args, id=call_id) for (name, args), call_id in zip(wanted, ids, strict=True)]
    return AIMessage(text, tool_calls=made)


def invalid_call(name: str, arguments: str, call_id: str = "") -> AIMessage:
    """Return a reply with a call that has invalid JSON as its arguments, as small models produce."""
    made = invalid_tool_call(name=name, args=arguments, id=call_id or str(uuid4()), error="not JSON")
    return AIMessage("", invalid_tool_calls=[made])


def assert_paired(messages: Sequence[BaseMessage]) -> None:
    """Assert that each message with calls is followed directly by one result per call, as providers require."""
    waiting: list[str | None] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            assert message.tool_call_id in waiting, f"a result without a call: {message}"
            waiting.remove(message.tool_call_id)
            continue
        assert not waiting, f"calls without a result: {waiting}"
        if isinstance(message, AIMessage):
            waiting = [made["id"] for made in [*message.tool_calls, *message.invalid_tool_calls]]
    assert not waiting, f"calls without a result: {waiting}"
