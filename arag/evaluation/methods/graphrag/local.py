"""Local search: what the graph and the corpus hold about the entities nearest to the question."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self, TypeVar

from arag.evaluation.methods.graphrag.knowledge import (
    ENTITIES,
    RELATIONSHIPS,
    Entity,
    KnowledgeGraph,
    Relationship,
    Report,
    entity_row,
    fitting,
    relationship_row,
)
from arag.retrieval.tokens import count_tokens
from arag.retrieval.types import Chunk

REPORTS = "Reports\n\n"
SOURCES = "\nSources\n\n"
_REPORTS_SHARE, _CHUNKS_SHARE = 0.15, 0.5  # of a context's tokens; the rest is for the tables
_OUTER_RELATIONSHIPS = 10  # for each selected entity, with entities that were not selected

Row = TypeVar("Row")


class Budgets(NamedTuple):
    """Tokens of the three parts of a context."""

    reports: int
    tables: int
    chunks: int

    @classmethod
    def of(cls, max_tokens: int) -> Self:
        """Return the parts of a context of so many tokens."""
        reports, chunks = int(max_tokens * _REPORTS_SHARE), int(max_tokens * _CHUNKS_SHARE)
        return cls(reports, max_tokens - reports - chunks, chunks)


@dataclass(frozen=True, slots=True)
class LocalContext:
    """What the model is shown: reports, the rows of two tables, and chunks."""

    reports: Sequence[Report]
    entities: Sequence[Entity]
    relationships: Sequence[Relationship]
    chunks: Sequence[Chunk]

    @property
    def tables(self) -> str:
        """The reports and tables as text."""
        return (
            _part(REPORTS, report_text, self.reports)
            + _part(ENTITIES, entity_row, self.entities)
            + _part(RELATIONSHIPS, relationship_row, self.relationships)
        )

    @property
    def text(self) -> str:
        """All of it as text."""
        return (self.tables + _part(SOURCES, chunk_text, self.chunks)).strip()


def _part(head: str, text: Callable[[Row], str], rows: Sequence[Row]) -> str:
    return head + "".join(map(text, rows)) if rows else ""


def report_text(report: Report) -> str:
    """Return a report as it is in a context."""
    return f"{report.text}\n\n"


def chunk_text(chunk: Chunk) -> str:
    """Return a chunk as it is in a context."""
    return f"[{chunk.id}]\n{chunk.text}\n\n"


def build_context(
    graph: KnowledgeGraph,
    selected: Sequence[Entity],
    chunk_of: Callable[[str], Chunk],
    level: int,
    budgets: Budgets,
) -> LocalContext:
    """Build the context of a question from the entities nearest to it; parts end at the first row that does not fit."""
    entities, relationships = _fill_tables(graph, selected, budgets.tables)
    chunks = map(chunk_of, rank_chunks(graph, selected))
    return LocalContext(
        fitting(rank_reports(graph, selected, level), report_text, budgets.reports - count_tokens(REPORTS)),
        entities,
        relationships,
        fitting(chunks, chunk_text, budgets.chunks - count_tokens(SOURCES)),
    )


def rank_reports(graph: KnowledgeGraph, selected: Iterable[Entity], level: int) -> list[Report]:
    """Return the reports on communities of the selected entities: those with most of them, then the best rated."""
    reports = [report for entity in selected for report in graph.reports_on.get(entity.title, ())]
    matches = Counter(report.community.number for report in reports)
    by_number = {report.community.number: report for report in reports if report.community.level <= level}
    return sorted(by_number.values(), key=lambda report: (-matches[report.community.number], -report.rating))


def rank_relationships(graph: KnowledgeGraph, selected: Sequence[Entity]) -> list[Relationship]:
    """Return relationships of the selected entities: first those between them, by rank; then those with others.

    The latter are ordered by how many of the selected entities the other one is related to, then by rank. There are at
    most ten of them for each selected entity.
    """
    titles = {entity.title for entity in selected}
    own = {each.number: each for title in titles for each in graph.relationships_of.get(title, ())}.values()
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
        relationships = graph.relationships_of.get(entity.title, ())
        counts = Counter(chunk_id for each in relationships for chunk_id in each.chunk_ids)
        for chunk_id in entity.chunk_ids:
            ranks.setdefault(chunk_id, (place, -counts[chunk_id]))
    return sorted(ranks, key=lambda chunk_id: ranks[chunk_id])


def _fill_tables(
    graph: KnowledgeGraph, selected: Sequence[Entity], max_tokens: int
) -> tuple[list[Entity], list[Relationship]]:
    """Return what both tables hold: entities first, then relationships of ever more of the selected entities."""
    entities = fitting(selected, entity_row, max_tokens - count_tokens(ENTITIES))
    left = max_tokens - count_tokens(_part(ENTITIES, entity_row, entities))
    relationships: list[Relationship] = []
    for number in range(1, len(selected) + 1):
        ranked = rank_relationships(graph, selected[:number])
        more = fitting(ranked, relationship_row, max_tokens - count_tokens(RELATIONSHIPS))
        if count_tokens(_part(RELATIONSHIPS, relationship_row, more)) > left:
            break
        relationships = more
    return entities, relationships
