"""The agent's settings, which a run may change, and the resources of a run: the index, the model and the tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.prebuilt import ToolNode
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic.config import JsonDict
from pydantic.json_schema import SkipJsonSchema

from arag.errors import InputError, list_faults
from arag.graph import DEFAULT_MAX_STEPS, MAX_STEPS
from arag.graph.models import Model, as_model, bind_tools, find_chat_model
from arag.graph.prompts import few_steps_note, system_prompt
from arag.graph.state import MESSAGE_TOKENS
from arag.graph.structured import Structurer, make_structurer
from arag.models.extractive import ExtractiveModel
from arag.models.replies.model import as_regular
from arag.retrieval import DEFAULT_TOP_K, MAX_RESULTS
from arag.retrieval.index import Index
from arag.retrieval.scope import Scope, find_scope, read_scope
from arag.retrieval.tools.base import RetrievalTool
from arag.retrieval.tools.sets import (
    DEFAULT_TOOLS,
    READERS,
    TOOL_SETS,
    ToolChoice,
    ToolName,
    ToolSet,
    expand_sets,
    make_tools,
)
from arag.text.tokens import count_tokens

if TYPE_CHECKING:
    from langchain.agents.middleware import HumanInTheLoopMiddleware

_FEW_STEPS = 2  # that are left: then the model is told
_KEPT = 256  # contexts, and scopes, whose resources are kept: more takes memory, fewer makes a server load them again

AnyTool: TypeAlias = str | type[RetrievalTool] | BaseTool | Callable[..., Any]

ScopeFinder: TypeAlias = Callable[[Any], Scope | None]
"""Returns the scope in a context of somebody's own."""

# The nodes at which Studio shows a setting.
_AGENT: JsonDict = {"langgraph_nodes": ["agent"]}
_TOOLS: JsonDict = {"langgraph_nodes": ["tools"]}
_BOTH: JsonDict = {"langgraph_nodes": ["agent", "tools"]}


class Context(BaseModel):
    """An agent's settings; a run's context changes those that it sets. Null and blank values count as not set.

    A scope counts as not set only if it is null: one that is blank or has no condition is an error, as it would show
    all documents.

    A parent graph passes its own context down. It applies here if it is of this class or a subclass with more fields.
    In a context of another class, only the scope counts, which must be a `Scope` or its fields.

    Example:
        >>> question = {"messages": [("user", "Who was the engineer of the Vellin Light?")]}
        >>> state = agent.invoke(question, context=Context(max_steps=1))
        >>> state["steps"], state["stop_reason"]
        (1, 'max_steps')
    """

    model_config = ConfigDict(frozen=True, extra="forbid", title="A-RAG", use_attribute_docstrings=True)

    model: str | None = Field(default=None, json_schema_extra={"langgraph_nodes": ["agent", "force_answer"]})
    """Chat model as provider:model (openai:gpt-5-mini, anthropic:claude-sonnet-5-5); or extractive, the built-in model,
    which is not a language model. Never an address: that is for whoever starts the agent."""
    scope: Scope | None = Field(default=None, json_schema_extra=_TOOLS)
    """Which documents the run may see; the model is not told. It never widens the agent's own scope."""
    tools: tuple[ToolChoice, ...] | SkipJsonSchema[None] = Field(default=None, json_schema_extra=_BOTH)
    """Which retrieval tools the model gets: a list, or one of the sets paper, all and shell. Without chunk_read and
    shell, searches return full chunks."""
    top_k: int = Field(default=DEFAULT_TOP_K, ge=1, le=MAX_RESULTS, json_schema_extra=_BOTH)
    """Number of chunks that a search shows."""
    system_prompt: str | None = Field(default=None, json_schema_extra=_AGENT | {"langgraph_type": "prompt"})
    """Replaces the system prompt of the search."""
    max_steps: int = Field(default=DEFAULT_MAX_STEPS, ge=1, le=MAX_STEPS, json_schema_extra=_AGENT)
    """Maximum model calls before an answer is forced."""
    max_context_tokens: int = Field(default=128_000, ge=2_000, json_schema_extra=_AGENT)
    """Maximum tokens in the model's context before an answer is forced. By default, 128,000, or what the model takes if
    that is known to be less."""
    max_cost: float | SkipJsonSchema[None] = Field(default=None, gt=0, json_schema_extra=_AGENT)
    """Maximum cost of a run in US dollars, at list prices: an answer is forced before it is reached."""

    def __init__(self, **settings: Any) -> None:
        given = {}
        for name, value in settings.items():
            is_blank = name != "scope" and not str(value).strip()
            if value is None or is_blank:
                continue
            given[name] = value
        try:
            super().__init__(**given)
        except ValidationError as error:
            message = f"the settings are not valid: {list_faults(error)}"
            known = type(self).model_fields
            if not settings.keys() <= known.keys():
                message += f". Valid settings: {', '.join(known)}"
            raise InputError(message) from None  # pydantic's error shows an address with its credentials

    @field_validator("scope", mode="before")
    @classmethod
    def _check_scope(cls, scope: object) -> Scope:
        return read_scope(scope)

    @field_validator("tools", mode="before")
    @classmethod
    def _expand_tools(cls, tools: Any) -> list[Any]:
        return expand_sets(tools)

    @field_validator("model")
    @classmethod
    def _check_model(cls, model: str | None) -> str | None:
        # Contexts are stored and come over networks: they must not decide where keys go or which weights are loaded.
        if model and ("@" in model or model.lower().startswith("huggingface:")):
            raise ValueError("a run's model is provider:model, without an address, and never from the model hub")
        return model

    def merge(self, context: object) -> Context:
        """Return these settings, changed by a run's context: a `Context`, anything with a scope, or None."""
        if context is None:
            return self
        # A scope in a context of another type counts, too: without it, the run would see documents that it hides.
        if isinstance(context, Context):
            changes = context
        else:
            changes = Context(scope=find_scope(context))
        if changes.scope is not None:
            read_scope(changes.scope)  # `model_construct` and `model_copy` check nothing
        given = changes.model_fields_set
        changed: dict[str, Any] = {}
        for name, field in Context.model_fields.items():
            value = getattr(changes, name)
            if name in given or value != field.default:  # a subclass may have other defaults
                changed[name] = value
        return self.model_copy(update=changed)


def fit_to_model(settings: Context, model: Runnable[Any, Any]) -> Context:
    """Return settings whose default for `max_context_tokens` is not more than what a model takes, if that is known."""
    chat_model = find_chat_model(model)
    if not isinstance(chat_model, BaseChatModel):  # the config of a run decides which model it is
        return settings
    known = (chat_model.profile or {}).get("max_input_tokens")
    is_given = "max_context_tokens" in settings.model_fields_set
    if is_given or not known or known >= settings.max_context_tokens:
        return settings
    return settings.model_copy(update={"max_context_tokens": known})


@dataclass(frozen=True)
class Resources:
    """Everything a run needs."""

    settings: Context
    """The agent's settings, changed by the run's context."""
    index: Index
    """The index, limited to the run's scopes."""
    model: Runnable[Any, AIMessage]
    """The model without tools, for forced answers."""
    searcher: Runnable[Any, AIMessage]
    """The model with its tools bound."""
    tools: ToolNode
    reviewer: HumanInTheLoopMiddleware[Any, Any, Any] | None
    """Has a person approve calls, if some need that."""
    structurer: Structurer | None
    """What makes structured answers, if the agent gives them."""
    room: int
    """Tokens of the context that the system prompt and the tools' schemas leave for the conversation."""

    def system_prompt(self, steps: int = 0) -> str:
        """Return the system prompt of the search, after some steps: the caller's own, or ours for what the index holds.

        Ours says how many steps are left when they are few.
        """
        if self.settings.system_prompt is not None:
            return self.settings.system_prompt
        return self.note_steps(system_prompt(self.tools.tools_by_name.values(), self.index), steps)

    def note_steps(self, prompt: str, steps: int) -> str:
        """Return the system prompt of the search, with how many steps are left after some, if it is ours."""
        left = self.settings.max_steps - steps
        if self.settings.system_prompt is None and steps and left <= _FEW_STEPS:
            return f"{prompt}\n\n{few_steps_note(left)}"
        return prompt


Loader: TypeAlias = Callable[[object, Scope | None], Resources]
"""Returns the resources for a run's context and the scope with which it began, and keeps them for later runs."""


def make_loader(
    model: Model | Sequence[Model],
    open_index: Callable[[], Index],
    tools: ToolSet | Sequence[AnyTool] | None = None,
    settings: Context | None = None,
    find_user_scope: Callable[[], Scope | None] = lambda: None,
    response_format: Any = None,
    reviewer: HumanInTheLoopMiddleware[Any, Any, Any] | None = None,
    scope_from: ScopeFinder | None = None,
) -> Loader:
    """Build the resource loader.

    Args:
        model: The model of runs whose context names none; see `as_model`.
        open_index: Opens the index, when the first run needs it.
        tools: A set of retrieval tools, or a list of names and the caller's own tools. By default, `DEFAULT_TOOLS`, and
            all but `shell` for the built-in model, which writes no commands.
        settings: The agent's settings.
        find_user_scope: Returns the scope of a run's user, if any.
        response_format: The schema of structured answers, if the agent gives them.
        reviewer: Has a person approve calls, if some need that.
        scope_from: As in `create_arag_agent`.

    Raises:
        InputError: The tools are a string that is not the name of a set.
    """
    agent_settings = settings or Context()
    others: list[AnyTool] = []
    if tools is not None:
        expanded = expand_sets(tools)
        others = [tool for tool in expanded if not isinstance(tool, str)]
        names = tuple(tool for tool in expanded if isinstance(tool, str))
        agent_settings = agent_settings.model_copy(update={"tools": names})
    open_once = cache(open_index)

    @lru_cache(_KEPT)
    def limit_index(*scopes: Scope) -> Index:
        """Limit the index to scopes. Runs that differ in other settings share it."""
        if not scopes:
            return open_once()
        *outer, innermost = scopes
        return limit_index(*outer).limited_to(innermost)

    @lru_cache(_KEPT)
    def load(merged: Context, user_scope: Scope | None) -> Resources:
        scopes = (user_scope, agent_settings.scope, merged.scope)
        index = limit_index(*(scope for scope in scopes if scope is not None))
        chat_model = as_model(merged.model or model)
        merged = fit_to_model(merged, chat_model)
        names = merged.tools
        if names is None:
            names = default_tools(chat_model)
        node = _make_tools([*names, *others], merged, open_once(), index, reviewer)
        bound = list(node.tools_by_name.values())
        structurer = None
        if response_format is not None:
            structurer = make_structurer(chat_model, response_format)
        resources = Resources(
            settings=merged,
            index=index,
            model=as_regular(chat_model),
            searcher=as_regular(bind_tools(chat_model, bound), bound),
            tools=node,
            reviewer=reviewer,
            structurer=structurer,
            room=merged.max_context_tokens - MESSAGE_TOKENS - count_schemas(bound),
        )
        return replace(resources, room=resources.room - count_tokens(resources.system_prompt()))

    def load_for_run(context: object, kept: Scope | None = None) -> Resources:
        return load(settle(agent_settings, context, scope_from, kept), find_user_scope())

    return load_for_run


def settle(
    settings: Context,
    context: object,
    scope_from: ScopeFinder | None = None,
    kept: Scope | None = None,
) -> Context:
    """Return the settings of a run.

    Args:
        settings: The agent's settings.
        context: The run's context, which changes them.
        scope_from: As in `create_arag_agent`.
        kept: The scope with which the run began, if it goes on. It holds unless the context gives another: whoever
            resumes a run may leave the context out.

    Raises:
        InputError: The scope is not valid, or `scope_from` finds none.
    """
    is_own = context is None or isinstance(context, Context)
    known = context if is_own or scope_from is None else None  # else, its `scope` may mean something else
    scope = find_scope(known)
    if scope is None and scope_from is not None and context is not None:
        scope = scope_from(context)
    if scope is None:
        scope = kept
    if scope is None and scope_from is not None:
        raise InputError(
            "scope_from finds no scope for this run: give the run a context for which it returns one; the object "
            "Scope() means all documents"
        )
    merged = settings.merge(known)
    return merged if scope is None else merged.model_copy(update={"scope": read_scope(scope)})


def count_schemas(tools: Iterable[BaseTool | dict[str, Any]]) -> int:
    """Count the tokens of the schemas of tools."""
    return count_tokens(json.dumps([convert_to_openai_tool(tool) for tool in tools]))


def default_tools(model: Runnable[Any, AIMessage]) -> tuple[ToolName, ...]:
    """Return the tools that a model gets if nobody chooses: the built-in model calls tools, and writes no commands."""
    if isinstance(find_chat_model(model), ExtractiveModel):
        return TOOL_SETS["all"]
    return TOOL_SETS[DEFAULT_TOOLS]


def _make_tools(
    choice: Sequence[AnyTool],
    settings: Context,
    whole: Index,
    index: Index,
    reviewer: HumanInTheLoopMiddleware[Any, Any, Any] | None,
) -> ToolNode:
    """Make the retrieval tools, and add the caller's own. A tool replaces an earlier one with its name.

    Retrieval tools that the caller made over the whole index are limited to the run's scopes, too.
    """
    names: list[Any] = [tool for tool in choice if isinstance(tool, str | type)]
    own: list[Any] = [tool for tool in choice if not isinstance(tool, str | type)]
    tools: list[Any] = []
    if names or not own:  # without any tool, this raises the error
        tools = list(make_tools(index, names=names, top_k=settings.top_k))
    changes = {"follows_context": False}  # the index is limited already
    if not READERS.isdisjoint(ToolNode(own).tools_by_name):
        changes["full_texts"] = False
    tools = [tool.model_copy(update=changes) for tool in tools]
    for tool in own:
        if isinstance(tool, RetrievalTool) and tool.index is whole:
            tools.append(tool.model_copy(update={"index": index, "follows_context": False}))
        else:
            tools.append(tool)
    if reviewer is None:
        return ToolNode(tools)
    # A person may have changed a call: the middleware runs it so, and tells the model.
    wrappers: dict[str, Any] = {
        "wrap_tool_call": reviewer.wrap_tool_call,
        "awrap_tool_call": reviewer.awrap_tool_call,
    }
    return ToolNode(tools, **wrappers)
