"""Builds the knowledge graph of a corpus (Edge et al. 2024, section 3.1).

The model reads entities and relationships in chunks, which are merged into one graph; it puts several descriptions into
one, and reports on communities of closely related entities.
"""

from __future__ import annotations

import csv
import html
import io
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple, TypeVar

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from pydantic import BaseModel, BeforeValidator, FiniteFloat, OnErrorOmit

from arag.evaluation.method import Session
from arag.evaluation.methods.shared import Rating, Text
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

MAX_DESCRIPTIONS_TOKENS = 4_000  # in one call
MAX_TABLES_TOKENS = 8_000  # of one community

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_MIN_STRENGTH, _MAX_STRENGTH = 1.0, 10.0
_MAX_MEMBERS = 10  # larger communities are divided further, on the next level
_SEED = 0xDEADBEEF

Mention = tuple[str, str]
"""The id of a chunk that names something, and how it describes it."""
# Small models write null for what they do not know.
_TextOrNull = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]
Item = TypeVar("Item", bound="Described")
Row = TypeVar("Row")


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
    """The entities and relationships of one chunk. Those that are not valid are left out."""

    entities: list[OnErrorOmit[ChunkEntity]]
    relationships: list[OnErrorOmit[ChunkRelationship]] = []


class _Finding(BaseModel):
    summary: Text
    explanation: Text


class Report(BaseModel):
    """A report on a community; its rating says how much the community matters, 0 to 10."""

    title: Text
    summary: Text
    rating: Rating
    findings: list[_Finding]

    @property
    def text(self) -> str:
        """All of it as Markdown."""
        findings = [f"## {finding.summary}\n\n{finding.explanation}" for finding in self.findings]
        return "\n\n".join([f"# {self.title}", self.summary, *findings])


# --- the graph ---


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


class Community(NamedTuple):
    """Titles of closely related entities; level 0 holds the largest communities."""

    level: int
    members: tuple[str, ...]


class KnowledgeGraph:
    """What the model read in a corpus, in order of numbers."""

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
        return list({each.number: each for title in titles for each in self._relationships_of.get(title, ())}.values())


def build_graph(session: Session) -> KnowledgeGraph:
    """Build the graph of a corpus."""
    entities, relationships = merge(extract(session))
    entities = summarise(session, entities, "Entities described")
    graph = KnowledgeGraph(entities, summarise(session, relationships, "Relationships described"))
    graph.reports = write_reports(session, graph)
    return graph


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


# --- entities and relationships ---


def extract(session: Session) -> list[tuple[str, Extraction]]:
    """Let the model read each chunk twice; return what it found, with the chunks' ids."""
    chunks = session.lab.chunks
    texts = [HumanMessage(as_data("text", chunk.text)) for chunk in chunks]
    replies = session.ask_all(TASK, [[text] for text in texts], Extraction, title="Chunks read")
    read = [(chunk.id, text, reply) for chunk, text, reply in zip(chunks, texts, replies, strict=True) if reply]
    conversations: list[list[AnyMessage]] = [
        [text, AIMessage(reply.model_dump_json()), HumanMessage(AGAIN)] for _, text, reply in read
    ]
    again = session.ask_all(TASK, conversations, Extraction, title="Chunks read again")
    both = [(chunk_id, [reply, more]) for (chunk_id, _, reply), more in zip(read, again, strict=True)]
    return [(chunk_id, reading) for chunk_id, readings in both for reading in readings if reading]


def clean(text: str) -> str:
    """Return a text without HTML escapes, control characters and surrounding white space."""
    return _CONTROL.sub(" ", html.unescape(text)).strip()


def merge(extractions: Iterable[tuple[str, Extraction]]) -> tuple[list[Entity], list[Relationship]]:
    """Merge what was read in chunks, of which each may be there several times.

    Names are compared in capitals. Of entities with one name and several types, the first type is kept. Relationships
    are directed; those with an end that is not an entity are dropped.
    """
    types: dict[str, str] = {}
    entities: dict[str, list[Mention]] = defaultdict(list)
    pairs: dict[tuple[str, str], list[Mention]] = defaultdict(list)
    weights: dict[tuple[str, str], float] = defaultdict(float)
    for chunk_id, extraction in extractions:
        for entity in extraction.entities:
            title, kind = clean(entity.name).upper(), clean(entity.type).upper()
            if title and types.setdefault(title, kind) == kind:
                entities[title].append((chunk_id, clean(entity.description)))
        for each in extraction.relationships:
            ends = clean(each.source).upper(), clean(each.target).upper()
            pairs[ends].append((chunk_id, clean(each.description)))
            weights[ends] += min(max(each.strength, _MIN_STRENGTH), _MAX_STRENGTH)
    known = {ends: mentions for ends, mentions in pairs.items() if entities.keys() >= set(ends)}
    degrees = Counter(end for pair in {(min(ends), max(ends)) for ends in known} for end in pair)
    return (
        [
            Entity(number, *_sum_up(mentions), title, types[title], degrees[title])
            for number, (title, mentions) in enumerate(entities.items())
        ],
        [
            Relationship(number, *_sum_up(mentions), *ends, weights[ends], sum(degrees[end] for end in ends))
            for number, (ends, mentions) in enumerate(known.items())
        ],
    )


def _sum_up(mentions: Sequence[Mention]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the different descriptions, sorted, and the chunks in order."""
    descriptions = {description for _, description in mentions} - {""}
    return tuple(sorted(descriptions)), tuple(dict.fromkeys(chunk_id for chunk_id, _ in mentions))


def summarise(session: Session, items: Sequence[Item], title: str) -> list[Item]:
    """Let the model put the descriptions of each item into one; without a usable reply, it keeps several.

    A call gets as many as fit, at least two; its summary goes into the next call, with the rest.
    """
    summarised = {item.number: item for item in items}
    waiting = [item for item in items if len(item.descriptions) > 1]
    while waiting:
        sizes = [max(len(fitting(item.descriptions, str, MAX_DESCRIPTIONS_TOKENS)), 2) for item in waiting]
        prompts = []
        for item, size in zip(waiting, sizes, strict=True):
            listed = "\n".join(f"- {' '.join(description.split())}" for description in item.descriptions[:size])
            prompts.append(f"{as_data('names', str(item))}\n\n{as_data('descriptions', listed)}")
        replies = session.ask_all(_DESCRIBE, prompts, title=title)
        shorter = [
            replace(item, descriptions=(summary, *item.descriptions[size:]))
            for item, size, summary in zip(waiting, sizes, replies, strict=True)
            if summary
        ]
        summarised |= {item.number: item for item in shorter if len(item.descriptions) == 1}
        waiting = [item for item in shorter if len(item.descriptions) > 1]
    return list(summarised.values())


# --- communities ---


def find_communities(relationships: Sequence[Relationship]) -> list[Community]:
    """Find the communities of the largest group of entities that relationships connect (Leiden; section 3.1.4).

    Relationships count as undirected; of several between two entities, the last one's weight counts.
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
    members: dict[tuple[int, int], list[str]] = defaultdict(list)
    for place in hierarchical_leiden(
        edges=sorted((*pair, weight) for pair, weight in weights.items() if pair[0] in largest),
        starting_communities=None,
        resolution=1.0,
        randomness=0.001,
        iterations=1,
        use_modularity=True,
        max_cluster_size=_MAX_MEMBERS,
        seed=_SEED,
    ):
        members[place.level, place.cluster].append(place.node)
    return [Community(level, tuple(sorted(titles))) for (level, _), titles in sorted(members.items())]


def _find_largest_component(pairs: Sequence[tuple[str, str]]) -> set[str]:
    """Return the largest connected component; of several, the one whose first node comes first in the pairs."""
    component_of: dict[str, set[str]] = {}
    for pair in pairs:
        smaller, larger = sorted((component_of.setdefault(title, {title}) for title in pair), key=len)
        if smaller is not larger:
            larger |= smaller
            component_of |= dict.fromkeys(smaller, larger)
    return max((component_of[title] for title, _ in pairs), key=len)


def write_reports(session: Session, graph: KnowledgeGraph) -> dict[Community, Report]:
    """Let the model report on communities (section 3.1.5).

    A community may have no relationship between its members, as chains are divided, too: there is no report on it.
    """
    tables: dict[Community, str] = {}
    for community in find_communities(graph.relationships):
        members = set(community.members)
        inner = [each for each in graph.relationships_of(members) if members >= {each.source, each.target}]
        if inner:
            tables[community] = as_data("tables", make_tables(graph, inner))
    replies = session.ask_all(_REPORT, tables.values(), Report, title="Reports on communities")
    return {community: reply for community, reply in zip(tables, replies, strict=True) if reply}


def make_tables(
    graph: KnowledgeGraph, relationships: Iterable[Relationship], max_tokens: int = MAX_TABLES_TOKENS
) -> str:
    """Return the two tables of a community.

    Each relationship brings its two entities, in the order of the relationships' ranks, until they do not fit. The
    first one is there even if it does not. Rows are numbered within the table: with their numbers in the corpus,
    a chunk that changes elsewhere would change all tables, and all reports would be paid for again.
    """
    rows: dict[str, str] = {}
    lines: list[str] = []
    left = max_tokens - count_tokens(ENTITIES) - count_tokens(RELATIONSHIPS)
    for each in sorted(relationships, key=lambda each: (-each.rank, each.number)):
        titles = [title for title in dict.fromkeys((each.source, each.target)) if title not in rows]
        new = {title: entity_row(replace(graph.by_title[title], number=n)) for n, title in enumerate(titles, len(rows))}
        line = relationship_row(replace(each, number=len(lines)))
        left -= sum(map(count_tokens, [*new.values(), line]))
        if left < 0 and lines:
            break
        rows |= new
        lines.append(line)
    return f"{ENTITIES}{''.join(rows.values())}{RELATIONSHIPS}{''.join(lines)}"
