"""Builds the knowledge graph of a corpus (Edge et al. 2024, section 3.1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from pydantic import BaseModel

from arag.evaluation.method import Session
from arag.evaluation.methods.graphrag.communities import find_communities
from arag.evaluation.methods.graphrag.extraction import extract, merge
from arag.evaluation.methods.graphrag.knowledge import (
    ENTITIES,
    RELATIONSHIPS,
    Community,
    Entity,
    KnowledgeGraph,
    Relationship,
    Report,
    entity_row,
    fitting,
    relationship_row,
)
from arag.evaluation.methods.shared import Rating
from arag.graph.prompts import as_data
from arag.retrieval.tokens import count_tokens

MAX_DESCRIPTIONS_TOKENS = 4_000  # in one call
MAX_TABLES_TOKENS = 8_000  # of one community

_DESCRIBE = """You are given descriptions of one entity, or of the relationship between two, from several passages.
Write one description that holds all their facts, in the third person, with the names in it so that it can be
understood alone. Where descriptions contradict each other, settle it if you can, and else say so. At most 500 words,
in the language of the descriptions. Reply with the description only."""

_REPORT = """You report on a community: entities that belong together, and the relationships between them, which two
tables list. The report lets readers who do not have the tables understand who and what is in the community, how they
are connected, and what is known about them.

Write a title that names the chief entities; a summary of the whole; a rating from 0 to 10 of how much the community
matters; one sentence that explains the rating; and five to ten findings, the most important first, each with a
one-sentence summary and an explanation of several sentences. At most 2,000 words, in the language of the tables, and
nothing that they do not support. Reply with one JSON object and nothing else:
{"title": "...", "summary": "...", "rating": 5.0, "rating_explanation": "...",
"findings": [{"summary": "...", "explanation": "..."}]}"""

Item = TypeVar("Item", Entity, Relationship)


class _Finding(BaseModel):
    summary: str
    explanation: str


class CommunityReport(BaseModel):
    """A report on a community."""

    title: str
    summary: str
    rating: Rating
    findings: list[_Finding]


def build_graph(session: Session) -> KnowledgeGraph:
    """Build the graph of a corpus."""
    entities, relationships = merge(extract(session))
    entities = summarise(session, entities, "Entities described")
    relationships = summarise(session, relationships, "Relationships described")
    graph = KnowledgeGraph(entities, relationships)
    graph.reports = write_reports(session, graph)
    return graph


def summarise(session: Session, items: Sequence[Item], title: str) -> list[Item]:
    """Let the model put the descriptions of each item into one; without a usable reply, it keeps several."""
    several = [item for item in items if len(item.descriptions) > 1]
    tokens = sum(count_tokens(text) for item in several for text in item.descriptions)
    if several:
        session.lab.announce(f"{title}: at least {len(several):,} model calls, {tokens:,} input tokens")
    summarised = {item.number: item for item in session.side_by_side(_summarise_one, several, title)}
    return [summarised.get(item.number, item) for item in items]


def _summarise_one(session: Session, item: Item) -> Item:
    """Put descriptions into one, as many at a time as fit, at least two; the summary goes into the next call."""
    summary, *rest = item.descriptions
    while rest:
        batch = [summary, *rest][: max(len(fitting([summary, *rest], str, MAX_DESCRIPTIONS_TOKENS)), 2)]
        listed = "\n".join(f"- {' '.join(description.split())}" for description in batch)
        prompt = f"{as_data('names', str(item))}\n\n{as_data('descriptions', listed)}"
        summary = session.ask(_DESCRIBE, prompt)
        if not summary:
            return item
        rest = rest[len(batch) - 1 :]
    return replace(item, descriptions=(summary,))


def write_reports(session: Session, graph: KnowledgeGraph) -> list[Report]:
    """Let the model report on communities, deepest level first (section 3.1.5).

    A community may have no relationship between its members, as chains are divided, too: there is no report on it.
    """
    tables: dict[Community, str] = {}
    communities = find_communities(graph.relationships)
    for community in sorted(communities, key=lambda community: (-community.level, community.number)):
        members = set(community.members)
        inner = [each for each in graph.relationships_of(members) if members >= {each.source, each.target}]
        if inner:
            tables[community] = as_data("tables", make_tables(graph, inner))
    replies = session.ask_all(_REPORT, tables.values(), CommunityReport, title="Reports on communities")
    reports = [make_report(community, reply) for community, reply in zip(tables, replies, strict=True) if reply]
    return sorted(reports, key=lambda report: report.community.number)


def make_tables(
    graph: KnowledgeGraph, relationships: Iterable[Relationship], max_tokens: int = MAX_TABLES_TOKENS
) -> str:
    """Return the two tables of a community.

    Each relationship brings its two entities, in the order of the relationships' ranks, until they do not fit. The
    first one is there even if it does not. Rows are numbered within the table: with their numbers in the corpus,
    a chunk that changes elsewhere would change all tables, and all reports would be paid for again.
    """
    rows: dict[str, str] = {}
    lines: list[str] = []
    left = max_tokens - count_tokens(ENTITIES) - count_tokens(RELATIONSHIPS)
    for each in sorted(relationships, key=lambda each: (-each.rank, each.number)):
        titles = [title for title in dict.fromkeys((each.source, each.target)) if title not in rows]
        new = {title: entity_row(replace(graph.by_title[title], number=n)) for n, title in enumerate(titles, len(rows))}
        line = relationship_row(replace(each, number=len(lines)))
        left -= sum(map(count_tokens, [*new.values(), line]))
        if left < 0 and lines:
            break
        rows |= new
        lines.append(line)
    return f"{ENTITIES}{''.join(rows.values())}{RELATIONSHIPS}{''.join(lines)}"


def make_report(community: Community, reply: CommunityReport) -> Report:
    """Return the report on a community from the model's reply."""
    findings = (f"## {finding.summary.strip()}\n\n{finding.explanation.strip()}" for finding in reply.findings)
    text = "\n\n".join([f"# {reply.title.strip()}", reply.summary.strip(), *findings])
    return Report(community, reply.title.strip(), text, reply.rating)
