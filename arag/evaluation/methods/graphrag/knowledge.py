"""The knowledge graph of a corpus, and its rows in the tables of prompts."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from arag.retrieval.tokens import count_tokens

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Described:
    """What chunks name and describe. The descriptions are sorted, or the single one that sums them up."""

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
    """A directed relationship between two titles; its weight is the sum of its strengths in the chunks."""

    source: str
    target: str
    weight: float
    rank: int = 0
    """The sum of its ends' degrees."""

    def __str__(self) -> str:
        return f"{self.source} and {self.target}"


@dataclass(frozen=True, slots=True)
class Community:
    """Titles of closely related entities; level 0 holds the largest communities, whose parent is -1."""

    number: int
    level: int
    parent: int
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """A report on a community: all of it as Markdown, and how much the community matters, 0 to 10."""

    community: Community
    title: str
    text: str
    rating: float


class KnowledgeGraph:
    """What the model read in a corpus, in order of numbers."""

    def __init__(self, entities: Sequence[Entity], relationships: Sequence[Relationship]) -> None:
        self.entities = entities
        self.relationships = relationships
        self.reports: list[Report] = []
        self.by_title = {entity.title: entity for entity in entities}
        self._relationships_of: dict[str, list[Relationship]] = defaultdict(list)
        for each in relationships:
            for title in {each.source, each.target}:
                self._relationships_of[title].append(each)

    def relationships_of(self, titles: Iterable[str]) -> list[Relationship]:
        """Return the relationships of entities, each once."""
        return list({each.number: each for title in titles for each in self._relationships_of.get(title, ())}.values())


# --- tables ---


def make_row(*cells: object) -> str:
    """Return the line of a table's row: cells between bars, quoted where they hold bars or quotes."""
    line = io.StringIO()
    csv.writer(line, delimiter="|", lineterminator="\n").writerow([" ".join(str(cell).split()) for cell in cells])
    return line.getvalue()


ENTITIES = "Entities\n" + make_row("id", "entity", "description", "relationships")
RELATIONSHIPS = "\nRelationships\n" + make_row("id", "source", "target", "description", "weight")


def entity_row(entity: Entity) -> str:
    """Return an entity's row in the table ENTITIES."""
    return make_row(entity.number, entity.title, entity.description, entity.degree)


def relationship_row(relationship: Relationship) -> str:
    """Return a relationship's row in the table RELATIONSHIPS."""
    r = relationship
    return make_row(r.number, r.source, r.target, r.description, f"{r.weight:g}")


def fitting(rows: Iterable[Row], text: Callable[[Row], str], max_tokens: float) -> list[Row]:
    """Return the rows up to the first one whose text does not fit into so many tokens beside those before it."""
    taken: list[Row] = []
    for row in rows:
        max_tokens -= count_tokens(text(row))
        if max_tokens < 0:
            break
        taken.append(row)
    return taken
