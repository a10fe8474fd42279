"""Builds the knowledge graph of a corpus (Edge et al. 2024, section 3.1)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from pydantic import BaseModel

from arag.evaluation.method import Session
from arag.evaluation.methods.graphrag.communities import find_communities, find_inner
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


class Finding(BaseModel):
    """One finding about a community."""

    summary: str
    explanation: str


class CommunityReport(BaseModel):
    """A report on a community."""

    title: str
    summary: str
    rating: Rating
    findings: list[Finding]


def build(session: Session, max_cluster_size: int) -> KnowledgeGraph:
    """Build the graph of a corpus; communities with more entities than `max_cluster_size` are divided further."""
    extractions, lost_chunks = extract(session)
    entities, relationships = merge(extractions)
    entities, lost_entities = summarise(session, entities, title="Entities described")
    relationships, lost_relationships = summarise(session, relationships, title="Relationships described")
    communities = find_communities(relationships, max_cluster_size)
    reports, lost_reports = write_reports(session, entities, relationships, communities)
    losses = {"chunks": lost_chunks, "summaries": lost_entities + lost_relationships, "reports": lost_reports}
    return KnowledgeGraph(entities, relationships, reports, losses)


def summarise(session: Session, items: Sequence[Item], title: str = "") -> tuple[list[Item], int]:
    """Let the model put several descriptions into one; also return how many items keep several, for want of a reply.

    The summary of the first descriptions goes into the next call, with those that fit beside it, at least one.
    """
    waiting = {item.number: list(item.descriptions) for item in items if len(item.descriptions) > 1}
    count, summaries = len(waiting), dict[int, str]()
    names = {
        item.number: item.title if isinstance(item, Entity) else f"{item.source} and {item.target}" for item in items
    }
    while waiting:
        batches = {
            number: texts[: max(len(fitting(texts, str, MAX_DESCRIPTIONS_TOKENS)), 2)]
            for number, texts in waiting.items()
        }
        prompts = [describing_prompt(names[number], batch) for number, batch in batches.items()]
        replies = session.ask_all(_DESCRIBE, prompts, title=title)
        for (number, batch), reply in zip(batches.items(), replies, strict=True):
            rest: list[str] = waiting.pop(number)[len(batch) :]
            if reply and rest:
                waiting[number] = [reply, *rest]
            elif reply:
                summaries[number] = reply
    items = [
        replace(item, descriptions=(summaries[item.number],)) if item.number in summaries else item for item in items
    ]
    return items, count - len(summaries)


def describing_prompt(names: str, descriptions: Sequence[str]) -> str:
    """Return the prompt that asks for one description in place of several."""
    listed = "\n".join(f"- {' '.join(description.split())}" for description in descriptions)
    return f"{as_data('names', names)}\n\n{as_data('descriptions', listed)}"


def write_reports(
    session: Session,
    entities: Sequence[Entity],
    relationships: Sequence[Relationship],
    communities: Sequence[Community],
) -> tuple[list[Report], int]:
    """Let the model report on communities, deepest level first; also return how many reports are lost."""
    by_title = {entity.title: entity for entity in entities}
    by_source: dict[str, list[Relationship]] = defaultdict(list)
    for each in relationships:
        by_source[each.source].append(each)
    inner = {community: find_inner(community, by_source) for community in communities}
    communities = [community for community in communities if inner[community]]
    communities.sort(key=lambda community: (-community.level, community.number))
    tables = [as_data("tables", make_tables(by_title, inner[community])) for community in communities]
    replies = session.ask_all(_REPORT, tables, CommunityReport, title="Reports on communities")
    reports = [make_report(community, reply) for community, reply in zip(communities, replies, strict=True) if reply]
    return sorted(reports, key=lambda report: report.community.number), len(communities) - len(reports)


def make_tables(
    entities: Mapping[str, Entity], relationships: Sequence[Relationship], max_tokens: int = MAX_TABLES_TOKENS
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
        new = {title: entity_row(replace(entities[title], number=n)) for n, title in enumerate(titles, len(rows))}
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
