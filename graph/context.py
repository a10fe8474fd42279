"""The agent's settings, which a run may change: from a program, the API server or Studio."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic.config import JsonDict

from arag.errors import InputError, without_credentials
from arag.retrieval.scope import Scope
from arag.retrieval.tools import DEFAULT_TOP_K, MAX_RESULTS, TOOL_NAMES, Presentation, ToolName

DEFAULT_MAX_STEPS, MAX_STEPS = 15, 100
_AGENT: JsonDict = {"langgraph_nodes": ["agent"]}  # where Studio shows a field
_TOOLS: JsonDict = {"langgraph_nodes": ["agent", "tools"]}


class Context(BaseModel):
    """An agent's settings; a run's context changes those that it sets. Null and blank values count as not set.

    A parent graph passes its own context down. It applies here if it is of this class or a subclass with more fields;
    of any other, only a scope counts.

    Raises:
        InputError: A setting is unknown or out of bounds.

    Example:
        >>> question = {"messages": [("user", "Who was the engineer of the Vellin Light?")]}
        >>> state = agent.invoke(question, context=Context(max_steps=1))
        >>> state["steps"], state["stop_reason"]
        (1, 'max_steps')
    """

    model_config = ConfigDict(frozen=True, extra="forbid", title="A-RAG")

    model: str | None = Field(
        default=None,
        description="Chat model as provider:model (openai:gpt-5-mini, anthropic:claude-sonnet-5-5); or extractive, the "
        "built-in model, which is not a language model. Never an address: that is for whoever starts the agent.",
        examples=["openai:gpt-5-mini", "extractive"],
        json_schema_extra={"langgraph_nodes": ["agent", "force_answer"]},
    )
    scope: Scope | None = Field(
        default=None,
        description="Which documents the run may see; the model is not told. It never widens the agent's own scope.",
        json_schema_extra={"langgraph_nodes": ["tools"]},
    )
    tools: Annotated[tuple[ToolName, ...], Field(min_length=1)] = Field(
        default=TOOL_NAMES,
        description="Which retrieval tools the model gets. Without chunk_read, searches return full chunks.",
        json_schema_extra={"uniqueItems": True, **_TOOLS},
    )
    top_k: int = Field(
        default=DEFAULT_TOP_K,
        ge=1,
        le=MAX_RESULTS,
        description="Number of chunks that a search shows.",
        json_schema_extra=_TOOLS,
    )
    presentation: Presentation = Field(
        default="compact",
        description="What searches show: compact, or the paper's plain lists.",
        json_schema_extra=_TOOLS,
    )
    system_prompt: str | None = Field(
        default=None,
        description="Replaces the system prompt of the search.",
        json_schema_extra={"langgraph_type": "prompt", **_AGENT},
    )
    max_steps: int = Field(
        default=DEFAULT_MAX_STEPS,
        ge=1,
        le=MAX_STEPS,
        description="Maximum model calls before an answer is forced.",
        json_schema_extra=_AGENT,
    )
    max_context_tokens: int = Field(
        default=128_000,
        ge=2_000,
        description="Maximum tokens in the model's context before an answer is forced.",
        json_schema_extra=_AGENT,
    )

    def __init__(self, **settings: Any) -> None:
        try:
            super().__init__(**settings)
        except ValidationError as error:
            faults = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}, not {e['input']!r}" for e in error.errors()]
            known = ", ".join(type(self).model_fields)
            message = f"the settings are not valid: {without_credentials('; '.join(faults))}. Valid settings: {known}"
            raise InputError(message) from None  # pydantic's error has the credentials

    @model_validator(mode="before")
    @classmethod
    def _drop_blank(cls, settings: Any) -> Any:
        if not isinstance(settings, Mapping):
            return settings
        return {k: v for k, v in settings.items() if v is not None and not (isinstance(v, str) and not v.strip())}

    @field_validator("model")
    @classmethod
    def _check_model(cls, model: str | None) -> str | None:
        # Contexts are stored and come over networks: they decide neither where keys go nor what is loaded here.
        if model and ("@" in model or model.lower().startswith("huggingface:")):
            raise ValueError("a run's model is provider:model, without an address, and never from the model hub")
        return model

    def merge(self, context: object) -> Context:
        """Return these settings, changed by a run's context.

        Args:
            context: The run's context: a `Context`, anything with a scope, or None.
        """
        if not isinstance(context, Context):
            scope = _find_scope(context)
            return self if scope is None else self.model_copy(update={"scope": scope})
        changed = context.model_fields_set & Context.model_fields.keys()
        return self.model_copy(update={name: getattr(context, name) for name in changed})


def _find_scope(context: object) -> Scope | None:
    """Return the scope in a context of another type: ignoring it would show what it hides."""
    scope = context.get("scope") if isinstance(context, Mapping) else getattr(context, "scope", None)
    if isinstance(scope, Mapping) and scope and scope.keys() <= Scope.model_fields.keys():
        return Scope(**scope)
    return scope if isinstance(scope, Scope) else None
