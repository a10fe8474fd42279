"""Local search: what the graph and the corpus hold about the entities nearest to the question."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from arag.evaluation.method import Session
from arag.evaluation.methods.graphrag.building import GraphSearch
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
from arag.evaluation.methods.shared import Passages
from arag.graph.prompts import EXAMPLE_ID, as_data
from arag.retrieval.tokens import count_tokens
from arag.retrieval.types import Chunk

REPORTS = "Reports\n\n"
SOURCES = "\nSources\n\n"
_REPORTS_SHARE, _CHUNKS_SHARE = 0.15, 0.5  # of a context's tokens; the rest is for the tables
_OUTER_RELATIONSHIPS = 10  # for each selected entity, with entities that were not selected

Row = TypeVar("Row")

_LOCAL = """You answer a question from data about a corpus: reports on groups of entities, tables of entities and of the
relationships between them, and sources, which are passages of the corpus with their ids in brackets. Put together what
the parts say; where they differ, the sources are right. If the data does not hold the answer, say so and give the one
that it supports best.

Form of the answer: {response}. After it, name the sources that it rests on, each in square brackets, like
[{example}]."""


class Knowledge(NamedTuple):
    """What is made before the first question: the graph, its entities' vectors, the chunks where it has no entities."""

    graph: KnowledgeGraph
    vectors: NDArray[np.float32]
    passages: Passages | None


class GraphRAG(GraphSearch):
    """A knowledge graph made by the model; one call, with reports, entities, relationships and chunks."""

    name: ClassVar[str] = "graphrag"
    title: ClassVar[str] = "GraphRAG"

    entities: int = Field(20, ge=1, description="How many entities nearest to the question are selected.")

    def prepare(self, session: Session) -> Knowledge:
        """Build the graph, and embed its entities."""
        graph = self.build(session)
        texts = [f"{entity.title}:{entity.description}" for entity in graph.entities]
        vectors = session.lab.vectors(texts, "Entities embedded")
        return Knowledge(graph, vectors, None if graph.entities else session.lab.passages())

    def answer(self, question: str, session: Session, prepared: Knowledge) -> str:
        """Answer from the reports, rows and chunks that belong to the nearest entities; without any, from chunks."""
        index, graph, selected = session.lab.index, prepared.graph, list[Entity]()
        if prepared.passages is None:
            similarities = prepared.vectors @ index.embedder.embed_query(question)
            selected = [graph.entities[n] for n in np.argsort(-similarities, kind="stable")[: self.entities]]
            context = build_context(graph, selected, index.get, self.level, self.max_tokens)
        else:
            chunks, text = fill(SOURCES, prepared.passages.top(question, session.lab.top_k), chunk_text, inf)
            context = Context([], [], [], chunks, "", text)
        session.retrieved(context.chunks, question, entities=len(selected))
        session.retrieved([], question, tool="graph_context", tokens=count_tokens(context.tables))
        session.note("Knowledge graph", graph.figures())
        session.note("Entities selected", [f"{entity.title} ({entity.type})" for entity in selected])
        session.note("Communities used", map(str, context.reports))
        session.note("Relationships", [f"{it.source} -> {it.target}: {it.description}" for it in context.relationships])
        session.note("Chunks", [chunk.id for chunk in context.chunks])
        task = _LOCAL.format(response=self.response, example=EXAMPLE_ID)
        data = (context.tables + context.sources).strip()
        return session.ask(task, f"{question}\n\n{as_data('data', data or 'Nothing.')}")


# --- the context ---


class Context(NamedTuple):
    """What the model is shown: reports, rows of two tables, and chunks; the first three and the last as text."""

    reports: list[Report]
    entities: list[Entity]
    relationships: list[Relationship]
    chunks: list[Chunk]
    tables: str
    sources: str


def build_context(
    graph: KnowledgeGraph,
    selected: Sequence[Entity],
    chunk_of: Callable[[str], Chunk | None],
    level: int,
    max_tokens: int,
) -> Context:
    """Build the context from the selected entities, nearest first, within a number of tokens.

    The table of relationships grows by those of one entity after the other, while it fits beside that of entities.
    """
    for_reports, for_chunks = int(max_tokens * _REPORTS_SHARE), int(max_tokens * _CHUNKS_SHARE)
    for_tables = max_tokens - for_reports - for_chunks
    reports, tables = fill(REPORTS, rank_reports(graph, selected, level), report_text, for_reports)
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


def rank_reports(graph: KnowledgeGraph, selected: Iterable[Entity], level: int) -> list[Report]:
    """Return the reports on communities of the selected entities: those with most of them, then the best rated."""
    places = {entity.title: place for place, entity in enumerate(selected)}
    ranks: dict[Report, tuple[float, ...]] = {}
    for report in graph.reports:
        members = [places[title] for title in report.community.members if title in places]
        if members and report.community.level <= level:
            ranks[report] = (-len(members), -report.rating, min(members))
    return sorted(ranks, key=ranks.__getitem__)


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
