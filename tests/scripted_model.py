"""Chat models that do what a test tells them, and remember what they were sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args
from uuid import uuid4

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, Field

Reply = AIMessage | Exception | Callable[[list[BaseMessage]], AIMessage]
Mode = Literal["one_call", "several_calls", "empty", "unknown_tool", "invalid_json"]
MODES: tuple[Mode, ...] = get_args(Mode)

# Three short documents that lead to each other, and a long one.
DOCUMENTS = [
    {
        "id": "lothair",
        "title": "Lothair II",
        "text": "Lothair II was a king of Lotharingia. He married Teutberga in 855.",
    },
    {
        "id": "teutberga",
        "title": "Teutberga",
        "text": "Teutberga was a daughter of Boso the Elder. She died in 875.",
    },
    {"id": "boso", "title": "Boso the Elder", "text": "Boso the Elder was a count of Arles. He had three children."},
    {
        "id": "annals",
        "title": "Annals of Storms",
        "text": " ".join(f"In the year {year} storm number {year * 7} broke the bridges." for year in range(800, 1000)),
    },
]

QUESTION = "Who was the father of the wife of Lothair II?"
ANSWER = AIMessage("Boso the Elder. Teutberga was his daughter [teutberga:0].")
NOTICE = "[lothair:0] This chunk has been read before."


class Call(BaseModel):
    """What a model was sent in one call."""

    messages: list[Any]
    options: dict[str, Any]

    @property
    def tool_names(self) -> list[str]:
        return [tool["function"]["name"] for tool in self.options.get("tools") or ()]


class _RecordingModel(BaseChatModel):
    calls: list[Call] = Field(default_factory=list)

    def bind_tools(self, tools: Sequence[Any], *, parallel_tool_calls: bool | None = None, **kwargs: Any) -> Any:
        options = {"tools": [convert_to_openai_tool(tool) for tool in tools], **kwargs}
        if parallel_tool_calls is not None:
            options["parallel_tool_calls"] = parallel_tool_calls
        return self.bind(**options)

    def _generate(self, messages, stop=None, run_manager=None, **kwargs: Any) -> ChatResult:
        self.calls.append(Call(messages=list(messages), options=kwargs))
        return ChatResult(generations=[ChatGeneration(message=self._reply(list(messages), kwargs))])

    def _reply(self, messages: list[BaseMessage], options: dict[str, Any]) -> AIMessage:
        raise NotImplementedError


class ScriptedModel(_RecordingModel):
    """Gives its replies one after another; an exception is raised, a function is asked for the reply.

    Attributes:
        script: The replies.
        calls: What it was sent, call by call.
    """

    script: list[Any]

    def __init__(self, *script: Reply, **kwargs: Any) -> None:
        super().__init__(script=list(script), **kwargs)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _reply(self, messages: list[BaseMessage], options: dict[str, Any]) -> AIMessage:
        place = len(self.calls) - 1
        if place >= len(self.script):
            raise AssertionError(f"the script has {len(self.script)} replies, and the model was called once more")
        reply = self.script[place]
        if isinstance(reply, Exception):
            raise reply
        return reply(messages) if callable(reply) else reply.model_copy(deep=True)

    def assert_used_up(self) -> None:
        assert len(self.calls) == len(self.script), f"{len(self.calls)} of {len(self.script)} replies were asked for"


class EndlessModel(_RecordingModel):
    """Never gives an answer while it has tools.

    Attributes:
        mode: What it does instead.
        calls: What it was sent, call by call.
    """

    mode: Mode

    @property
    def _llm_type(self) -> str:
        return "endless"

    def _reply(self, messages: list[BaseMessage], options: dict[str, Any]) -> AIMessage:
        if not options.get("tools"):
            return AIMessage("That is all [lothair:0].")
        word = f"word{len(self.calls)}"
        match self.mode:
            case "one_call":
                return calls(("keyword_search", {"keywords": [word, "Lothair"]}))
            case "several_calls":
                return calls(("keyword_search", {"keywords": [word]}), ("chunk_read", {"chunk_ids": ["lothair:0"]}))
            case "empty":
                return AIMessage("  ")
            case "unknown_tool":
                return calls(("web_search", {"query": word}))
            case "invalid_json":
                return invalid_call("keyword_search", '{"keywords": [')


def calls(*wanted: tuple[str, dict[str, Any]], ids: Sequence[str] = (), text: str = "") -> AIMessage:
    """Return a message with tool calls."""
    ids = ids or [str(uuid4()) for _ in wanted]
    tool_calls = [
        {"name": name, "args": arguments, "id": call_id, "type": "tool_call"}
        for (name, arguments), call_id in zip(wanted, ids, strict=True)
    ]
    return AIMessage(text, tool_calls=tool_calls)


def call(name: str, call_id: str = "", /, **arguments: Any) -> AIMessage:
    """Return a message with one tool call."""
    return calls((name, arguments), ids=[call_id] if call_id else ())


def invalid_call(name: str, arguments: str, call_id: str = "") -> AIMessage:
    """Return a message with a tool call whose arguments are no JSON."""
    invalid = {
        "name": name,
        "args": arguments,
        "id": call_id or str(uuid4()),
        "error": "not JSON",
        "type": "invalid_tool_call",
    }
    return AIMessage("", invalid_tool_calls=[invalid])


def assert_paired(messages: Sequence[BaseMessage]) -> None:
    """Assert what providers demand: right behind a message with calls stands one result for each, and no other."""
    waiting: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            assert message.tool_call_id in waiting, f"a result without a call: {message}"
            waiting.remove(message.tool_call_id)
            continue
        assert not waiting, f"calls without a result: {waiting}"
        if isinstance(message, AIMessage):
            waiting = [c["id"] for c in [*message.tool_calls, *message.invalid_tool_calls]]
    assert not waiting, f"calls without a result: {waiting}"


def asked(question: str = QUESTION) -> dict[str, Any]:
    """Return a graph's input."""
    return {"messages": [HumanMessage(question)]}


def in_thread(name: str = "t") -> dict[str, Any]:
    """Return the config of a thread."""
    return {"configurable": {"thread_id": name}}


def results(state) -> list[ToolMessage]:
    """Return the results of the tools."""
    return [m for m in state["messages"] if isinstance(m, ToolMessage)]


def plain(messages) -> list[tuple]:
    """Return what tells messages apart but for the ids that are made up anew each time."""
    return [(m.type, m.text, [(c["name"], c["args"], c["id"]) for c in getattr(m, "tool_calls", [])]) for m in messages]
