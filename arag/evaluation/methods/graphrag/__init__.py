"""GraphRAG (Edge et al. 2024): a model turns the corpus into a knowledge graph whose communities it reports on.

Local search answers from what the graph and the corpus hold about the entities nearest to the question.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from arag.errors import InputError
from arag.evaluation.method import Method, Session
from arag.evaluation.methods.graphrag.building import (
    ENTITIES,
    RELATIONSHIPS,
    Community,
    Entity,
    KnowledgeGraph,
    Relationship,
    Row,
    build_graph,
    entity_row,
    fitting,
    relationship_row,
)
from arag.graph.prompts import EXAMPLE_ID, as_data
from arag.retrieval.types import Chunk
from arag.text.marks import with_mark
from arag.text.tokens import count_tokens

REPORTS = "Reports\n\n"
SOURCES = "\nSources\n\n"
_SELECTED = 20  # entities nearest to the question
_MAX_LEVEL = 2  # of the communities whose reports are used
_REPORTS_SHARE, _CHUNKS_SHARE = 0.15, 0.5  # of a context's tokens; the rest is for the tables
_OUTER_RELATIONSHIPS = 10  # for each selected entity, with entities that were not selected

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
    needs_model: ClassVar[bool] = True
    differs: ClassVar[str] = (
        "Local search. Prompts of our own, which ask for the shortest answer. The chunks are those of this index, "
        "without overlap; replies are JSON; reports are made from all relationships of a community, not only the first "
        "of each entity; strengths are limited to 1 to 10; no claims are extracted."
    )

    max_tokens: int = Field(12_000, ge=1_000, description="Tokens of the context.")

    def prepare(self, session: Session) -> tuple[KnowledgeGraph, NDArray[np.float32]]:
        """Build the graph, and embed its entities."""
        if find_spec("graspologic_native") is None:  # it finds communities
            raise InputError(
                "graspologic-native is not installed; install it with pip install 'langgraph-arag[baselines]'"
            )
        graph = build_graph(session)
        texts = [f"{entity.title}:{entity.description}" for entity in graph.entities]
        return graph, session.lab.vectors(texts, "Entities embedded")

    def answer(self, question: str, session: Session, prepared: tuple[KnowledgeGraph, NDArray[np.float32]]) -> str:
        """Answer from the reports, rows and chunks that belong to the nearest entities."""
        index, (graph, vectors), selected = session.lab.index, prepared, list[Entity]()
        if graph.entities:
            similarities = vectors @ index.embedder.embed_query(question)
            selected = [graph.entities[n] for n in np.argsort(-similarities, kind="stable")[:_SELECTED]]
        context = build_context(graph, selected, index.get, self.max_tokens)
        session.retrieved(context.chunks, question, entities=len(selected))
        session.retrieved([], question, tool="graph_context", tokens=count_tokens(context.tables))
        session.note("Entities selected", [f"{entity.title} ({entity.type})" for entity in selected])
        reports = [(community.level, graph.reports[community]) for community in context.communities]
        session.note(
            "Communities used",
            [f"{report.title} (level {level}, rated {report.rating:g})" for level, report in reports],
        )
        session.note("Relationships", [f"{it.source} -> {it.target}: {it.description}" for it in context.relationships])
        data = (context.tables + context.sources).strip()
        return session.ask(_TASK, f"{question}\n\n{as_data('data', data or 'Nothing.')}")


# --- the context of local search ---


class Context(NamedTuple):
    """What the model is shown: reports, rows of two tables, and chunks; the first three and the last as text."""

    communities: list[Community]
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
    ranked = rank_communities(graph, selected)
    communities, tables = fill(REPORTS, ranked, lambda each: f"{graph.reports[each].text}\n\n", for_reports)
    entities, entity_table = fill(ENTITIES, selected, entity_row, for_tables)
    relationships, relationship_table = list[Relationship](), ""
    for number in range(1, len(selected) + 1):
        more, table = fill(RELATIONSHIPS, rank_relationships(graph, selected[:number]), relationship_row, for_tables)
        if count_tokens(table) > for_tables - count_tokens(entity_table):
            break
        relationships, relationship_table = more, table
    ranked_chunks = filter(None, map(chunk_of, rank_chunks(graph, selected)))
    chunks, sources = fill(SOURCES, ranked_chunks, lambda chunk: f"{with_mark(chunk.id, chunk.text)}\n\n", for_chunks)
    return Context(communities, entities, relationships, chunks, tables + entity_table + relationship_table, sources)


def fill(head: str, rows: Iterable[Row], text: Callable[[Row], str], max_tokens: float) -> tuple[list[Row], str]:
    """Return the rows up to the first that does not fit into a part with a head, and the part's text."""
    taken = fitting(rows, text, max_tokens - count_tokens(head))
    return taken, head + "".join(map(text, taken)) if taken else ""


def rank_communities(graph: KnowledgeGraph, selected: Iterable[Entity]) -> list[Community]:
    """Return the communities with reports of the selected entities: those with most of them, then the best rated."""
    places = {entity.title: place for place, entity in enumerate(selected)}
    ranks: dict[Community, tuple[float, ...]] = {}
    for community, report in graph.reports.items():
        members = [places[title] for title in community.members if title in places]
        if members and community.level <= _MAX_LEVEL:
            ranks[community] = (-len(members), -report.rating, min(members))
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


METHODS = (GraphRAG,)
