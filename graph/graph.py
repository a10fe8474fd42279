"""The ReAct loop (paper, section 3.3): `agent` and `tools` in turn, and `force_answer` when a budget is used up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from langchain_core.language_models import BaseChatModel
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolCallTransformer
from langgraph.store.base import BaseStore
from langgraph.stream import CustomTransformer, UpdatesTransformer
from langgraph.types import All, Checkpointer, RetryPolicy

from arag.graph.context import MOST_STEPS, Context
from arag.graph.nodes import Node, Nodes
from arag.graph.settings import (
    MAX_CONTEXT_TOKENS,
    MAX_INVALID_REPLIES,
    MAX_STEPS,
    AnyTool,
    Defaults,
    SettingsOfRuns,
)
from arag.graph.state import InputState, OutputState, State
from arag.retrieval.index import Index
from arag.retrieval.tools import TOOL_NAMES

_HTTP_CLIENTS = {"httpx", "httpx2"}  # which of them a provider's client is built on differs

ARAGAgent: TypeAlias = CompiledStateGraph[State, Context, InputState, OutputState]


def create_arag_agent(
    model: str | BaseChatModel,
    index: Index,
    *,
    tools: Sequence[AnyTool] = TOOL_NAMES,
    top_k: int = 5,
    system_prompt: str | None = None,
    max_steps: int = MAX_STEPS,
    max_context_tokens: int = MAX_CONTEXT_TOKENS,
    max_invalid_replies: int = MAX_INVALID_REPLIES,
    checkpointer: Checkpointer = None,
    store: BaseStore | None = None,
    interrupt_before: All | list[str] | None = None,
    interrupt_after: All | list[str] | None = None,
    name: str = "arag",
) -> ARAGAgent:
    """Make an agent that answers questions from an index.

    It searches until the model answers or a budget is used up; then the model is asked, without tools, to answer
    from what was gathered, and `stop_reason` says so. Any recursion limit of 3 or more is safe: the answer is
    forced before it is reached.

    A run may change the agent's settings by its context, `agent.invoke(..., context={"max_steps": 5})`: see
    `Context`.

    Args:
        model: A chat model that calls tools, or a string for `load_model`.
        index: The index to search.
        tools: Which retrieval tools the model gets, by name, and tools of your own beside them: LangChain tools, or
            functions with a docstring. The system prompt names these only. The calls of one message are made one
            after another in one step: where one interrupts or fails, a resumed run makes all of them again.
        top_k: How many chunks a search returns unless the model asks for another number, 1 to 20.
        system_prompt: Replaces the default one.
        max_steps: Most model calls of a question's search, at least 1; the forced answer comes on top.
        max_context_tokens: Most tokens of the model's context.
        max_invalid_replies: Most replies in a row without a text or a usable tool call.
        checkpointer: Keeps conversations, for several questions in a thread and for resuming after an error.
        store: LangGraph's long-term store, for tools that use one.
        interrupt_before: Nodes before which a run stops, for a person to look: `agent`, `tools`, `force_answer`.
        interrupt_after: Nodes after which a run stops.
        name: The graph's name, for composing it into others.

    Returns:
        A compiled graph. Its input is `messages`; its output adds `answer`, `citations`, `stop_reason`, `steps`,
        `read_chunks`, `trace`, `model_calls` and `usage`.

    Raises:
        InputError: A setting is out of bounds.
        ModelError: The model string is not valid, or the model cannot be made.
    """
    defaults = Defaults(
        model=model,
        index=index,
        tools=tools,
        top_k=top_k,
        system_prompt=system_prompt,
        max_steps=max_steps,
        max_context_tokens=max_context_tokens,
        max_invalid_replies=max_invalid_replies,
    )
    settings = SettingsOfRuns(defaults)
    settings(None)  # says what is wrong now, not in the first run
    return build_graph(
        settings,
        checkpointer=checkpointer,
        store=store,
        interrupt_before=interrupt_before,
        interrupt_after=interrupt_after,
        name=name,
    )


def build_graph(
    settings: SettingsOfRuns,
    *,
    checkpointer: Checkpointer = None,
    store: BaseStore | None = None,
    interrupt_before: All | list[str] | None = None,
    interrupt_after: All | list[str] | None = None,
    name: str = "arag",
) -> ARAGAgent:
    """Compile the graph; nothing is loaded before a run needs it.

    Args:
        settings: What makes the settings of a run.
        checkpointer: As `create_arag_agent` has it, and so are the others.
        store: See there.
        interrupt_before: See there.
        interrupt_after: See there.
        name: See there.
    """
    nodes = Nodes(settings)
    builder = StateGraph(State, context_schema=Context, input_schema=InputState, output_schema=OutputState)
    retry = RetryPolicy(retry_on=_is_transient)
    builder.add_node("agent", Node(nodes.agent, nodes.aagent), retry_policy=retry)
    builder.add_node("tools", Node(nodes.tools, nodes.atools))
    builder.add_node("force_answer", Node(nodes.force_answer, nodes.aforce_answer), retry_policy=retry)
    builder.add_conditional_edges(START, nodes.first_step, ["agent", "force_answer"])
    builder.add_conditional_edges("agent", nodes.after_agent, ["tools", "agent", "force_answer", END])
    builder.add_conditional_edges("tools", nodes.next_step, ["agent", "force_answer"])
    builder.add_edge("force_answer", END)
    graph = builder.compile(
        checkpointer=checkpointer,
        store=store,
        interrupt_before=interrupt_before,
        interrupt_after=interrupt_after,
        name=name,
        # What `stream_events(version="v3")` tells beside messages and states.
        transformers=[ToolCallTransformer, CustomTransformer, UpdatesTransformer],
    )
    # The graph counts its steps itself; the limit leaves room for as many as a run's context may ask for.
    return graph.with_config(recursion_limit=recursion_limit(max(settings.defaults.max_steps, MOST_STEPS)))


def recursion_limit(max_steps: int) -> int:
    """Return the recursion limit that so many steps need: an agent and a tools node each, and a forced answer."""
    return 2 * max_steps + 3


def _is_transient(error: Exception) -> bool:
    """Tell whether a model call may succeed when tried again.

    The clients of OpenAI, Anthropic and others try again by themselves, by the server's own advice: their errors
    have been retried already. This is for those that do not, and for connections that break off in mid-stream.
    """
    status: int = getattr(getattr(error, "response", None), "status_code", 0)
    kinds = {kind.__name__ for kind in type(error).__mro__ if kind.__module__.partition(".")[0] in _HTTP_CLIENTS}
    if "HTTPStatusError" in kinds:
        return status in {408, 409, 429} or status >= 500
    return "TransportError" in kinds or isinstance(error, ConnectionError | TimeoutError)
