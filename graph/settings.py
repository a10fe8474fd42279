"""The agent's settings, as changed by a run's context, and the resources that they name."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, TypeAlias, get_args
from weakref import WeakValueDictionary

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, SystemMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.tools import tool as create_tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.prebuilt import ToolNode

from arag.errors import InputError, ModelError
from arag.graph.context import Context
from arag.graph.messages import count_context_tokens
from arag.graph.prompts import system_prompt
from arag.models.chat import load_model
from arag.retrieval.index import Index, open_index
from arag.retrieval.locations import is_address
from arag.retrieval.scope import Scope
from arag.retrieval.storage import IndexStore
from arag.retrieval.tokens import count_tokens
from arag.retrieval.tools import DEFAULT_TOP_K, TOOL_NAMES, Presentation, RetrievalTool, make_tools

DEFAULT_MAX_STEPS = 15
DEFAULT_MAX_CONTEXT_TOKENS = 128_000
DEFAULT_MAX_INVALID_REPLIES = 3
MIN_CONTEXT_TOKENS = 2_000
_MIN_FREE_TOKENS = 500  # that the system prompt and the tools must leave for the conversation
_MAX_KEPT = 64  # contexts, with their users' scopes, whose resources are kept
_MAX_LIMITED = 256  # limited indexes that are kept: making one takes longer than everything else

ChatModel: TypeAlias = Runnable[LanguageModelInput, AIMessage]
Output: TypeAlias = Literal["messages", "answer"]
AnyTool: TypeAlias = str | type[RetrievalTool] | BaseTool | Callable[..., Any]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """An agent's settings, described in `create_arag_agent`.

    An index that is left out must come from the run's context.

    Raises:
        InputError: A setting is out of bounds.
    """

    model: str | BaseChatModel | None = None
    index: Index | IndexStore | str | None = None
    tools: Sequence[AnyTool] = TOOL_NAMES
    top_k: int = DEFAULT_TOP_K
    presentation: Presentation = "compact"
    system_prompt: str | None = None
    max_steps: int = DEFAULT_MAX_STEPS
    max_context_tokens: int = DEFAULT_MAX_CONTEXT_TOKENS
    max_invalid_replies: int = DEFAULT_MAX_INVALID_REPLIES
    output: Output = "messages"

    def __post_init__(self) -> None:
        minima = {"max_steps": 1, "max_context_tokens": MIN_CONTEXT_TOKENS, "max_invalid_replies": 1}
        for name, minimum in minima.items():
            if getattr(self, name) < minimum:
                raise InputError(f"{name} is {getattr(self, name)}: it must be at least {minimum}")
        if isinstance(self.tools, str):
            raise InputError(f"tools is the string {self.tools!r}: give a list of tools")
        if self.output not in get_args(Output):
            raise InputError(f"output is {self.output!r}: it must be one of {', '.join(get_args(Output))}")

    def change(self, context: Context) -> Settings:
        """Return the settings for a run with this context; its tools replace only those given by name.

        Its scope is not among them: it limits the index, whichever that is.
        """
        given = {name: getattr(context, name) for name in Context.model_fields if name != "scope"}
        changes = {name: value for name, value in given.items() if value is not None}
        if "tools" in changes:
            changes["tools"] = [*changes["tools"], *(tool for tool in self.tools if not isinstance(tool, str))]
        return replace(self, **changes)


class Resources:
    """The loaded resources that a run's settings name.

    Args:
        settings: The settings.
        index: The settings' index, opened, and limited to the run's scopes.
        model: The settings' model, loaded.

    Attributes:
        settings: The settings.
        index: The index.
        model: The model, for forced answers.
        searcher: The model with its tools bound.
        tools: Runs the tools.
        system_prompt: The system prompt of the search.
        room: Tokens of the context left for the conversation by the system prompt and the tools' schemas.

    Raises:
        InputError: A tool is not valid, or there is too little room.
        ModelError: The model cannot call tools.
    """

    def __init__(self, settings: Settings, index: Index, model: BaseChatModel) -> None:
        tools = _collect_tools(settings, index)
        self.settings = settings
        self.index = index
        self.model = model
        self.searcher = _bind(self.model, tools)
        self.tools = ToolNode(tools)
        self.system_prompt = system_prompt(tools) if settings.system_prompt is None else settings.system_prompt
        schemas = json.dumps([convert_to_openai_tool(tool) for tool in tools])
        prompt = count_context_tokens([SystemMessage(self.system_prompt)])
        self.room = settings.max_context_tokens - prompt - count_tokens(schemas)
        if self.room < _MIN_FREE_TOKENS:
            raise InputError(
                f"the system prompt and the tools leave {self.room} of max_context_tokens "
                f"({settings.max_context_tokens}) for the conversation, which needs at least {_MIN_FREE_TOKENS}"
            )


class ResourceLoader:
    """Loads the resources of runs, and keeps them for later runs with the same context.

    Threads may share it, and no run waits for another's model to load: runs that start at the same time with the same
    new context each load its resources, and one copy is kept.

    Args:
        settings: The agent's settings.
        restrict: Returns the allowed context, or raises an error; for untrusted contexts.
        find_user_scope: Returns the scope of the user whose run it is, or None if users have no scopes.
    """

    def __init__(
        self,
        settings: Settings,
        restrict: Callable[[Context], Context] | None = None,
        find_user_scope: Callable[[], Scope | None] | None = None,
    ) -> None:
        self.settings = settings
        self._restrict = restrict
        self._find_user_scope = find_user_scope
        self._opened: WeakValueDictionary[str, Index] = WeakValueDictionary()
        self._load = lru_cache(_MAX_KEPT)(self._load_anew)
        self._load_model = lru_cache(_MAX_KEPT)(load_model)  # runs with other scopes share it
        self._limit = lru_cache(_MAX_LIMITED)(Index.limited_to)

    def __call__(self, context: object) -> Resources:
        """Return the resources of a run.

        Args:
            context: The run's context, or None. A parent graph's context counts if it is a `Context`; further fields
                are ignored. Of any other context, only a scope counts.

        Raises:
            InputError: A setting is out of bounds, no index is given, or the context names one in a database.
            IndexNotFoundError: There is no index in the context's folder.
            ModelError: The model cannot be created.
        """
        if isinstance(context, Context):
            changes = Context(**{name: getattr(context, name) for name in Context.model_fields})
        else:
            changes = Context(scope=_find_scope(context))
        user_scope = self._find_user_scope() if self._find_user_scope else None
        allowed = self._restrict(changes) if self._restrict else changes
        if allowed.index is not None and is_address(allowed.index):  # contexts are stored, and come over networks
            raise InputError(
                "the index of a run's context is an address: a context may only name a folder. Give the address to "
                "create_arag_agent, or to a server in ARAG_INDEX"
            )
        return self._load(allowed, user_scope)

    def _load_anew(self, context: Context, user_scope: Scope | None) -> Resources:
        settings = self.settings.change(context)
        index = settings.index
        if index is None:
            raise InputError("no index is given: set `index` in the run's context, or ARAG_INDEX for a server")
        if not isinstance(index, Index):
            location = index if isinstance(index, str) else str(index.location)
            index = self._opened.get(location) or open_index(index)
            self._opened[location] = index
        limited = index
        for scope in (user_scope, context.scope):
            limited = limited if scope is None else self._limit(limited, scope)
        tools = [_limit_tool(tool, index, limited) for tool in settings.tools]
        model = self._load_model(settings.model) if isinstance(settings.model, str) else load_model(settings.model)
        return Resources(replace(settings, tools=tools), limited, model)


def _find_scope(context: object) -> Scope | None:
    """Return the scope in a context of another type: ignoring it would show what it hides."""
    found = context.get("scope") if isinstance(context, Mapping) else getattr(context, "scope", None)
    if isinstance(found, Mapping) and found and found.keys() <= Scope.model_fields.keys():
        return Scope(**found)
    return found if isinstance(found, Scope) else None


def _limit_tool(tool: AnyTool, index: Index, limited: Index) -> AnyTool:
    """Return a tool over the limited index, if it is one of ours over the whole; others are the caller's business."""
    if isinstance(tool, RetrievalTool) and tool.index is index:
        return tool.model_copy(update={"index": limited})
    return tool


def _collect_tools(settings: Settings, index: Index) -> list[BaseTool]:
    """Create the retrieval tools, and add the caller's own.

    Raises:
        InputError: A tool is not valid or unknown, or a name is not unique.
    """
    ours: list[str | type[RetrievalTool]] = []
    own: list[BaseTool] = []
    for tool in settings.tools:
        if isinstance(tool, str) or (isinstance(tool, type) and issubclass(tool, RetrievalTool)):
            ours.append(tool)
        else:
            own.append(_make_own_tool(tool))
    if not ours:
        raise InputError(f"tools has no retrieval tool: include one or more of {', '.join(TOOL_NAMES)}")
    tools = [*make_tools(index, names=ours, top_k=settings.top_k, presentation=settings.presentation), *own]
    names = [tool.name for tool in tools]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"duplicate tool name: {name}")
    return tools


def _make_own_tool(given: BaseTool | Callable[..., Any]) -> BaseTool:
    if not isinstance(given, BaseTool) and not callable(given):
        raise InputError(f"{given!r} is not a tool: give names of retrieval tools, LangChain tools or functions")
    try:
        made = given if isinstance(given, BaseTool) else create_tool(given)
    except ValueError as error:  # for example, a function without a docstring
        raise InputError(f"{given!r} cannot be used as a tool: {error}") from error
    if made.return_direct:
        raise InputError(
            f"the tool {made.name} has return_direct=True, which is not supported: the model always writes the answer"
        )
    return made


def _bind(model: BaseChatModel, tools: Sequence[BaseTool]) -> ChatModel:
    """Bind the tools, asking for one call at a time if the provider supports that."""
    options: dict[str, Any] = {}
    if "parallel_tool_calls" in inspect.signature(type(model).bind_tools).parameters:
        options["parallel_tool_calls"] = False
    try:
        return model.bind_tools(tools, **options)
    except NotImplementedError as error:
        raise ModelError(f"{type(model).__name__} cannot be used: a model that calls tools is needed") from error
