"""GraphRAG's global search (Edge et al. 2024, section 3.1.6): the reports on all communities answer together.

The reports are shuffled and put into batches. The model lists the points of each batch that help to answer, with
scores, and then answers from the best points of all batches. Each question costs a call for each batch, and one more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import ClassVar

from pydantic import BaseModel, Field, OnErrorOmit

from arag.evaluation.method import Method, Session
from arag.evaluation.methods.graphrag.building import build_graph
from arag.evaluation.methods.graphrag.knowledge import MAX_LEVEL, Community, KnowledgeGraph, fitting
from arag.evaluation.methods.shared import Text
from arag.graph.prompts import as_data
from arag.text.tokens import count_tokens

# The seed is that of the authors' implementation: batches mix reports on different parts of the graph.
_SEED = 86
_MAX_SCORE = 100
_NO_DATA = "The corpus does not hold the answer."

_MAP = f"""You read reports on parts of a corpus, and collect what helps to answer a question.

List the points of the reports that bear on the question. Each point is complete in itself, with all names, numbers and
dates, and has a score from 0 (of no use) to {_MAX_SCORE} (answers the question alone). Add nothing that the reports do
not say. Reply with one JSON object and nothing else: {{"points": [{{"description": "...", "score": 50}}]}}
If nothing bears on the question, the list is empty."""

_REDUCE = """You answer a question about a whole corpus from points that readers of its parts have collected, the most
useful first, each with its score. Put them together; leave out what does not matter, and do not add anything. If they
do not answer the question, say so and give the answer that they support best.

Form of the answer: the shortest that answers the question: a name, a date, a number, a few words, yes or no. If the
question asks for an overview, a few sentences."""


class _Point(BaseModel):
    description: Text
    score: float = Field(ge=0, le=_MAX_SCORE)


class _Points(BaseModel):
    points: list[OnErrorOmit[_Point]]


class GraphRAGGlobal(Method):
    """The reports of the same graph in batches: a call for each, and one that puts their points together."""

    name: ClassVar[str] = "graphrag-global"
    title: ClassVar[str] = "GraphRAG (Global)"
    abilities: ClassVar[str | None] = ""
    needs_model: ClassVar[bool] = True
    differs: ClassVar[str] = (
        "Global search, with reports on all communities down to the third level. Prompts of our own, which ask for the "
        "shortest answer; what GraphRAG says about the graph holds here, too. It shows no chunks, so it cites none."
    )

    max_tokens: int = Field(12_000, ge=1_000, description="Tokens of a batch of reports, and of the points.")

    def prepare(self, session: Session) -> KnowledgeGraph:
        """Build the graph; GraphRAG's local search shares its calls."""
        return build_graph(session)

    def answer(self, question: str, session: Session, prepared: KnowledgeGraph) -> str:
        """Collect points from all reports, and answer from the best."""
        batches = list(make_batches(prepared, self.max_tokens))
        for batch in batches:
            session.retrieved([], question, tool="reports", tokens=count_tokens(batch))
        users = [f"{question}\n\n{as_data('reports', batch)}" for batch in batches]
        replies: list[_Points | None] = session.ask_all(_MAP, users, _Points)
        found: list[_Point] = []
        for reply in replies:
            found += [point for point in (reply.points if reply else ()) if point.score > 0]
        found.sort(key=lambda point: -point.score)
        best = fitting(found, _show_point, self.max_tokens)
        session.note("Points", [_show_point(point) for point in best])
        if not best:
            return _NO_DATA
        shown = "".join(map(_show_point, best))
        return session.ask(_REDUCE, f"{question}\n\n{as_data('points', shown)}")


def _show_point(point: _Point) -> str:
    return f"- ({point.score:g}) {point.description}\n"


def make_batches(graph: KnowledgeGraph, max_tokens: int) -> Iterator[str]:
    """Yield the texts of the reports in batches; in each, reports on what most chunks name come first."""
    communities = [community for community in graph.reports if community.level <= MAX_LEVEL]
    Random(_SEED).shuffle(communities)  # noqa: S311 - the same batches each time
    rest: Sequence[Community] = communities
    while rest:
        taken = fitting(rest, lambda community: graph.reports[community].text, max_tokens) or rest[:1]
        rest = rest[len(taken) :]
        yield "\n\n".join(graph.reports[community].text for community in _rank(graph, taken))


def _rank(graph: KnowledgeGraph, communities: Iterable[Community]) -> list[Community]:
    """Return communities by the number of chunks that name their entities, then by their reports' ratings."""

    def rank(community: Community) -> tuple[int, float]:
        chunks: set[str] = set()
        for title in community.members:
            chunks.update(graph.by_title[title].chunk_ids)
        return -len(chunks), -graph.reports[community].rating

    return sorted(communities, key=rank)
