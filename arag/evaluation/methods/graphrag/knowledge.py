"""A knowledge graph: entities, relationships, communities with reports, and the rows that show them to a model."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from pydantic import BaseModel

from arag.evaluation.methods.shared import Rating, Text
from arag.text.tokens import count_tokens

Row = TypeVar("Row")
MAX_LEVEL = 2  # of the smallest communities whose reports are used: the default of the authors' implementation


class _Finding(BaseModel):
    summary: Text
    explanation: Text


class Report(BaseModel):
    """A report on a community; its rating from 0 to 10 says how important the community is."""

    title: Text
    summary: Text
    rating: Rating
    findings: list[_Finding]

    @property
    def text(self) -> str:
        """The whole report as Markdown."""
        parts = [f"# {self.title}", self.summary]
        for finding in self.findings:
            parts += [f"## {finding.summary}", finding.explanation]
        return "\n\n".join(parts)


@dataclass(frozen=True, slots=True)
class Described:
    """An entity or a relationship, with its descriptions in chunks: sorted, or the single one that combines them."""

    number: int
    descriptions: tuple[str, ...]
    chunk_ids: tuple[str, ...]

    @property
    def description(self) -> str:
        """The descriptions as one text."""
        return " ".join(self.descriptions)


@dataclass(frozen=True, slots=True)
class Entity(Described):
    """An entity, its title and type in capitals; its degree counts a relationship with itself twice."""

    title: str
    type: str
    degree: int

    def __str__(self) -> str:
        return self.title


@dataclass(frozen=True, slots=True)
class Relationship(Described):
    """A directed relationship between the titles of two entities; its weight is the sum of its strengths."""

    source: str
    target: str
    weight: float
    rank: int = 0
    """The sum of the degrees of both entities."""

    def __str__(self) -> str:
        return f"{self.source} and {self.target}"


class Community(NamedTuple):
    """The titles of closely related entities; the largest communities are on level 0."""

    level: int
    members: tuple[str, ...]


class KnowledgeGraph:
    """The entities, relationships and communities of a corpus.

    Args:
        entities: The entities, in the order of their numbers.
        relationships: The relationships, in the order of their numbers.

    Attributes:
        entities: The entities.
        relationships: The relationships.
        reports: The reports on communities.
        by_title: The entities by title.
    """

    def __init__(self, entities: Sequence[Entity], relationships: Sequence[Relationship]) -> None:
        self.entities = entities
        self.relationships = relationships
        self.reports: dict[Community, Report] = {}
        self.by_title = {entity.title: entity for entity in entities}
        self._relationships_of: dict[str, list[Relationship]] = defaultdict(list)
        for each in relationships:
            for title in {each.source, each.target}:
                self._relationships_of[title].append(each)

    def relationships_of(self, titles: Iterable[str]) -> list[Relationship]:
        """Return the relationships of entities, each once."""
        found: dict[int, Relationship] = {}
        for title in titles:
            for each in self._relationships_of.get(title, ()):
                found[each.number] = each
        return list(found.values())


# --- tables ---


def make_row(*cells: object) -> str:
    """Return a row of a table as a line: cells between bars, quoted if they contain bars or quotes."""
    line = io.StringIO()
    writer = csv.writer(line, delimiter="|", lineterminator="\n")
    writer.writerow([" ".join(str(cell).split()) for cell in cells])
    return line.getvalue()


ENTITIES = "Entities\n" + make_row("id", "entity", "description", "relationships")
RELATIONSHIPS = "\nRelationships\n" + make_row("id", "source", "target", "description", "weight")


def entity_row(entity: Entity) -> str:
    """Return an entity's row in the table ENTITIES."""
    return make_row(entity.number, entity.title, entity.description, entity.degree)


def relationship_row(relationship: Relationship) -> str:
    """Return a relationship's row in the table RELATIONSHIPS."""
    return make_row(
        relationship.number,
        relationship.source,
        relationship.target,
        relationship.description,
        f"{relationship.weight:g}",
    )


def fitting(rows: Iterable[Row], text: Callable[[Row], str], max_tokens: float) -> list[Row]:
    """Return the rows before the first one that does not fit.

    Args:
        rows: The rows.
        text: Returns the text of a row.
        max_tokens: Tokens of all rows together.

    Returns:
        The rows that fit.
    """
    taken: list[Row] = []
    left = max_tokens
    for row in rows:
        left -= count_tokens(text(row))
        if left < 0:
            break
        taken.append(row)
    return taken
