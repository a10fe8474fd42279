"""What a run works with: the index, the model and the tools that its settings name."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, TypeAlias

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.tools import tool as create_tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.prebuilt import ToolNode

from arag.errors import InputError, ModelError
from arag.graph.context import Context
from arag.graph.messages import MESSAGE_TOKENS
from arag.graph.prompts import system_prompt
from arag.models.chat import load_model
from arag.retrieval.index import Index
from arag.retrieval.scope import Scope
from arag.retrieval.tokens import count_tokens
from arag.retrieval.tools import TOOL_NAMES, RetrievalTool, make_tools

_MIN_ROOM_TOKENS = 500  # that the system prompt and the tools must leave for the conversation

AnyTool: TypeAlias = str | type[RetrievalTool] | BaseTool | Callable[..., Any]


@dataclass(frozen=True)
class Resources:
    """What a run works with.

    Attributes:
        settings: The agent's settings, changed by the run's context.
        index: The index, limited to the run's scopes.
        model: The model, for forced answers.
        searcher: The model with its tools bound.
        tools: Runs the tools.
        system_prompt: The system prompt of the search.
        room: Tokens of the context that the system prompt and the tools' schemas leave for the conversation.
    """

    settings: Context
    index: Index
    model: BaseChatModel
    searcher: Runnable[Any, AIMessage]
    tools: ToolNode
    system_prompt: str
    room: int


class Loader:
    """Loads what runs work with, and keeps it for later runs with the same context.

    Args:
        model: The agent's model, or its name.
        open_agent_index: Opens the agent's index.
        tools: The agent's tools.
        settings: The agent's other settings.
        find_user_scope: Returns the scope of the user whose run it is, or None if users have none.
    """

    def __init__(
        self,
        model: str | BaseChatModel,
        open_agent_index: Callable[[], Index],
        tools: Sequence[AnyTool] = TOOL_NAMES,
        settings: Context | None = None,
        find_user_scope: Callable[[], Scope | None] = lambda: None,
    ) -> None:
        if isinstance(tools, str):
            raise InputError(f"tools is the string {tools!r}: give a list of tools")
        self._model = model
        self._open_index = cache(open_agent_index)
        self._tools = tools
        self._settings = settings or Context()
        self._find_user_scope = find_user_scope
        self._load = lru_cache(64)(self._load_anew)
        self._limit = lru_cache(256)(Index.limited_to)

    def __call__(self, context: object) -> Resources:
        """Return what a run works with.

        Args:
            context: The run's context, or None.

        Raises:
            InputError: A setting or a tool is not valid, or there is too little room.
            IndexNotFoundError: There is no index.
            ModelError: The model cannot be created, or cannot call tools.
        """
        chosen = isinstance(context, Context) and "tools" in context.model_fields_set
        return self._load(self._settings.merge(context), chosen, self._find_user_scope())

    def _load_anew(self, settings: Context, are_tools_chosen: bool, user_scope: Scope | None) -> Resources:
        whole = index = self._open_index()
        for scope in (user_scope, self._settings.scope, settings.scope):
            index = index if scope is None else self._limit(index, scope)
        named = [tool for tool in self._tools if isinstance(tool, str)]
        others = [tool for tool in self._tools if not isinstance(tool, str)]
        tools = _make_tools([*(settings.tools if are_tools_chosen else named), *others], settings, whole, index)
        model = load_model(settings.model or self._model)
        prompt = system_prompt(tools) if settings.system_prompt is None else settings.system_prompt
        schemas = json.dumps([convert_to_openai_tool(tool) for tool in tools])
        room = settings.max_context_tokens - count_tokens(prompt) - MESSAGE_TOKENS - count_tokens(schemas)
        if room < _MIN_ROOM_TOKENS:
            raise InputError(
                f"the system prompt and the tools leave {room} of max_context_tokens ({settings.max_context_tokens}) "
                f"for the conversation, which needs at least {_MIN_ROOM_TOKENS}"
            )
        return Resources(settings, index, model, _bind(model, tools), ToolNode(tools), prompt, room)


def _make_tools(given: Sequence[AnyTool], settings: Context, whole: Index, index: Index) -> list[BaseTool]:
    """Make the retrieval tools, and add the caller's own; those of ours over the whole index are limited, too."""
    ours = [t for t in given if isinstance(t, str) or (isinstance(t, type) and issubclass(t, RetrievalTool))]
    if not ours:
        raise InputError(f"tools has no retrieval tool: include one or more of {', '.join(TOOL_NAMES)}")
    tools: list[BaseTool] = [
        *make_tools(index, names=ours, top_k=settings.top_k, presentation=settings.presentation),
        *(_make_own_tool(tool) for tool in given if tool not in ours),
    ]
    names = [tool.name for tool in tools]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise InputError(f"duplicate tool name: {', '.join(sorted(repeated))}")
    return [
        tool.model_copy(update={"index": index}) if isinstance(tool, RetrievalTool) and tool.index is whole else tool
        for tool in tools
    ]


def _make_own_tool(given: Any) -> BaseTool:
    if not isinstance(given, BaseTool) and not callable(given):
        raise InputError(f"{given!r} is not a tool: give names of retrieval tools, LangChain tools or functions")
    try:
        tool = given if isinstance(given, BaseTool) else create_tool(given)
    except ValueError as error:  # for example, a function without a docstring
        raise InputError(f"{given!r} cannot be used as a tool: {error}") from error
    if tool.return_direct:
        raise InputError(f"the tool {tool.name} has return_direct=True: here the model always writes the answer")
    return tool


def _bind(model: BaseChatModel, tools: Sequence[BaseTool]) -> Runnable[Any, AIMessage]:
    """Bind the tools, asking for one call at a time if the provider supports that."""
    parameters = inspect.signature(type(model).bind_tools).parameters
    options: dict[str, Any] = {"parallel_tool_calls": False} if "parallel_tool_calls" in parameters else {}
    try:
        return model.bind_tools(tools, **options)
    except NotImplementedError as error:
        raise ModelError(f"{type(model).__name__} cannot be used: a model that calls tools is needed") from error
