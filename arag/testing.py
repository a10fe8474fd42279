"""A scripted chat model and assertions for testing graphs with an agent: no key, no network, deterministic.

Example:
    >>> from langchain_core.messages import AIMessage
    >>> from arag import create_arag_agent
    >>> from arag.testing import ScriptedModel, assert_paired, call
    >>> model = ScriptedModel(
    ...     call("keyword_search", keywords=["Lothair"]),
    ...     AIMessage("He married Teutberga [lothair:0]."),
    ... )
    >>> agent = create_arag_agent(model, index)
    >>> state = agent.invoke({"messages": [("user", "Who was Lothair II's wife?")]})
    >>> model.assert_used_up()
    >>> assert_paired(model.calls[1].messages)
    >>> [citation["chunk_id"] for citation in state["citations"]]
    ['lothair:0']
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias
from uuid import uuid4

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.messages.tool import invalid_tool_call, tool_call
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, Field

Reply: TypeAlias = AIMessage | Exception | Callable[[list[BaseMessage]], AIMessage]
"""One item of a script: a message, an exception to raise, or a function from the messages sent to the reply."""


class Request(BaseModel):
    """What a model was sent in one call.

    Example:
        >>> model = ScriptedModel(AIMessage("Yes."))
        >>> _ = model.invoke("Is it lit?", temperature=0)
        >>> model.calls[0].messages[-1].text, model.calls[0].options
        ('Is it lit?', {'temperature': 0})
    """

    messages: list[Any]
    """The messages."""
    options: dict[str, Any]
    """What was bound to the model or passed with the call: `tools`, `tool_choice` and others."""

    @property
    def tool_names(self) -> list[str]:
        """The names of the tools that the model could call."""
        return [tool["function"]["name"] for tool in self.options.get("tools") or ()]


class ScriptedModel(BaseChatModel):
    """A chat model that returns scripted replies, one per call.

    Args:
        script: The replies: messages are returned, exceptions raised, and functions called for a message.

    Attributes:
        script: The replies.
        calls: The requests that it received, in order.

    Raises:
        AssertionError: It is called more often than its script has replies.

    Example:
        >>> model = ScriptedModel(AIMessage("Yes."), lambda messages: AIMessage(messages[-1].text.upper()))
        >>> model.invoke("Is it?").text, model.invoke("quiet").text
        ('Yes.', 'QUIET')
        >>> model.calls[1].messages[0].text
        'quiet'
    """

    script: list[Any]
    calls: list[Request] = Field(default_factory=list)

    def __init__(self, *script: Reply, **fields: Any) -> None:
        super().__init__(script=list(script), **fields)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        parallel_tool_calls: bool | None = None,
        **options: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind tools and options; `calls` records the tools in OpenAI's format."""
        given = {"tool_choice": tool_choice, "parallel_tool_calls": parallel_tool_calls}
        options |= {name: value for name, value in given.items() if value is not None}
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **options)

    def assert_used_up(self) -> None:
        """Assert that every scripted reply was used.

        Raises:
            AssertionError: Some were not.

        Example:
            >>> model = ScriptedModel(AIMessage("Yes."), AIMessage("No."))
            >>> _ = model.invoke("Is it lit?"), model.invoke("Is it out?")
            >>> model.assert_used_up()
        """
        if len(self.calls) != len(self.script):
            raise AssertionError(f"{len(self.calls)} of {len(self.script)} replies were used")

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002
        **options: Any,
    ) -> ChatResult:
        if stop is not None:
            options["stop"] = stop
        self.calls.append(Request(messages=list(messages), options=options))
        return ChatResult(generations=[ChatGeneration(message=self._reply(list(messages), options))])

    def _reply(self, messages: list[BaseMessage], options: dict[str, Any]) -> AIMessage:  # noqa: ARG002
        """Return the reply to the last call in `calls`."""
        if len(self.calls) > len(self.script):
            raise AssertionError(f"the script has only {len(self.script)} replies, but the model was called again")
        reply = self.script[len(self.calls) - 1]
        if isinstance(reply, Exception):
            raise reply
        made: AIMessage = reply(messages) if callable(reply) else reply.model_copy(deep=True)
        return made


def call(name: str, call_id: str = "", /, **arguments: Any) -> AIMessage:
    """Return a reply that calls a tool.

    Args:
        name: The tool's name.
        call_id: The call's id; generated if left out.
        arguments: The tool's arguments.

    Example:
        >>> call("chunk_read", "1", chunk_ids=["lothair:0"]).tool_calls
        [{'name': 'chunk_read', 'args': {'chunk_ids': ['lothair:0']}, 'id': '1', 'type': 'tool_call'}]
    """
    return calls((name, arguments), ids=[call_id] if call_id else ())


def calls(*wanted: tuple[str, dict[str, Any]], ids: Sequence[str] = (), text: str = "") -> AIMessage:
    """Return a reply that calls several tools.

    Args:
        wanted: The tool's name and arguments for each call.
        ids: An id for each call; generated if left out.
        text: The reply's text.

    Example:
        >>> both = calls(("keyword_search", {"keywords": ["Lothair"]}), ("chunk_read", {"chunk_ids": ["lothair:0"]}))
        >>> [made["name"] for made in both.tool_calls]
        ['keyword_search', 'chunk_read']
    """
    ids = ids or [str(uuid4()) for _ in wanted]
    made = [tool_call(name=name, args=args, id=call_id) for (name, args), call_id in zip(wanted, ids, strict=True)]
    return AIMessage(text, tool_calls=made)


def invalid_call(name: str, arguments: str, call_id: str = "") -> AIMessage:
    """Return a reply with a call that has invalid JSON as its arguments, as small models produce.

    Args:
        name: The tool's name.
        arguments: The invalid JSON.
        call_id: The call's id; generated if left out.

    Example:
        >>> [made["args"] for made in invalid_call("keyword_search", '{"keywords": [').invalid_tool_calls]
        ['{"keywords": [']
    """
    made = invalid_tool_call(name=name, args=arguments, id=call_id or str(uuid4()), error="not JSON")
    return AIMessage("", invalid_tool_calls=[made])


def assert_paired(messages: Sequence[BaseMessage]) -> None:
    """Assert that each message with calls is followed directly by one result per call, as providers require.

    Args:
        messages: The conversation, from a final state or a `Request`.

    Raises:
        AssertionError: A call has no result, or a result has no call.

    Example:
        >>> assert_paired([call("chunk_read", "1", chunk_ids=["lothair:0"]), ToolMessage("...", tool_call_id="1")])
        >>> assert_paired([call("chunk_read", "1", chunk_ids=["lothair:0"])])
        Traceback (most recent call last):
        AssertionError: calls without a result: ['1']
    """
    waiting: list[str | None] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in waiting:
                raise AssertionError(f"a result without a call: {message}")
            waiting.remove(message.tool_call_id)
            continue
        if waiting:
            raise AssertionError(f"calls without a result: {waiting}")
        if isinstance(message, AIMessage):
            waiting = [made["id"] for made in [*message.tool_calls, *message.invalid_tool_calls]]
    if waiting:
        raise AssertionError(f"calls without a result: {waiting}")
