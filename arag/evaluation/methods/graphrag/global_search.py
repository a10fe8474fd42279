"""Global search: the batches of reports that the model reads, and the points in them that it answers from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from pydantic import BaseModel, FiniteFloat

from arag.evaluation.methods.graphrag.knowledge import KnowledgeGraph, Report, fitting

_SEED = 86


class Point(BaseModel):
    """A statement that helps to answer the question, and how much, from 0 to 100."""

    description: str
    score: FiniteFloat


class Points(BaseModel):
    """The points in a batch of reports."""

    points: list[Point]


def make_batches(graph: KnowledgeGraph, level: int, max_tokens: int) -> list[list[Report]]:
    """Divide the reports down to a level into batches; one that is too long has a batch of its own.

    The reports are shuffled, always in the same way. In a batch they are ordered by how many chunks name their
    entities, then by rating.
    """
    reports = [report for report in graph.reports if report.community.level <= level]
    Random(_SEED).shuffle(reports)  # noqa: S311 - not for secrets
    batches: list[list[Report]] = []
    while reports:
        batch = reports[: max(len(fitting(reports, batch_text, max_tokens)), 1)]
        reports = reports[len(batch) :]
        batch.sort(key=lambda report: (-graph.chunk_counts[report.community.number], -report.rating))
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
