"""The knowledge graph of a corpus, its rows in the tables of prompts, and the context of local search."""

from __future__ import annotations

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from arag.retrieval.tokens import count_tokens
from arag.retrieval.types import Chunk

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


# --- the context of local search ---

REPORTS = "Reports\n\n"
SOURCES = "\nSources\n\n"
_MAX_LEVEL = 2  # of the communities whose reports are used
_REPORTS_SHARE, _CHUNKS_SHARE = 0.15, 0.5  # of a context's tokens; the rest is for the tables
_OUTER_RELATIONSHIPS = 10  # for each selected entity, with entities that were not selected


class Context(NamedTuple):
    """What the model is shown: reports, rows of two tables, and chunks; the first three and the last as text."""

    reports: list[Report]
    entities: list[Entity]
    relationships: list[Relationship]
    chunks: list[Chunk]
    tables: str
    sources: str


def build_context(
    graph: KnowledgeGraph, selected: Sequence[Entity], chunk_of: Callable[[str], Chunk | None], max_tokens: int
) -> Context:
    """Build the context from the selected entities, nearest first.

    The table of relationships grows by those of one entity after the other, while it fits beside that of entities.
    """
    for_reports, for_chunks = int(max_tokens * _REPORTS_SHARE), int(max_tokens * _CHUNKS_SHARE)
    for_tables = max_tokens - for_reports - for_chunks
    reports, tables = fill(REPORTS, rank_reports(graph, selected), report_text, for_reports)
    entities, entity_table = fill(ENTITIES, selected, entity_row, for_tables)
    relationships, relationship_table = list[Relationship](), ""
    for number in range(1, len(selected) + 1):
        ranked = rank_relationships(graph, selected[:number])
        more, table = fill(RELATIONSHIPS, ranked, relationship_row, for_tables)
        if count_tokens(table) > for_tables - count_tokens(entity_table):
            break
        relationships, relationship_table = more, table
    ranked_chunks = filter(None, map(chunk_of, rank_chunks(graph, selected)))
    chunks, sources = fill(SOURCES, ranked_chunks, chunk_text, for_chunks)
    return Context(reports, entities, relationships, chunks, tables + entity_table + relationship_table, sources)


def fill(head: str, rows: Iterable[Row], text: Callable[[Row], str], max_tokens: float) -> tuple[list[Row], str]:
    """Return the rows up to the first that does not fit into a part with a head, and the part's text."""
    taken = fitting(rows, text, max_tokens - count_tokens(head))
    return taken, head + "".join(map(text, taken)) if taken else ""


def report_text(report: Report) -> str:
    """Return a report as it is in a context."""
    return f"{report.text}\n\n"


def chunk_text(chunk: Chunk) -> str:
    """Return a chunk as it is in a context."""
    return f"[{chunk.id}]\n{chunk.text}\n\n"


def rank_reports(graph: KnowledgeGraph, selected: Iterable[Entity]) -> list[Report]:
    """Return the reports on communities of the selected entities: those with most of them, then the best rated."""
    places = {entity.title: place for place, entity in enumerate(selected)}
    ranks: dict[Report, tuple[float, ...]] = {}
    for report in graph.reports:
        members = [places[title] for title in report.community.members if title in places]
        if members and report.community.level <= _MAX_LEVEL:
            ranks[report] = (-len(members), -report.rating, min(members))
    return sorted(ranks, key=ranks.__getitem__)


def rank_relationships(graph: KnowledgeGraph, selected: Sequence[Entity]) -> list[Relationship]:
    """Return relationships of the selected entities: first those between them, by rank; then those with others.

    The latter are ordered by how many of the selected entities the other one is related to, then by rank. There are at
    most ten of them for each selected entity.
    """
    titles = {entity.title for entity in selected}
    own = graph.relationships_of(titles)
    inner = [each for each in own if each.source in titles and each.target in titles]
    outer = [(each.target, each.source, each) for each in own if each.target not in titles]
    outer += [(each.source, each.target, each) for each in own if each.source not in titles]
    links: dict[str, set[str]] = defaultdict(set)
    for other, title, _ in outer:
        links[other].add(title)
    inner.sort(key=lambda each: (-each.rank, each.number))
    # Among equals, those that start from a selected entity come first.
    outer.sort(key=lambda it: (-len(links[it[0]]), -it[2].rank, it[2].target in titles, it[2].number))
    return inner + [each for _, _, each in outer[: _OUTER_RELATIONSHIPS * len(selected)]]


def rank_chunks(graph: KnowledgeGraph, selected: Iterable[Entity]) -> list[str]:
    """Return the ids of the chunks of each selected entity in turn, by how many of its relationships they hold."""
    ranks: dict[str, tuple[int, int]] = {}
    for place, entity in enumerate(selected):
        counts = Counter(chunk_id for each in graph.relationships_of([entity.title]) for chunk_id in each.chunk_ids)
        for chunk_id in entity.chunk_ids:
            ranks.setdefault(chunk_id, (place, -counts[chunk_id]))
    return sorted(ranks, key=lambda chunk_id: ranks[chunk_id])
