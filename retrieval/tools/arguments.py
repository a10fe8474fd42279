"""The arguments of the retrieval tools, and what models send in their place."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, TypeAlias

from langchain.tools import InjectedState
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError, model_validator

from arag.errors import list_faults
from arag.retrieval import MAX_CHARACTERS
from arag.retrieval.presentation.retrieve import MAX_QUERIES
from arag.text.surrogates import replace_surrogates

MAX_KEYWORDS = 50  # of one call: each is looked for in the whole corpus
MAX_CHUNK_IDS = 100  # of one call

# What models call arguments.
_OTHER_NAMES = {
    "keyword": "keywords",
    "query": "queries",
    "chunk_id": "chunk_ids",
    "cmd": "command",
    "script": "command",
}


def _as_list(value: Any) -> Any:
    """Accept what models send for a list: the list as a JSON string, a single item, numbers, blank items."""
    if isinstance(value, str) and value.strip().startswith("["):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    items = value if isinstance(value, list) else [value]
    accepted: list[Any] = []
    for item in items:
        text = str(item) if type(item) in {int, float} else item
        if not isinstance(text, str):
            accepted.append(text)  # refused later, with an error that names its place
        elif text.strip():
            accepted.append(replace_surrogates(text))
    return accepted


def _check_number(texts: list[str], most: int, least: int = 1) -> list[str]:
    if not least <= len(texts) <= most:
        raise ValueError(f"there are {len(texts):,}: give 1 to {most}")
    return texts


def _check_length(text: str) -> str:  # results and errors repeat it
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"it has {len(text):,} characters: give at most {MAX_CHARACTERS:,}")
    return text


# Models pay for schemas with every prompt: bounds are checked outside of them, and defaults come from factories,
# which schemas do not repeat.
OneText: TypeAlias = Annotated[str, AfterValidator(_check_length)]
Texts: TypeAlias = Annotated[list[OneText], BeforeValidator(_as_list)]
Keywords: TypeAlias = Annotated[Texts, AfterValidator(partial(_check_number, most=MAX_KEYWORDS))]
Queries: TypeAlias = Annotated[Texts, AfterValidator(partial(_check_number, most=MAX_QUERIES))]
# No id at all is an error of the tool, with a text of its own.
ChunkIds: TypeAlias = Annotated[Texts, AfterValidator(partial(_check_number, most=MAX_CHUNK_IDS, least=0))]
Within: TypeAlias = Annotated[OneText, Field(description="Only documents with this in title or id.")]


class RetrievalArguments(BaseModel):
    """Arguments of a tool call; a null counts as an argument that was left out, and lists may have singular names."""

    messages: Annotated[list[Any], InjectedState("messages")] = Field(
        default_factory=list, description="The conversation so far; filled in by the graph, never by the model."
    )

    @model_validator(mode="before")
    @classmethod
    def _tidy(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        tidy: dict[str, Any] = {}
        for name, value in values.items():
            if name not in cls.model_fields:
                name = _OTHER_NAMES.get(name, name)  # noqa: PLW2901
            if value is not None:
                tidy[name] = value
        return tidy


def explain(error: ValidationError | Any) -> str:
    """Tell the model which arguments of its call are wrong."""
    return f"The call's arguments are not valid. {list_faults(error)}. Call the tool again with valid arguments."
