"""The tool calls of one message: their inputs and results."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage, convert_to_messages
from langgraph.prebuilt.tool_node import ToolCallWithContext
from langgraph.types import Command

from arag.graph.citations import find_shown_chunks
from arag.graph.state import State, ToolRecord
from arag.models.messages import marked_feedback
from arag.retrieval.index import Index
from arag.retrieval.tokens import count_tokens
from arag.retrieval.tools import find_artifacts


class CallResults:
    """Collects the results of one message's calls.

    Args:
        index: The index.
        state: The state.
        conversation: The conversation as the first call sees it.

    Attributes:
        messages: What the calls add to the conversation.
        records: A record of each call.
        commands: Commands that tools returned, with further changes to the state.
    """

    def __init__(self, index: Index, state: State, conversation: list[AnyMessage]) -> None:
        self._index = index
        self._state = state
        self._conversation = conversation
        self.messages: list[BaseMessage] = []
        self.records: list[ToolRecord] = []
        self.commands: list[Command[Any]] = []

    def write_input(self, call: ToolCall) -> ToolCallWithContext:
        """Return `ToolNode`'s input for one call, with the state that the tool may ask for."""
        return _with_context(call, {**self._state, "messages": [*self._conversation, *self.messages]})

    def add(self, call: ToolCall, outcome: Any, seconds: float) -> None:
        """Add the outcome of a call: its result, or commands that contain it."""
        for part in outcome if isinstance(outcome, list) else [outcome]:
            if not isinstance(part, Command):
                self._add_messages(call["name"], call["args"], part["messages"], seconds)
            elif part.graph is None and isinstance(part.update, dict):
                changes = dict(part.update)
                self._add_messages(call["name"], call["args"], changes.pop("messages", []), seconds)
                self.commands.append(replace(part, update=changes))
            else:  # a command for the parent graph is passed on unchanged
                self.commands.append(part)

    def add_error(self, call_id: str | None, name: str | None, arguments: dict[str, Any], error: str) -> None:
        """Add an error as the result of a call that cannot be run."""
        result = ToolMessage(error, tool_call_id=call_id, name=name or "unknown", status="error")
        self._add_messages(result.name or "", arguments, [result], 0.0)

    def collect(self, begun: dict[str, Any]) -> dict[str, Any]:
        """Return the calls' changes to the state, added to those from the beginning of a question."""
        read = [chunk_id for record in self.records for chunk_id in record["new_chunks"]]
        seen = [chunk_id for record in self.records for chunk_id in record["chunk_ids"]]
        return begun | {
            "messages": self.messages,
            "read_chunks": [*begun.get("read_chunks", []), *read],
            "seen_chunks": [*begun.get("seen_chunks", []), *seen],
            "trace": [*self._state.get("trace", []), *self.records],
        }

    def _add_messages(self, name: str, arguments: dict[str, Any], messages: Any, seconds: float) -> None:
        for message in convert_to_messages(messages):
            # A tool's own human message, for example with a picture, is not the user's next question.
            self.messages.append(marked_feedback(message) if isinstance(message, HumanMessage) else message)
            if isinstance(message, ToolMessage):
                self.records.append(self._record(name, arguments, message, seconds))

    def _record(self, name: str, arguments: dict[str, Any], result: ToolMessage, seconds: float) -> ToolRecord:
        artifact = next(find_artifacts([result]), None)
        shown = find_shown_chunks([result], self._index)
        tokens = count_tokens(result.text) if shown else 0
        return ToolRecord(
            step=self._state.get("steps", 0),
            tool=name,
            arguments=arguments,
            chunk_ids=shown,
            new_chunks=list(artifact["new_chunks"]) if artifact else [],
            retrieved_tokens=artifact["retrieved_tokens"] if artifact else tokens,
            evidence_tokens=artifact["evidence_tokens"] if artifact else tokens,
            seconds=seconds,
            error=result.text if result.status == "error" else None,
        )


# Outside the class, because Python would mangle the key's name inside it.
def _with_context(call: ToolCall, state: dict[str, Any]) -> ToolCallWithContext:
    return ToolCallWithContext(__type="tool_call_with_context", tool_call=call, state=state)
