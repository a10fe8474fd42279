"""A model call in an agent of LangChain's: what the model is sent, and what the state says about the call."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, cast
from uuid import uuid4

from langchain.agents.middleware.types import ExtendedModelResponse, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.types import Command

from arag.graph.budgets import find_spent_budget, fit
from arag.graph.context import Resources, count_schemas
from arag.graph.forced import ask_from_evidence
from arag.graph.prompts import forced_prompt
from arag.graph.records import find_seen, record_results
from arag.graph.sources import ARAGState, RunRecord
from arag.graph.state import (
    StopReason,
    as_sent,
    count_context_tokens,
    kind_of_reply,
    refuse_call,
    repair_reply,
    split_turn,
    with_valid_arguments,
)
from arag.models.usage import ModelCall
from arag.retrieval.index import Index
from arag.retrieval.tools.seen import find_artifacts


@dataclass(frozen=True)
class Reply:
    """What came back for a request."""

    response: ModelResponse[Any]
    sent: Sequence[Any]
    """What the model was sent, behind all middleware."""

    @property
    def message(self) -> AIMessage:
        """The model's message."""
        return cast("AIMessage", self.response.result[0])

    @property
    def kind(self) -> Literal["calls", "answer", "empty"]:
        """Whether the message calls tools, is an answer, which a structured one is in any form, or is empty."""
        if self.response.structured_response is not None:
            return "answer"
        return kind_of_reply(self.message) or "empty"

    def repaired(self, messages: Sequence[AnyMessage]) -> Reply:
        """Return the reply so that it can be stored and sent again, and the agent goes on if no call has valid JSON."""
        if len(self.response.result) > 1:  # LangChain has read a structured answer, and made its result
            return self
        message = repair_reply(self.message, messages)
        refused = [refuse_call(call) for call in message.invalid_tool_calls]
        update = {"tool_calls": with_valid_arguments(message), "invalid_tool_calls": []}
        return self.with_messages([message.model_copy(update=update), *refused])

    def with_messages(self, messages: list[Any]) -> Reply:
        """Return the reply with other messages."""
        return Reply(ModelResponse(messages, self.response.structured_response), self.sent)


@dataclass(frozen=True)
class ModelStep:
    """The next model call of a run.

    Attributes:
        request: The agent's own request.
        resources: The resources of the run.
        registered: The retrieval tools that the agent has, by name. A run's context may choose others.
        run: What is known of the run.
    """

    request: ModelRequest[Any]
    resources: Resources
    registered: Mapping[str, BaseTool]
    run: RunRecord

    def find_spent_budget(self) -> StopReason | None:
        """Return the budget that the run has used up, if any."""
        spent = find_spent_budget(
            self.resources,
            [message for message in self._turn if isinstance(message, AIMessage)],
            self._conversation,
            steps=self.run["steps"],
            calls=self._state["model_calls"],
            room=self._room,
        )
        if spent is not None:
            return spent
        # A round is all steps since the last call: the tools, and those of other middleware. There must be room for
        # another round, and then for a forced answer.
        left = self.remaining_steps
        steps_a_round = max(self.run["remaining"] - left, 2)
        return "max_steps" if left < 2 * steps_a_round + 2 else None

    @property
    def remaining_steps(self) -> int:
        """Steps that the recursion limit leaves."""
        return self._state["remaining_steps"]

    def search_request(self) -> ModelRequest[Any]:
        """Return the request for a step of the search."""
        prompt = self.resources.system_prompt(self.run["steps"])
        return self.request.override(
            messages=self._conversation,
            system_message=self._add_to_system(prompt),
            tools=self._tools,
        )

    def forced_request(self) -> ModelRequest[Any]:
        """Return the request for a forced answer, without tools.

        The evidence is what the tools gave, also if other middleware no longer sends it.
        """
        settings = self.resources.settings
        system = self._add_to_system(forced_prompt(settings.system_prompt))
        earlier, turn = fit(self.request.messages, self._room)
        if turn[0].text != self.run["question"]:  # a summary has replaced the question
            earlier = [*earlier, turn[0]]
        asked = ask_from_evidence(
            self.run["question"],
            self._turn,
            [system, *earlier],
            settings.max_context_tokens,
        )
        return self.request.override(
            messages=[*earlier, asked],
            system_message=system,
            tools=[],
            tool_choice=None,
        )

    def finish(
        self,
        reply: Reply,
        calls: Sequence[ModelCall],
        run: RunRecord,
        reason: StopReason | None,
    ) -> ExtendedModelResponse[Any]:
        """Return the reply, and the state's update: the results since the last call, the model calls, and the run."""
        results = list_results(self._turn, self.run["reply_id"])
        message = reply.message
        if message.id is None:
            message = message.model_copy(update={"id": str(uuid4())})
        update = {
            **describe_results(results, self.resources.index, self.run),
            "model_calls": list(calls),
            "arag_run": run | {"reply_id": message.id, "stop_reason": reason},
        }
        response = replace(reply.response, result=[message, *reply.response.result[1:]])
        return ExtendedModelResponse(response, Command(update=update))

    @property
    def _state(self) -> ARAGState:
        return cast("ARAGState", self.request.state)

    @cached_property
    def _turn(self) -> list[AnyMessage]:
        """The last question and everything behind it, as the state has it."""
        return split_turn(self._state["messages"]).turn

    @cached_property
    def _conversation(self) -> list[AnyMessage]:
        """What the model is sent: all that the request has; if that is too long, as much as the graph would send."""
        sent = as_sent(self.request.messages)
        if count_context_tokens(sent) <= self._room:
            return sent
        earlier, turn = fit(self.request.messages, self._room)
        return [*earlier, *turn]

    @cached_property
    def _room(self) -> int:
        """Tokens that the system message and the tools' schemas leave for the conversation."""
        system = self._add_to_system(self.resources.system_prompt())
        used = count_schemas(self._tools) + count_context_tokens([system])
        return self.resources.settings.max_context_tokens - used

    @cached_property
    def _tools(self) -> list[BaseTool | dict[str, Any]]:
        """The request's tools, with those of this run in place of the registered ones.

        Those that other middleware took away stay away.
        """
        wanted = dict(self.resources.tools.tools_by_name)
        tools: list[BaseTool | dict[str, Any]] = []
        for tool in self.request.tools:
            name = tool.name if isinstance(tool, BaseTool) else ""
            is_ours = name in self.registered and tool is self.registered[name]
            if not is_ours:
                tools.append(tool)
            elif name in wanted:
                tools.append(wanted[name])
        added = [tool for name, tool in wanted.items() if name not in self.registered]
        return [*tools, *added]

    def _add_to_system(self, prompt: str) -> SystemMessage:
        """Return the agent's own system message with a prompt behind it."""
        message = self.request.system_message
        if message is None:
            return SystemMessage(prompt)
        if isinstance(message.content, str):
            return message.model_copy(update={"content": f"{message.content}\n\n{prompt}"})
        content = [*message.content, {"type": "text", "text": f"\n\n{prompt}"}]
        return message.model_copy(update={"content": content})


def list_results(turn: Sequence[AnyMessage], reply_id: str | None) -> list[AnyMessage]:
    """Return the model's last message and the results behind it."""
    results: list[AnyMessage] = []
    for message in turn:
        if isinstance(message, AIMessage) and message.id == reply_id:
            results = [message]
        elif isinstance(message, ToolMessage) and results:
            results.append(message)
    return results


def describe_results(results: Sequence[AnyMessage], index: Index, run: RunRecord) -> dict[str, Any]:
    """Return what the state says about the results of the model's last message."""
    read = []
    for artifact in find_artifacts(results):
        read += artifact["new_chunks"]
    return {
        "trace": record_results(results, first_step=run["steps"]),
        "read_chunks": read,
        "seen_chunks": find_seen(results, index),
    }


def read_answer(message: AIMessage) -> str:
    """Return the text of an answer; if it is a call with a structured answer, that as JSON."""
    text = message.text.strip()
    if text or not message.tool_calls:
        return text
    return json.dumps(message.tool_calls[0]["args"], ensure_ascii=False)
