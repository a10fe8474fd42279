"""The nodes `agent`, `tools` and `force_answer`, and the routes between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool
from pydantic import ValidationError

from arag.graph.citations import parse_citations
from arag.graph.messages import (
    acceptable,
    beginning,
    context_tokens,
    earlier_turns,
    feedback,
    gathered_evidence,
    normalised,
    question_at,
    unanswered,
    unreadable,
    without_old_results,
)
from arag.graph.prompts import EMPTY_REPLY, NO_ANSWER, forced_prompt, forced_question
from arag.graph.state import State, StopReason, ToolRecord, Usage, union
from arag.retrieval.index import Index

# A route is taken while the step it leaves still runs. What may follow before the recursion limit is reached:
_FOR_AGENT_AND_ANSWER = 3  # the agent, and a forced answer should it ask for more
_FOR_TOOLS_AND_ANSWER = 3  # the tools, and the forced answer

_REPLY_ROOM = 8_000  # tokens of the budget that evidence in a forced answer's prompt leaves free, at most a fifth

Update = dict[str, Any]
ChatModel = Runnable[LanguageModelInput, AIMessage]


@dataclass(frozen=True)
class Settings:
    """What a graph was made with.

    Attributes:
        model: The model, for forced answers.
        searcher: The model with its tools bound.
        index: The index, for checking citations.
        tools: The tools, by name.
        system_prompt: The system prompt of the search.
        max_steps: Most model calls of a question's search.
        max_context_tokens: Most tokens of the context.
        room: Tokens of it that the conversation may have, beside the system prompt and the tools' schemas.
        max_invalid_replies: Most invalid replies in a row.
    """

    model: BaseChatModel
    searcher: ChatModel
    index: Index
    tools: Mapping[str, BaseTool]
    system_prompt: str
    max_steps: int
    max_context_tokens: int
    room: int
    max_invalid_replies: int


class Nodes:
    """The nodes of one graph.

    Args:
        settings: What the graph was made with.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    # --- agent ---

    def agent(self, state: State, config: RunnableConfig) -> Update:
        """Ask the model for its next tool call, or its answer."""
        return self._replied(state, _ask(self._settings.searcher, self._prompt(state), config))

    async def aagent(self, state: State, config: RunnableConfig) -> Update:
        """Ask the model for its next tool call, or its answer."""
        return self._replied(state, await _aask(self._settings.searcher, self._prompt(state), config))

    def _prompt(self, state: State) -> list[AnyMessage]:
        messages, _ = without_old_results(acceptable(state["messages"]), self._settings.room)
        return [SystemMessage(self._settings.system_prompt), *messages]

    def _replied(self, state: State, raw: AIMessage) -> Update:
        reply = normalised(raw, state["messages"])
        update = _begun(state) if _is_new_question(state) else {}
        update["steps"] = _steps(state) + 1
        update["usage"] = _added(None if _is_new_question(state) else state.get("usage"), reply)
        invalid_replies = _invalid_replies(state) + 1
        if reply.tool_calls or reply.invalid_tool_calls:
            usable = any(call["name"] in self._settings.tools for call in reply.tool_calls)
            return update | {"messages": [reply], "invalid_replies": 0 if usable else invalid_replies}
        if not reply.text.strip():
            # The empty reply itself is left out: some providers refuse a conversation with one in it.
            return update | {"messages": [feedback(EMPTY_REPLY)], "invalid_replies": invalid_replies}
        return update | {"invalid_replies": 0} | self._answered(state, reply, "answered")

    def after_agent(self, state: State) -> Literal["tools", "agent", "force_answer", "__end__"]:
        """Route a reply: to the tools that it calls, back for a valid one, or to the end."""
        if state.get("stop_reason"):
            return "__end__"
        last = state["messages"][-1]
        if not isinstance(last, AIMessage):
            return self.next_step(state)
        return "tools" if state["remaining_steps"] >= _FOR_TOOLS_AND_ANSWER else "force_answer"

    def next_step(self, state: State) -> Literal["agent", "force_answer"]:
        """Let the agent go on while every budget allows it."""
        if state["remaining_steps"] < _FOR_AGENT_AND_ANSWER or self._spent(state) is not None:
            return "force_answer"
        return "agent"

    def _spent(self, state: State) -> StopReason | None:
        """Return the budget that is used up, if one is."""
        if _is_new_question(state):
            messages, _ = without_old_results(state["messages"], self._settings.room)
            return "token_budget" if context_tokens(messages) > self._settings.room else None
        if _invalid_replies(state) >= self._settings.max_invalid_replies:
            return "invalid_replies"
        if _steps(state) >= self._settings.max_steps:
            return "max_steps"
        messages, _ = without_old_results(state["messages"], self._settings.room)
        return "token_budget" if context_tokens(messages) > self._settings.room else None

    # --- tools ---

    def tools(self, state: State, config: RunnableConfig) -> Update:
        """Run the calls of one message in order, each seeing the chunks that the one before it read."""
        last = cast("AIMessage", state["messages"][-1])
        _, dropped = without_old_results(state["messages"], self._settings.room)
        read = [chunk_id for chunk_id in state.get("read_chunks", []) if chunk_id not in dropped]
        results: list[ToolMessage] = []
        records: list[ToolRecord] = []
        seen: list[str] = []
        for call in last.tool_calls:
            result = self._run(call["name"], call["args"], cast("str", call["id"]), read, config)
            record = _record(state, call["name"], call["args"], result)
            read = union(read, record["new_chunks"])
            seen = union(seen, record["chunk_ids"])
            results.append(result)
            records.append(record)
        for invalid in last.invalid_tool_calls:
            name = invalid["name"] or "unknown"
            result = ToolMessage(
                f"The arguments of this call are not valid JSON: {(invalid['args'] or '')[:200]!r}. Call the tool "
                "again with a JSON object.",
                tool_call_id=invalid["id"],
                name=name,
                status="error",
            )
            results.append(result)
            records.append(_record(state, name, {}, result))
        return {
            "messages": results,
            "read_chunks": read,
            "seen_chunks": seen,
            "trace": [*state.get("trace", []), *records],
        }

    def _run(
        self, name: str, arguments: dict[str, Any], call_id: str, read: Sequence[str], config: RunnableConfig
    ) -> ToolMessage:
        tool = self._settings.tools.get(name)
        if tool is None:
            valid = ", ".join(self._settings.tools)
            return ToolMessage(
                f"There is no tool {name!r}. The tools are: {valid}.", tool_call_id=call_id, name=name, status="error"
            )
        arguments = {**arguments, "read_chunks": list(read)}
        call = {"name": name, "args": arguments, "id": call_id, "type": "tool_call"}
        return cast("ToolMessage", tool.invoke(call, config))

    # --- force_answer ---

    def force_answer(self, state: State, config: RunnableConfig) -> Update:
        """Ask the model, without tools, to answer from what was gathered."""
        return self._forced(state, _ask(self._settings.model, self._forced_prompt(state), config))

    async def aforce_answer(self, state: State, config: RunnableConfig) -> Update:
        """Ask the model, without tools, to answer from what was gathered."""
        return self._forced(state, await _aask(self._settings.model, self._forced_prompt(state), config))

    def _forced_prompt(self, state: State) -> list[AnyMessage]:
        """Write a prompt without tool calls, which every provider takes, that fits the budget."""
        messages = state["messages"]
        budget = self._settings.max_context_tokens
        turns = earlier_turns(messages)
        head = SystemMessage(forced_prompt())
        room = budget - min(_REPLY_ROOM, budget // 5) - context_tokens([head])
        question = beginning(messages[question_at(messages)].text, room)
        room -= context_tokens([HumanMessage(question)])
        while turns and (context_tokens(turns) > room // 2 or isinstance(turns[0], AIMessage)):
            turns = turns[1:]
        evidence = gathered_evidence(messages, room - context_tokens(turns))
        return [head, *turns, HumanMessage(forced_question(question, evidence))]

    def _forced(self, state: State, raw: AIMessage) -> Update:
        # Without tools a reply can only be a text; one without any still ends the run with an answer.
        reply = normalised(raw, state["messages"])
        text = reply.text.strip() or NO_ANSWER
        content = reply.content if reply.text.strip() and not reply.tool_calls else text
        reply = reply.model_copy(
            update={"content": content, "tool_calls": [], "invalid_tool_calls": [], "additional_kwargs": {}}
        )
        update = _begun(state) if _is_new_question(state) else {}
        update["usage"] = _added(None if _is_new_question(state) else state.get("usage"), reply)
        reason = self._spent(state) or "max_steps"
        answered = self._answered(state, reply, reason)
        skipped = unanswered(state["messages"], len(state["messages"]) - 1)
        return update | answered | {"messages": [*skipped, *answered["messages"]]}

    def _answered(self, state: State, reply: AIMessage, reason: StopReason) -> Update:
        answer = reply.text.strip()
        read = state.get("read_chunks", [])
        seen = union(state.get("seen_chunks", []), read)
        return {
            "messages": [reply],
            "answer": answer,
            "citations": parse_citations(answer, self._settings.index, seen, read),
            "stop_reason": reason,
        }


def _ask(model: ChatModel, prompt: list[AnyMessage], config: RunnableConfig) -> AIMessage:
    try:
        return model.invoke(prompt, config)
    except ValidationError as error:
        return unreadable(error)


async def _aask(model: ChatModel, prompt: list[AnyMessage], config: RunnableConfig) -> AIMessage:
    try:
        return await model.ainvoke(prompt, config)
    except ValidationError as error:
        return unreadable(error)


def _question_id(state: State) -> str:
    message = state["messages"][question_at(state["messages"])]
    return message.id or message.text


def _is_new_question(state: State) -> bool:
    """Tell whether the counts in the state belong to an earlier question, or to a run that has ended."""
    return bool(state.get("stop_reason")) or state.get("question_id") != _question_id(state)


def _begun(state: State) -> Update:
    """Return the state of a question's beginning; what was read in the conversation stays."""
    return {
        "question_id": _question_id(state),
        "steps": 0,
        "invalid_replies": 0,
        "trace": [],
        "answer": "",
        "citations": [],
        "stop_reason": None,
    }


def _steps(state: State) -> int:
    return 0 if _is_new_question(state) else state.get("steps", 0)


def _invalid_replies(state: State) -> int:
    return 0 if _is_new_question(state) else state.get("invalid_replies", 0)


def _record(state: State, name: str, arguments: dict[str, Any], result: ToolMessage) -> ToolRecord:
    artifact = result.artifact if isinstance(result.artifact, dict) else {}
    return ToolRecord(
        step=state.get("steps", 0),
        tool=name,
        arguments=arguments,
        chunk_ids=list(artifact.get("chunk_ids", ())),
        new_chunks=list(artifact.get("new_chunks", ())),
        retrieved_tokens=int(artifact.get("retrieved_tokens", 0)),
        error=result.text if result.status == "error" else None,
    )


def _added(usage: Usage | None, reply: AIMessage) -> Usage:
    """Add what a provider reports of one call."""
    total = usage or Usage(model_calls=0, input_tokens=0, cached_tokens=0, output_tokens=0, reasoning_tokens=0)
    reported = reply.usage_metadata or UsageMetadata(input_tokens=0, output_tokens=0, total_tokens=0)
    return Usage(
        model_calls=total["model_calls"] + 1,
        input_tokens=total["input_tokens"] + reported["input_tokens"],
        cached_tokens=total["cached_tokens"] + (reported.get("input_token_details", {}).get("cache_read") or 0),
        output_tokens=total["output_tokens"] + reported["output_tokens"],
        reasoning_tokens=total["reasoning_tokens"] + (reported.get("output_token_details", {}).get("reasoning") or 0),
    )
