"""The context of local search: what the graph and the corpus hold about the entities nearest to a question."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from arag.evaluation.methods.graphrag.knowledge import Entity, KnowledgeGraph, Relationship, Report
from arag.evaluation.methods.graphrag.texts import (
    ENTITIES,
    RELATIONSHIPS,
    entity_row,
    fitting,
    relationship_row,
)
from arag.retrieval.tokens import count_tokens
from arag.retrieval.types import Chunk

REPORTS = "Reports\n\n"
SOURCES = "\nSources\n\n"
_REPORTS_SHARE, _CHUNKS_SHARE = 0.15, 0.5  # of a context; the rest is for the tables
_PER_ENTITY = 10  # relationships with entities that were not selected


@dataclass(frozen=True, slots=True)
class Budgets:
    """Tokens of the three parts of a context.

    Attributes:
        reports: Of the reports.
        tables: Of the tables of entities and relationships.
        chunks: Of the chunks.
    """

    reports: int
    tables: int
    chunks: int

    @classmethod
    def divide(cls, max_tokens: int) -> Self:
        """Return the parts of a context of so many tokens."""
        reports, chunks = int(max_tokens * _REPORTS_SHARE), int(max_tokens * _CHUNKS_SHARE)
        return cls(reports, max_tokens - reports - chunks, chunks)


@dataclass(frozen=True, slots=True)
class LocalContext:
    """A context.

    Attributes:
        reports: The reports in it.
        entities: The entities in its table.
        relationships: The relationships in its table.
        chunks: The chunks in it.
    """

    reports: list[Report]
    entities: list[Entity]
    relationships: list[Relationship]
    chunks: list[Chunk]

    @property
    def tables(self) -> str:
        """The reports and tables as text."""
        return (
            _part(REPORTS, map(report_text, self.reports))
            + _part(ENTITIES, map(entity_row, self.entities))
            + _part(RELATIONSHIPS, map(relationship_row, self.relationships))
        )

    @property
    def text(self) -> str:
        """All of it as text."""
        return (self.tables + _part(SOURCES, map(chunk_text, self.chunks))).strip()


def _part(head: str, rows: Iterable[str]) -> str:
    rows = list(rows)
    return head + "".join(rows) if rows else ""


def report_text(report: Report) -> str:
    """Return a report as it is in a context."""
    return f"{report.text}\n\n"


def chunk_text(chunk: Chunk) -> str:
    """Return a chunk as it is in a context."""
    return f"[{chunk.id}]\n{chunk.text}\n\n"


def build_context(
    graph: KnowledgeGraph,
    selected: Sequence[Entity],
    get: Callable[[str], Chunk | None],
    level: int,
    budgets: Budgets,
) -> LocalContext:
    """Build the context of a question.

    Args:
        graph: The graph.
        selected: The entities nearest to the question, nearest first.
        get: Returns a chunk by its id.
        level: The deepest level of communities whose reports are used.
        budgets: Tokens of its parts. Each part ends before the first row that does not fit.
    """
    entities, relationships = _fill_tables(graph, selected, budgets.tables)
    reports, chunks = rank_reports(graph, selected, level), filter(None, map(get, rank_chunks(graph, selected)))
    return LocalContext(
        reports=fitting(reports, report_text, budgets.reports - count_tokens(REPORTS)),
        entities=entities,
        relationships=relationships,
        chunks=fitting(chunks, chunk_text, budgets.chunks - count_tokens(SOURCES)),
    )


def rank_reports(graph: KnowledgeGraph, selected: Iterable[Entity], level: int) -> list[Report]:
    """Return the reports on communities of the selected entities: those with most of them, then the best rated."""
    found = [
        report
        for entity in selected
        for report in graph.reports_on.get(entity.title, ())
        if report.community.level <= level
    ]
    matches = Counter(report.community.number for report in found)
    reports = {report.community.number: report for report in found}
    return sorted(reports.values(), key=lambda report: (-matches[report.community.number], -report.rating))


def rank_relationships(graph: KnowledgeGraph, selected: Sequence[Entity]) -> list[Relationship]:
    """Return relationships of the selected entities.

    First those between them, by rank; then those with others, by how many of the selected entities the other one is
    related to, then by rank. Of the latter there are at most ten for each selected entity.
    """
    titles = {entity.title for entity in selected}
    found = {each.number: each for title in titles for each in graph.relationships_of.get(title, ())}.values()
    inner = [each for each in found if each.source in titles and each.target in titles]
    outer = [(each.target, each.source, each) for each in found if each.target not in titles]
    outer += [(each.source, each.target, each) for each in found if each.source not in titles]
    links: dict[str, set[str]] = defaultdict(set)
    for other, own, _ in outer:
        links[other].add(own)
    # Among equals, those that start from a selected entity come first.
    outer.sort(key=lambda it: (-len(links[it[0]]), -it[2].rank, it[2].target in titles, it[2].number))
    inner.sort(key=lambda each: (-each.rank, each.number))
    return inner + [each for _, _, each in outer[: _PER_ENTITY * len(selected)]]


def rank_chunks(graph: KnowledgeGraph, selected: Iterable[Entity]) -> list[str]:
    """Return the ids of the chunks that name the selected entities.

    A chunk belongs to the first of them. The chunks of one entity are ordered by how many of its relationships they
    hold.
    """
    places: dict[str, tuple[int, int]] = {}
    for place, entity in enumerate(selected):
        relationships = graph.relationships_of.get(entity.title, ())
        held = Counter(chunk_id for each in relationships for chunk_id in each.chunk_ids)
        for chunk_id in entity.chunk_ids:
            places.setdefault(chunk_id, (place, -held[chunk_id]))
    return sorted(places, key=lambda chunk_id: places[chunk_id])


def _fill_tables(
    graph: KnowledgeGraph, selected: Sequence[Entity], max_tokens: int
) -> tuple[list[Entity], list[Relationship]]:
    """Return what both tables hold: entities first, then relationships of ever more of the selected entities."""
    entities = fitting(selected, entity_row, max_tokens - count_tokens(ENTITIES))
    used = count_tokens(_part(ENTITIES, map(entity_row, entities)))
    relationships: list[Relationship] = []
    for number in range(1, len(selected) + 1):
        ranked = rank_relationships(graph, selected[:number])
        wanted = fitting(ranked, relationship_row, max_tokens - count_tokens(RELATIONSHIPS))
        if used + count_tokens(_part(RELATIONSHIPS, map(relationship_row, wanted))) > max_tokens:
            break
        relationships = wanted
    return entities, relationships
