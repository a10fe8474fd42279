"""The settings that a run may change, from a program, the API server or Studio."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from arag.errors import InputError
from arag.retrieval.scope import Scope
from arag.retrieval.tools import MAX_RESULTS, Presentation, ToolName

MAX_STEPS = 100


class Context(BaseModel):
    """The settings of one run; what is left out, null or blank keeps the agent's setting.

    A parent graph passes its own context down. It applies here if it is of this class or a subclass with more fields;
    of any other, only a scope counts.

    Example:
        >>> question = {"messages": [("user", "Who was the engineer of the Vellin Light?")]}
        >>> state = agent.invoke(question, context=Context(max_steps=1))
        >>> state["steps"], state["stop_reason"]
        (1, 'max_steps')
    """

    model_config = ConfigDict(frozen=True, extra="forbid", title="A-RAG")

    # Studio shows a field at the nodes that `langgraph_nodes` names.
    index: str | None = Field(
        default=None,
        description="Folder of the index to search, never the address of a database. On a server: ARAG_INDEX, or a "
        "folder below ARAG_INDEX_ROOT, absolute or relative to it.",
        json_schema_extra={"langgraph_nodes": ["tools"]},
    )
    scope: Scope | None = Field(
        default=None,
        description="Which documents the run may see; the model is not told. It never widens the agent's own scope.",
        json_schema_extra={"langgraph_nodes": ["tools"]},
    )
    model: str | None = Field(
        default=None,
        description="Chat model as provider:model (openai:gpt-5-mini, anthropic:claude-sonnet-5-5, ollama:qwen3), plus "
        "@base_url for an OpenAI-compatible server; or extractive, the built-in model, which is not a language model. "
        "On a server, the base URL must be ARAG_MODEL's or one of ARAG_MODEL_ADDRESSES.",
        examples=["openai:gpt-5-mini", "openai:qwen3@http://localhost:8000/v1", "extractive"],
        json_schema_extra={"langgraph_nodes": ["agent", "force_answer"]},
    )
    max_steps: int | None = Field(
        default=None,
        ge=1,
        le=MAX_STEPS,
        description="Maximum model calls before an answer is forced.",
        json_schema_extra={"langgraph_nodes": ["agent"]},
    )
    top_k: int | None = Field(
        default=None,
        ge=1,
        le=MAX_RESULTS,
        description="Number of chunks that a search shows.",
        json_schema_extra={"langgraph_nodes": ["agent", "tools"]},
    )
    presentation: Presentation | None = Field(
        default=None,
        description="What searches show: compact, or the paper's plain lists.",
        json_schema_extra={"langgraph_nodes": ["agent", "tools"]},
    )
    tools: Annotated[tuple[ToolName, ...], Field(min_length=1)] | None = Field(
        default=None,
        description="Which retrieval tools the model gets. Without chunk_read, searches return full chunks.",
        json_schema_extra={"uniqueItems": True, "langgraph_nodes": ["agent", "tools"]},
    )
    system_prompt: str | None = Field(
        default=None,
        description="Replaces the system prompt of the search.",
        json_schema_extra={"langgraph_nodes": ["agent"], "langgraph_type": "prompt"},
    )

    def __init__(self, **settings: Any) -> None:
        """Check the settings.

        Raises:
            InputError: A setting is unknown or out of bounds.
        """
        try:
            super().__init__(**settings)
        except ValidationError as error:
            faults = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}, not {e['input']!r}" for e in error.errors()]
            known = ", ".join(type(self).model_fields)
            raise InputError(f"the run's context is not valid: {'; '.join(faults)}. Valid settings: {known}") from error

    @field_validator("index", "model", "system_prompt", mode="before")
    @classmethod
    def _read_text(cls, value: object, info: ValidationInfo) -> object:
        """Accept a path for the index, and treat a blank form field as left out."""
        text = str(value) if isinstance(value, Path) and info.field_name == "index" else value
        return None if isinstance(text, str) and not text.strip() else text
