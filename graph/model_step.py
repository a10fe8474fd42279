"""A model call in an agent of LangChain's: what the model is sent, and what the state says about the call."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias, TypeVar, cast
from uuid import uuid4

from langchain.agents.middleware.types import ExtendedModelResponse, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.types import Command

from arag.graph.asking import Judged, judge
from arag.graph.budgets import find_spent_budget, fit
from arag.graph.context import Resources, count_schemas
from arag.graph.forced import as_answer
from arag.graph.node import Call, advance, fail
from arag.graph.overflow import ask_with_less, force_with_less, has_results
from arag.graph.prompts import forced_prompt
from arag.graph.records import find_seen, record_results
from arag.graph.sent import SentResults, find_quoted_results, find_sent_results
from arag.graph.sources import ARAGState, RunRecord
from arag.graph.state import (
    StopReason,
    as_sent,
    count_context_tokens,
    refuse_call,
    repair_reply,
    split_turn,
    union,
    with_valid_arguments,
)
from arag.models.failures import is_overflow
from arag.models.replies.arguments import KnownTool
from arag.models.replies.model import describe_tools
from arag.models.replies.reading import find_doubt, read_reply
from arag.models.usage import ModelCall, model_call
from arag.retrieval.index import Index
from arag.retrieval.tools.base import RetrievalTool
from arag.retrieval.tools.seen import find_artifacts

_MOST_TOOL_LISTS = 256  # whose facts are kept

_Result = TypeVar("_Result")
Asking: TypeAlias = Generator[ModelRequest[Any], "Reply", _Result]
"""A step at work: it yields requests, and is sent what comes back."""


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
    def is_read(self) -> bool:
        """Whether LangChain has read a structured answer in it, or has found that it is not valid."""
        return self.response.structured_response is not None or len(self.response.result) > 1

    def with_messages(self, messages: list[Any]) -> Reply:
        """Return the reply with other messages."""
        return Reply(ModelResponse(messages, self.response.structured_response), self.sent)


@dataclass(frozen=True)
class ToolFacts:
    """What is known of the tools of a request."""

    tools: Sequence[BaseTool | dict[str, Any]]
    tokens: int
    """Tokens of their schemas."""
    by_name: Mapping[str, KnownTool]


class ToolFactsCache:
    """Finds the facts about tools once: schemas are slow to make, and agents have the same tools at each call."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, ...], ToolFacts] = {}

    def find(self, tools: Sequence[BaseTool | dict[str, Any]]) -> ToolFacts:
        """Return the facts about tools."""
        ids = tuple(map(id, tools))  # the facts hold the tools, so no other ones get these ids
        facts = self._known.get(ids)
        if facts is None:
            if len(self._known) >= _MOST_TOOL_LISTS:
                self._known.clear()
            facts = ToolFacts(tools, count_schemas(tools), describe_tools(tools))
            self._known[ids] = facts
        return facts


@dataclass
class ModelStep:
    """The next step of a run in an agent of LangChain's: a call of the model, or several if a reply cannot be used.

    Attributes:
        request: The agent's own request.
        resources: The resources of the run.
        registered: The retrieval tools that the agent has, by name. A run's context may choose others.
        run: What is known of the run.
        facts: What is known of tools.
    """

    request: ModelRequest[Any]
    resources: Resources
    registered: Mapping[str, BaseTool]
    run: RunRecord
    facts: ToolFactsCache

    def __post_init__(self) -> None:
        self._before = self.run.copy()
        self._unused: list[AIMessage] = []
        self._calls: list[ModelCall] = []
        self._found: dict[str, Any] = {}

    def ask(self) -> Asking[ExtendedModelResponse[Any]]:
        """Ask for a step of the search, again if the reply cannot be used. If a budget is used up, force an answer.

        What is read of the index is read before the first request. The code behind it may run in an event loop.
        """
        self._note_results()
        sent = self._list_sent()
        reason = self._find_spent_budget(sent)
        while reason is None:
            try:
                reply = yield from self._search(sent)
            except Exception as error:
                if not has_results(self._turn) or not is_overflow(error):
                    raise
                reason = "token_budget"
                break
            if reply.is_read or reply.message.tool_calls:
                is_answer = reply.response.structured_response is not None
                return self._finish(reply, "answered" if is_answer else None)
            judged = self._judge(reply.message)
            if judged.reason is not None:
                return self._finish(reply.with_messages([judged.reply]), judged.reason)
            self._unused.append(judged.reply)
            self._calls.append(model_call(judged.reply, step=self.run["steps"]))
            sent = self._list_sent()
            reason = self._find_spent_budget(sent)
        reply = yield from self._force()
        return self._finish(reply, reason, is_forced=True)

    def _search(self, sent: Sequence[AnyMessage]) -> Asking[Reply]:
        prompt = self.resources.note_steps(self._prompt, self.run["steps"])
        reply = yield from self._send(
            ask_with_less(self.resources.model, [self._add_to_system(prompt)], sent),
            tools=self._tools,
        )
        self.run["steps"] += 1
        self._note_intact_results(reply)
        return self._repair(reply, self._tools)

    def _send(self, asking: Generator[Call, list[Any], AIMessage], **changes: Any) -> Asking[Reply]:
        """Send each prompt of `asking` as the agent's request with changes; return the reply to the last one."""
        call = advance(asking)
        while True:
            system, *messages = call.input
            try:
                reply = yield self.request.override(system_message=system, messages=messages, **changes)
            except Exception as error:  # noqa: BLE001 - raised again there, unless a shorter prompt may help
                call = fail(asking, error)
                continue
            advance(asking, [reply.message])
            return reply

    def _note_intact_results(self, reply: Reply) -> None:
        """Note which results the model has. Once one is taken away, any other may be gone before it is read again."""
        sent = find_sent_results(reply.sent, self._state["messages"])
        self._note_sent(sent)
        intact = sent.as_given
        if not set(self.run["intact"]) <= set(intact):
            self.run["forgets"] = True
        self.run["intact"] = [] if self.run["forgets"] else list(intact)

    def _note_sent(self, sent: SentResults) -> None:
        """Note what the model was sent as the tools gave it, and what it was sent in place of that."""
        given = union(self.run["given"], [*sent.as_given, *sent.as_kept])
        rewritten = {**sent.changed, **self.run["rewritten"]}  # the first text counts: later ones may be shorter
        self.run["given"] = given
        self.run["rewritten"] = {call_id: rewritten[call_id] for call_id in rewritten if call_id not in given}

    def _force(self) -> Asking[Reply]:
        """Ask for an answer without tools, from what the tools gave, also if other middleware no longer sends it."""
        settings = self.resources.settings
        earlier, turn = fit(self.request.messages, self._room)
        if turn[0].text != self.run["question"]:  # a summary has replaced the question
            earlier = [*earlier, turn[0]]
        head = [self._add_to_system(forced_prompt(settings.system_prompt)), *earlier]
        evidence = [HumanMessage(self.run["question"]), *self._turn[1:]]
        reply = yield from self._send(
            force_with_less(self.resources.model, head, evidence, settings.max_context_tokens),
            tools=[],
            tool_choice=None,
        )
        self._note_sent(find_quoted_results(reply.sent, self._turn))
        if reply.is_read:
            return reply
        reply = self._repair(reply, [])
        return reply.with_messages([as_answer(reply.message)])

    def _repair(self, reply: Reply, tools: Sequence[BaseTool | dict[str, Any]]) -> Reply:
        """Return a reply so that it can be stored and sent again. The agent goes on if no call has valid arguments."""
        if reply.is_read:
            return reply
        message = reply.message
        if find_doubt(message) is None:  # LangChain could read it
            message = read_reply(message, self.facts.find(tools).by_name)
        message = repair_reply(message, self._state["messages"])
        refused = [refuse_call(call) for call in message.invalid_tool_calls]
        update = {
            "id": message.id or str(uuid4()),
            "tool_calls": with_valid_arguments(message),
            "invalid_tool_calls": [],
        }
        return reply.with_messages([message.model_copy(update=update), *refused])

    def _judge(self, reply: AIMessage) -> Judged:
        """Decide whether the run ends with a reply. An agent with other tools need not search."""
        others = [tool for tool in self._tools if not isinstance(tool, RetrievalTool)]
        return judge(
            reply,
            self._state["messages"],
            self._replies,
            self.resources.settings.max_steps - self.run["steps"],
            must_search=not others and self.request.response_format is None,
        )

    def _finish(
        self,
        reply: Reply,
        reason: StopReason | None,
        *,
        is_forced: bool = False,
    ) -> ExtendedModelResponse[Any]:
        """Return the reply, and the state's update: the results since the last call, the model calls, and the run."""
        message = reply.message
        step = self.run["steps"]
        if is_forced:
            step += 1
        self._calls.append(model_call(message, step=step, forced=is_forced))
        if message.id is None:
            message = message.model_copy(update={"id": str(uuid4())})
        update = {
            **self._found,
            "model_calls": self._calls,
            "arag_run": self.run
            | {
                "reply_id": message.id,
                "reply": message.text,
                "stop_reason": reason,
                "remaining": self._remaining_steps,
            },
        }
        messages = [*self._unused, message, *reply.response.result[1:]]
        return ExtendedModelResponse(replace(reply.response, result=messages), Command(update=update))

    def _note_results(self) -> None:
        """Note what the results since the last call show."""
        results = list_results(self._turn, self._before["reply_id"])
        self._found = describe_results(results, self.resources.index, self._before)
        seen = self._found["seen_chunks"]
        self.run["seen"] = union(self.run["seen"], seen)
        self.run["read"] = union(self.run["read"], [each for each in self._found["read_chunks"] if each in seen])

    def _find_spent_budget(self, sent: Sequence[AnyMessage]) -> StopReason | None:
        """Return the budget that the run has used up, if any, before it sends a conversation."""
        spent = find_spent_budget(
            self.resources,
            self._replies,
            sent,
            steps=self.run["steps"],
            calls=[*self._state["model_calls"], *self._calls],
            room=self._room,
        )
        if spent is not None:
            return spent
        # A round is all steps since the last call: the tools, and those of other middleware. There must be room for
        # another round, and then for a forced answer.
        left = self._remaining_steps
        steps_a_round = max(self.run["remaining"] - left, 2)
        return "max_steps" if left < 2 * steps_a_round + 2 else None

    def _list_sent(self) -> list[AnyMessage]:
        """Return what the model is sent: all that the request has; if that is too long, what the graph would send."""
        messages = [*self.request.messages, *self._unused]
        sent = as_sent(messages)
        if count_context_tokens(sent) <= self._room:
            return sent
        earlier, turn = fit(messages, self._room)
        return [*earlier, *turn]

    @property
    def _replies(self) -> list[AIMessage]:
        """The model's replies in this run."""
        replies = [message for message in self._turn if isinstance(message, AIMessage)]
        return [*replies, *self._unused]

    @property
    def _remaining_steps(self) -> int:
        """Steps that the recursion limit leaves."""
        return self._state["remaining_steps"]

    @property
    def _state(self) -> ARAGState:
        return cast("ARAGState", self.request.state)

    @cached_property
    def _turn(self) -> list[AnyMessage]:
        """The last question and everything behind it, as the state has it."""
        return split_turn(self._state["messages"]).turn

    @cached_property
    def _prompt(self) -> str:
        """The system prompt of the search."""
        return self.resources.system_prompt()

    @cached_property
    def _room(self) -> int:
        """Tokens that the system message and the tools' schemas leave for the conversation."""
        system = self._add_to_system(self._prompt)
        used = self.facts.find(self._tools).tokens + count_context_tokens([system])
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
