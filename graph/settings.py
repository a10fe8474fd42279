"""What a run works with: the agent's own settings, with what the run's context changes."""

from __future__ import annotations

import inspect
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.tools import tool as create_tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.prebuilt import ToolNode

from arag.errors import InputError, ModelError
from arag.graph.context import Context
from arag.graph.prompts import system_prompt as default_system_prompt
from arag.models.chat import load_model
from arag.retrieval.index import Index, open_index
from arag.retrieval.tokens import count_tokens
from arag.retrieval.tools import TOOL_NAMES, make_tools

MAX_STEPS = 15
MAX_CONTEXT_TOKENS = 128_000
MAX_INVALID_REPLIES = 3
FEWEST_CONTEXT_TOKENS = 2_000
_FEWEST_FREE_TOKENS = 500  # that a system prompt and the tools must leave for the conversation
_KEPT = 16  # contexts whose settings are kept

ChatModel: TypeAlias = Runnable[LanguageModelInput, AIMessage]
AnyTool: TypeAlias = str | BaseTool | Callable[..., Any]


@dataclass(frozen=True, kw_only=True)
class Defaults:
    """How an agent was made; `create_arag_agent` says what each means.

    An index or a model that is left out must come with a run's context.
    """

    model: str | BaseChatModel | None = None
    index: Index | str | None = None
    tools: Sequence[AnyTool] = TOOL_NAMES
    top_k: int = 5
    system_prompt: str | None = None
    max_steps: int = MAX_STEPS
    max_context_tokens: int = MAX_CONTEXT_TOKENS
    max_invalid_replies: int = MAX_INVALID_REPLIES


@dataclass(frozen=True)
class Settings:
    """What a run works with.

    Attributes:
        model: The model, for forced answers.
        searcher: The model with its tools bound.
        index: The index, for checking citations.
        tools: What runs the tools.
        system_prompt: The system prompt of the search.
        instructions: The caller's own system prompt, where there is one; forced answers heed it, too.
        max_steps: Most model calls of a question's search.
        max_context_tokens: Most tokens of the context.
        room: Tokens of it that the conversation may have, beside the system prompt and the tools' schemas.
        max_invalid_replies: Most invalid replies in a row.
    """

    model: BaseChatModel
    searcher: ChatModel
    index: Index
    tools: ToolNode
    system_prompt: str
    instructions: str | None
    max_steps: int
    max_context_tokens: int
    room: int
    max_invalid_replies: int


class SettingsOfRuns:
    """Makes settings, and keeps them for the runs to come; threads may share it.

    Args:
        defaults: How the agent was made.

    Attributes:
        defaults: How the agent was made.
    """

    def __init__(self, defaults: Defaults) -> None:
        self.defaults = defaults
        self._made: OrderedDict[Context, Settings] = OrderedDict()
        self._indexes: dict[str, Index] = {}
        self._making: dict[Context, threading.Lock] = {}
        self._lock = threading.Lock()

    def __call__(self, context: object) -> Settings:
        """Return the settings of a run.

        Args:
            context: The run's context, None where there is none.

        Raises:
            InputError: A setting is out of bounds, or there is no index.
            IndexNotFoundError: There is no index in the context's folder.
            ModelError: The model cannot be made.
        """
        # A parent's context may be of any kind; a subclass of ours may have fields that are none of ours.
        known = {name: getattr(context, name) for name in Context.model_fields} if isinstance(context, Context) else {}
        context = Context(**known)
        with self._lock:
            if context in self._made:
                self._made.move_to_end(context)
                return self._made[context]
            making = self._making.setdefault(context, threading.Lock())
        try:
            with making:  # a model may take a while to load: runs with other settings do not wait for it
                made = self._made.get(context) or self._make(context)
                with self._lock:
                    self._made[context] = made
                    self._forget()
                return made
        finally:
            with self._lock:
                self._making.pop(context, None)

    def _forget(self) -> None:
        """Let go of the settings that were not used for the longest, and of indexes that are theirs alone."""
        while len(self._made) > _KEPT:
            self._made.popitem(last=False)
        used = {id(settings.index) for settings in self._made.values()}
        self._indexes = {folder: index for folder, index in self._indexes.items() if id(index) in used}

    def _make(self, context: Context) -> Settings:
        changes = context.model_dump(exclude_none=True)
        if "tools" in changes:
            own = [tool for tool in self.defaults.tools if not isinstance(tool, str)]
            changes["tools"] = [*changes["tools"], *own]
        defaults = replace(self.defaults, **changes)
        if defaults.index is None:
            raise InputError("no index is given: set `index` in the run's context, or ARAG_INDEX for a server")
        return make_settings(defaults, self._opened(defaults.index))

    def _opened(self, index: Index | str) -> Index:
        if isinstance(index, Index):
            return index
        with self._lock:
            if index not in self._indexes:
                self._indexes[index] = open_index(index)
            return self._indexes[index]


def make_settings(defaults: Defaults, index: Index) -> Settings:
    """Check how an agent is to be made, load its model and bind its tools.

    Raises:
        InputError: A setting is out of bounds.
        ModelError: The model string is not valid, or the model cannot be made.
    """
    if defaults.max_steps < 1:
        raise InputError(f"max_steps is {defaults.max_steps}: it must be at least 1")
    budget = defaults.max_context_tokens
    if budget < FEWEST_CONTEXT_TOKENS:
        raise InputError(f"max_context_tokens is {budget}: it must be at least {FEWEST_CONTEXT_TOKENS}")
    if defaults.max_invalid_replies < 1:
        raise InputError(f"max_invalid_replies is {defaults.max_invalid_replies}: it must be at least 1")
    tools = _all_tools(defaults, index)
    model = load_model(defaults.model)
    prompt = default_system_prompt(tools) if defaults.system_prompt is None else defaults.system_prompt
    schemas = json.dumps([convert_to_openai_tool(tool) for tool in tools])
    room = budget - count_tokens(prompt) - count_tokens(schemas)
    if room < _FEWEST_FREE_TOKENS:
        raise InputError(
            f"the system prompt and the tools leave {room} of max_context_tokens ({budget}) to the conversation: it "
            f"needs at least {_FEWEST_FREE_TOKENS}"
        )
    return Settings(
        model=model,
        searcher=_bind(model, tools),
        index=index,
        tools=ToolNode(tools),
        system_prompt=prompt,
        instructions=defaults.system_prompt,
        max_steps=defaults.max_steps,
        max_context_tokens=budget,
        room=room,
        max_invalid_replies=defaults.max_invalid_replies,
    )


def _all_tools(defaults: Defaults, index: Index) -> list[BaseTool]:
    """Make the retrieval tools, and add the caller's own.

    Raises:
        InputError: A tool is none, is unknown, or has another's name.
    """
    if isinstance(defaults.tools, str):
        raise InputError(f"tools is the text {defaults.tools!r}: give a list of tools")
    own = [tool for tool in defaults.tools if not isinstance(tool, str)]
    names = [tool for tool in defaults.tools if isinstance(tool, str)]
    if not names:
        raise InputError(f"no retrieval tool is given: name one or more of {', '.join(TOOL_NAMES)} among the tools")
    tools = make_tools(index, names=names, top_k=defaults.top_k)
    for given in own:
        if not isinstance(given, BaseTool) and not callable(given):
            raise InputError(f"{given!r} is no tool: give names of retrieval tools, LangChain tools or functions")
        try:
            made = given if isinstance(given, BaseTool) else create_tool(given)
        except ValueError as error:  # a function without a docstring, for one
            raise InputError(f"{given!r} cannot be made a tool: {error}") from error
        if made.return_direct:
            raise InputError(f"the tool {made.name} has return_direct: here the model has the last word")
        if made.name in {tool.name for tool in tools}:
            raise InputError(f"two tools have one name: {made.name}")
        tools.append(made)
    return tools


def _bind(model: BaseChatModel, tools: Sequence[BaseTool]) -> ChatModel:
    """Bind the tools, asking for one call at a time where the provider can be told so."""
    options: dict[str, Any] = {}
    if "parallel_tool_calls" in inspect.signature(type(model).bind_tools).parameters:
        options["parallel_tool_calls"] = False
    try:
        return model.bind_tools(tools, **options)
    except NotImplementedError as error:
        raise ModelError(f"{type(model).__name__} cannot be used: a model that calls tools is needed") from error
