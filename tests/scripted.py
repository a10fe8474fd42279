"""Chat models that follow a script, a small corpus with a question about it, and assertions about what was sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import invalid_tool_call, tool_call
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, Field

# Three short documents that lead to each other, and a long one.
STORMS = " ".join(f"In the year {year} storm number {year * 7} broke the bridges." for year in range(800, 1000))
TEXTS = {
    "Lothair II": "Lothair II was a king of Lotharingia. He married Teutberga in 855.",
    "Teutberga": "Teutberga was a daughter of Boso the Elder. She died in 875.",
    "Boso the Elder": "Boso the Elder was a count of Arles. He had three children.",
    "Annals of Storms": STORMS,
}
DOCUMENTS = [{"id": title.split()[0].lower(), "title": title, "text": text} for title, text in TEXTS.items()]

QUESTION = "Who was the father of the wife of Lothair II?"
ANSWER = AIMessage("Boso the Elder. Teutberga was his daughter [teutberga:0].")
NOTICE = "[lothair:0] Shown in full above."


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


def priced(reply, input_tokens=1_000_000, model="gpt-5-mini-2025-08-07"):
    """Return a reply that reports its tokens: a million cost 0.25 dollars."""
    usage = {"input_tokens": input_tokens, "output_tokens": 0, "total_tokens": input_tokens}
    metadata = {"model_name": model, "model_provider": "openai"}
    return reply.model_copy(update={"usage_metadata": usage, "response_metadata": metadata})


def assert_paired(messages: Sequence[BaseMessage]) -> None:
    """Assert that each message with calls is followed directly by one result per call, as providers require."""
    waiting: set[str | None] = set()
    for message in messages:
        if isinstance(message, ToolMessage):
            assert message.tool_call_id in waiting, f"a result without a call: {message}"
            waiting.remove(message.tool_call_id)
        else:
            assert not waiting, f"calls without a result: {waiting}"
        if isinstance(message, AIMessage):
            waiting = {made["id"] for made in [*message.tool_calls, *message.invalid_tool_calls]}
    assert not waiting, f"calls without a result: {waiting}"


MODES = ("one_call", "several_calls", "empty", "unknown_tool", "invalid_json")


class EndlessModel(ScriptedModel):
    """Never gives an answer while it has tools."""

    mode: str  # what it does instead: one of MODES

    def _reply(self, messages: list[BaseMessage], options: dict[str, Any]) -> AIMessage:
        if not options.get("tools"):
            return AIMessage("That is all [lothair:0].")
        word = f"word{len(self.calls)}"
        match self.mode:
            case "one_call":
                return call("keyword_search", keywords=[word, "Lothair"])
            case "several_calls":
                return calls(("keyword_search", {"keywords": [word]}), ("chunk_read", {"chunk_ids": ["lothair:0"]}))
            case "empty":
                return AIMessage("  ")
            case "unknown_tool":
                return call("web_search", query=word)
            case "invalid_json":
                return invalid_call("keyword_search", '{"keywords": [')


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
