"""GraphRAG (Edge et al. 2024): a model turns the corpus into a knowledge graph whose communities it reports on.

Local search answers from what the graph and the corpus hold about the entities nearest to the question; global search
from all reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from arag.errors import InputError
from arag.evaluation.method import Method, Session
from arag.evaluation.methods.graphrag.building import build
from arag.evaluation.methods.graphrag.global_search import Points, batch_text, choose_points, make_batches
from arag.evaluation.methods.graphrag.knowledge import Entity, KnowledgeGraph
from arag.evaluation.methods.graphrag.local import Budgets, LocalContext, build_context
from arag.evaluation.methods.shared import Passages
from arag.graph.prompts import EXAMPLE_ID, as_data
from arag.retrieval.tokens import count_tokens
from arag.retrieval.types import Chunk

_INSTALL = "graspologic-native is not installed; install it with pip install 'langgraph-arag[baselines]'"

NO_DATA = "The corpus holds nothing that answers this question."

_SHORTEST = "the shortest that answers the question: a name, a date, a number, a few words, yes or no"

_LOCAL = """You answer a question from data about a corpus: reports on groups of entities, tables of entities and of the
relationships between them, and sources, which are passages of the corpus with their ids in brackets. Put together what
the parts say; where they differ, the sources are right. If the data does not hold the answer, say so and give the one
that it supports best.

Form of the answer: {response}. After it, name the sources that it rests on, each in square brackets, like
[{example}]."""

_MAP = """You are given one batch of reports on a corpus, and a question. List the points in these reports that help to
answer the question. Each is a statement that can be understood alone, with a score from 0 to 100 for how much it helps;
0 is for what says nothing about the question. Use nothing but the reports. Reply with one JSON object and nothing else:
{"points": [{"description": "...", "score": 50}]}
If nothing in the reports helps, the list is empty."""

_REDUCE = """You answer a question from points that were found in reports on a corpus, the most helpful first. Leave out
what does not bear on the question, and put the rest together. Use nothing but the points. If they do not hold the
answer, say so and give the one that they support best.

Form of the answer: {response}."""


class _GraphRAG(Method):
    """What both searches share: the graph, and the settings that shape it and the prompts."""

    differs: ClassVar[str] = (
        "Prompts of our own. The chunks are those of this index, without overlap; replies are JSON; reports are made "
        "from all relationships of a community, not only the first of each entity; strengths are limited to 1 to 10; "
        "no claims are extracted."
    )
    needs_model: ClassVar[bool] = True

    max_cluster_size: int = Field(10, ge=1, description="Communities with more entities are divided further.")
    level: int = Field(2, ge=0, description="The deepest level of communities whose reports are used.")
    max_tokens: int = Field(12_000, ge=1_000, description="Tokens of the context, or of a batch of reports.")
    response: str = Field(_SHORTEST, description='The form of the answer; GraphRAG\'s own is "multiple paragraphs".')

    def model_post_init(self, _: Any) -> None:
        """Refuse to be chosen without the package that finds communities."""
        if find_spec("graspologic_native") is None:
            raise InputError(_INSTALL)


@dataclass(frozen=True)
class LocalKnowledge:
    """What local search looks into: the graph, its entities' vectors, and the chunks."""

    graph: KnowledgeGraph
    vectors: NDArray[np.float32]
    chunks: Mapping[str, Chunk]
    passages: Passages | None
    """The chunks by their vectors, where the graph has no entities."""


class GraphRAG(_GraphRAG):
    """A knowledge graph made by the model; one call, with reports, entities, relationships and chunks."""

    name: ClassVar[str] = "graphrag"
    title: ClassVar[str] = "GraphRAG"

    entities: int = Field(20, ge=1, description="How many entities nearest to the question are selected.")

    def prepare(self, session: Session) -> LocalKnowledge:
        """Build the graph, and embed its entities."""
        lab = session.lab
        graph = build(session, self.max_cluster_size)
        vectors = lab.vectors([f"{it.title}:{it.description}" for it in graph.entities], "Entities embedded")
        passages = None if graph.entities else lab.passages()
        return LocalKnowledge(graph, vectors, {chunk.id: chunk for chunk in lab.chunks}, passages)

    def answer(self, question: str, session: Session, prepared: LocalKnowledge) -> str:
        """Answer from the reports, rows and chunks that belong to the nearest entities; without any, from chunks."""
        graph, passages = prepared.graph, prepared.passages
        if passages is None:
            selected = self._nearest(question, session, prepared)
            budgets = Budgets.of(self.max_tokens)
            context = build_context(graph, selected, prepared.chunks.__getitem__, self.level, budgets)
        else:
            selected, context = [], LocalContext([], [], [], passages.top(question, session.lab.top_k))
        session.retrieved(context.chunks, question, entities=len(selected))
        session.retrieved([], question, tool="graph_context", tokens=count_tokens(context.tables))
        session.note("Knowledge graph", graph.figures())
        session.note("Entities selected", [f"{entity.title} ({entity.type})" for entity in selected])
        session.note("Communities used", map(str, context.reports))
        session.note("Relationships", [f"{it.source} -> {it.target}: {it.description}" for it in context.relationships])
        session.note("Chunks", [chunk.id for chunk in context.chunks])
        task = _LOCAL.format(response=self.response, example=EXAMPLE_ID)
        return session.ask(task, f"{question}\n\n{as_data('data', context.text or 'Nothing.')}")

    def _nearest(self, question: str, session: Session, prepared: LocalKnowledge) -> list[Entity]:
        similarities = prepared.vectors @ session.lab.index.embedder.embed_query(question)
        nearest = np.argsort(-similarities, kind="stable")[: self.entities]
        return [prepared.graph.entities[place] for place in nearest]


class GlobalGraphRAG(_GraphRAG):
    """The same graph; a call for each batch of reports on its communities, and one that answers from what they say."""

    name: ClassVar[str] = "graphrag-global"
    title: ClassVar[str] = "GraphRAG (global)"

    def prepare(self, session: Session) -> KnowledgeGraph:
        """Build the graph."""
        return build(session, self.max_cluster_size)

    def answer(self, question: str, session: Session, prepared: KnowledgeGraph) -> str:
        """Look for points in all batches of reports, and answer from the best; without any, there is no last call."""
        batches = make_batches(prepared, self.level, self.max_tokens)
        texts = ["".join(map(batch_text, batch)) for batch in batches]
        session.retrieved([], question, tool="graph_context", tokens=sum(map(count_tokens, texts)))
        session.note("Knowledge graph", prepared.figures())
        numbered = enumerate(batches, start=1)
        session.note("Batches", [f"{number}: {len(batch)} reports, first {batch[0]}" for number, batch in numbered])
        prompts = [f"{question}\n\n{as_data('reports', text.rstrip())}" for text in texts]
        replies = session.ask_all(_MAP, prompts, Points)
        points = choose_points([reply.points if reply else [] for reply in replies], self.max_tokens)
        unread = [f"batch {number}: no usable reply" for number, reply in enumerate(replies, start=1) if not reply]
        session.note("Points", [*(line.rstrip() for line in points), *unread])
        if not points:
            return NO_DATA
        listed = as_data("points", "".join(points).rstrip())
        return session.ask(_REDUCE.format(response=self.response), f"{question}\n\n{listed}")


METHODS = (GraphRAG, GlobalGraphRAG)
