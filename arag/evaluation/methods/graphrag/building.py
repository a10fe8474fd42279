"""Builds the knowledge graph of a corpus (Edge et al. 2024, section 3.1)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, Field

from arag.errors import InputError
from arag.evaluation.method import Method, Session
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

_SHORTEST = "the shortest that answers the question: a name, a date, a number, a few words, yes or no"

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


class GraphSearch(Method):
    """What both searches share: the graph, and settings."""

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
            raise InputError(
                "graspologic-native is not installed; install it with pip install 'langgraph-arag[baselines]'"
            )

    def build(self, session: Session) -> KnowledgeGraph:
        """Build the graph of the corpus."""
        extractions, lost_chunks = extract(session)
        entities, relationships = merge(extractions)
        entities = summarise(session, entities, "Entities described")
        relationships = summarise(session, relationships, "Relationships described")
        communities = find_communities(relationships, self.max_cluster_size)
        reports, lost_reports = write_reports(session, entities, relationships, communities)
        several = sum(len(item.descriptions) > 1 for item in (*entities, *relationships))
        losses = {"chunks": lost_chunks, "summaries": several, "reports": lost_reports}
        return KnowledgeGraph(entities, relationships, reports, losses)


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
        summary = session.ask(_DESCRIBE, describing_prompt(str(item), batch))
        if not summary:
            return item
        rest = rest[len(batch) - 1 :]
    return replace(item, descriptions=(summary,))


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
    """Let the model report on communities, deepest level first (section 3.1.5); also return how many are lost."""
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
