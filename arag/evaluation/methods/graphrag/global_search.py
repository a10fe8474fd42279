"""Global search: the model reads all reports in batches, and answers from the points in them (section 3.1.6)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import ClassVar

from pydantic import BaseModel, FiniteFloat

from arag.evaluation.method import Session
from arag.evaluation.methods.graphrag.building import GraphSearch
from arag.evaluation.methods.graphrag.knowledge import KnowledgeGraph, Report, fitting
from arag.graph.prompts import as_data
from arag.retrieval.tokens import count_tokens

NO_DATA = "The corpus holds nothing that answers this question."
_SEED = 86

_MAP = """You are given one batch of reports on a corpus, and a question. List the points in these reports that help to
answer the question. Each is a statement that can be understood alone, with a score from 0 to 100 for how much it helps;
0 is for what says nothing about the question. Use nothing but the reports. Reply with one JSON object and nothing else:
{"points": [{"description": "...", "score": 50}]}
If nothing in the reports helps, the list is empty."""

_REDUCE = """You answer a question from points that were found in reports on a corpus, the most helpful first. Leave out
what does not bear on the question, and put the rest together. Use nothing but the points. If they do not hold the
answer, say so and give the one that they support best.

Form of the answer: {response}."""


class Point(BaseModel):
    """A statement that helps to answer the question, and how much, from 0 to 100."""

    description: str
    score: FiniteFloat


class Points(BaseModel):
    """The points in a batch of reports."""

    points: list[Point]


class GlobalGraphRAG(GraphSearch):
    """The same graph; a call for each batch of reports on its communities, and one that answers from what they say."""

    name: ClassVar[str] = "graphrag-global"
    title: ClassVar[str] = "GraphRAG (global)"

    def prepare(self, session: Session) -> KnowledgeGraph:
        """Build the graph."""
        return self.build(session)

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


def make_batches(graph: KnowledgeGraph, level: int, max_tokens: int) -> list[list[Report]]:
    """Divide the reports down to a level into batches; one that is too long has a batch of its own.

    The reports are shuffled, always in the same way. In a batch they are ordered by how many chunks name their
    entities, then by rating.
    """
    chunk_ids = {entity.title: entity.chunk_ids for entity in graph.entities}

    def chunk_count(report: Report) -> int:
        return len({chunk_id for title in report.community.members for chunk_id in chunk_ids[title]})

    reports = [report for report in graph.reports if report.community.level <= level]
    Random(_SEED).shuffle(reports)  # noqa: S311 - not for secrets
    batches: list[list[Report]] = []
    while reports:
        batch = reports[: max(len(fitting(reports, batch_text, max_tokens)), 1)]
        reports = reports[len(batch) :]
        batch.sort(key=lambda report: (-chunk_count(report), -report.rating))
        batches.append(batch)
    return batches


def batch_text(report: Report) -> str:
    """Return a report as it is in a batch."""
    return f"{report.text}\n\n(rated {report.rating:g} of 10)\n\n"


def choose_points(batches: Iterable[Sequence[Point]], max_tokens: int) -> list[str]:
    """Return the points that help, best first, as far as they fit, as lines of the last prompt."""
    points = [(number, point) for number, batch in enumerate(batches, start=1) for point in batch if point.score > 0]
    points.sort(key=lambda point: -point[1].score)
    lines = [f"Batch {number}, score {point.score:g}: {point.description}\n" for number, point in points]
    return fitting(lines, str, max_tokens)
