"""The nodes `agent`, `tools` and `force_answer`, and the routes between them."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, TypeAlias
from uuid import uuid4

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    SystemMessage,
)
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config, run_in_executor
from langgraph.runtime import get_runtime
from langgraph.types import Command
from pydantic import ValidationError

from arag.graph.budgets import (
    budgets,
    conversation,
    invalid_replies,
    is_new_question,
    out_of_steps,
    question_id,
    spent,
    steps,
)
from arag.graph.calls import CallResults
from arag.graph.citations import parse_citations
from arag.graph.messages import (
    beginning,
    context_tokens,
    earlier_turns,
    gathered_evidence,
    normalised,
    question_at,
    unanswered,
    unreadable,
)
from arag.graph.prompts import NO_ANSWER, forced_prompt, forced_question
from arag.graph.settings import ChatModel, Settings, SettingsOfRuns
from arag.graph.state import State, StopReason, union
from arag.models.asking import aask, ask
from arag.models.usage import model_call, total
from arag.retrieval.tools import artifacts, chunks_read, whole_characters

_REPLY_ROOM = 8_000  # tokens of the budget that evidence in a forced answer's prompt leaves free, at most a fifth

Update: TypeAlias = dict[str, Any]


class Node(Runnable[State, Any]):
    """A node for synchronous and asynchronous runs.

    `RunnableLambda`, which takes two functions, too, makes a run of its own inside the node's: in traces and events
    every step would stand twice.

    Args:
        function: What it does in synchronous runs.
        coroutine: What it does in asynchronous ones.
    """

    def __init__(
        self,
        function: Callable[[State, RunnableConfig], Any],
        coroutine: Callable[[State, RunnableConfig], Awaitable[Any]],
    ) -> None:
        self._function = function
        self._coroutine = coroutine

    def invoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002 - its name
        """Run it."""
        return self._function(input, ensure_config(config))

    async def ainvoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002
        """Run it."""
        return await self._coroutine(input, ensure_config(config))


class Nodes:
    """The nodes of one graph.

    In asynchronous runs all but the waiting for a model is done in threads: counting tokens, opening an index and
    looking something up in it would hold up everything else.

    Args:
        settings: What makes the settings of a run from its context.
    """

    def __init__(self, settings: SettingsOfRuns) -> None:
        self._settings_of = settings

    def _settings(self) -> Settings:
        return self._settings_of(get_runtime().context)

    # --- agent ---

    def agent(self, state: State, config: RunnableConfig) -> Update:
        """Ask the model for its next tool call, or its answer."""
        settings = self._settings()
        began = time.perf_counter()
        reply = _ask(settings.searcher, _prompt(settings, state), config)
        return _replied(settings, state, reply, time.perf_counter() - began)

    async def aagent(self, state: State, config: RunnableConfig) -> Update:
        """Ask the model for its next tool call, or its answer."""
        settings = await run_in_executor(config, self._settings)
        prompt = await run_in_executor(config, _prompt, settings, state)
        began = time.perf_counter()
        reply = await _aask(settings.searcher, prompt, config)
        return await run_in_executor(config, _replied, settings, state, reply, time.perf_counter() - began)

    def after_agent(self, state: State) -> Literal["tools", "agent", "force_answer", "__end__"]:
        """Route a reply: to the tools that it calls, back for a valid one, or to the end."""
        if state.get("stop_reason"):
            return "__end__"
        last = state["messages"][-1]
        if isinstance(last, AIMessage) and (last.tool_calls or last.invalid_tool_calls):
            return "force_answer" if state.get("out_of_steps") else "tools"
        return self.next_step(state)  # the reply was empty

    def first_step(self, state: State) -> Literal["agent", "force_answer"]:
        """Let the agent begin if the budgets allow it a reply at all."""
        if get_runtime() is None:  # a person writes the question into the thread: the run to come has its own budgets
            return "agent"
        return "force_answer" if out_of_steps(state) or spent(self._settings(), state) else "agent"

    def next_step(self, state: State) -> Literal["agent", "force_answer"]:
        """Let the agent go on while every budget allows it."""
        return "force_answer" if state.get("out_of_steps") or state.get("spent") else "agent"

    # --- tools ---

    def tools(self, state: State, config: RunnableConfig) -> Update | list[Update | Command[Any]]:
        """Run the calls of one message in order, each seeing the chunks that the one before it read."""
        settings = self._settings()
        results = CallResults(settings, state)
        for call in results.calls:
            began = time.perf_counter()
            outcome = settings.tools.invoke(results.given(call), config) if results.knows(call) else None
            results.add(call, outcome, time.perf_counter() - began)
        return results.updates()

    async def atools(self, state: State, config: RunnableConfig) -> Update | list[Update | Command[Any]]:
        """Run the calls of one message in order, each seeing the chunks that the one before it read."""
        settings = await run_in_executor(config, self._settings)
        results = await run_in_executor(config, CallResults, settings, state)
        for call in results.calls:
            began = time.perf_counter()
            outcome = await settings.tools.ainvoke(results.given(call), config) if results.knows(call) else None
            results.add(call, outcome, time.perf_counter() - began)
        return await run_in_executor(config, results.updates)

    # --- force_answer ---

    def force_answer(self, state: State, config: RunnableConfig) -> Update:
        """Ask the model, without tools, to answer from what was gathered."""
        settings = self._settings()
        began = time.perf_counter()
        reply = _ask(settings.model, _forced_prompt(settings, state), config)
        return _forced(settings, state, reply, time.perf_counter() - began)

    async def aforce_answer(self, state: State, config: RunnableConfig) -> Update:
        """Ask the model, without tools, to answer from what was gathered."""
        settings = await run_in_executor(config, self._settings)
        prompt = await run_in_executor(config, _forced_prompt, settings, state)
        began = time.perf_counter()
        reply = await _aask(settings.model, prompt, config)
        return await run_in_executor(config, _forced, settings, state, reply, time.perf_counter() - began)


# --- agent ---


def _prompt(settings: Settings, state: State) -> list[AnyMessage]:
    return [SystemMessage(settings.system_prompt), *conversation(settings, state)]


def _replied(settings: Settings, state: State, raw: AIMessage, seconds: float) -> Update:
    update = _reply(settings, state, raw, seconds)
    return update | budgets(settings, state, update)


def _reply(settings: Settings, state: State, raw: AIMessage, seconds: float) -> Update:
    reply = normalised(raw, state["messages"])
    update = _begun(settings, state) if is_new_question(state) else {}
    update["steps"] = steps(state) + 1
    update |= _counted(state, reply, seconds, forced=False)
    invalid = invalid_replies(state) + 1
    if reply.tool_calls or reply.invalid_tool_calls:
        usable = any(call["name"] in settings.tools.tools_by_name for call in reply.tool_calls)
        return update | {"messages": [reply], "invalid_replies": 0 if usable else invalid}
    if not reply.text.strip():
        return update | {"messages": [], "invalid_replies": invalid}
    return update | {"invalid_replies": 0} | _answered(settings, state, reply, "answered")


# --- force_answer ---


def _forced_prompt(settings: Settings, state: State) -> list[AnyMessage]:
    """Write a prompt without tool calls, which every provider takes, that fits the budget."""
    messages = state["messages"]
    budget = settings.max_context_tokens
    turns = earlier_turns(messages)
    told = "\n\n".join(message.text for message in messages if isinstance(message, SystemMessage))
    instructions = [settings.instructions, beginning(told, budget // 4)]
    head = SystemMessage(forced_prompt("\n\n".join(filter(None, instructions))))
    room = budget - min(_REPLY_ROOM, budget // 5) - context_tokens([head])
    question = beginning(whole_characters(messages[question_at(messages)].text), room)
    room -= context_tokens([HumanMessage(forced_question(question, ""))])
    while turns and (context_tokens(turns) > room // 2 or isinstance(turns[0], AIMessage)):
        turns = turns[1:]
    evidence = gathered_evidence(messages, room - context_tokens(turns))
    return [head, *turns, HumanMessage(forced_question(question, evidence))]


def _forced(settings: Settings, state: State, raw: AIMessage, seconds: float) -> Update:
    # Without tools a reply can only be a text; one without any still ends the run with an answer.
    reply = normalised(raw, state["messages"])
    text = reply.text.strip() or NO_ANSWER
    called = reply.tool_calls or reply.invalid_tool_calls  # a content may hold the calls, too
    content = reply.content if reply.text.strip() and not called else text
    reply = reply.model_copy(
        update={"content": content, "tool_calls": [], "invalid_tool_calls": [], "additional_kwargs": {}}
    )
    if content is text:  # it was not streamed: under its id it would not be sent any more
        reply.id = str(uuid4())
    update = _begun(settings, state) if is_new_question(state) else {}
    update |= _counted(state, reply, seconds, forced=True)
    reason = spent(settings, state) or "max_steps"
    answered = _answered(settings, state, reply, reason)
    skipped = unanswered(state["messages"], len(state["messages"]) - 1)
    return update | answered | {"messages": [*skipped, *answered["messages"]]}


# --- what they share ---


def _answered(settings: Settings, state: State, reply: AIMessage, reason: StopReason) -> Update:
    answer = reply.text.strip()
    read = chunks_read(state["messages"], settings.index)
    seen = union(union(state.get("seen_chunks"), _chunks_seen(state["messages"])), state.get("read_chunks"))
    return {
        "messages": [reply],
        "answer": answer,
        "citations": parse_citations(answer, settings.index, seen, read),
        "stop_reason": reason,
    }


def _ask(model: ChatModel, prompt: list[AnyMessage], config: RunnableConfig) -> AIMessage:
    try:
        return ask(model, prompt, config)
    except ValidationError as error:
        return unreadable(error)


async def _aask(model: ChatModel, prompt: list[AnyMessage], config: RunnableConfig) -> AIMessage:
    try:
        return await aask(model, prompt, config)
    except ValidationError as error:
        return unreadable(error)


def _chunks_seen(messages: Sequence[AnyMessage]) -> list[str]:
    """Return the ids of the chunks that a conversation's results show; a caller may hand one in without its state."""
    return [chunk_id for artifact in artifacts(messages) for chunk_id in artifact["chunk_ids"]]


def _begun(settings: Settings, state: State) -> Update:
    """Return the state of a question's beginning; what was read in the conversation stays."""
    return {
        "question_id": question_id(state),
        "steps": 0,
        "invalid_replies": 0,
        "trace": [],
        "read_chunks": chunks_read(state["messages"], settings.index),
        "seen_chunks": _chunks_seen(state["messages"]),
        "answer": "",
        "citations": [],
        "stop_reason": None,
    }


def _counted(state: State, reply: AIMessage, seconds: float, *, forced: bool) -> Update:
    before = [] if is_new_question(state) else state.get("model_calls", [])
    calls = [*before, model_call(reply, seconds, step=steps(state) + 1, forced=forced)]
    return {"model_calls": calls, "usage": total(calls)}
