"""The agent's settings, which a run may change, and what is loaded for them: the index, the model and the tools."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, TypeAlias

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.prebuilt import ToolNode
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic.config import JsonDict

from arag.errors import InputError, ModelError, list_faults
from arag.graph import DEFAULT_MAX_STEPS, MAX_STEPS
from arag.graph.prompts import system_prompt
from arag.graph.state import MESSAGE_TOKENS
from arag.models.chat import load_model
from arag.retrieval import DEFAULT_TOP_K, MAX_RESULTS
from arag.retrieval.index import Index
from arag.retrieval.scope import Scope, read_scope
from arag.retrieval.tools.base import RetrievalTool
from arag.retrieval.tools.compact import TOOL_NAMES, ToolName, make_tools
from arag.text.tokens import count_tokens

AnyTool: TypeAlias = str | type[RetrievalTool] | BaseTool | Callable[..., Any]

# The nodes at which Studio shows a setting.
_AGENT: JsonDict = {"langgraph_nodes": ["agent"]}
_TOOLS: JsonDict = {"langgraph_nodes": ["tools"]}
_BOTH: JsonDict = {"langgraph_nodes": ["agent", "tools"]}


class Context(BaseModel):
    """An agent's settings; a run's context changes those that it sets. Null and blank values count as not set.

    A scope is not set only if it is null or left out: one that is blank or has no condition is an error, as it would
    show all documents.

    A parent graph passes its own context down. It applies here if it is of this class or a subclass with more fields;
    of any other, only a scope counts, which must be a `Scope` or its fields.

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
    tools: tuple[ToolName, ...] = Field(default=TOOL_NAMES, json_schema_extra=_BOTH)
    """Which retrieval tools the model gets. Without chunk_read, searches return full chunks."""
    top_k: int = Field(default=DEFAULT_TOP_K, ge=1, le=MAX_RESULTS, json_schema_extra=_BOTH)
    """Number of chunks that a search shows."""
    system_prompt: str | None = Field(default=None, json_schema_extra=_AGENT | {"langgraph_type": "prompt"})
    """Replaces the system prompt of the search."""
    max_steps: int = Field(default=DEFAULT_MAX_STEPS, ge=1, le=MAX_STEPS, json_schema_extra=_AGENT)
    """Maximum model calls before an answer is forced."""
    max_context_tokens: int = Field(default=128_000, ge=2_000, json_schema_extra=_AGENT)
    """Maximum tokens in the model's context before an answer is forced."""

    def __init__(self, **settings: Any) -> None:
        settings = {
            name: value
            for name, value in settings.items()
            if value is not None and (name == "scope" or str(value).strip())
        }
        try:
            super().__init__(**settings)
        except ValidationError as error:
            known = ", ".join(type(self).model_fields)
            message = f"the settings are not valid: {list_faults(error)}. Valid settings: {known}"
            raise InputError(message) from None  # pydantic's error shows an address with its credentials

    @field_validator("scope", mode="before")
    @classmethod
    def _check_scope(cls, scope: object) -> Scope:
        return read_scope(scope)

    @field_validator("model")
    @classmethod
    def _check_model(cls, model: str | None) -> str | None:
        # Contexts are stored and come over networks: they decide neither where keys go nor what is loaded here.
        if model and ("@" in model or model.lower().startswith("huggingface:")):
            raise ValueError("a run's model is provider:model, without an address, and never from the model hub")
        return model

    def merge(self, context: object) -> Context:
        """Return these settings, changed by a run's context: a `Context`, anything with a scope, or None."""
        if not isinstance(context, Context):
            # Ignoring the scope in a context of another type would show what it hides; a wrong one is an error.
            scope = context.get("scope") if isinstance(context, Mapping) else getattr(context, "scope", None)
            context = Context(scope=scope)
        changed = context.model_fields_set & Context.model_fields.keys()
        return self.model_copy(update={name: getattr(context, name) for name in changed})


@dataclass(frozen=True)
class Resources:
    """What a run works with."""

    settings: Context  # the agent's, changed by the run's context
    index: Index  # limited to the run's scopes
    model: BaseChatModel  # for forced answers
    searcher: Runnable[Any, AIMessage]  # the model with its tools bound
    tools: ToolNode
    system_prompt: str  # of the search
    room: int  # tokens of the context that the system prompt and the tools' schemas leave for the conversation


Loader: TypeAlias = Callable[[object], Resources]
"""Returns what a run with a context works with, and keeps it for later runs."""


def make_loader(
    model: str | BaseChatModel,
    open_index: Callable[[], Index],
    tools: Sequence[AnyTool] = TOOL_NAMES,
    settings: Context | None = None,
    find_user_scope: Callable[[], Scope | None] = lambda: None,
) -> Loader:
    """Make the function that loads what runs work with; `find_user_scope` returns the scope of a run's user, if any."""
    if isinstance(tools, str):
        raise InputError(f"tools is the string {tools!r}: give a list")
    others = [tool for tool in tools if not isinstance(tool, str)]
    names = tuple(tool for tool in tools if isinstance(tool, str))
    own = (settings or Context()).model_copy(update={"tools": names})
    open_once = cache(open_index)

    @lru_cache(256)
    def limit(*scopes: Scope) -> Index:  # contexts that differ in other settings share what is open
        return limit(*scopes[:-1]).limited_to(scopes[-1]) if scopes else open_once()

    @lru_cache(256)
    def load(merged: Context, user_scope: Scope | None) -> Resources:
        index = limit(*(scope for scope in (user_scope, own.scope, merged.scope) if scope is not None))
        node = _make_tools([*merged.tools, *others], merged, open_once(), index)
        tools = list(node.tools_by_name.values())
        chat = load_model(merged.model or model)
        prompt = system_prompt(tools) if merged.system_prompt is None else merged.system_prompt
        schemas = json.dumps([convert_to_openai_tool(tool) for tool in tools])
        room = merged.max_context_tokens - count_tokens(prompt) - MESSAGE_TOKENS - count_tokens(schemas)
        return Resources(merged, index, chat, _bind(chat, tools), node, prompt, room)

    return lambda context: load(own.merge(context), find_user_scope())


def _make_tools(choice: Sequence[AnyTool], settings: Context, whole: Index, index: Index) -> ToolNode:
    """Make the retrieval tools, and add the caller's own; those of ours over the whole index are limited, too.

    A tool takes the place of an earlier one with its name.
    """
    names: list[Any] = [tool for tool in choice if isinstance(tool, str | type)]
    own: list[Any] = [tool for tool in choice if not isinstance(tool, str | type)]
    tools = make_tools(index, names=names, top_k=settings.top_k) if names or not own else []
    if "chunk_read" in ToolNode(own).tools_by_name:
        tools = [tool.model_copy(update={"full_texts": False}) for tool in tools]
    for tool in own:
        is_of_whole = isinstance(tool, RetrievalTool) and tool.index is whole
        tools.append(tool.model_copy(update={"index": index}) if is_of_whole else tool)
    return ToolNode(tools)


def _bind(model: BaseChatModel, tools: Sequence[BaseTool]) -> Runnable[Any, AIMessage]:
    """Bind the tools, asking for one call at a time if the provider supports that."""
    parameters = inspect.signature(type(model).bind_tools).parameters
    options: dict[str, Any] = {"parallel_tool_calls": False} if "parallel_tool_calls" in parameters else {}
    try:
        return model.bind_tools(tools, **options)
    except NotImplementedError as error:
        raise ModelError(f"{type(model).__name__} cannot call tools: its class has no `bind_tools`") from error
