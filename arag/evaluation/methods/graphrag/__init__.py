"""GraphRAG (Edge et al. 2024): a model turns the corpus into a knowledge graph and reports on its communities.

Local search answers from the parts of the graph and the corpus that belong to the entities nearest to the question.
Global search, in a module of its own, answers from the reports on all communities.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from arag.evaluation.method import Method, Session
from arag.evaluation.methods.graphrag.building import build_graph
from arag.evaluation.methods.graphrag.global_search import GraphRAGGlobal
from arag.evaluation.methods.graphrag.knowledge import (
    ENTITIES,
    MAX_LEVEL,
    RELATIONSHIPS,
    Community,
    Entity,
    KnowledgeGraph,
    Relationship,
    Row,
    entity_row,
    fitting,
    relationship_row,
)
from arag.evaluation.methods.shared import best_first
from arag.graph.prompts import EXAMPLE_ID, as_data
from arag.retrieval.types import Chunk
from arag.text.marks import with_mark
from arag.text.tokens import count_tokens

REPORTS = "Reports\n\n"
SOURCES = "\nSources\n\n"
# These values are the defaults of the authors' implementation.
_SELECTED = 20  # entities nearest to the question
_REPORTS_SHARE = 0.15  # of the context's tokens
_CHUNKS_SHARE = 0.5  # of the context's tokens; the tables get the rest
_OUTER_RELATIONSHIPS = 10  # for each selected entity, to entities that were not selected

_TASK = f"""You answer a question from data about a corpus: reports on groups of entities, tables of entities and of the
relationships between them, and sources, which are passages of the corpus with their ids in brackets. Put together what
the parts say; where they differ, the sources are right. If the data does not hold the answer, say so and give the one
that it supports best.

Form of the answer: the shortest that answers the question: a name, a date, a number, a few words, yes or no. After \
it, name the sources that it rests on, each in square brackets, like
[{EXAMPLE_ID}]."""


class GraphRAG(Method):
    """A knowledge graph made by the model; one call, with reports, entities, relationships and chunks."""

    name: ClassVar[str] = "graphrag"
    title: ClassVar[str] = "GraphRAG"
    abilities: ClassVar[str | None] = "meaning cite"
    needs_model: ClassVar[bool] = True
    differs: ClassVar[str] = (
        "Local search. Prompts of our own, which ask for the shortest answer. The chunks are those of this index, "
        "without overlap; replies are JSON; reports are made from all relationships of a community, not only the first "
        "of each entity; strengths are limited to 1 to 10; no claims are extracted."
    )

    max_tokens: int = Field(12_000, ge=1_000, description="Tokens of the context.")

    def prepare(self, session: Session) -> tuple[KnowledgeGraph, NDArray[np.float32]]:
        """Build the graph, and embed its entities."""
        graph = build_graph(session)
        texts = [f"{entity.title}:{entity.description}" for entity in graph.entities]
        return graph, session.context.vectors(texts, "Entities embedded")

    def answer(self, question: str, session: Session, prepared: tuple[KnowledgeGraph, NDArray[np.float32]]) -> str:
        """Answer from the reports, rows and chunks that belong to the nearest entities."""
        graph, vectors = prepared
        index = session.context.index
        selected: list[Entity] = []
        if graph.entities:
            similarities = vectors @ index.embedder.embed_query(question)
            selected = [graph.entities[row] for row in best_first(similarities, _SELECTED)]
        context = build_context(graph, selected, index.get, self.max_tokens)
        session.retrieved(context.chunks, question, entities=len(selected))
        session.retrieved([], question, tool="graph_context", tokens=count_tokens(context.tables))
        _note_context(session, graph, selected, context)
        data = (context.tables + context.sources).strip()
        return session.ask(_TASK, f"{question}\n\n{as_data('data', data or 'Nothing.')}")


def _note_context(session: Session, graph: KnowledgeGraph, selected: Iterable[Entity], context: Context) -> None:
    session.note("Entities selected", [f"{entity.title} ({entity.type})" for entity in selected])
    lines: list[str] = []
    for community in context.communities:
        report = graph.reports[community]
        lines.append(f"{report.title} (level {community.level}, rated {report.rating:g})")
    session.note("Communities used", lines)
    lines = []
    for relationship in context.relationships:
        lines.append(f"{relationship.source} -> {relationship.target}: {relationship.description}")
    session.note("Relationships", lines)


# --- the context of local search ---


class Context(NamedTuple):
    """The data that the model is shown: reports, rows of two tables, and chunks.

    Attributes:
        communities: The communities whose reports are shown.
        entities: The entities in the first table.
        relationships: The relationships in the second table.
        chunks: The chunks.
        tables: The reports and tables, as text.
        sources: The chunks, as text.
    """

    communities: list[Community]
    entities: list[Entity]
    relationships: list[Relationship]
    chunks: list[Chunk]
    tables: str
    sources: str


def build_context(
    graph: KnowledgeGraph,
    selected: Sequence[Entity],
    chunk_of: Callable[[str], Chunk | None],
    max_tokens: int,
) -> Context:
    """Build the context from the selected entities.

    Args:
        graph: The graph.
        selected: The selected entities, nearest first.
        chunk_of: Returns a chunk by its id.
        max_tokens: Tokens of the context.

    Returns:
        The context. Each of its parts ends before the first item that does not fit.
    """
    reports_budget = int(max_tokens * _REPORTS_SHARE)
    chunks_budget = int(max_tokens * _CHUNKS_SHARE)
    tables_budget = max_tokens - reports_budget - chunks_budget

    def report_text(community: Community) -> str:
        return f"{graph.reports[community].text}\n\n"

    def ranked_chunks() -> Iterator[Chunk]:
        """Read chunks one by one, until the sources are full."""
        for chunk_id in rank_chunks(graph, selected):
            chunk = chunk_of(chunk_id)
            if chunk:
                yield chunk

    reports = fill(REPORTS, rank_communities(graph, selected), report_text, reports_budget)
    entities = fill(ENTITIES, selected, entity_row, tables_budget)
    relationships = _fill_relationships(graph, selected, tables_budget, count_tokens(entities.text))
    chunks = fill(SOURCES, ranked_chunks(), _source_text, chunks_budget)
    return Context(
        communities=reports.items,
        entities=entities.items,
        relationships=relationships.items,
        chunks=chunks.items,
        tables=reports.text + entities.text + relationships.text,
        sources=chunks.text,
    )


def _fill_relationships(
    graph: KnowledgeGraph,
    selected: Sequence[Entity],
    tables_budget: int,
    used_tokens: int,
) -> Part[Relationship]:
    """Add the relationships of one entity after the other, while their table fits beside the one of entities."""
    part: Part[Relationship] = Part([], "")
    for number in range(1, len(selected) + 1):
        ranked = rank_relationships(graph, selected[:number])
        larger = fill(RELATIONSHIPS, ranked, relationship_row, tables_budget)
        if count_tokens(larger.text) > tables_budget - used_tokens:
            break
        part = larger
    return part


def _source_text(chunk: Chunk) -> str:
    return f"{with_mark(chunk.id, chunk.text)}\n\n"


@dataclass(frozen=True)
class Part(Generic[Row]):
    """A part of the context: its items, and its text."""

    items: list[Row]
    text: str


def fill(head: str, rows: Iterable[Row], text: Callable[[Row], str], max_tokens: float) -> Part[Row]:
    """Fill a part of the context.

    Args:
        head: The text above the rows.
        rows: The rows, most important first.
        text: Returns the text of a row.
        max_tokens: Tokens of the head and the rows.

    Returns:
        The rows before the first one that does not fit. Without rows, there is no head.
    """
    taken = fitting(rows, text, max_tokens - count_tokens(head))
    if not taken:
        return Part([], "")
    return Part(taken, head + "".join(text(row) for row in taken))


def rank_communities(graph: KnowledgeGraph, selected: Iterable[Entity]) -> list[Community]:
    """Return the communities that have reports and selected entities.

    Those with most selected entities come first, then the best rated, then those with the nearest entity.
    """
    places = {entity.title: place for place, entity in enumerate(selected)}
    ranks: dict[Community, tuple[float, ...]] = {}
    for community, report in graph.reports.items():
        if community.level > MAX_LEVEL:
            continue
        members = [places[title] for title in community.members if title in places]
        if members:
            ranks[community] = (-len(members), -report.rating, min(members))
    return sorted(ranks, key=ranks.__getitem__)


@dataclass(frozen=True)
class _OuterRelationship:
    """A relationship between a selected entity and one that was not selected."""

    other: str
    """The title of the entity that was not selected."""
    selected: str
    relationship: Relationship


def rank_relationships(graph: KnowledgeGraph, selected: Sequence[Entity]) -> list[Relationship]:
    """Return relationships of the selected entities: first those between them, by rank; then those to others.

    The latter are ordered by the number of selected entities that the other entity is related to, then by rank. There
    are at most ten of them for each selected entity.
    """
    titles = {entity.title for entity in selected}
    inner: list[Relationship] = []
    outer: list[_OuterRelationship] = []
    for each in graph.relationships_of(titles):
        if each.source in titles and each.target in titles:
            inner.append(each)
        elif each.source in titles:
            outer.append(_OuterRelationship(other=each.target, selected=each.source, relationship=each))
        else:
            outer.append(_OuterRelationship(other=each.source, selected=each.target, relationship=each))

    related: dict[str, set[str]] = defaultdict(set)
    for link in outer:
        related[link.other].add(link.selected)

    def outer_rank(link: _OuterRelationship) -> tuple[int, int, bool, int]:
        relationship = link.relationship
        # Among equals, relationships that start from a selected entity come first.
        is_reversed = link.selected == relationship.target
        return -len(related[link.other]), -relationship.rank, is_reversed, relationship.number

    inner.sort(key=lambda each: (-each.rank, each.number))
    outer.sort(key=outer_rank)
    limit = _OUTER_RELATIONSHIPS * len(selected)
    return inner + [link.relationship for link in outer[:limit]]


def rank_chunks(graph: KnowledgeGraph, selected: Iterable[Entity]) -> list[str]:
    """Return the ids of the chunks of each selected entity in turn, by the number of its relationships in them."""
    ranks: dict[str, tuple[int, int]] = {}
    for place, entity in enumerate(selected):
        counts: Counter[str] = Counter()
        for relationship in graph.relationships_of([entity.title]):
            counts.update(relationship.chunk_ids)
        for chunk_id in entity.chunk_ids:
            ranks.setdefault(chunk_id, (place, -counts[chunk_id]))
    return sorted(ranks, key=ranks.__getitem__)


METHODS = (GraphRAG, GraphRAGGlobal)
