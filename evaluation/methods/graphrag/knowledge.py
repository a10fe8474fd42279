"""The knowledge graph: entities, the relationships between them, communities of entities, and reports on these."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity.

    Attributes:
        number: Its place among all entities, from 0.
        title: Its name, in capitals.
        type: Its type, in capitals.
        descriptions: What chunks say about it, sorted, each once; one text after they were summarised.
        chunk_ids: The chunks that name it.
        degree: How many others it has relationships with; one with itself counts twice.
    """

    number: int
    title: str
    type: str
    descriptions: tuple[str, ...]
    chunk_ids: tuple[str, ...]
    degree: int = 0

    @property
    def description(self) -> str:
        """The descriptions as one text."""
        return " ".join(self.descriptions)


@dataclass(frozen=True, slots=True)
class Relationship:
    """A directed relationship between two entities.

    Attributes:
        number: Its place among all relationships, from 0.
        source: The title of the entity that it starts from.
        target: The title of the other one.
        descriptions: What chunks say about it, sorted, each once; one text after they were summarised.
        chunk_ids: The chunks that name it.
        weight: The sum of the strengths that were found.
        rank: The sum of its ends' degrees.
    """

    number: int
    source: str
    target: str
    descriptions: tuple[str, ...]
    chunk_ids: tuple[str, ...]
    weight: float
    rank: int = 0

    @property
    def description(self) -> str:
        """The descriptions as one text."""
        return " ".join(self.descriptions)


@dataclass(frozen=True, slots=True)
class Community:
    """Entities that are closely related.

    Attributes:
        number: Its number.
        level: Its level in the hierarchy; 0 holds the largest communities.
        parent: The number of the community that it is a part of, or -1.
        members: The titles of its entities, sorted.
    """

    number: int
    level: int
    parent: int
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """A report on a community.

    Attributes:
        community: The community.
        title: Its title.
        text: All of it, as Markdown.
        rating: How important the model finds the community, 0 to 10.
    """

    community: Community
    title: str
    text: str
    rating: float


@dataclass(frozen=True)
class KnowledgeGraph:
    """What was read from the corpus.

    Attributes:
        entities: The entities, in order of their numbers.
        relationships: The relationships, in order of their numbers.
        reports: The reports, in order of their communities' numbers.
        losses: What had no usable reply: how many, by what was asked for.
    """

    entities: list[Entity]
    relationships: list[Relationship]
    reports: list[Report]
    losses: dict[str, int]

    @cached_property
    def relationships_of(self) -> dict[str, list[Relationship]]:
        """The relationships of each entity, by its title."""
        found: dict[str, list[Relationship]] = defaultdict(list)
        for each in self.relationships:
            for end in {each.source, each.target}:
                found[end].append(each)
        return dict(found)

    @cached_property
    def reports_on(self) -> dict[str, list[Report]]:
        """The reports on the communities of each entity, by its title."""
        found: dict[str, list[Report]] = defaultdict(list)
        for report in self.reports:
            for member in report.community.members:
                found[member].append(report)
        return dict(found)

    @cached_property
    def chunks_of(self) -> dict[int, set[str]]:
        """The chunks that name members of each community with a report, by its number."""
        chunks = {entity.title: entity.chunk_ids for entity in self.entities}
        return {
            report.community.number: {chunk for member in report.community.members for chunk in chunks[member]}
            for report in self.reports
        }
