"""The calls of one message: made one after another, and what came of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    InvalidToolCall,
    ToolCall,
    ToolMessage,
    convert_to_messages,
)
from langgraph.types import Command

from arag.graph.budgets import budgets
from arag.graph.messages import without_old_results
from arag.graph.settings import Settings
from arag.graph.state import State, ToolRecord
from arag.models.messages import marked_feedback
from arag.retrieval.tools import artifacts


class CallResults:
    """The results of one message's calls, as they come.

    Args:
        settings: The run's settings.
        state: The state; its last message has the calls.

    Attributes:
        calls: The calls that can be made.
        messages: The conversation as the next call sees it.
    """

    def __init__(self, settings: Settings, state: State) -> None:
        self._settings = settings
        self._state = state
        self._last = cast("AIMessage", state["messages"][-1])
        self.calls = self._last.tool_calls
        self.messages = without_old_results(state["messages"], settings.room)
        self._results: list[ToolMessage] = []
        self._records: list[ToolRecord] = []
        self._commands: list[Command[Any]] = []

    def knows(self, call: ToolCall) -> bool:
        """Tell whether there is a tool for a call."""
        return call["name"] in self._settings.tools.tools_by_name

    def given(self, call: ToolCall) -> Any:
        """Return what `ToolNode` takes for one call, with the state that the tool may ask for."""
        state = {**self._state, "messages": self.messages}
        return {"__type": "tool_call_with_context", "tool_call": call, "state": state}

    def add(self, call: ToolCall, outcome: Any, seconds: float) -> None:
        """Add what came of a call: its result, a command with it, or None where there is no such tool."""
        if outcome is None:
            self._add_message(call, _no_such_tool(call, list(self._settings.tools.tools_by_name)), seconds)
            return
        for part in outcome if isinstance(outcome, list) else [outcome]:
            if isinstance(part, Command):
                self._add_command(call, part, seconds)
            else:
                for message in part["messages"]:
                    self._add_message(call, message, seconds)

    def _add_command(self, call: ToolCall, command: Command[Any], seconds: float) -> None:
        """Take the call's result out of a command, to stand among the others; a parent's is passed on as it is."""
        if command.graph is None and isinstance(command.update, dict):
            update = dict(command.update)
            for message in convert_to_messages(update.pop("messages", [])):
                self._add_message(call, message, seconds)
            command = replace(command, update=update)
        self._commands.append(command)

    def _add_message(self, call: ToolCall, message: Any, seconds: float) -> None:
        if isinstance(message, HumanMessage):  # a tool's, say with a picture: not the user's next question
            message = marked_feedback(message)
        self.messages = [*self.messages, message]
        self._results.append(message)
        if isinstance(message, ToolMessage):
            self._records.append(_record(self._state, call["name"], call["args"], message, seconds))

    def updates(self) -> dict[str, Any] | list[dict[str, Any] | Command[Any]]:
        """Return what the node changes."""
        for invalid in self._last.invalid_tool_calls:
            result = _not_json(invalid)
            self._results.append(result)
            self._records.append(_record(self._state, result.name or "", {}, result, 0.0))
        update = {
            "messages": self._results,
            "read_chunks": [chunk_id for record in self._records for chunk_id in record["new_chunks"]],
            "seen_chunks": [chunk_id for record in self._records for chunk_id in record["chunk_ids"]],
            "trace": [*self._state.get("trace", []), *self._records],
        }
        update |= budgets(self._settings, self._state, update)
        return [update, *self._commands] if self._commands else update


def _no_such_tool(call: ToolCall, valid: Sequence[str]) -> ToolMessage:
    return ToolMessage(
        f"There is no tool {call['name']!r}. The tools are: {', '.join(valid)}.",
        tool_call_id=call["id"],
        name=call["name"],
        status="error",
    )


def _not_json(call: InvalidToolCall) -> ToolMessage:
    return ToolMessage(
        f"The arguments of this call are not valid JSON: {(call['args'] or '')[:200]!r}. Call the tool again with a "
        "JSON object.",
        tool_call_id=call["id"],
        name=call["name"] or "unknown",
        status="error",
    )


def _record(state: State, name: str, arguments: dict[str, Any], result: ToolMessage, seconds: float) -> ToolRecord:
    artifact = next(artifacts([result]), {})
    return ToolRecord(
        step=state.get("steps", 0),
        tool=name,
        arguments=arguments,
        chunk_ids=list(artifact.get("chunk_ids", ())),
        new_chunks=list(artifact.get("new_chunks", ())),
        retrieved_tokens=int(artifact.get("retrieved_tokens", 0)),
        seconds=seconds,
        error=result.text if result.status == "error" else None,
    )
