"""Reports on communities: what the model is shown of one, and the form of its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, Field, FiniteFloat

from arag.evaluation.methods.graphrag.knowledge import Community, Entity, Relationship, Report
from arag.evaluation.methods.graphrag.texts import ENTITIES, RELATIONSHIPS, entity_row, relationship_row
from arag.graph.prompts import DATA_RULE, as_data
from arag.retrieval.tokens import count_tokens

MAX_TOKENS = 8_000  # of the two tables

_TASK = f"""You report on a community: entities that belong together, and the relationships between them, which two
tables list. The report lets readers who do not have the tables understand who and what is in the community, how they
are connected, and what is known about them.

Write a title that names the chief entities; a summary of the whole; a rating from 0 to 10 of how much the community
matters; one sentence that explains the rating; and five to ten findings, the most important first, each with a
one-sentence summary and an explanation of several sentences. At most 2,000 words, in the language of the tables, and
nothing that they do not support. Reply with one JSON object and nothing else:
{{"title": "...", "summary": "...", "rating": 5.0, "rating_explanation": "...",
"findings": [{{"summary": "...", "explanation": "..."}}]}}

{DATA_RULE}"""


class Finding(BaseModel):
    """One finding about a community."""

    summary: str = Field(description="The finding in one sentence.")
    explanation: str = Field(description="Several sentences that explain it.")


class CommunityReport(BaseModel):
    """A report on a community."""

    title: str = Field(description="A title that names the chief entities.")
    summary: str = Field(description="A summary of the whole.")
    rating: FiniteFloat = Field(description="How much the community matters, from 0 to 10.")
    rating_explanation: str = Field("", description="One sentence that explains the rating.")
    findings: list[Finding] = Field(description="The findings, the most important first.")


def report_messages(tables: str) -> list[BaseMessage]:
    """Return the messages that ask for a report on a community."""
    return [SystemMessage(_TASK), HumanMessage(as_data("tables", tables))]


def make_tables(
    entities: Mapping[str, Entity], relationships: Sequence[Relationship], max_tokens: int = MAX_TOKENS
) -> str:
    """Return the two tables of a community.

    Each relationship brings its two entities, in the order of the relationships' ranks, until they do not fit. The
    first one is there even if it does not. Rows are numbered within the table: with their numbers in the corpus,
    a chunk that changes elsewhere would change all tables, and all reports would be paid for again.

    Args:
        entities: Entities by title; the community's are among them.
        relationships: The relationships between members of the community.
        max_tokens: Tokens of both tables.
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


def make_report(community: Community, given: CommunityReport) -> Report:
    """Return the report on a community from the model's reply."""
    findings = (f"## {finding.summary.strip()}\n\n{finding.explanation.strip()}" for finding in given.findings)
    text = "\n\n".join([f"# {given.title.strip()}", given.summary.strip(), *findings])
    return Report(community, given.title.strip(), text, min(max(given.rating, 0.0), 10.0))
