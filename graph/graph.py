"""The ReAct loop (paper, section 3.3): `agent` and `tools` in turn, and `force_answer` when a budget is used up."""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from typing import Any, TypeAlias

import httpx
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Checkpointer, RetryPolicy

from arag.graph.models import load_model
from arag.graph.nodes import ChatModel, Nodes, Settings
from arag.graph.prompts import system_prompt as default_system_prompt
from arag.graph.state import InputState, OutputState, State
from arag.retrieval.errors import InputError
from arag.retrieval.index import Index
from arag.retrieval.tokens import count_tokens
from arag.retrieval.tools import TOOL_NAMES, make_tools

MAX_STEPS = 15
MAX_CONTEXT_TOKENS = 128_000
MAX_INVALID_REPLIES = 3
FEWEST_CONTEXT_TOKENS = 2_000
_FEWEST_FREE_TOKENS = 500  # that a system prompt and the tools must leave for the conversation

ARAGAgent: TypeAlias = CompiledStateGraph[State, None, InputState, OutputState]


def create_arag_agent(
    model: str | BaseChatModel,
    index: Index,
    *,
    tools: Sequence[str] = TOOL_NAMES,
    top_k: int = 5,
    system_prompt: str | None = None,
    max_steps: int = MAX_STEPS,
    max_context_tokens: int = MAX_CONTEXT_TOKENS,
    max_invalid_replies: int = MAX_INVALID_REPLIES,
    checkpointer: Checkpointer = None,
    store: BaseStore | None = None,
    name: str = "arag",
) -> ARAGAgent:
    """Make an agent that answers questions from an index.

    It searches until the model answers or a budget is used up; then the model is asked, without tools, to answer
    from what was gathered, and `stop_reason` says so. Any recursion limit of 3 or more is safe: the answer is
    forced before it is reached.

    Args:
        model: A chat model that calls tools, or a string for `load_model`.
        index: The index to search.
        tools: Which retrieval tools the model gets; the system prompt names these only.
        top_k: How many chunks a search returns unless the model asks for another number, 1 to 20.
        system_prompt: Replaces the default one.
        max_steps: Most model calls of a question's search, at least 1; the forced answer comes on top.
        max_context_tokens: Most tokens of the model's context.
        max_invalid_replies: Most replies in a row without a text or a usable tool call.
        checkpointer: Keeps conversations, for several questions in a thread and for resuming after an error.
        store: LangGraph's long-term store, for tools that use one.
        name: The graph's name, for composing it into others.

    Returns:
        A compiled graph. Its input is `messages`; its output adds `answer`, `citations`, `stop_reason`, `steps`,
        `read_chunks`, `trace` and `usage`.

    Raises:
        InputError: A setting is out of bounds.
        ModelError: The model string is not valid, or the model cannot be made.
    """
    if max_steps < 1:
        raise InputError(f"max_steps is {max_steps}: it must be at least 1")
    if max_context_tokens < FEWEST_CONTEXT_TOKENS:
        raise InputError(f"max_context_tokens is {max_context_tokens}: it must be at least {FEWEST_CONTEXT_TOKENS}")
    if max_invalid_replies < 1:
        raise InputError(f"max_invalid_replies is {max_invalid_replies}: it must be at least 1")
    chat_model = load_model(model)
    bound = make_tools(index, names=tools, top_k=top_k)
    prompt = default_system_prompt(tools) if system_prompt is None else system_prompt
    schemas = json.dumps([convert_to_openai_tool(tool) for tool in bound])
    room = max_context_tokens - count_tokens(prompt) - count_tokens(schemas)
    if room < _FEWEST_FREE_TOKENS:
        raise InputError(
            f"the system prompt and the tools leave {room} of max_context_tokens ({max_context_tokens}) to the "
            f"conversation: it needs at least {_FEWEST_FREE_TOKENS}"
        )
    nodes = Nodes(
        Settings(
            model=chat_model,
            searcher=_bind(chat_model, bound),
            index=index,
            tools={tool.name: tool for tool in bound},
            system_prompt=prompt,
            max_steps=max_steps,
            max_context_tokens=max_context_tokens,
            room=room,
            max_invalid_replies=max_invalid_replies,
        )
    )
    builder = StateGraph(State, input_schema=InputState, output_schema=OutputState)
    retry = RetryPolicy(retry_on=_is_transient)
    builder.add_node("agent", _both(nodes.agent, nodes.aagent, "agent"), retry_policy=retry)
    builder.add_node("tools", nodes.tools)
    builder.add_node("force_answer", _both(nodes.force_answer, nodes.aforce_answer, "force_answer"), retry_policy=retry)
    builder.add_conditional_edges(START, nodes.next_step, ["agent", "force_answer"])
    builder.add_conditional_edges("agent", nodes.after_agent, ["tools", "agent", "force_answer", END])
    builder.add_conditional_edges("tools", nodes.next_step, ["agent", "force_answer"])
    builder.add_edge("force_answer", END)
    graph = builder.compile(checkpointer=checkpointer, store=store, name=name)
    return graph.with_config(recursion_limit=recursion_limit(max_steps))


def recursion_limit(max_steps: int) -> int:
    """Return the recursion limit that so many steps need: an agent and a tools node each, and a forced answer."""
    return 2 * max_steps + 3


def _both(function: Any, coroutine: Any, name: str) -> RunnableLambda[Any, Any]:
    return RunnableLambda(function, coroutine, name=name)


def _bind(model: BaseChatModel, tools: Sequence[BaseTool]) -> ChatModel:
    """Bind the tools, asking for one call at a time where the provider can be told so."""
    options: dict[str, Any] = {}
    if "parallel_tool_calls" in inspect.signature(type(model).bind_tools).parameters:
        options["parallel_tool_calls"] = False
    return model.bind_tools(tools, **options)


def _is_transient(error: Exception) -> bool:
    """Tell whether a model call may succeed when tried again.

    The clients of OpenAI, Anthropic and others try again by themselves, by the server's own advice: their errors
    have been retried already. This is for those that do not.
    """
    if isinstance(error, httpx.HTTPStatusError):
        return error.response.status_code in {408, 409, 429} or error.response.status_code >= 500
    return isinstance(error, httpx.TransportError | ConnectionError | TimeoutError)
