"""The ReAct loop (paper, section 3.3): `agent` and `tools` alternate; `force_answer` runs when a budget is used up.

Everything about a run is read from its messages. The prompt is the latest earlier questions and answers, and the
current turn: the last question and all that follows it. The tools see the same turn, so what they call shown is in the
prompt.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langchain_core.messages.utils import trim_messages
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import run_in_executor
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolCallTransformer
from langgraph.prebuilt.tool_node import ToolCallWithContext
from langgraph.runtime import get_runtime
from langgraph.store.base import BaseStore
from langgraph.stream import CustomTransformer, UpdatesTransformer
from langgraph.types import All, Checkpointer, Command
from pydantic import ValidationError

from arag.graph import MAX_STEPS
from arag.graph.citations import parse_citations
from arag.graph.context import AnyTool, Context, Loader, Resources, make_loader
from arag.graph.prompts import NO_ANSWER, forced_prompt, forced_question
from arag.graph.records import find_seen, records
from arag.graph.state import (
    InputState,
    OutputState,
    State,
    StopReason,
    as_sent,
    count_context_tokens,
    drop_orphans,
    find_run,
    kind_of_reply,
    repair_reply,
    split_turn,
    union,
)
from arag.retrieval.index import Index, open_index
from arag.retrieval.tools.compact import TOOL_NAMES
from arag.retrieval.tools.seen import find_artifacts, find_seen_chunks
from arag.text.normalise import CUT
from arag.text.surrogates import replace_surrogates
from arag.text.tokens import count_tokens

LAST_STEPS = 4  # of the recursion limit: this step, `agent`, `tools` and a forced answer
_NOT_JSON = "The arguments of this call are not valid JSON: {!r}. Call the tool again with a JSON object."

Calls: TypeAlias = tuple[Runnable[Any, Any], Iterable[Any]]  # what a node calls, and the input of each call
ARAGAgent: TypeAlias = CompiledStateGraph[State, Context, InputState, OutputState]


def create_arag_agent(
    model: str | BaseChatModel,
    index: Index | str | Path,
    *,
    tools: Sequence[AnyTool] = TOOL_NAMES,
    checkpointer: Checkpointer = None,
    store: BaseStore | None = None,
    interrupt_before: All | list[str] | None = None,
    interrupt_after: All | list[str] | None = None,
    name: str = "arag",
    **settings: Any,
) -> ARAGAgent:
    """Create an agent that answers questions from an index.

    It searches until the model answers or a budget is used up. Then the model must answer without tools from what was
    gathered, and `stop_reason` names the budget. Any recursion limit of 3 or more is safe: the answer is forced before
    it is reached. A run can change the agent's settings with its context: see `Context`.

    Args:
        model: A chat model that calls tools, or a string for `load_model`.
        index: The index to search, or where it is (a folder, or the address of a PostgreSQL database): then it stays
            open as long as the agent is used.
        tools: Retrieval tools by name, subclasses of `RetrievalTool`, and your own LangChain tools or functions with a
            docstring. Chunks that your own tools show count as seen if a result's artifact has their ids as
            `chunk_ids`. The calls of one message run one after another in one step: if one interrupts or fails, a
            resumed run repeats all of them.
        checkpointer: Saves conversations, for several questions in a thread and for resuming after an error.
        store: LangGraph's long-term store, for tools that use one.
        interrupt_before: Nodes before which a run pauses for a person: `agent`, `tools`, `force_answer`.
        interrupt_after: Nodes after which a run pauses.
        name: The graph's name, for use inside other graphs.
        settings: Settings of `Context`: `top_k`, `system_prompt`, `max_steps`, `max_context_tokens`.

    Returns:
        A compiled graph. Its input is `messages`; `OutputState` describes its output.

    Raises:
        InputError: A setting is unknown or out of bounds.
        IndexNotFoundError: There is no index there.
        ModelError: The model string is not valid, or the model cannot be created.

    Example:
        >>> agent = create_arag_agent("extractive", index, max_steps=10)
        >>> state = agent.invoke({"messages": [("user", "Who was the engineer of the Vellin Light?")]})
        >>> print(state["answer"])
        The engineer of the Vellin Light was Corrin Ashe-Woldar, ... [places/vellin-light.md:0] ...
    """
    opened = index if isinstance(index, Index) else open_index(index)
    load = make_loader(model, lambda: opened, tools, Context(**settings))
    load(None)  # reports errors now, not in the first run
    options = {"checkpointer": checkpointer, "store": store, "name": name}
    return build_graph(load, interrupt_before=interrupt_before, interrupt_after=interrupt_after, **options)


def build_graph(load: Loader, **options: Any) -> ARAGAgent:
    """Compile the graph, with options of `StateGraph.compile`; nothing is loaded before a run needs it."""
    loop = _Loop(load)
    builder = StateGraph(State, context_schema=Context, input_schema=InputState, output_schema=OutputState)
    builder.add_node("agent", Node(loop.ask_agent, loop.take_reply))
    builder.add_node("tools", Node(loop.call_tools, loop.take_results))
    builder.add_node("force_answer", Node(loop.ask_for_answer, loop.take_answer))
    builder.add_conditional_edges(START, loop.route, ["agent", "tools", "force_answer"])
    builder.add_conditional_edges("agent", loop.route_reply, ["agent", "tools", "force_answer", END])
    builder.add_conditional_edges("tools", loop.route, ["agent", "force_answer"])
    builder.add_edge("force_answer", END)
    # What event streams, also those of LangGraph's server, report in addition to messages and states.
    graph = builder.compile(transformers=[ToolCallTransformer, CustomTransformer, UpdatesTransformer], **options)
    return graph.with_config(recursion_limit=2 * MAX_STEPS + 3)  # two nodes a step, and a forced answer


# --- the nodes ---


class Node(Runnable[Any, Any]):
    """A node that calls a model, or tools one after another.

    `prepare` returns what to call and the input of each call, `finish` the update of the state. Both get the state and
    the list of results, which grows with each call. In asynchronous runs, both run in a thread. `RunnableLambda` would
    show every step twice in traces and events.
    """

    def __init__(self, prepare: Callable[..., Calls], finish: Callable[..., Any]) -> None:
        self._prepare = prepare
        self._finish = finish

    def invoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002
        """Run the node."""
        results: list[Any] = []
        callee, inputs = self._prepare(input, results)
        for each in inputs:
            with _recording(results) as outcomes:
                outcomes.append(callee.invoke(each, config))
        return self._finish(input, results)

    async def ainvoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002
        """Run the node."""
        results: list[Any] = []
        callee, inputs = await run_in_executor(config, self._prepare, input, results)
        for each in inputs:
            with _recording(results) as outcomes:
                outcomes.append(await callee.ainvoke(each, config))
        return await run_in_executor(config, self._finish, input, results)


@contextmanager
def _recording(results: list[Any]) -> Iterator[list[Any]]:
    """Add to the results what a call returns: messages, with the seconds that it took, and tools' own commands."""
    outcomes: list[Any] = []
    began = time.perf_counter()
    try:
        yield outcomes
    except ValidationError as error:
        if error.title != AIMessage.__name__:
            raise
        # LangChain cannot read a reply whose call has arguments that are JSON, but not an object: it counts as empty.
        outcomes = [AIMessage("")]
    seconds = {"seconds": time.perf_counter() - began}
    for part in outcomes[0] if isinstance(outcomes[0], list) else outcomes:
        if isinstance(part, Command):
            results.append(part)
        else:
            messages = part["messages"] if isinstance(part, dict) else [part]
            # A reply that an experiment has stored says itself how long it took.
            results += [m.model_copy(update={"response_metadata": seconds | m.response_metadata}) for m in messages]


class _Loop:
    """What the nodes call, what they do with the results, and the routes between them."""

    def __init__(self, load: Loader) -> None:
        self._load = load

    def _resources(self) -> Resources:
        return self._load(get_runtime().context)

    def _split(self, state: State) -> tuple[list[AnyMessage], list[AnyMessage]]:
        """Return the latest earlier questions and answers, in at most half of the room, and the current turn."""
        earlier, turn = split_turn(state["messages"])
        half = self._resources().room // 2
        fitting = trim_messages(
            earlier, max_tokens=half, token_counter=count_context_tokens, start_on="human", include_system=True
        )
        return as_sent(cast("list[AnyMessage]", fitting)), as_sent(turn)

    def route(self, state: State) -> Literal["agent", "tools", "force_answer"]:
        """Run the calls that a conversation ends with, if it does; else ask the agent while every budget allows it."""
        if kind_of_reply(split_turn(state["messages"])[1][-1]) == "calls":
            return "tools"
        if get_runtime() is None:  # a person edits the thread: the next run has its own budgets
            return "agent"
        return "force_answer" if self._find_spent_budget(state) else "agent"

    def route_reply(self, state: State) -> Literal["agent", "tools", "force_answer", "__end__"]:
        """End with an answer, or where a person has cleared the thread; an empty reply spends the budget."""
        messages = state["messages"]
        return "__end__" if not messages or kind_of_reply(messages[-1]) == "answer" else self.route(state)

    def _find_spent_budget(self, state: State) -> StopReason | None:
        """Return the budget that the run has used up, if any."""
        resources = self._resources()
        replies = [m for m in find_run(split_turn(state["messages"])[1]) if isinstance(m, AIMessage)]
        if replies and kind_of_reply(replies[-1]) == "empty":
            return "empty_reply"
        if len(replies) >= resources.settings.max_steps:
            return "max_steps"
        earlier, turn = self._split(state)
        if count_context_tokens([*earlier, *turn]) > resources.room:
            return "token_budget"
        return "max_steps" if state["remaining_steps"] < LAST_STEPS else None

    def ask_agent(self, state: State, _: list[Any]) -> Calls:
        """Return the model with its tools, and the conversation."""
        resources = self._resources()
        earlier, turn = self._split(state)
        return resources.searcher, [[SystemMessage(resources.system_prompt), *earlier, *turn]]

    def take_reply(self, state: State, replies: list[AIMessage]) -> dict[str, Any]:
        """Store a reply; if it calls no tool, its text is the answer."""
        reply = repair_reply(replies[0], state["messages"])
        return self._end(state, reply, "answered") if kind_of_reply(reply) == "answer" else {"messages": [reply]}

    def call_tools(self, state: State, results: list[Any]) -> Calls:
        """Return the tools, and each call, with the turn for tools that ask for it; the call's message is the last."""
        *before, message = drop_orphans(split_turn(state["messages"])[1])
        inputs = (
            ToolCallWithContext(
                tool_call=call,
                __type="tool_call_with_context",
                state={**state, "messages": [*before, *_messages(results), message]},
            )
            for call in cast("AIMessage", message).tool_calls
        )
        return self._resources().tools, inputs

    def take_results(self, state: State, results: list[Any]) -> Any:
        """Store the results, with an error for each call whose arguments are not JSON; pass on tools' own commands."""
        messages = _messages(results)
        for call in cast("AIMessage", split_turn(state["messages"])[1][-1]).invalid_tool_calls:
            text, name = _NOT_JSON.format((call["args"] or "")[:200]), call["name"] or "unknown"
            messages.append(ToolMessage(text, tool_call_id=call["id"], name=name, status="error"))
        read = [chunk_id for artifact in find_artifacts(messages) for chunk_id in artifact["new_chunks"]]
        update = {"messages": messages, "read_chunks": read}
        commands = [each for each in results if isinstance(each, Command)]
        return [update, *commands] if commands else update

    def ask_for_answer(self, state: State, _: list[Any]) -> Calls:
        """Return the model without tools, and a prompt with the turn's evidence and no tool calls."""
        resources = self._resources()
        earlier, turn = self._split(state)
        head = [SystemMessage(forced_prompt(resources.settings.system_prompt)), *earlier]
        budget = resources.settings.max_context_tokens
        room = budget - budget // 10 - count_context_tokens([*head, turn[0]])
        results = [message.text for message in turn if isinstance(message, ToolMessage) and message.status != "error"]
        evidence = _keep_end("\n\n".join(dict.fromkeys(results)), room)
        question = forced_question(replace_surrogates(turn[0].text), evidence)
        return resources.model, [[*head, HumanMessage(question)]]

    def take_answer(self, state: State, replies: list[AIMessage]) -> dict[str, Any]:
        """Store a forced answer; some models call tools that they do not have."""
        reply = repair_reply(replies[0], state["messages"])
        text = reply.text.strip()
        changes = {"content": text or NO_ANSWER, "tool_calls": [], "invalid_tool_calls": [], "additional_kwargs": {}}
        # What has another text than the reply is another message: else, it would not be streamed.
        answer = reply.model_copy(update={**changes, "id": reply.id if text else None})
        return self._end(state, answer, self._find_spent_budget(state) or "max_steps")

    def _end(self, state: State, reply: AIMessage, reason: StopReason) -> dict[str, Any]:
        index, messages = self._resources().index, state["messages"]
        run = find_run(split_turn(messages)[1])
        read = union(state.get("read_chunks"), find_seen_chunks(messages, index).whole)
        answer = reply.text.strip()
        empty = [RemoveMessage(cast("str", message.id)) for message in run if kind_of_reply(message) == "empty"]
        return {
            "messages": [*empty, reply],
            "answer": answer,
            "citations": parse_citations(answer, index, union(read, find_seen(messages, index)), read),
            "stop_reason": reason,
            "read_chunks": read,
            **records(run, reply, is_forced=reason != "answered"),
        }


def _messages(results: Iterable[ToolMessage | Command[Any]]) -> list[ToolMessage]:
    return [each for each in results if not isinstance(each, Command)]


def _keep_end(text: str, room: int) -> str:
    """Return as much of the end of a text as fits into `room` tokens, behind `…` if it is cut."""
    kept = text
    while kept and (tokens := count_tokens(kept)) > room:
        size = min(max(room, 0) * len(kept) // tokens, len(kept) - 1)
        kept = kept[len(kept) - size :]
    return kept if kept == text else f"{CUT}{kept}"
