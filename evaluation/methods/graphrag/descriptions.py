"""Summarises what several chunks say about one entity or relationship."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import TypeAlias

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from arag.evaluation.methods.graphrag.knowledge import Entity, Relationship
from arag.evaluation.methods.graphrag.texts import fitting
from arag.graph.prompts import DATA_RULE, as_data

MAX_TOKENS = 4_000  # of the descriptions in one call

Described: TypeAlias = Entity | Relationship

_TASK = f"""You are given descriptions of one entity, or of the relationship between two, from several passages. Write
one description that holds all their facts, in the third person, with the names in it so that it can be understood
alone. Where descriptions contradict each other, settle it if you can, and else say so. At most 500 words, in the
language of the descriptions. Reply with the description only.

{DATA_RULE}"""


def summary_messages(of: str, descriptions: Sequence[str]) -> list[BaseMessage]:
    """Return the messages that ask for a summary.

    Args:
        of: What is described: a name, or two.
        descriptions: The descriptions.
    """
    listed = "\n".join(f"- {' '.join(description.split())}" for description in descriptions)
    return [SystemMessage(_TASK), HumanMessage(f"{as_data('names', of)}\n\n{as_data('descriptions', listed)}")]


def summarise(
    described: Described, max_tokens: int = MAX_TOKENS
) -> Generator[list[BaseMessage], str | None, tuple[Described, bool]]:
    """Summarise the descriptions of an entity or a relationship, if there are several.

    The summary of the first descriptions goes into the next call, with those that fit beside it.

    Args:
        described: The entity or relationship.
        max_tokens: Tokens of the descriptions in one call, in which there are at least two.

    Yields:
        The messages of a call; it is sent the reply, None if there was no usable one.

    Returns:
        The entity or relationship with one description, and whether every reply was usable. Otherwise its
        descriptions are as they were.
    """
    waiting: list[str] = list(described.descriptions)
    while len(waiting) > 1:
        batch: list[str] = waiting[: max(len(fitting(waiting, str, max_tokens)), 2)]
        summary = yield summary_messages(_names(described), batch)
        if summary is None:
            return described, False
        waiting = [summary, *waiting[len(batch) :]]
    return replace(described, descriptions=tuple(waiting)), True


def _names(described: Described) -> str:
    return described.title if isinstance(described, Entity) else f"{described.source} and {described.target}"
