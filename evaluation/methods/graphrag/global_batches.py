"""The batches of reports that global search asks about, and the points that it answers from."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypedDict

from arag.evaluation.methods.graphrag.knowledge import KnowledgeGraph, Report
from arag.evaluation.methods.graphrag.texts import fitting

_SEED = 86


class Point(TypedDict):
    """A point that bears on the question."""

    batch: int
    """The batch that it was found in, from 1."""
    text: str
    """The point."""
    score: float
    """How much it helps to answer the question, 0 to 100."""


def make_batches(graph: KnowledgeGraph, level: int, max_tokens: int) -> list[list[Report]]:
    """Divide reports into batches.

    The reports are shuffled, always in the same way. In a batch they are ordered by how many chunks name their
    entities, then by rating.

    Args:
        graph: The graph.
        level: The deepest level of communities whose reports are used.
        max_tokens: Tokens of a batch; a longer report has one of its own.
    """
    reports = [report for report in graph.reports if report.community.level <= level]
    Random(_SEED).shuffle(reports)  # noqa: S311 - not for secrets
    batches: list[list[Report]] = []
    while reports:
        batch = reports[: max(len(fitting(reports, batch_text, max_tokens)), 1)]
        batches.append(sorted(batch, key=lambda report: (-_chunks(graph, report), -report.rating)))
        reports = reports[len(batch) :]
    return batches


def batch_text(report: Report) -> str:
    """Return a report as it is in a batch."""
    return f"{report.text}\n\n(rated {report.rating:g} of 10)\n\n"


def _chunks(graph: KnowledgeGraph, report: Report) -> int:
    return len(graph.chunks_of[report.community.number])


def choose_points(points: Sequence[Point], max_tokens: int) -> list[Point]:
    """Return the points that bear on the question, best first, as far as they fit."""
    bearing = sorted((point for point in points if point["score"] > 0), key=lambda point: -point["score"])
    return fitting(bearing, point_text, max_tokens)


def point_text(point: Point) -> str:
    """Return a point as it is in the last prompt."""
    return f"Batch {point['batch']}, score {point['score']:g}: {point['text']}\n"
