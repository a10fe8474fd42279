"""What local and global search show of the graph, and how they account for it."""

from __future__ import annotations

import time

from arag.evaluation.methods.baselines.outcome import Stage, retrieval_record
from arag.evaluation.methods.graphrag.knowledge import KnowledgeGraph, Report
from arag.graph.state import ToolRecord


def graph_stage(graph: KnowledgeGraph) -> Stage:
    """Return what there is in the graph, and what is missing from it."""
    held = (
        f"{len(graph.entities):,} entities, {len(graph.relationships):,} relationships, {len(graph.reports):,} reports"
    )
    lost = [f"{number:,} {what} without a usable reply" for what, number in graph.losses.items() if number]
    return Stage(title="Knowledge graph", lines=[held, *lost])


def report_line(report: Report) -> str:
    """Return a line about a report."""
    return f"{report.title} (level {report.community.level}, rated {report.rating:g})"


def graph_record(question: str, tokens: int) -> ToolRecord:
    """Return the record of what the graph brings into the context.

    Args:
        question: The question.
        tokens: Tokens of the reports and tables.
    """
    record = retrieval_record([], {"query": question}, began=time.perf_counter(), tool="graph_context")
    return {**record, "retrieved_tokens": tokens, "evidence_tokens": tokens}
