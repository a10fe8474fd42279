"""GraphRAG (Edge et al. 2024): a model turns the corpus into a knowledge graph whose communities it reports on.

Local search answers from what the graph and the corpus hold about the entities nearest to the question.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from arag.errors import InputError
from arag.evaluation.method import Method, Session
from arag.evaluation.methods.graphrag.building import build_graph
from arag.evaluation.methods.graphrag.knowledge import Entity, KnowledgeGraph, build_context
from arag.graph.prompts import EXAMPLE_ID, as_data
from arag.retrieval.tokens import count_tokens

_SELECTED = 20  # entities nearest to the question

_TASK = f"""You answer a question from data about a corpus: reports on groups of entities, tables of entities and of the
relationships between them, and sources, which are passages of the corpus with their ids in brackets. Put together what
the parts say; where they differ, the sources are right. If the data does not hold the answer, say so and give the one
that it supports best.

Form of the answer: the shortest that answers the question: a name, a date, a number, a few words, yes or no. After \
it, name the sources that it rests on, each in square brackets, like
[{EXAMPLE_ID}]."""


class Knowledge(NamedTuple):
    """What is made before the first question: the graph, and its entities' vectors."""

    graph: KnowledgeGraph
    vectors: NDArray[np.float32]


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

    def prepare(self, session: Session) -> Knowledge:
        """Build the graph, and embed its entities."""
        if find_spec("graspologic_native") is None:  # it finds communities
            raise InputError(
                "graspologic-native is not installed; install it with pip install 'langgraph-arag[baselines]'"
            )
        graph = build_graph(session)
        texts = [f"{entity.title}:{entity.description}" for entity in graph.entities]
        return Knowledge(graph, session.lab.vectors(texts, "Entities embedded"))

    def answer(self, question: str, session: Session, prepared: Knowledge) -> str:
        """Answer from the reports, rows and chunks that belong to the nearest entities."""
        index, graph, selected = session.lab.index, prepared.graph, list[Entity]()
        if graph.entities:
            similarities = prepared.vectors @ index.embedder.embed_query(question)
            selected = [graph.entities[n] for n in np.argsort(-similarities, kind="stable")[:_SELECTED]]
        context = build_context(graph, selected, index.get, self.max_tokens)
        session.retrieved(context.chunks, question, entities=len(selected))
        session.retrieved([], question, tool="graph_context", tokens=count_tokens(context.tables))
        session.note("Entities selected", [f"{entity.title} ({entity.type})" for entity in selected])
        session.note(
            "Communities used",
            [f"{it.title} (level {it.community.level}, rated {it.rating:g})" for it in context.reports],
        )
        session.note("Relationships", [f"{it.source} -> {it.target}: {it.description}" for it in context.relationships])
        data = (context.tables + context.sources).strip()
        return session.ask(_TASK, f"{question}\n\n{as_data('data', data or 'Nothing.')}")


METHODS = (GraphRAG,)
