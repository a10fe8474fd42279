"""The ReAct loop (paper, section 3.3): `agent` and `tools` alternate; `force_answer` runs when a budget is used up.

Everything about a run is read from its messages. The prompt is the latest earlier questions and answers, and the
current turn: the last question and all that follows it. The tools see the same turn, so what they call shown is in the
prompt.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langchain_core.messages.utils import trim_messages
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config, run_in_executor
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolCallTransformer
from langgraph.runtime import get_runtime
from langgraph.store.base import BaseStore
from langgraph.stream import CustomTransformer, UpdatesTransformer
from langgraph.types import All, Checkpointer, Command
from pydantic import ValidationError

from arag.graph import MAX_STEPS
from arag.graph.citations import find_shown_chunks, parse_citations, records
from arag.graph.context import AnyTool, Context, Loader, Resources, make_loader
from arag.graph.prompts import NO_ANSWER, forced_prompt, forced_question
from arag.graph.state import (
    InputState,
    OutputState,
    State,
    StopReason,
    as_sent,
    count_context_tokens,
    find_run,
    kind_of_reply,
    repair_reply,
    split_turn,
    union,
)
from arag.models.replies import mend_characters
from arag.retrieval.index import Index, open_index
from arag.retrieval.tokens import count_tokens
from arag.retrieval.tools import TOOL_NAMES, find_artifacts, find_held

LAST_STEPS = 4  # of the recursion limit: this step, `agent`, `tools` and a forced answer
_NOT_JSON = "The arguments of this call are not valid JSON: {!r}. Call the tool again with a JSON object."

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
        settings: Settings of `Context`: `top_k`, `presentation`, `system_prompt`, `max_steps`, `max_context_tokens`.

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
    builder.add_node("tools", Tools(load))
    builder.add_node("force_answer", Node(loop.ask_for_answer, loop.take_answer))
    builder.add_conditional_edges(START, loop.route, ["agent", "tools", "force_answer"])
    builder.add_conditional_edges("agent", loop.route_reply, ["agent", "tools", "force_answer", END])
    builder.add_conditional_edges("tools", loop.route, ["agent", "force_answer"])
    builder.add_edge("force_answer", END)
    # What `stream_events(version="v3")` reports in addition to messages and states.
    graph = builder.compile(transformers=[ToolCallTransformer, CustomTransformer, UpdatesTransformer], **options)
    return graph.with_config(recursion_limit=2 * MAX_STEPS + 3)  # two nodes a step, and a forced answer


# --- the nodes ---


class Node(Runnable[Any, Any]):
    """A node that calls a model, with the prompt that `prepare` returns, and updates the state as `finish` says.

    In asynchronous runs, both run in a thread. `RunnableLambda` would show every step twice in traces and events.
    """

    def __init__(
        self,
        prepare: Callable[[State], tuple[Runnable[Any, AIMessage], list[AnyMessage]]],
        finish: Callable[[State, AIMessage], dict[str, Any]],
    ) -> None:
        self._prepare = prepare
        self._finish = finish

    def invoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002
        """Run the node."""
        model, prompt = self._prepare(input)
        reply, began = AIMessage(""), time.perf_counter()
        with _ignoring_unreadable_replies():
            reply = model.invoke(prompt, config)
        return self._finish(input, _with_seconds(reply, began))

    async def ainvoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002
        """Run the node."""
        config = ensure_config(config)
        model, prompt = await run_in_executor(config, self._prepare, input)
        reply, began = AIMessage(""), time.perf_counter()
        with _ignoring_unreadable_replies():
            reply = await model.ainvoke(prompt, config)
        return await run_in_executor(config, self._finish, input, _with_seconds(reply, began))


@contextmanager
def _ignoring_unreadable_replies() -> Iterator[None]:
    """Let a reply that LangChain cannot read count as empty: a call's arguments are JSON, but not an object."""
    try:
        yield
    except ValidationError as error:
        if error.title != AIMessage.__name__:
            raise


def _with_seconds(message: Any, began: float) -> Any:
    metadata = message.response_metadata | {"seconds": time.perf_counter() - began}
    return message.model_copy(update={"response_metadata": metadata})


class Tools(Runnable[Any, Any]):
    """The node that runs the calls of a message, one after another: each sees what those before it have shown."""

    def __init__(self, load: Loader) -> None:
        self._load = load

    def invoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002
        """Run the node."""
        tools = self._load(get_runtime().context).tools
        done: list[ToolMessage | Command[Any]] = []
        for one_call in _split_calls(input, done):
            began = time.perf_counter()
            done += _list_results(tools.invoke(one_call, config), began)
        return _collect(input, done)

    async def ainvoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002
        """Run the node."""
        tools = (await run_in_executor(config, self._load, get_runtime().context)).tools
        done: list[ToolMessage | Command[Any]] = []
        for one_call in _split_calls(input, done):
            began = time.perf_counter()
            done += _list_results(await tools.ainvoke(one_call, config), began)
        return _collect(input, done)


def _split_calls(state: State, done: Sequence[ToolMessage | Command[Any]]) -> Iterator[Any]:
    """Yield `ToolNode`'s input for each call: the turn so far, with a message that has only this call."""
    *before, message = split_turn(state["messages"])[1]
    for call in cast("AIMessage", message).tool_calls:
        results = [each for each in done if isinstance(each, ToolMessage)]
        yield {**state, "messages": [*before, *results, message.model_copy(update={"tool_calls": [call]})]}


def _list_results(outcome: Any, began: float) -> Iterator[ToolMessage | Command[Any]]:
    """Yield the result of a call, or a tool's own commands."""
    for part in outcome if isinstance(outcome, list) else [outcome]:
        yield from [part] if isinstance(part, Command) else (_with_seconds(m, began) for m in part["messages"])


def _collect(state: State, done: Sequence[ToolMessage | Command[Any]]) -> Any:
    """Return the node's update, with an error as the result of each call whose arguments are not JSON."""
    messages = [each for each in done if isinstance(each, ToolMessage)]
    for call in cast("AIMessage", split_turn(state["messages"])[1][-1]).invalid_tool_calls:
        text, name = _NOT_JSON.format((call["args"] or "")[:200]), call["name"] or "unknown"
        messages.append(ToolMessage(text, tool_call_id=call["id"], name=name, status="error"))
    read = [chunk_id for artifact in find_artifacts(messages) for chunk_id in artifact["new_chunks"]]
    update = {"messages": messages, "read_chunks": read}
    commands = [each for each in done if isinstance(each, Command)]
    return [update, *commands] if commands else update


class _Loop:
    """What is asked before and done after the calls of a model, and the routes between the nodes."""

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
        return cast("list[AnyMessage]", fitting), as_sent(turn)

    def route(self, state: State) -> Literal["agent", "tools", "force_answer"]:
        """Run the calls that a conversation ends with, if it does; else ask the agent while every budget allows it."""
        if kind_of_reply(split_turn(state["messages"])[1][-1]) == "calls":
            return "tools"
        if get_runtime() is None:  # a person edits the thread: the next run has its own budgets
            return "agent"
        return "force_answer" if self._find_spent_budget(state) else "agent"

    def route_reply(self, state: State) -> Literal["agent", "tools", "force_answer", "__end__"]:
        """End with an answer; an empty reply spends the budget."""
        return "__end__" if kind_of_reply(state["messages"][-1]) == "answer" else self.route(state)

    def _find_spent_budget(self, state: State) -> StopReason | None:
        """Return the budget that the run has used up, if any."""
        resources = self._resources()
        replies = [m for m in find_run(split_turn(state["messages"])[1]) if isinstance(m, AIMessage)]
        if replies and kind_of_reply(replies[-1]) == "empty":
            return "empty_reply"
        if len(replies) >= resources.settings.max_steps or state["remaining_steps"] < LAST_STEPS:
            return "max_steps"
        earlier, turn = self._split(state)
        return "token_budget" if count_context_tokens([*earlier, *turn]) > resources.room else None

    def ask_agent(self, state: State) -> tuple[Runnable[Any, AIMessage], list[AnyMessage]]:
        """Return the model with its tools, and the conversation."""
        resources = self._resources()
        earlier, turn = self._split(state)
        return resources.searcher, [SystemMessage(resources.system_prompt), *earlier, *turn]

    def take_reply(self, state: State, reply: AIMessage) -> dict[str, Any]:
        """Store a reply; if it calls no tool, its text is the answer."""
        reply = repair_reply(reply, state["messages"])
        return self._end(state, reply, "answered") if kind_of_reply(reply) == "answer" else {"messages": [reply]}

    def ask_for_answer(self, state: State) -> tuple[Runnable[Any, AIMessage], list[AnyMessage]]:
        """Return the model without tools, and a prompt with the turn's evidence and no tool calls."""
        resources = self._resources()
        earlier, turn = self._split(state)
        head = [SystemMessage(forced_prompt(resources.settings.system_prompt)), *earlier]
        budget = resources.settings.max_context_tokens
        room = budget - budget // 10 - count_context_tokens([*head, turn[0]])
        results = [message.text for message in turn if isinstance(message, ToolMessage) and message.status != "error"]
        evidence = _keep_end("\n\n".join(dict.fromkeys(results)), room)
        question = forced_question(mend_characters(turn[0].text), evidence)
        return resources.model, [*head, HumanMessage(question)]

    def take_answer(self, state: State, reply: AIMessage) -> dict[str, Any]:
        """Store a forced answer; some models call tools that they do not have."""
        text = reply.text.strip()
        changes = {"content": text or NO_ANSWER, "tool_calls": [], "invalid_tool_calls": [], "additional_kwargs": {}}
        # What has another text than the reply is another message: else, it would not be streamed.
        reply = reply.model_copy(update={**changes, "id": reply.id if text else None})
        reply = repair_reply(reply, state["messages"])
        return self._end(state, reply, self._find_spent_budget(state) or "max_steps")

    def _end(self, state: State, reply: AIMessage, reason: StopReason) -> dict[str, Any]:
        index, messages = self._resources().index, state["messages"]
        run = find_run(split_turn(messages)[1])
        read = union(state.get("read_chunks"), find_held(messages, index).chunks)
        answer = reply.text.strip()
        empty = [RemoveMessage(cast("str", message.id)) for message in run if kind_of_reply(message) == "empty"]
        return {
            "messages": [*empty, reply],
            "answer": answer,
            "citations": parse_citations(answer, index, union(read, find_shown_chunks(messages)), read),
            "stop_reason": reason,
            "read_chunks": read,
            **records(run, reply, is_forced=reason != "answered"),
        }


def _keep_end(text: str, room: int) -> str:
    """Return as much of the end of a text as fits into `room` tokens."""
    while text and (tokens := count_tokens(text)) > room:
        size = min(max(room, 0) * len(text) // tokens, len(text) - 1)
        text = text[len(text) - size :]
    return text
