"""Builds the knowledge graph of a corpus (Edge et al. 2024, section 3.1).

The model finds entities and relationships in chunks, which are merged into one graph. It then combines the descriptions
of each, and reports on communities of closely related entities.
"""

from __future__ import annotations

import html
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from itertools import chain
from typing import Annotated, TypeVar

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from pydantic import BaseModel, BeforeValidator, FiniteFloat, OnErrorOmit

from arag.errors import InputError
from arag.evaluation.method import Session
from arag.evaluation.methods.graphrag.knowledge import (
    ENTITIES,
    RELATIONSHIPS,
    Community,
    Described,
    Entity,
    KnowledgeGraph,
    Relationship,
    Report,
    entity_row,
    fitting,
    relationship_row,
)
from arag.evaluation.methods.shared import list_bullets
from arag.graph.prompts import as_data
from arag.text.tokens import count_tokens

TASK = """You turn a text into a knowledge graph.

1. List every entity in the text that is one of these types: organization, person, geo, event. Give its name as the
text spells it out most fully, its type, and a description: all that the text says about what it is and does.
2. List the relationships between these entities that the text states or clearly implies. Name both ends exactly as in
your list of entities, say why they are related, and rate the strength of the relationship from 1 (mentioned together)
to 10 (inseparable).

Write in the language of the text, and say nothing that is not in it. Reply with one JSON object and nothing else:
{"entities": [{"name": "...", "type": "...", "description": "..."}],
"relationships": [{"source": "...", "target": "...", "description": "...", "strength": 1}]}
A text without such entities gets two empty lists.

For example, "Ada Venn has run the Tarn Ferry Company since 1911." holds two entities and one relationship:
{"entities": [{"name": "Ada Venn", "type": "person", "description": "Has run the Tarn Ferry Company since 1911."},
{"name": "Tarn Ferry Company", "type": "organization", "description": "Has been run by Ada Venn since 1911."}],
"relationships": [{"source": "Ada Venn", "target": "Tarn Ferry Company", "description": "Ada Venn has run the company
since 1911.", "strength": 9}]}"""

AGAIN = """Read the text once more: a first reading misses many entities and relationships. Reply with a JSON object
of the same form that holds only those that are not in your list yet. Relationships may join entities of both lists."""

_DESCRIBE = """You are given descriptions of one entity, or of the relationship between two, from several passages.
Write one description that holds all their facts, in the third person, with the names in it so that it can be
understood alone. Where descriptions contradict each other, settle it if you can, and else say so. At most 500 words,
in the language of the descriptions. Reply with the description only."""

_REPORT = """You report on a community: entities that belong together, and the relationships between them, which two
tables list. The report lets readers who do not have the tables understand who and what is in the community, how they
are connected, and what is known about them.

Write a title that names the chief entities; a summary of the whole; a rating from 0 to 10 of how much the community
matters; one sentence that explains the rating; and five to ten findings, the most important first, each with a
one-sentence summary and an explanation of several sentences. At most 2,000 words, in the language of the tables, and
nothing that they do not support. Reply with one JSON object and nothing else:
{"title": "...", "summary": "...", "rating": 5.0, "rating_explanation": "...",
"findings": [{"summary": "...", "explanation": "..."}]}"""

# These limits, the size of communities and the seed are the defaults of the authors' implementation.
MAX_DESCRIPTIONS_TOKENS = 4_000  # in one call
MAX_TABLES_TOKENS = 8_000  # of one community

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_MIN_STRENGTH, _MAX_STRENGTH = 1.0, 10.0  # the scale in the task
_MAX_MEMBERS = 10  # larger communities are divided further, on the next level
_SEED = 0xDEADBEEF  # any fixed number would make the communities reproducible

# Small models write null for a value that they do not know.
_TextOrNull = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]
Item = TypeVar("Item", bound="Described")


# --- the model's replies ---


class ChunkEntity(BaseModel):
    """An entity as one chunk names it."""

    name: str
    type: _TextOrNull = ""
    description: _TextOrNull = ""


class ChunkRelationship(BaseModel):
    """A relationship as one chunk names it; its ends are names of entities."""

    source: str
    target: str
    description: _TextOrNull = ""
    strength: FiniteFloat = 1


class Extraction(BaseModel):
    """The entities and relationships of one chunk; invalid ones are dropped."""

    entities: list[OnErrorOmit[ChunkEntity]]
    relationships: list[OnErrorOmit[ChunkRelationship]] = []


def build_graph(session: Session) -> KnowledgeGraph:
    """Build the graph of a corpus.

    Args:
        session: Calls the model, and has the chunks.

    Returns:
        The graph, with reports on its communities.

    Raises:
        InputError: The package that finds communities is not installed.
    """
    if find_spec("graspologic_native") is None:
        raise InputError("graspologic-native is not installed; install it with pip install 'langgraph-arag[baselines]'")
    entities, relationships = merge(extract(session))
    graph = KnowledgeGraph(
        entities=summarise(session, entities, "Entities described"),
        relationships=summarise(session, relationships, "Relationships described"),
    )
    graph.reports = write_reports(session, graph)
    return graph


# --- entities and relationships ---


def extract(session: Session) -> list[tuple[str, Extraction]]:
    """Let the model read each chunk twice.

    Args:
        session: Calls the model, and has the chunks.

    Returns:
        The entities and relationships of each reading, with the chunk's id.
    """
    chunks = session.context.chunks
    openings: list[list[AnyMessage]] = [[HumanMessage(as_data("text", chunk.text))] for chunk in chunks]
    first_replies = session.ask_all(TASK, openings, Extraction, title="Chunks read")

    first_readings: list[tuple[str, Extraction]] = []
    conversations: list[list[AnyMessage]] = []
    for chunk, opening, reply in zip(chunks, openings, first_replies, strict=True):
        if reply:
            first_readings.append((chunk.id, reply))
            conversations.append([*opening, AIMessage(reply.model_dump_json()), HumanMessage(AGAIN)])
    second_replies = session.ask_all(TASK, conversations, Extraction, title="Chunks read again")

    readings: list[tuple[str, Extraction]] = []
    for (chunk_id, first), second in zip(first_readings, second_replies, strict=True):
        readings.append((chunk_id, first))
        if second:
            readings.append((chunk_id, second))
    return readings


def clean(text: str) -> str:
    """Return a text without HTML escapes, control characters and surrounding white space."""
    return _CONTROL.sub(" ", html.unescape(text)).strip()


def _title(name: str) -> str:
    """Return a name in the form in which names are compared."""
    return clean(name).upper()


@dataclass
class _Mentions:
    """The mentions of an entity, or of a relationship, in chunks."""

    descriptions: set[str] = field(default_factory=set)
    chunk_ids: dict[str, None] = field(default_factory=dict)  # in order, each once
    weight: float = 0.0

    def add(self, chunk_id: str, description: str) -> None:
        self.chunk_ids[chunk_id] = None
        if description:
            self.descriptions.add(description)


def merge(extractions: Iterable[tuple[str, Extraction]]) -> tuple[list[Entity], list[Relationship]]:
    """Merge the entities and relationships of all chunks.

    Names are compared in capitals. If entities of one name have several types, those of the first type are kept.
    Relationships are directed. A relationship is dropped if one of its ends is not an entity.

    Args:
        extractions: The readings with the chunks' ids; a chunk may have several readings.

    Returns:
        The entities and the relationships, numbered in the order in which they were found.
    """
    types: dict[str, str] = {}
    entities: dict[str, _Mentions] = {}
    pairs: dict[tuple[str, str], _Mentions] = {}
    for chunk_id, extraction in extractions:
        for entity in extraction.entities:
            title, type_ = _title(entity.name), _title(entity.type)
            if title and types.setdefault(title, type_) == type_:
                mentions = entities.setdefault(title, _Mentions())
                mentions.add(chunk_id, clean(entity.description))
        for relationship in extraction.relationships:
            ends = _title(relationship.source), _title(relationship.target)
            mentions = pairs.setdefault(ends, _Mentions())
            mentions.add(chunk_id, clean(relationship.description))
            mentions.weight += min(max(relationship.strength, _MIN_STRENGTH), _MAX_STRENGTH)

    known_pairs = {ends: mentions for ends, mentions in pairs.items() if set(ends) <= entities.keys()}
    degrees = _count_degrees(known_pairs)
    merged_entities: list[Entity] = []
    for title, mentions in entities.items():
        merged = Entity(
            number=len(merged_entities),
            descriptions=tuple(sorted(mentions.descriptions)),
            chunk_ids=tuple(mentions.chunk_ids),
            title=title,
            type=types[title],
            degree=degrees[title],
        )
        merged_entities.append(merged)
    merged_relationships: list[Relationship] = []
    for (source, target), mentions in known_pairs.items():
        merged_relationship = Relationship(
            number=len(merged_relationships),
            descriptions=tuple(sorted(mentions.descriptions)),
            chunk_ids=tuple(mentions.chunk_ids),
            source=source,
            target=target,
            weight=mentions.weight,
            rank=degrees[source] + degrees[target],
        )
        merged_relationships.append(merged_relationship)
    return merged_entities, merged_relationships


def _count_degrees(pairs: Iterable[tuple[str, str]]) -> Counter[str]:
    """Count the entities that each entity is related to, in any direction; a relationship with itself counts twice."""
    undirected = {(min(ends), max(ends)) for ends in pairs}
    return Counter(chain.from_iterable(undirected))


def summarise(session: Session, items: Sequence[Item], title: str) -> list[Item]:
    """Let the model combine the descriptions of each item. Without a usable reply, the item keeps several.

    A call gets the descriptions that fit, but at least two. Its summary goes into the next call, with the rest.

    Args:
        session: Calls the model.
        items: Entities or relationships.
        title: The name of this work in its progress.

    Returns:
        The items, in the same order.
    """
    summarised = {item.number: item for item in items}
    waiting = [item for item in items if len(item.descriptions) > 1]
    while waiting:
        sizes = [_count_fitting(item.descriptions) for item in waiting]
        prompts: list[str] = []
        for item, size in zip(waiting, sizes, strict=True):
            lines = [" ".join(description.split()) for description in item.descriptions[:size]]
            descriptions = as_data("descriptions", list_bullets(lines))
            prompts.append(f"{as_data('names', str(item))}\n\n{descriptions}")
        summaries = session.ask_all(_DESCRIBE, prompts, title=title)

        unfinished: list[Item] = []
        for item, size, summary in zip(waiting, sizes, summaries, strict=True):
            if not summary:
                continue
            shorter = replace(item, descriptions=(summary, *item.descriptions[size:]))
            if len(shorter.descriptions) > 1:
                unfinished.append(shorter)
            else:
                summarised[item.number] = shorter
        waiting = unfinished
    return list(summarised.values())


def _count_fitting(descriptions: Iterable[str]) -> int:
    """Return how many descriptions go into one call."""
    return max(len(fitting(descriptions, str, MAX_DESCRIPTIONS_TOKENS)), 2)


# --- communities ---


def find_communities(relationships: Sequence[Relationship]) -> list[Community]:
    """Find the communities of the largest group of connected entities (Leiden; section 3.1.4).

    Args:
        relationships: The relationships. They count as undirected; if there are several between two entities, the
            weight of the last one counts.

    Returns:
        The communities of all levels, the largest first.
    """
    from graspologic_native import hierarchical_leiden

    weights: dict[tuple[str, str], float] = {}
    for each in relationships:
        pair = min(each.source, each.target), max(each.source, each.target)
        weights.pop(pair, None)  # it moves to the end, which decides between groups of one size
        weights[pair] = each.weight
    if not weights:
        return []
    largest = _find_largest_component(list(weights))
    edges = [(source, target, weight) for (source, target), weight in weights.items() if source in largest]
    placements = hierarchical_leiden(
        edges=sorted(edges),
        starting_communities=None,
        resolution=1.0,
        randomness=0.001,
        iterations=1,
        use_modularity=True,
        max_cluster_size=_MAX_MEMBERS,
        seed=_SEED,
    )
    members: dict[tuple[int, int], list[str]] = defaultdict(list)
    for placement in placements:
        members[placement.level, placement.cluster].append(placement.node)
    communities: list[Community] = []
    for (level, _), titles in sorted(members.items()):
        communities.append(Community(level, tuple(sorted(titles))))
    return communities


def _find_largest_component(pairs: Sequence[tuple[str, str]]) -> set[str]:
    """Return the largest connected component; of several, the one whose first node comes first in the pairs."""
    component_of: dict[str, set[str]] = {}
    for one, other in pairs:
        smaller = component_of.setdefault(one, {one})
        larger = component_of.setdefault(other, {other})
        if smaller is larger:
            continue
        if len(smaller) > len(larger):
            smaller, larger = larger, smaller
        larger |= smaller
        for title in smaller:
            component_of[title] = larger
    return max((component_of[title] for title, _ in pairs), key=len)


def write_reports(session: Session, graph: KnowledgeGraph) -> dict[Community, Report]:
    """Let the model report on communities (section 3.1.5).

    Leiden also divides chains, so a community may have no relationship between its members. It gets no report.

    Args:
        session: Calls the model.
        graph: The graph.

    Returns:
        The usable reports, by community.
    """
    tables: dict[Community, str] = {}
    for community in find_communities(graph.relationships):
        members = set(community.members)
        related = graph.relationships_of(members)
        inner = [each for each in related if each.source in members and each.target in members]
        if inner:
            tables[community] = as_data("tables", make_tables(graph, inner))
    replies = session.ask_all(_REPORT, tables.values(), Report, title="Reports on communities")
    return {community: reply for community, reply in zip(tables, replies, strict=True) if reply}


def make_tables(
    graph: KnowledgeGraph,
    relationships: Iterable[Relationship],
    max_tokens: int = MAX_TABLES_TOKENS,
) -> str:
    """Make the two tables of a community.

    Each relationship adds itself and its two entities, in the order of the relationships' ranks, while they fit. The
    first one is always added. Rows are numbered within the table: with their numbers in the corpus, a change in one
    chunk would change the tables of all communities, and all reports would be paid for again.

    Args:
        graph: The graph.
        relationships: The relationships between members of the community.
        max_tokens: Tokens of both tables.

    Returns:
        The tables, as text.
    """
    entity_rows: dict[str, str] = {}
    relationship_rows: list[str] = []
    left = max_tokens - count_tokens(ENTITIES) - count_tokens(RELATIONSHIPS)
    for each in sorted(relationships, key=lambda each: (-each.rank, each.number)):
        new_rows: dict[str, str] = {}
        for title in (each.source, each.target):
            if title not in entity_rows and title not in new_rows:
                number = len(entity_rows) + len(new_rows)
                new_rows[title] = entity_row(replace(graph.by_title[title], number=number))
        row = relationship_row(replace(each, number=len(relationship_rows)))
        left -= count_tokens(row) + sum(map(count_tokens, new_rows.values()))
        if left < 0 and relationship_rows:
            break
        entity_rows |= new_rows
        relationship_rows.append(row)
    return ENTITIES + "".join(entity_rows.values()) + RELATIONSHIPS + "".join(relationship_rows)
